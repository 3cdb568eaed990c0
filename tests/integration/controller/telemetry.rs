//! What a controller tells over OTLP: metrics and traces, read with a capture.

mod moves;
mod queue_stream;
mod storm;

use std::collections::BTreeMap;

use agents::api::contract::{annotation, env, metric};
use agents::api::kinds::AgentRun;
use anyhow::{Context, Result};
use k8s_openapi::api::batch::v1::Job;
use kube::api::PostParams;
use serde_json::json;
use support::otlp::{Labels, Receiver, hex, text};

use super::scene::{Scene, condition, holds};
use crate::kit::client;

/// A scene whose controllers export to a capture.
async fn captured(settings: &[(&str, &str)]) -> Result<(Scene, Receiver)> {
    let receiver = Receiver::start().await?;
    let endpoint = receiver.endpoint();
    let mut all = vec![
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint),
        ("OTEL_METRIC_EXPORT_INTERVAL", "1000"),
        ("OTEL_BSP_SCHEDULE_DELAY", "200"),
    ];
    all.extend_from_slice(settings);
    Ok((Scene::with_agent(&all).await?, receiver))
}

fn value(series: &BTreeMap<Labels, f64>, labels: &[&str]) -> Option<f64> {
    let labels: Labels = labels.iter().map(|label| (*label).to_owned()).collect();
    series.get(&labels).copied()
}

#[tokio::test]
async fn the_queue_is_measured_as_admission_sees_it() -> Result<()> {
    support::kinds!();
    let settings = [(env::CONCURRENCY_AGENT, "1"), (env::SWEEP, "1h")];
    let (scene, mut receiver) = captured(&settings).await?;
    let mut controller = scene.controller().await?;
    scene.run("first", json!({})).await?;
    scene.until_phase("first", "Running").await?;
    scene.run("second", json!({})).await?;
    scene
        .run("third", json!({"agentRef": {"name": "nobody"}}))
        .await?;
    let blocked = |run: &AgentRun| condition(run, "Blocked") == holds("True", "ConcurrencyLimit");
    scene.until("second", blocked).await?;
    let held = |series: &BTreeMap<Labels, f64>| {
        value(series, &["reason=ConcurrencyLimit"]) == Some(1.0)
            && value(series, &["reason=MissingAgent"]) == Some(1.0)
    };
    receiver.until(metric::RUNS_BLOCKED, held).await?;
    let one = |series: &BTreeMap<Labels, f64>| value(series, &[]) == Some(1.0);
    receiver.until(metric::RUNS_WAITING, one).await?;
    receiver.until(metric::RUNS_RUNNING, one).await?;
    let some = |series: &BTreeMap<Labels, f64>| value(series, &[]).is_some_and(|age| age > 0.0);
    receiver.until(metric::RUNS_OLDEST_WAITING, some).await?;
    scene.end_pod("first", 0).await?;
    scene.until_phase("second", "Running").await?;
    let none = |series: &BTreeMap<Labels, f64>| value(series, &[]) == Some(0.0);
    receiver.until(metric::RUNS_WAITING, none).await?;
    receiver.until(metric::OUTCOME_UNRECORDED, none).await?;
    receiver.until(metric::OUTCOME_UNRECORDED_AGE, none).await?;
    let ended = |series: &BTreeMap<Labels, f64>| {
        value(series, &["phase=Succeeded", "runtime=job"]) == Some(1.0)
    };
    receiver.until(metric::RUNS, ended).await?;
    let timed = |series: &BTreeMap<Labels, f64>| value(series, &["runtime=job"]) == Some(1.0);
    receiver.until(metric::RUN_DURATION, timed).await?;
    receiver.until(metric::OUTCOME_RECORD, one).await?;
    // A page of metrics is not there as well.
    let admin = controller.address("admin").await;
    assert_eq!(client::get(admin, "/metrics").await.status, 404);
    Ok(())
}

#[tokio::test]
async fn metrics_are_sent_as_often_to_whom_and_as_whom_the_operator_says() -> Result<()> {
    support::kinds!();
    let settings = [
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=all"),
        ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "x-tenant=figures"),
        ("OTEL_SERVICE_NAME", "runs"),
        ("OTEL_SERVICE_NAMESPACE", "team"),
        ("OTEL_SERVICE_INSTANCE_ID", "one"),
    ];
    let (scene, mut receiver) = captured(&settings).await?;
    let _controller = scene.controller().await?;
    // At the usual interval there would be four of them when the receiver gives up.
    for export in receiver.exports(6).await? {
        let said = |name: &str| export.resource.get(name).map(String::as_str);
        let names = ["service.name", "service.namespace", "service.instance.id"];
        assert_eq!(names.map(said), [Some("runs"), Some("team"), Some("one")]);
        let tenant = export.headers.get("x-tenant").map(String::as_str);
        assert_eq!(tenant, Some("figures"));
    }
    Ok(())
}

#[tokio::test]
async fn calls_queues_events_and_limits_are_measured() -> Result<()> {
    support::kinds!();
    let settings = [(env::RATE_CLUSTER, "1"), (env::RATE_WINDOW, "1h")];
    let (scene, mut receiver) = captured(&settings).await?;
    let _controller = scene.controller().await?;
    scene.run("first", json!({})).await?;
    scene.until_phase("first", "Running").await?;
    scene.run("second", json!({})).await?;
    let limited = |run: &AgentRun| condition(run, "Blocked") == holds("True", "RateLimit");
    scene.until("second", limited).await?;
    let hit = |series: &BTreeMap<Labels, f64>| {
        value(series, &["scope=cluster"]) == Some(1.0)
            && value(series, &["scope=namespace"]) == Some(0.0)
    };
    receiver.until(metric::RATE_LIMIT_HITS, hit).await?;
    let made = |series: &BTreeMap<Labels, f64>| {
        value(series, &["code=2xx", "resource=jobs", "verb=create"]) == Some(1.0)
            && value(series, &["code=2xx", "resource=agentruns", "verb=watch"]) >= Some(1.0)
            && value(series, &["code=2xx", "resource=agentruns", "verb=patch"]) >= Some(4.0)
    };
    receiver.until(metric::API_CALLS, made).await?;
    let told = |series: &BTreeMap<Labels, f64>| {
        value(series, &["group=events", "type=Normal"]) >= Some(1.0)
    };
    receiver.until(metric::EVENTS_EMITTED, told).await?;
    let lost = receiver.series(metric::EVENTS_DROPPED).await?;
    assert!(
        !lost.is_empty() && lost.values().all(|lost| *lost == 0.0),
        "{lost:?}"
    );
    let added = |series: &BTreeMap<Labels, f64>| value(series, &["name=runs"]) >= Some(2.0);
    receiver.until(metric::WORKQUEUE_ADDS, added).await?;
    receiver
        .until(metric::WORKQUEUE_QUEUE_DURATION, added)
        .await?;
    receiver
        .until(metric::WORKQUEUE_WORK_DURATION, added)
        .await?;
    let there = |series: &BTreeMap<Labels, f64>| value(series, &["name=runs"]).is_some();
    for name in [
        metric::WORKQUEUE_DEPTH,
        metric::WORKQUEUE_RETRIES,
        metric::WORKQUEUE_UNFINISHED,
        metric::WORKQUEUE_LONGEST,
    ] {
        receiver.until(name, there).await?;
    }
    let by_kind = |series: &BTreeMap<Labels, f64>| value(series, &["kind=AgentRun"]).is_some();
    receiver.until(metric::QUEUE_DEPTH, by_kind).await?;
    Ok(())
}

#[tokio::test]
async fn the_trace_of_an_admission_goes_on_through_the_reconcile_into_the_job() -> Result<()> {
    support::kinds!();
    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const PARENT: &str = "b7ad6b7169203331";
    support::kinds!();
    let (scene, mut receiver) = captured(&[]).await?;
    let mut controller = scene.controller().await?;
    let unsampled = format!("00-{}-{PARENT}-00", TRACE.replace('0', "1"));
    let sampled = format!("00-{TRACE}-{PARENT}-01");
    for (name, traceparent) in [("quiet", &unsampled), ("traced", &sampled)] {
        let run: AgentRun = serde_json::from_value(json!({
            "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun",
            "metadata": {"name": name, "annotations": {annotation::TRACEPARENT: traceparent}},
            "spec": {"agentRef": {"name": "coder"}, "implementation": {"inline": {"text": "Do it."}},
                "runtime": {"type": "job"}, "workload": {"image": "registry.example.com/runner:1"}},
        }))?;
        let runs = scene.here.api::<AgentRun>();
        runs.create(&PostParams::default(), &run).await?;
        scene.until_phase(name, "Running").await?;
    }
    let attribute = |span: &opentelemetry_proto::tonic::trace::v1::Span, key: &str| {
        let found = span
            .attributes
            .iter()
            .find(|attribute| attribute.key == key);
        found.map(|found| text(found).to_owned())
    };
    let span = receiver
        .span(|span| {
            assert_ne!(
                attribute(span, "name").as_deref(),
                Some("quiet"),
                "not sampled"
            );
            attribute(span, "name").as_deref() == Some("traced")
        })
        .await?;
    assert_eq!(span.name, "reconcile");
    assert_eq!(
        (
            hex(&span.trace_id).as_str(),
            hex(&span.parent_span_id).as_str()
        ),
        (TRACE, PARENT)
    );
    assert_eq!(attribute(&span, "kind").as_deref(), Some("AgentRun"));
    assert_eq!(attribute(&span, "namespace"), Some(scene.here.name.clone()));
    assert_eq!(attribute(&span, "result").as_deref(), Some("ok"));
    let job = scene.here.api::<Job>().get("traced-job").await?;
    let pod = job.spec.context("a spec")?.template.spec.context("a pod")?;
    let variables = pod.containers[0].env.clone().unwrap_or_default();
    let handed = variables
        .iter()
        .find(|variable| variable.name == "TRACEPARENT");
    let handed = handed.and_then(|variable| variable.value.clone());
    assert_eq!(handed, Some(sampled));
    let line = controller
        .line("the Job", |line| {
            line["message"] == "Job made" && line["run"] == "traced"
        })
        .await;
    assert_eq!(line["trace_id"], json!(TRACE));
    assert_eq!(line["span_id"].as_str().map(str::len), Some(16));
    assert_ne!(line["span_id"], json!(PARENT));
    Ok(())
}
