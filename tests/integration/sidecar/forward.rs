//! What was received goes on to a collector as it came, and a collector that is gone harms nobody.

use agents::kit::{
    http::Transport,
    readiness::Readiness,
    shutdown::channel,
    tls::{self, Source},
};
use agents_sidecar::args::variable;
use anyhow::{Context, Result, ensure};
use http::StatusCode;
use std::time::Duration;
use support::{metrics::Page, ports, sink::Sink, wait::retry};
use tokio::task::JoinSet;

use super::{
    memory::request,
    otlp::{JSON, PROTOBUF, Sidecar, post},
};
use crate::kit::{
    client::DEADLINE,
    pki::{Authority, Mount},
};

const ANY: &str = "127.0.0.1:0";

fn dropped(page: &Page, cause: &str) -> f64 {
    let labels = [("signal", "traces"), ("cause", cause)];
    page.value("agents_sidecar_forward_dropped_total", &labels)
        .unwrap_or(f64::NAN)
}

fn sent(page: &Page, signal: &str) -> f64 {
    page.value("agents_sidecar_forward_sent_total", &[("signal", signal)])
        .unwrap_or(f64::NAN)
}

#[tokio::test]
async fn everything_goes_on_as_it_came_by_http_and_by_grpc() -> Result<()> {
    let metrics = request("x", 0..1, 1);
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
        assert_eq!(page.value("x", &[("x", "0")]), Some(1.0));
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

/// What the sidecar trusts besides the authorities of the host.
#[derive(Clone, Copy, Debug)]
enum Trusted {
    ThatOfTheTarget,
    AnotherOne,
}

#[tokio::test]
async fn over_tls_it_goes_on_to_a_target_that_is_trusted_and_to_no_other() -> Result<()> {
    let authority = Authority::new();
    let mount = Mount::new(&authority.issue());
    let gate = Readiness::default().gate("certificate");
    let source = Source::new(mount.options(), gate, tls::Metrics::default());
    let transport = Transport::Tls(source.tls());
    let (_trigger, shutdown) = channel();
    let mut sources = JoinSet::new();
    sources.spawn(source.run(shutdown));
    let file = tempfile::NamedTempFile::new()?;
    let path = file.path().to_str().context("a path")?;
    for (protocol, trusted) in [
        ("http/protobuf", Trusted::ThatOfTheTarget),
        ("grpc", Trusted::ThatOfTheTarget),
        ("http/protobuf", Trusted::AnotherOne),
        ("grpc", Trusted::AnotherOne),
    ] {
        let case = format!("{protocol}, {trusted:?}");
        let pem = match trusted {
            Trusted::ThatOfTheTarget => authority.pem(),
            Trusted::AnotherOne => Authority::new().pem(),
        };
        std::fs::write(path, pem)?;
        let mut sink = Sink::start_over(transport.clone(), ANY.parse()?, &[]).await?;
        let endpoint = format!("https://localhost:{}", sink.address.port());
        let sidecar = Sidecar::start(&[
            (variable::FORWARD_ENDPOINT, &endpoint),
            (variable::FORWARD_PROTOCOL, protocol),
            (variable::FORWARD_CA_FILE, path),
        ])
        .await;
        let told = post(sidecar.http, "/v1/traces", PROTOBUF, b"over tls").await?;
        assert_eq!(told.status, 200, "{case}: {told:?}");
        match trusted {
            Trusted::ThatOfTheTarget => {
                let taken = sink.next().await.with_context(|| case.clone())?;
                ensure!(taken.body.ends_with(b"over tls"), "{case}: {taken:?}");
            }
            Trusted::AnotherOne => {
                retry("another try", DEADLINE, || async {
                    let page = sidecar.page().await?;
                    let retries = page.value("agents_sidecar_forward_retries_total", &[]);
                    ensure!(retries >= Some(1.0), "{retries:?}");
                    Ok(())
                })
                .await?;
                assert_eq!(sent(&sidecar.page().await?, "traces"), 0.0, "{case}");
            }
        }
        drop(sidecar);
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
