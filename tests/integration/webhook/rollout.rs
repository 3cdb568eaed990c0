//! What operators change while people go on working: the policy file, a candidate beside it, the rung.

use std::{fs, path::Path};

use agents::{
    api::{
        contract::{env as variable, reporter},
        kind::Kind,
        registration::rung::Rung,
    },
    events::Reason,
};
use agents_webhook::args::variable as own;
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::events::v1::Event;
use kube::{Api, api::ListParams};
use serde_json::{Value, json};
use support::{Namespace, builders::smallest, kubectl::Said, metrics::Page, wait};
use tempfile::TempDir;

use super::hook::{DEADLINE, Station};

/// What kubectl says about a run with this image, without storing anything.
async fn tried(here: &Namespace, image: &str) -> Result<Said> {
    let dry = ["apply", "--dry-run=server", "--filename", "-"];
    let run = smallest(Kind::AgentRun, "run").spec(json!({"workload": {"image": image}}));
    let input = run.to_string();
    here.kubectl.run_with_input(&dry, &input).await
}

/// Replaces a file as a mounted ConfigMap is replaced: at once.
fn put(file: &Path, text: &str) -> Result<()> {
    let beside = file.with_extension("new");
    fs::write(&beside, text)?;
    Ok(fs::rename(beside, file)?)
}

/// Events of the webhook about itself.
async fn told(here: &Namespace, pod: &str) -> Result<Vec<Event>> {
    let events: Api<Event> = Api::namespaced(here.client.clone(), &here.name);
    let mut found = events.list(&ListParams::default()).await?.items;
    found.retain(|event| {
        let about = event
            .regarding
            .as_ref()
            .and_then(|object| object.name.as_deref());
        about == Some(pod) && event.reporting_controller.as_deref() == Some(reporter::WEBHOOK)
    });
    Ok(found)
}

#[tokio::test]
async fn a_policy_file_is_followed_and_a_bad_one_changes_nothing() -> Result<()> {
    support::own_lab!();
    let folder = TempDir::new()?;
    let (file, candidate) = (
        folder.path().join("policy"),
        folder.path().join("candidate"),
    );
    put(&file, "images: {denied: ['old/*']}")?;
    put(&candidate, "images: {denied: ['new/*']}")?;
    let home = support::namespace("policy-home").await?;
    let path = |file: &'_ Path| file.to_str().map(str::to_owned).context("UTF-8");
    let station = Station::start(&[
        (variable::POLICY_FILE, &path(&file)?),
        (variable::POLICY_CANDIDATE_FILE, &path(&candidate)?),
        (variable::POD_NAMESPACE, &home.name),
        ("OTEL_SERVICE_INSTANCE_ID", "webhook-1"),
    ])
    .await?;
    let here = station.registered.namespace("policy").await?;
    ensure!(
        tried(&here, "new/image").await?.code == Some(0),
        "allowed at first"
    );
    ensure!(
        tried(&here, "old/image").await?.code == Some(1),
        "denied at first"
    );
    let admin = station.hook.admin.to_string();
    let page = Page::scrape(&admin).await?;
    for direction in ["stricter", "looser"] {
        let labels = [("direction", direction), ("rule", "DeniedImages")];
        let counted = page.value("agents_webhook_shadow_differences_total", &labels);
        assert_eq!(counted, Some(1.0), "{direction}");
    }
    would_change(&station.hook.logged(), &here.name)?;

    put(&file, "images: {denied: ['new/*']}")?;
    wait::retry("the new policy in force", DEADLINE, || async {
        let said = tried(&here, "new/image").await?;
        ensure!(said.code == Some(1), "still allowed");
        Ok(())
    })
    .await?;
    ensure!(
        tried(&here, "old/image").await?.code == Some(0),
        "no longer denied"
    );

    put(&file, "images: {denyed: ['old/*']}")?;
    complaint(&home, Reason::PolicyRejected, "denyed").await?;
    ensure!(
        tried(&here, "new/image").await?.code == Some(1),
        "the last good one stays"
    );
    let page = Page::scrape(&admin).await?;
    let labels = [("policy", "active"), ("result", "refused")];
    let refused = page.value("agents_webhook_policy_reloads_total", &labels);
    assert_eq!(refused, Some(1.0));

    put(&candidate, "imagez: {}")?;
    complaint(&home, Reason::CandidatePolicyRejected, "imagez").await
}

/// A log line says what a candidate would change: one in a second at most, so the first of the two is there for certain.
fn would_change(log: &str, namespace: &str) -> Result<()> {
    let lines = log.lines().filter_map(|line| {
        let line: Value = serde_json::from_str(line).ok()?;
        let message = "Candidate policy would decide otherwise";
        (line["message"] == message && line["namespace"] == namespace).then_some(line)
    });
    let lines: Vec<Value> = lines.collect();
    ensure!((1..=2).contains(&lines.len()), "{lines:?}");
    for (line, rules) in lines
        .iter()
        .zip(["DeniedImages:stricter", "DeniedImages:looser"])
    {
        let told = json!({"kind": "AgentRun", "name": "run", "rules": rules});
        let shown = json!({"kind": line["kind"], "name": line["name"], "rules": line["rules"]});
        ensure!(shown == told, "{line}");
    }
    Ok(())
}

#[tokio::test]
async fn a_candidate_that_is_bad_from_the_start_is_told_of() -> Result<()> {
    support::own_lab!();
    let folder = TempDir::new()?;
    let candidate = folder.path().join("candidate");
    put(&candidate, "imagez: {}")?;
    let home = support::namespace("candidate-home").await?;
    let _station = Station::start(&[
        (
            variable::POLICY_CANDIDATE_FILE,
            candidate.to_str().context("UTF-8")?,
        ),
        (variable::POD_NAMESPACE, &home.name),
        ("OTEL_SERVICE_INSTANCE_ID", "webhook-1"),
    ])
    .await?;
    complaint(&home, Reason::CandidatePolicyRejected, "imagez").await
}

/// Waits for the Event about a policy file that was refused for this word.
async fn complaint(home: &Namespace, reason: Reason, word: &str) -> Result<()> {
    wait::retry("an Event about the file", DEADLINE, || async {
        let events = told(home, "webhook-1").await?;
        let of_reason = |event: &&Event| event.reason.as_deref() == Some(reason.as_str());
        let event = events.iter().find(of_reason).context("no Event yet")?;
        let note = event.note.as_deref().unwrap_or_default();
        ensure!(note.contains(word), "{note}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn on_the_rung_warn_everything_passes_with_a_word() -> Result<()> {
    support::own_lab!();
    let station = Station::start(&[(own::RUNG, Rung::Warn.as_str())]).await?;
    let here = station.registered.namespace("warn").await?;
    let said = tried(&here, "spaces are wrong").await?;
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(
        said.stderr.starts_with("Warning: spec.workload.image: "),
        "{}",
        said.stderr
    );
    Ok(())
}
