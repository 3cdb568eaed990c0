//! What was received goes on to a collector as it came, and a collector that is gone harms nobody.

use agents_sidecar::{args::variable, otlp::write::Writer};
use anyhow::{Context, Result, ensure};
use http::StatusCode;
use std::{net::SocketAddr, time::Duration};
use support::{metrics::Page, ports, sink::Sink, wait::retry};
use tokio::io::AsyncWriteExt;

use super::otlp::Sidecar;
use crate::kit::client::{Answer, DEADLINE, answer, connect};

const ANY: &str = "127.0.0.1:0";

/// Sends bytes by HTTP.
async fn post(address: SocketAddr, path: &str, kind: &str, body: &[u8]) -> Result<Answer> {
    let mut stream = connect(address).await;
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: test\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await?;
    answer(&mut stream).await.context("an answer")
}

/// A gauge `x` with one point.
fn gauge() -> Vec<u8> {
    let mut writer = Writer::default();
    writer.message(1, |target| {
        target.message(2, |scope| {
            scope.message(2, |metric| {
                metric.bytes(1, b"x");
                metric.message(5, |gauge| {
                    gauge.message(1, |point| {
                        point.fixed64(3, 1);
                        point.double(4, 1.5);
                    });
                });
            });
        });
    });
    writer.into_bytes()
}

fn dropped(page: &Page, cause: &str) -> f64 {
    let labels = [("signal", "traces"), ("cause", cause)];
    page.value("agents_sidecar_forward_dropped_total", &labels)
        .unwrap_or(f64::NAN)
}

fn sent(page: &Page, signal: &str) -> f64 {
    page.value("agents_sidecar_forward_sent_total", &[("signal", signal)])
        .unwrap_or(f64::NAN)
}

const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";

#[tokio::test]
async fn everything_goes_on_as_it_came_by_http_and_by_grpc() -> Result<()> {
    let metrics = gauge();
    // Neither is read here, so any bytes will do.
    let (spans, records) = (&b"\x0a\x03\x01\x02\x03"[..], br#"{"resourceLogs": [ ]}"#);
    for protocol in ["http/protobuf", "grpc"] {
        let mut sink = Sink::start(ANY.parse()?, &[]).await?;
        let endpoint = format!("http://{}", sink.address);
        let sidecar = Sidecar::start(&[
            (variable::FORWARD_ENDPOINT, &endpoint),
            (variable::FORWARD_PROTOCOL, protocol),
            (variable::FORWARD_HEADERS, "x-token=secret"),
        ])
        .await;
        let is_grpc = protocol == "grpc";
        for (path, kind, body) in [
            ("/v1/metrics", PROTOBUF, &metrics[..]),
            ("/v1/traces", PROTOBUF, spans),
            ("/v1/logs", JSON, &records[..]),
        ] {
            let told = post(sidecar.http, path, kind, body).await?;
            if is_grpc && kind == JSON {
                assert_eq!(told.status, 501, "{told:?}");
                continue;
            }
            assert_eq!(told.status, 200, "{told:?}");
            let taken = sink.next().await?;
            let (frame, kind) = match is_grpc {
                true => (5, "application/grpc"),
                false => (0, kind),
            };
            assert_eq!(&taken.body[frame..], body, "{protocol} {path}");
            assert_eq!(taken.headers["content-type"], kind);
            assert_eq!(taken.headers["x-token"], "secret");
            ensure!(is_grpc || taken.path == path, "{}", taken.path);
        }
        let page = sidecar.page().await?;
        assert_eq!(page.value("x", &[]), Some(1.5));
        retry("what was sent is counted", DEADLINE, || async {
            let page = sidecar.page().await?;
            ensure!(sent(&page, "metrics") == 1.0 && sent(&page, "traces") == 1.0);
            Ok(())
        })
        .await?;
        sink.end().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_target_that_asks_to_wait_is_asked_again_and_one_that_refuses_is_not() -> Result<()> {
    let refusals = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::BAD_REQUEST];
    let mut sink = Sink::start(ANY.parse()?, &refusals).await?;
    let endpoint = format!("http://{}/base/", sink.address);
    let sidecar = Sidecar::start(&[
        (variable::FORWARD_ENDPOINT, &endpoint),
        (variable::FORWARD_PROTOCOL, "http/protobuf"),
    ])
    .await;
    // The first is asked to wait and then refused, so only the second arrives.
    for body in [&b"first"[..], b"second"] {
        let told = post(sidecar.http, "/v1/traces", PROTOBUF, body).await?;
        assert_eq!(told.status, 200, "{told:?}");
    }
    let taken = sink.next().await?;
    assert_eq!(
        (&*taken.path, &taken.body[..]),
        ("/base/v1/traces", &b"second"[..])
    );
    let page = sidecar.page().await?;
    assert_eq!(dropped(&page, "refused"), 1.0);
    let retries = page.value("agents_sidecar_forward_retries_total", &[]);
    assert_eq!(retries, Some(1.0));
    sink.end().await
}

#[tokio::test]
async fn a_target_that_is_gone_delays_nobody_and_is_found_when_it_is_back() -> Result<()> {
    const WAITING: usize = 64 * 1024;
    let [address] = ports::free_addresses()?;
    let (endpoint, waiting) = (format!("http://{address}"), WAITING.to_string());
    let sidecar = Sidecar::start(&[
        (variable::FORWARD_ENDPOINT, &endpoint),
        (variable::FORWARD_PROTOCOL, "http/protobuf"),
        (variable::FORWARD_QUEUE_BYTES, &waiting),
    ])
    .await;
    let body = vec![7; 8 * 1024];
    for _ in 0..100 {
        let told = post(sidecar.http, "/v1/traces", PROTOBUF, &body).await?;
        assert_eq!(told.status, 200, "{told:?}");
    }
    let page = sidecar.page().await?;
    let most = (WAITING / body.len()) as f64;
    assert_eq!(dropped(&page, "queue_full"), 100.0 - most);
    assert_eq!(sent(&page, "traces"), 0.0);
    let mut sink = Sink::start(address, &[]).await?;
    for _ in 0..WAITING / body.len() {
        assert_eq!(sink.next().await?.body[..], body[..]);
    }
    let told = post(sidecar.http, "/v1/traces", PROTOBUF, b"again").await?;
    assert_eq!(told.status, 200);
    assert_eq!(sink.next().await?.body[..], b"again"[..]);
    sink.end().await
}

#[tokio::test]
async fn without_a_target_traces_and_logs_are_refused_for_good() -> Result<()> {
    let sidecar = Sidecar::start(&[]).await;
    for path in ["/v1/traces", "/v1/logs"] {
        let told = post(sidecar.http, path, JSON, b"{}").await?;
        assert_eq!(told.status, 501, "{told:?}");
        ensure!(told.body.contains("without a target"), "{}", told.body);
    }
    Ok(())
}

/// Nothing that waits holds the program back when it ends.
#[tokio::test]
async fn the_end_does_not_wait_for_a_target_that_is_gone() -> Result<()> {
    let [address] = ports::free_addresses()?;
    let endpoint = format!("http://{address}");
    let sidecar = Sidecar::start(&[(variable::FORWARD_ENDPOINT, &endpoint)]).await;
    let told = post(sidecar.http, "/v1/traces", PROTOBUF, b"lost").await?;
    assert_eq!(told.status, 200);
    let began = std::time::Instant::now();
    sidecar.process.signal(nix::sys::signal::Signal::SIGTERM);
    let ended = sidecar.process.end().await;
    assert_eq!(ended.code, Some(0), "{:?}", ended.log);
    ensure!(began.elapsed() < Duration::from_secs(10));
    Ok(())
}
