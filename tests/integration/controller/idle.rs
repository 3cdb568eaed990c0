//! A settled object costs no write, however often it is looked at.

use agents::api::kinds::AgentRun;
use anyhow::{Context, Result};
use k8s_openapi::api::batch::v1::Job;
use opentelemetry_proto::tonic::metrics::v1::{metric::Data, number_data_point};
use serde_json::json;

use super::scene::Scene;
use crate::kit::otlp::{Received, Receiver};

/// Reconciles of runs so far, as the next export says.
async fn reconciles(receiver: &mut Receiver) -> i64 {
    loop {
        let Received::Metric(metric) = receiver.next().await else {
            continue;
        };
        if let (Some(Data::Sum(sum)), "agents.reconciles") = (metric.data, metric.name.as_str()) {
            let counts = sum
                .data_points
                .iter()
                .filter_map(|point| match point.value {
                    Some(number_data_point::Value::AsInt(count)) => Some(count),
                    Some(number_data_point::Value::AsDouble(_)) | None => None,
                });
            return counts.sum();
        }
    }
}

#[tokio::test]
async fn settled_runs_are_looked_at_a_hundred_times_without_a_write() -> Result<()> {
    let mut receiver = Receiver::start().await;
    let endpoint = receiver.endpoint();
    let scene = Scene::with_agent(&[
        ("AGENTS_CONTROLLER_SWEEP_SECONDS", "20ms"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
        ("OTEL_METRIC_EXPORT_INTERVAL", "1000"),
    ])
    .await?;
    let _controller = scene.controller().await?;
    for name in ["done", "busy", "waits"] {
        let agent = if name == "waits" { "nobody" } else { "coder" };
        scene
            .run(name, json!({"agentRef": {"name": agent}}))
            .await?;
    }
    scene.until_phase("busy", "Running").await?;
    scene.end_pod("done", 0).await?;
    scene.until_phase("done", "Succeeded").await?;
    scene.until_free("done").await?;
    scene.until("waits", |run| run.status.is_some()).await?;
    // The pod of the busy run comes by itself; once it is there, nothing changes any more.
    scene.pod("busy").await?;
    let versions = || async {
        let mut versions = Vec::new();
        for name in ["done", "busy", "waits"] {
            versions.push(
                scene
                    .here
                    .api::<AgentRun>()
                    .get(name)
                    .await?
                    .metadata
                    .resource_version,
            );
        }
        for name in ["done-job", "busy-job"] {
            versions.push(
                scene
                    .here
                    .api::<Job>()
                    .get(name)
                    .await?
                    .metadata
                    .resource_version,
            );
        }
        anyhow::Ok(versions)
    };
    scene
        .until_job("busy", |job| {
            job.status
                .as_ref()
                .and_then(|status| status.ready)
                .is_some()
        })
        .await?;
    let (first, start) = (versions().await?, reconciles(&mut receiver).await);
    while reconciles(&mut receiver).await < start + 300 {}
    assert_eq!(versions().await?, first);
    receiver.end().await.first().context("exports").map(drop)
}
