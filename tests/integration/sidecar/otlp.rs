//! What is pushed by OTLP, on the page: by the OpenTelemetry SDK, and by whoever writes JSON.

use agents::kit::args::variable as common;
use agents_sidecar::args::variable;
use anyhow::{Context, Result, ensure};
use opentelemetry::{KeyValue, metrics::MeterProvider};
use opentelemetry_otlp::{MetricExporter, WithExportConfig};
use opentelemetry_sdk::{Resource, metrics::SdkMeterProvider};
use std::net::SocketAddr;
use support::metrics::Page;
use tokio::io::AsyncWriteExt;

use crate::kit::{
    client::{Answer, answer, connect},
    process::{Process, product},
};

/// A sidecar, its page, and where OTLP comes in.
pub(crate) struct Sidecar {
    pub(crate) process: Process,
    pub(crate) admin: SocketAddr,
    pub(crate) grpc: SocketAddr,
    pub(crate) http: SocketAddr,
}

impl Sidecar {
    pub(crate) async fn start(settings: &[(&str, &str)]) -> Self {
        let mut environment = vec![
            (common::ADMIN_LISTEN, "127.0.0.1:0"),
            (variable::QUEUE_STREAMS, "[]"),
            (variable::JOBS, "off"),
        ];
        environment.extend_from_slice(settings);
        let mut process = Process::start(&product("agents-sidecar"), &[], &environment);
        Self {
            grpc: process.address("otlp-grpc").await,
            http: process.address("otlp-http").await,
            admin: process.address("admin").await,
            process,
        }
    }

    pub(super) async fn page(&self) -> Result<Page> {
        Page::scrape(&self.admin.to_string()).await
    }
}

/// Pushes a counter, a gauge and a histogram over gRPC.
pub(super) fn push(endpoint: String) -> Result<()> {
    let exporter = MetricExporter::builder()
        .with_tonic()
        .with_endpoint(endpoint)
        .build()?;
    let provider = SdkMeterProvider::builder()
        .with_resource(
            Resource::builder_empty()
                .with_attribute(KeyValue::new("service.name", "shop"))
                .build(),
        )
        .with_periodic_exporter(exporter)
        .build();
    let meter = provider.meter("till");
    let route = [KeyValue::new("http.route", "/pay")];
    meter
        .u64_counter("http.requests")
        .with_unit("{request}")
        .build()
        .add(3, &route);
    meter
        .f64_gauge("oven.temperature")
        .with_unit("Cel")
        .build()
        .record(21.5, &[]);
    let histogram = meter
        .f64_histogram("wait")
        .with_unit("s")
        .with_boundaries(vec![1.0, 2.0])
        .build();
    for seconds in [0.5, 1.5, 9.0] {
        histogram.record(seconds, &[]);
    }
    provider.shutdown()?;
    Ok(())
}

#[tokio::test]
async fn what_the_sdk_pushes_over_grpc_is_on_the_page() -> Result<()> {
    let sidecar = Sidecar::start(&[]).await;
    let endpoint = format!("http://{}", sidecar.grpc);
    tokio::task::spawn_blocking(move || push(endpoint)).await??;
    let page = sidecar.page().await?;
    let scope = ("otel_scope_name", "till");
    let requests = page.value("http_requests_total", &[("http_route", "/pay"), scope]);
    assert_eq!(requests, Some(3.0));
    assert_eq!(page.value("oven_temperature_celsius", &[scope]), Some(21.5));
    for (bound, expected) in [("1", 1.0), ("2", 2.0), ("+Inf", 3.0)] {
        let bucket = page.value("wait_seconds_bucket", &[("le", bound), scope]);
        assert_eq!(bucket, Some(expected), "{bound}");
    }
    assert_eq!(page.value("wait_seconds_sum", &[scope]), Some(11.0));
    assert_eq!(
        page.value("target_info", &[("service_name", "shop")]),
        Some(1.0)
    );
    let taken = page.value("agents_sidecar_otlp_points_total", &[]);
    assert_eq!(taken, Some(3.0));
    Ok(())
}

/// As a home-made exporter sends it: a temporality by name, numbers as text, a histogram without bounds.
pub(crate) const HOME_MADE: &str = r#"{"resourceMetrics":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"jangar"}}]},
"scopeMetrics":[{"scope":{"name":"jangar"},"metrics":[
{"name":"runs_total","sum":{"aggregationTemporality":"AGGREGATION_TEMPORALITY_CUMULATIVE","isMonotonic":true,
 "dataPoints":[{"attributes":[{"key":"phase","value":{"stringValue":"Succeeded"}}],"startTimeUnixNano":"1","timeUnixNano":"2","asDouble":4}]}},
{"name":"run_duration_ms","histogram":{"aggregationTemporality":"AGGREGATION_TEMPORALITY_CUMULATIVE",
 "dataPoints":[{"startTimeUnixNano":"1","timeUnixNano":"2","count":"2","sum":30,"bucketCounts":["2"],"explicitBounds":[],"min":10,"max":20}]}},
{"name":"late","gauge":{"dataPoints":[{"asInt":"1"}]}}
]}]}]}"#;

/// Sends bytes by HTTP.
pub(crate) async fn post(
    address: SocketAddr,
    path: &str,
    kind: &str,
    body: &[u8],
) -> Result<Answer> {
    let mut stream = connect(address).await;
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: test\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
    );
    // Who is turned away early may close before all is written; the answer says so.
    drop(stream.write_all(&[head.as_bytes(), body].concat()).await);
    answer(&mut stream).await.context("an answer")
}

/// The types of content that OTLP has.
pub(crate) const PROTOBUF: &str = "application/x-protobuf";
pub(crate) const JSON: &str = "application/json";

#[tokio::test]
async fn json_that_is_not_quite_as_it_should_be_is_taken_and_refusals_are_told() -> Result<()> {
    let sidecar = Sidecar::start(&[]).await;
    let Answer { status, body, .. } =
        post(sidecar.http, "/otlp/v1/metrics", JSON, HOME_MADE.as_bytes()).await?;
    assert_eq!(status, 200, "{body}");
    let told: serde_json::Value = serde_json::from_str(&body)?;
    let expected = serde_json::json!({"partialSuccess": {
        "rejectedDataPoints": "1",
        "errorMessage": "1 refused (time, first \"late\"): the time is missing",
    }});
    assert_eq!(told, expected);
    let page = sidecar.page().await?;
    let scope = ("otel_scope_name", "jangar");
    assert_eq!(
        page.value("runs_total", &[("phase", "Succeeded"), scope]),
        Some(4.0)
    );
    assert_eq!(page.value("run_duration_ms_count", &[scope]), Some(2.0));
    assert_eq!(page.value("run_duration_ms_sum", &[scope]), Some(30.0));
    let refused = page.value(
        "agents_sidecar_otlp_refused_points_total",
        &[("reason", "time")],
    );
    assert_eq!(refused, Some(1.0));
    let names = support::http::get(&sidecar.admin.to_string(), "/debug/names").await?;
    let names: serde_json::Value = serde_json::from_str(&names)?;
    let rows = names["names"].as_array().context("rows")?;
    let late = rows
        .iter()
        .find(|row| row["original"] == "late")
        .context("a row")?;
    ensure!(late["refusals"][0]["reason"] == "time", "{late}");
    Ok(())
}
