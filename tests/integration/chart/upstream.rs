//! Values that operators have in Git from earlier charts: each keeps its meaning, or is refused with what to use instead.
//!
//! `upstream-values.tsv` lists them all; `upstream.tsv` says of each what it shows in, with which others it is set.

use std::{collections::BTreeMap, fs};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use support::{
    fixtures::repository,
    helm::{Helm, Rendered},
};

use super::variables::{at, merge, starts};

/// One value of an earlier chart.
#[derive(Clone, Debug)]
struct Row {
    path: String,
    value: Value,
    /// `CONTAINER NAME=text`, `Kind/name#/pointer=json`, or a word about values that mean nothing here.
    shows: String,
}

fn lines(file: &str) -> Result<Vec<Vec<String>>> {
    let text = fs::read_to_string(repository().join("tests/fixtures/chart").join(file))?;
    let rows = text.lines().skip(1);
    Ok(rows
        .map(|line| line.split('\t').map(str::to_owned).collect())
        .collect())
}

/// The rows by what they are set together with.
fn rows() -> Result<BTreeMap<String, Vec<Row>>> {
    let mut found: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for cells in lines("upstream.tsv")? {
        let [path, value, shows, with] =
            <[String; 4]>::try_from(cells).ok().context("four cells")?;
        let value = serde_json::from_str(&value).with_context(|| path.clone())?;
        found
            .entry(with)
            .or_default()
            .push(Row { path, value, shows });
    }
    Ok(found)
}

fn is_meaningless(row: &Row) -> bool {
    row.shows.starts_with("refused") || row.shows == "belongs to what is refused"
}

/// What a value shows in.
fn found(rendered: &Rendered, shows: &str) -> Result<(Value, Value)> {
    match shows.split_once('#') {
        Some((object, rest)) => {
            let (pointer, wanted) = rest.split_once('=').context("pointer=json")?;
            let object = rendered.get(object)?;
            let there = object.pointer(pointer).cloned().unwrap_or(Value::Null);
            Ok((there, serde_json::from_str(wanted)?))
        }
        None => {
            let (container, rest) = shows.split_once(' ').context("CONTAINER NAME=text")?;
            let (name, wanted) = rest.split_once('=').context("NAME=text")?;
            let told = rendered.variables(container)?;
            let there = told.get(name).map_or(Value::Null, |text| json!(text));
            Ok((there, json!(wanted)))
        }
    }
}

#[test]
fn every_value_of_the_earlier_chart_has_its_row() -> Result<()> {
    let first = |file| -> Result<Vec<String>> {
        let rows = lines(file)?.into_iter();
        Ok(rows.filter_map(|cells| cells.into_iter().next()).collect())
    };
    let listed = first("upstream-values.tsv")?;
    assert_eq!(listed.len(), 281);
    assert_eq!(first("upstream.tsv")?, listed);
    Ok(())
}

#[tokio::test]
async fn every_accepted_value_shows_where_it_did() -> Result<()> {
    let helm = Helm::new().await?;
    for (with, rows) in rows()? {
        let mut values: Value = serde_json::from_str(&with)?;
        // A mark that keeps rows apart is no value.
        values.as_object_mut().context("an object")?.remove("x");
        let rows: Vec<_> = rows
            .into_iter()
            .filter(|row| !is_meaningless(row))
            .collect();
        for row in &rows {
            merge(&mut values, &at(&row.path, &row.value));
        }
        let rendered = helm.render(&values, &[]).await?;
        for row in &rows {
            let (there, wanted) = found(&rendered, &row.shows).with_context(|| row.path.clone())?;
            assert_eq!(there, wanted, "{}", row.path);
        }
        starts::<agents::controller::Config>(&rendered, "controllers")?;
        starts::<agents::serve::Config>(&rendered, "control-plane")?;
        starts::<agents_webhook::Config>(&rendered, "webhook")?;
        starts::<agents_sidecar::Config>(&rendered, "sidecar")?;
    }
    Ok(())
}

#[tokio::test]
async fn every_refused_value_is_named_with_what_to_use_instead() -> Result<()> {
    let helm = Helm::new().await?;
    let rows: Vec<Row> = rows()?
        .into_values()
        .flatten()
        .filter(is_meaningless)
        .collect();
    let mut values = json!({"controllers": {"enabled": false}});
    for row in rows.iter().filter(|row| row.path != "controllers.enabled") {
        merge(&mut values, &at(&row.path, &row.value));
    }
    let said = helm.refusal(&values, &[]).await?;
    let refused: Vec<_> = rows
        .iter()
        .filter(|row| row.shows.starts_with("refused"))
        .collect();
    assert_eq!(refused.len(), 12);
    for row in &refused {
        assert!(
            said.contains(&format!("  - {}: `", row.path)),
            "{} is not in {said}",
            row.path
        );
    }
    assert!(said.contains("12 of the values cannot be used"), "{said}");
    Ok(())
}

/// What the earlier chart has by default must not stop anyone who keeps a copy of all its values.
#[tokio::test]
async fn what_the_earlier_chart_says_by_default_of_refused_values_is_accepted() -> Result<()> {
    let values = json!({
        "audit": {"sink": {"type": "none", "http": {"url": "", "headers": {}, "timeoutMs": 2000}}},
        "workflowRuntime": {"native": {"rerunOrchestration": "", "systemImprovementOrchestration": ""}},
        "agentComms": {"enabled": false, "subjects": [], "nats": {"url": "", "userSecret": {"name": ""}}},
        "argocdHooks": {"enabled": false, "image": {"repository": "bitnami/kubectl", "tag": "1.30.1"}},
        "metrics": {"path": "/metrics"}, "runner": {"image": {"pullPolicy": "IfNotPresent"}},
        "runtime": {"scheduleRunnerImage": "", "scheduleServiceAccount": ""},
        "controllers": {"enabled": true},
        "controller": {"jobTtlSeconds": 600, "jobTtlSecondsAfterFinished": 600},
    });
    Helm::new().await?.render(&values, &[]).await?;
    Ok(())
}

/// The values that the operators have in Git, with other hosts.
#[tokio::test]
async fn the_values_of_the_operators_render() -> Result<()> {
    let text = fs::read_to_string(repository().join("tests/fixtures/chart/operators.yaml"))?;
    let values: Value = serde_saphyr::from_str(&text)?;
    let rendered = Helm::new().await?.render(&values, &[]).await?;
    let controllers = rendered.variables("controllers")?;
    let expected = [
        ("JANGAR_AGENTS_CONTROLLER_NAMESPACES", "agents"),
        ("JANGAR_RBAC_CLUSTER_SCOPED", "false"),
        (
            "DATABASE_URL",
            r#"{"secretKeyRef":{"key":"uri","name":"jangar-db-app"}}"#,
        ),
        ("JANGAR_GITHUB_REPOS_ALLOWED", "proompteng/lab"),
        ("JANGAR_AGENT_RUNNER_NATS_AUTH_SECRET_NAME", "nats-auth"),
    ];
    for (name, text) in expected {
        assert_eq!(
            controllers.get(name).map(String::as_str),
            Some(text),
            "{name}"
        );
    }
    let plane = rendered.variables("control-plane")?;
    assert_eq!(plane["JANGAR_GRPC_PORT"], "50051");
    assert_eq!(plane["JANGAR_CONTROL_PLANE_CACHE_ENABLED"], "1");
    starts::<agents::controller::Config>(&rendered, "controllers")
}
