//! Telemetry of a real process: JSON logs with trace ids, and an export that is flushed at the end.

use agents::kit::{
    http::Transport,
    readiness::Readiness,
    shutdown::channel,
    tls::{self, Source},
};
use nix::sys::signal::Signal;
use opentelemetry_proto::tonic::{metrics::v1::metric::Data, resource::v1::Resource};
use serde_json::{Value, json};
use support::otlp::{self, Received, Receiver, hex};
use tokio::task::JoinSet;

use super::{
    client::{answer, connect, get, send},
    pki::{Authority, Mount},
    process::{Process, kit_program},
};

const TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT_ID: &str = "b7ad6b7169203331";

/// Sends one request that belongs to a known trace.
async fn request_in_trace(process: &mut Process) {
    let mut client = connect(process.address("work").await).await;
    let request = format!(
        "GET /work HTTP/1.1\r\nHost: test\r\ntraceparent: 00-{TRACE_ID}-{PARENT_ID}-01\r\n\r\n"
    );
    send(&mut client, request.as_bytes()).await;
    assert_eq!(answer(&mut client).await.expect("an answer").status, 200);
}

#[tokio::test]
async fn logs_are_json_and_carry_the_ids_of_the_callers_trace_without_any_exporter() {
    let mut process = Process::start(&kit_program(), &[], &[]);
    request_in_trace(&mut process).await;
    let pressed = |line: &Value| line["message"] == "Button pressed";
    let line = process.line("the request", pressed).await;
    assert_eq!(line["trace_id"], json!(TRACE_ID));
    assert_eq!(line["span_id"].as_str().map(str::len), Some(16));
    assert_ne!(line["span_id"], json!(PARENT_ID));
    assert_eq!(line["method"], json!("GET"));
    assert_eq!(line["path"], json!("/work"));
    process.signal(Signal::SIGTERM);
    let ended = process.end().await;
    assert_eq!(ended.code, Some(0));
    for line in &ended.log {
        let line: Value = serde_json::from_str(line).expect("every line is JSON");
        for key in ["timestamp", "level", "target", "message"] {
            assert!(line[key].is_string(), "{key} is missing in {line}");
        }
    }
}

#[tokio::test]
async fn traces_and_metrics_reach_a_receiver_and_are_flushed_at_the_end() {
    let receiver = Receiver::start().await.expect("a receiver");
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*receiver.endpoint()),
        ("HOSTNAME", "pod-1"),
        // Longer than the test, so that only the flush can have sent them.
        ("OTEL_METRIC_EXPORT_INTERVAL", "3600000"),
        ("OTEL_BSP_SCHEDULE_DELAY", "3600000"),
    ];
    let mut process = Process::start(&kit_program(), &[], &environment);
    request_in_trace(&mut process).await;
    process.signal(Signal::SIGTERM);
    let ended = process.end().await;
    assert_eq!(ended.code, Some(0), "{}", ended.log.join("\n"));
    let received = receiver.end().await.expect("an end");

    let spans = received.iter().filter_map(|received| match received {
        Received::Span(resource, span) => Some((resource, span)),
        Received::Metric(..) => None,
    });
    let [(resource, span)] = &spans.collect::<Vec<_>>()[..] else {
        panic!("one span should have been sent, not {received:?}");
    };
    assert_eq!(span.name, "request");
    assert_eq!(hex(&span.trace_id), TRACE_ID);
    assert_eq!(hex(&span.parent_span_id), PARENT_ID);
    assert_eq!(
        text(resource, "service.name").as_deref(),
        Some("kit-program")
    );
    assert_eq!(text(resource, "service.version").as_deref(), Some("0.0.0"));
    assert_eq!(
        text(resource, "service.instance.id").as_deref(),
        Some("pod-1")
    );

    let counted = received.iter().find_map(|received| match received {
        Received::Metric(metric) if metric.name == "kit.requests" => metric.data.as_ref(),
        Received::Metric(..) | Received::Span(..) => None,
    });
    let Some(Data::Sum(sum)) = counted else {
        panic!("the counter should have been sent: {received:?}");
    };
    use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value::AsInt;
    assert_eq!(sum.data_points[0].value, Some(AsInt(1)));
}

#[tokio::test]
async fn metrics_are_exported_while_the_program_runs() {
    let mut receiver = Receiver::start().await.expect("a receiver");
    let environment = [
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", &*receiver.endpoint()),
        ("OTEL_METRIC_EXPORT_INTERVAL", "1000"),
    ];
    let mut process = Process::start(&kit_program(), &[], &environment);
    request_in_trace(&mut process).await;
    let Received::Metric(metric) = receiver.next().await.expect("a metric") else {
        panic!("traces have no endpoint");
    };
    assert_eq!(metric.name, "kit.requests");
    drop(process);
    receiver.end().await.expect("an end");
}

#[tokio::test]
async fn an_export_over_tls_trusts_the_authorities_of_the_host() {
    let authority = Authority::new();
    let mount = Mount::new(&authority.issue());
    let gate = Readiness::default().gate("certificate");
    let source = Source::new(mount.options(), gate, tls::Metrics::default());
    let mut receiver = Receiver::start_over(Transport::Tls(source.tls()))
        .await
        .expect("a receiver");
    let (_trigger, shutdown) = channel();
    let mut sources = JoinSet::new();
    sources.spawn(source.run(shutdown));
    let trusted = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(trusted.path(), authority.pem()).expect("a file");
    let endpoint = format!("https://localhost:{}", receiver.address.port());
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint),
        ("OTEL_METRIC_EXPORT_INTERVAL", "1000"),
        ("SSL_CERT_FILE", trusted.path().to_str().expect("a path")),
    ];
    let mut process = Process::start(&kit_program(), &[], &environment);
    request_in_trace(&mut process).await;
    receiver.next().await.expect("an export");
    drop(process);
    receiver.end().await.expect("an end");
}

#[tokio::test]
async fn an_export_that_fails_is_counted_and_logged_and_delays_nothing() {
    let environment = [
        // Port 9 is "discard", which nobody serves any more.
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "1000"),
    ];
    let mut process = Process::start(&kit_program(), &[], &environment);
    request_in_trace(&mut process).await;
    let failed = |line: &Value| line["message"] == "Telemetry cannot be exported";
    let line = process.line("the failure", failed).await;
    assert_eq!(line["level"], json!("WARN"));
    assert_eq!(line["signal"], json!("metrics"));
    let admin = process.address("admin").await;
    let page = get(admin, "/metrics").await.body;
    let counter = "kit_program_telemetry_exports_total{signal=\"metrics\",result=\"failed\"} ";
    assert!(
        page.contains(counter) && !page.contains(&format!("{counter}0\n")),
        "{page}"
    );
    process.signal(Signal::SIGTERM);
    assert_eq!(process.end().await.code, Some(0));
}

fn text(resource: &Resource, name: &str) -> Option<String> {
    let attribute = resource
        .attributes
        .iter()
        .find(|attribute| attribute.key == name)?;
    Some(otlp::text(attribute).to_owned())
}
