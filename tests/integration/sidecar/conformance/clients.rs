//! The SDKs of OpenTelemetry push, and what they pushed is read back from Prometheus.

use std::{net::SocketAddr, pin::Pin, process::Stdio};

use ::http::header::CONTENT_TYPE;
use anyhow::{Result, ensure};
use opentelemetry::{KeyValue, metrics::MeterProvider};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{MetricExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{Resource, metrics::SdkMeterProvider};
use support::{
    http,
    lab::{report::Report, tools::build::programs},
    metrics::Series,
    prometheus::{DEADLINE, Job, Prometheus, Settings},
};
use tokio::{process::Command, runtime::Builder, time::timeout};

use super::{
    super::otlp::{HOME_MADE, Sidecar},
    of_target,
};

/// The SDKs, the ways by which each pushes, and where that is.
pub(super) const CLIENTS: &[(&str, &[&str], &str)] = &[
    (
        "Rust",
        &["gRPC", "HTTP"],
        "the_sdk_for_rust_and_a_home_made_exporter_are_read_back_from_prometheus",
    ),
    (
        "Python",
        &["gRPC", "HTTP"],
        "the_sdk_for_python_is_read_back_from_prometheus",
    ),
    (
        "Go",
        &["gRPC", "HTTP", "deltas over HTTP"],
        "the_sdk_for_go_is_read_back_from_prometheus",
    ),
];

/// One sample: its name, its labels, and its value.
type Sample = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

/// What every client pushes; of a native histogram, how its text begins.
const PUSHED: &[Sample] = &[
    (
        "http_requests_total",
        &[("http_route", "/pay"), ("try", "2")],
        "3",
    ),
    ("queue_depth", &[("http_route", "/pay"), ("try", "2")], "3"),
    ("oven_temperature_celsius", &[], "21.5"),
    ("wait_seconds_bucket", &[("le", "1.0")], "1"),
    ("wait_seconds_bucket", &[("le", "2.0")], "2"),
    ("wait_seconds_bucket", &[("le", "+Inf")], "3"),
    ("wait_seconds_count", &[], "3"),
    ("wait_seconds_sum", &[], "11"),
    ("body_size_bytes", &[], "count 3 sum 11 "),
];

/// The same pushed twice as differences, without the sum that may fall, which is refused.
const PUSHED_TWICE: &[Sample] = &[
    (
        "http_requests_total",
        &[("http_route", "/pay"), ("try", "2")],
        "6",
    ),
    ("oven_temperature_celsius", &[], "21.5"),
    ("wait_seconds_bucket", &[("le", "1.0")], "2"),
    ("wait_seconds_bucket", &[("le", "2.0")], "4"),
    ("wait_seconds_bucket", &[("le", "+Inf")], "6"),
    ("wait_seconds_count", &[], "6"),
    ("wait_seconds_sum", &[], "22"),
    ("body_size_bytes", &[], "count 6 sum 22 "),
];

/// As a home-made exporter pushes it: enumerations by name, numbers as text, a histogram without bounds.
const PUSHED_HOME_MADE: &[Sample] = &[
    ("runs_total", &[("phase", "Succeeded")], "4"),
    ("run_duration_ms_bucket", &[("le", "+Inf")], "2"),
    ("run_duration_ms_count", &[], "2"),
    ("run_duration_ms_sum", &[], "30"),
];

/// What was pushed to a sidecar by a service, whose name the SDK says.
struct Pushed {
    sidecar: Sidecar,
    service: &'static str,
    scope: &'static str,
    samples: Vec<Sample>,
}

/// Everything that was pushed and nothing else is in Prometheus.
async fn read_back(all: &[Pushed]) -> Result<()> {
    let job = |pushed: &Pushed| Job {
        name: pushed.service.to_owned(),
        target: pushed.sidecar.admin,
        protocol: "PrometheusProto",
        escaping: "underscores",
    };
    let settings = Settings {
        jobs: all.iter().map(job).collect(),
        strategy: "NoTranslation",
    };
    let prometheus = Prometheus::start(&settings).await?;
    prometheus.until_scraped(all.len()).await?;
    for pushed in all {
        let mut stored = of_target(&prometheus, "job", pushed.service).await?;
        let target = stored.keys().find(|series| series.name == "target_info");
        let service = target.and_then(|target| target.labels.get("service_name"));
        ensure!(
            service.is_some_and(|name| name == pushed.service),
            "{stored:#?}"
        );
        for (name, labels, value) in &pushed.samples {
            let labels = [*labels, &[("otel_scope_name", pushed.scope)]].concat();
            let seen = stored.remove(&Series::new(name, &labels));
            let is_right = seen
                .as_ref()
                .is_some_and(|seen| match value.ends_with(' ') {
                    true => seen.starts_with(value),
                    false => seen == value,
                });
            ensure!(
                is_right,
                "{name} of {}: {seen:?}, and {stored:#?}",
                pushed.service
            );
        }
        stored.retain(|series, _| series.name != "target_info");
        ensure!(stored.is_empty(), "{}: {stored:#?}", pushed.service);
    }
    Ok(())
}

/// A client that the SDK for Rust is lent to push by HTTP. The thread that it pushes from has no runtime.
#[derive(Debug)]
struct Lent;

type Sent<'f> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'f>>;

impl HttpClient for Lent {
    fn send_bytes<'s, 'f>(&'s self, request: Request<Bytes>) -> Sent<'f>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let authority = head.uri.authority().ok_or("no authority")?.to_string();
            let path = head.uri.path().to_owned();
            let kind = head.headers[CONTENT_TYPE].to_str()?.to_owned();
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let told = runtime.block_on(http::post(&authority, &path, &kind, body.to_vec()))?;
            Ok(Response::new(Bytes::from(told)))
        })
    }
}

/// By HTTP to its port, or by gRPC to the other.
#[derive(Clone, Copy, Debug)]
enum Way {
    Grpc(SocketAddr),
    Http(SocketAddr),
}

/// The views of the SDK for Rust know no exponential histograms yet, unless with features that nothing else needs.
fn pushed_by_rust(way: Way) -> Result<()> {
    let (service, exporter) = match way {
        Way::Grpc(address) => (
            "rust-grpc",
            MetricExporter::builder()
                .with_tonic()
                .with_endpoint(format!("http://{address}"))
                .build()?,
        ),
        Way::Http(address) => (
            "rust-http",
            MetricExporter::builder()
                .with_http()
                .with_http_client(Lent)
                .with_endpoint(format!("http://{address}/v1/metrics"))
                .build()?,
        ),
    };
    let service = KeyValue::new("service.name", service);
    let provider = SdkMeterProvider::builder()
        .with_resource(Resource::builder_empty().with_attribute(service).build())
        .with_periodic_exporter(exporter)
        .build();
    let meter = provider.meter("rust-client");
    let by = [KeyValue::new("http.route", "/pay"), KeyValue::new("try", 2)];
    let requests = meter.u64_counter("http.requests").with_unit("{request}");
    requests.build().add(3, &by);
    let depth = meter.i64_up_down_counter("queue.depth").build();
    depth.add(5, &by);
    depth.add(-2, &by);
    let oven = meter.f64_gauge("oven.temperature").with_unit("Cel");
    oven.build().record(21.5, &[]);
    let wait = meter.f64_histogram("wait").with_unit("s");
    let wait = wait.with_boundaries(vec![1.0, 2.0]).build();
    for seconds in [0.5, 1.5, 9.0] {
        wait.record(seconds, &[]);
    }
    Ok(provider.shutdown()?)
}

#[tokio::test]
async fn the_sdk_for_rust_and_a_home_made_exporter_are_read_back_from_prometheus() -> Result<()> {
    let (by_grpc, by_http) = (Sidecar::start(&[]).await, Sidecar::start(&[]).await);
    for way in [Way::Grpc(by_grpc.grpc), Way::Http(by_http.http)] {
        tokio::task::spawn_blocking(move || pushed_by_rust(way)).await??;
    }
    let home_made = Sidecar::start(&[]).await;
    let authority = home_made.http.to_string();
    let body = HOME_MADE.as_bytes().to_vec();
    http::post(&authority, "/otlp/v1/metrics", "application/json", body).await?;
    let rust = |sidecar, service| Pushed {
        sidecar,
        service,
        scope: "rust-client",
        samples: PUSHED
            .iter()
            .filter(|(_, _, value)| !value.ends_with(' '))
            .copied()
            .collect(),
    };
    read_back(&[
        rust(by_grpc, "rust-grpc"),
        rust(by_http, "rust-http"),
        Pushed {
            sidecar: home_made,
            service: "jangar",
            scope: "jangar",
            samples: PUSHED_HOME_MADE.into(),
        },
    ])
    .await
}

/// Waits for a client that must end well.
async fn finish(mut client: Command) -> Result<()> {
    let output = client.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = timeout(DEADLINE, output).await??;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {said}", output.status);
    Ok(())
}

#[tokio::test]
async fn the_sdk_for_go_is_read_back_from_prometheus() -> Result<()> {
    let built = programs(&["go-otel"], Report::start()).await?;
    let mut all = Vec::new();
    for (way, service) in [
        ("grpc", "go-grpc"),
        ("http", "go-http"),
        ("delta", "go-delta"),
    ] {
        let sidecar = Sidecar::start(&[]).await;
        let endpoint = if way == "grpc" {
            sidecar.grpc
        } else {
            sidecar.http
        };
        let mut client = Command::new(built.path("go-otel")?);
        client.args([&endpoint.to_string(), way]).env_clear();
        finish(client).await?;
        let samples = if way == "delta" { PUSHED_TWICE } else { PUSHED };
        all.push(Pushed {
            sidecar,
            service,
            scope: "go-client",
            samples: samples.into(),
        });
    }
    read_back(&all).await
}

#[tokio::test]
async fn the_sdk_for_python_is_read_back_from_prometheus() -> Result<()> {
    let python = support::python!();
    let mut all = Vec::new();
    for (way, service) in [("grpc", "python-grpc"), ("http", "python-http")] {
        let sidecar = Sidecar::start(&[]).await;
        let endpoint = match way {
            "grpc" => format!("http://{}", sidecar.grpc),
            _ => format!("http://{}/v1/metrics", sidecar.http),
        };
        let mut client = python.script(include_str!("push.py"));
        client.args([endpoint.as_str(), way]);
        finish(client).await?;
        all.push(Pushed {
            sidecar,
            service,
            scope: "python-client",
            samples: PUSHED.into(),
        });
    }
    read_back(&all).await
}
