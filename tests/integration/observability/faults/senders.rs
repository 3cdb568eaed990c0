//! A sidecar, and those who send it too much.

use agents_sidecar::args::variable;
use anyhow::{Result, bail, ensure};
use serde_json::json;
use support::ports::free_addresses;

use super::{super::live, Story, provoked, watch::Watch};
use crate::sidecar::{
    memory::{push, request},
    otlp::{HOME_MADE, JSON, PROTOBUF, Sidecar, post},
};

/// The least that can be set. A build for tests takes more by itself, so what is stored decides.
const MEMORY: &str = "16777216";
/// Bytes that may wait to go on.
const WAITING: usize = 64 << 10;
/// Series that a metric may have.
const SHARE: usize = 300;
/// Bytes of a label, so that few series fill the memory.
const LABEL: usize = 2_000;

/// What was to go on, to a target that is not there.
async fn forward(sidecar: &Sidecar) -> Result<()> {
    let body = vec![7; 8 << 10];
    for _ in 0..2 * WAITING / body.len() {
        let told = post(sidecar.http, "/v1/traces", PROTOBUF, &body).await?;
        ensure!(told.status == 200, "{told:?}");
    }
    Ok(())
}

/// More series of a metric than it may have. The answer says so in JSON, which can be read.
async fn invent(sidecar: &Sidecar) -> Result<()> {
    let point = |number: usize| {
        let value = json!({"stringValue": number.to_string()});
        json!({"timeUnixNano": "1", "asInt": "1", "attributes": [{"key": "x", "value": value}]})
    };
    let points: Vec<_> = (0..2 * SHARE).map(point).collect();
    let metric = json!({"name": "invented", "gauge": {"dataPoints": points}});
    let body = json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]}).to_string();
    let told = post(sidecar.http, "/v1/metrics", JSON, body.as_bytes()).await?;
    ensure!(told.body.contains("metric_limit"), "{told:?}");
    Ok(())
}

/// Series without end, until there is no memory for more.
async fn fill(sidecar: &Sidecar) -> Result<()> {
    for number in 0..200 {
        let body = request(&format!("m{number}"), 0..SHARE / 3, LABEL);
        let answer = push(sidecar.http, &body).await?;
        if answer.status == 429 {
            return Ok(());
        }
        ensure!(answer.status == 200, "{answer:?}");
    }
    bail!("memory never ran short")
}

#[tokio::test]
async fn each_alert_of_a_sidecar_is_silent_until_too_much_comes() -> Result<()> {
    let [nobody] = free_addresses()?;
    let sidecar = Sidecar::start(&[
        (variable::FORWARD_ENDPOINT, &format!("http://{nobody}")),
        (variable::FORWARD_PROTOCOL, "http/protobuf"),
        (variable::FORWARD_QUEUE_BYTES, &WAITING.to_string()),
        (variable::METRIC_SERIES, &SHARE.to_string()),
        (variable::MEMORY_LIMIT, MEMORY),
    ])
    .await;
    let pages = live::pages_of(&[("controllers", sidecar.admin, "5f7d9c")]).await?;
    let watch = Watch::start(&pages).await?;
    watch.until_told("agents_sidecar_memory_stage == 0").await?;
    watch.until_silent(&provoked(Story::Senders)).await?;
    let forwarded = forward(&sidecar);
    watch
        .provoke(&["AgentsSidecarForwardDropping"], forwarded)
        .await?;
    let refused = async {
        let told = post(sidecar.http, "/v1/metrics", JSON, HOME_MADE.as_bytes()).await?;
        ensure!(told.body.contains("the time is missing"), "{told:?}");
        Ok(())
    };
    watch
        .provoke(&["AgentsSidecarRefusingPoints"], refused)
        .await?;
    watch
        .provoke(&["AgentsSidecarCardinalityCap"], invent(&sidecar))
        .await?;
    watch
        .provoke(&["AgentsSidecarMemoryPressure"], fill(&sidecar))
        .await?;
    watch.has_shown(Story::Senders)
}
