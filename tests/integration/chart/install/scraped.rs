//! A real Prometheus in the cluster, configured from what the monitors of the chart mean, as Prometheus Operator would do it.

use std::collections::BTreeSet;

use agents::api::contract::port;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use support::{prometheus::Prometheus, wait};

use super::stage::{DEADLINE, Stage};
use crate::chart::{plain, variables::merge};

/// What is scraped of an install: component, and port of the page. The webhook has two pods.
const PAGES: [(&str, u16); 4] = [
    ("control-plane", port::AGENTS_ADMIN),
    ("controllers", port::SIDECAR_ADMIN),
    ("webhook", port::WEBHOOK_ADMIN),
    ("webhook", port::WEBHOOK_ADMIN),
];

fn keep(source: &str, pattern: &str) -> Value {
    json!({"action": "keep", "source_labels": [source], "regex": pattern})
}

fn take(source: &str, target: &str) -> Value {
    json!({"source_labels": [source], "regex": "(.+)", "target_label": target})
}

/// What a label selector keeps; `meta` stands before the name of the label.
fn selected(selector: &Value, meta: &str) -> Vec<Value> {
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let labels = labels.map(|(name, value)| {
        keep(
            &format!("{meta}{}", plain(name)),
            value.as_str().unwrap_or_default(),
        )
    });
    let expressions = selector["matchExpressions"].as_array();
    let expressions = expressions.into_iter().flatten().map(|one| {
        assert_eq!(one["operator"], "In", "the only one that is translated");
        let values = one["values"].as_array().into_iter().flatten();
        let values: Vec<_> = values.filter_map(Value::as_str).collect();
        let name = one["key"].as_str().unwrap_or_default();
        keep(&format!("{meta}{}", plain(name)), &values.join("|"))
    });
    labels.chain(expressions).collect()
}

/// A monitor as Prometheus is told: how targets are found and chosen, and which labels they get.
pub(super) fn job(stage: &Stage, monitor: &Value) -> Result<Value> {
    let spec = &monitor["spec"];
    let (role, meta, endpoint, named) = match monitor["kind"].as_str() {
        Some("ServiceMonitor") => (
            "endpointslice",
            "__meta_kubernetes_service_label_",
            &spec["endpoints"][0],
            "__meta_kubernetes_endpointslice_port_name",
        ),
        Some("PodMonitor") => (
            "pod",
            "__meta_kubernetes_pod_label_",
            &spec["podMetricsEndpoints"][0],
            "__meta_kubernetes_pod_container_port_name",
        ),
        other => anyhow::bail!("{other:?} is no monitor"),
    };
    let mut rules = selected(&spec["selector"], meta);
    let port = endpoint["port"].as_str().context("a port by its name")?;
    rules.push(keep(named, port));
    rules.push(take("__meta_kubernetes_namespace", "namespace"));
    rules.push(take("__meta_kubernetes_pod_name", "pod"));
    let labels = spec["podTargetLabels"].as_array().into_iter().flatten();
    for label in labels.filter_map(Value::as_str) {
        let source = format!("__meta_kubernetes_pod_label_{}", plain(label));
        rules.push(take(&source, &plain(label)));
    }
    Ok(json!({
        "job_name": monitor["kind"], "metrics_path": endpoint["path"],
        "honor_labels": endpoint["honorLabels"],
        "kubernetes_sd_configs": [{
            "role": role, "kubeconfig_file": stage.lab.kubeconfig_inside(),
            "namespaces": {"names": spec["namespaceSelector"]["matchNames"]},
        }],
        "relabel_configs": rules,
    }))
}

/// Both monitors of some values, one at a time as the chart wants it.
pub(super) async fn monitors(stage: &Stage, more: &Value) -> Result<[Value; 2]> {
    let mut service = json!({"metrics": {"serviceMonitor": {"enabled": true}}});
    let mut pods = json!({"metrics": {"serviceMonitor": {"enabled": false}, "podMonitor": {"renderMode": "always"}}});
    merge(&mut service, more);
    merge(&mut pods, more);
    let service = stage.rendered(&service).await?;
    let pods = stage.rendered(&pods).await?;
    Ok([
        job(stage, service.get("ServiceMonitor/agents")?)?,
        job(stage, pods.get("PodMonitor/agents")?)?,
    ])
}

/// Every page is scraped by either monitor, none twice, and tells of the run that succeeded.
pub(super) async fn as_the_monitors_mean_it(stage: &Stage) -> Result<()> {
    let settings = json!({
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": monitors(stage, &json!({})).await?,
    });
    let prometheus = Prometheus::inside(stage.lab, &settings).await?;
    let expected = PAGES.iter().flat_map(|(component, port)| {
        ["PodMonitor", "ServiceMonitor"].map(|job| format!("{job} {component} {port}"))
    });
    let mut expected: Vec<_> = expected.collect();
    expected.sort_unstable();
    let up = wait::retry("pages that are scraped", DEADLINE, || async {
        let failures = prometheus.failures().await?;
        ensure!(failures.is_empty(), "{failures:#?}");
        let up = prometheus.query("up == 1").await?;
        ensure!(up.len() == expected.len(), "{up:#?}");
        Ok(up)
    })
    .await
    .with_context(|| prometheus.log())?;
    let mut found = Vec::new();
    let mut pods = BTreeSet::new();
    for series in up.keys() {
        let label = |name: &str| series.labels.get(name).cloned().unwrap_or_default();
        let instance = label("instance");
        let (_, port) = instance.rsplit_once(':').context("a port")?;
        let component = label("app_kubernetes_io_component");
        found.push(format!("{} {component} {port}", label("job")));
        assert_eq!(label("namespace"), stage.here.name);
        pods.insert(label("pod"));
    }
    found.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(pods.len(), PAGES.len(), "{pods:?}");
    let runs = "count by (job) (agents_runs_total{phase=\"Succeeded\", app_kubernetes_io_component=\"controllers\"} > 0)";
    wait::retry("the run that succeeded", DEADLINE, || async {
        let counted = prometheus.query(runs).await?;
        ensure!(counted.len() == 2, "{counted:#?}");
        Ok(())
    })
    .await
}
