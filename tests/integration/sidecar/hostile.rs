//! Senders that mean harm: whatever they do, the next good request works, the page is whole and memory is bounded.

use agents::api::contract::path;
use agents_sidecar::args::variable;
use anyhow::{Context, Result, ensure};
use support::{
    hostile::shapes,
    http,
    memory::{peak, resident},
    open_metrics,
    wait::retry,
};
use tokio::{io::AsyncWriteExt, net::TcpStream, task::spawn_blocking};

use super::{
    memory::{push, request},
    otlp::{Sidecar, push as push_by_sdk},
};
use crate::kit::client::DEADLINE;

/// What may be resident beside the series that are allowed, in MiB; a build for tests takes more than one for use.
const MOST_MIB: f64 = 128.0;

/// A good request works, its value is on the page, and memory is bounded.
async fn check(sidecar: &Sidecar, name: &str) -> Result<()> {
    let answer = push(sidecar.http, &request(name, 0..1, 1)).await?;
    assert_eq!(answer.status, 200, "{answer:?}");
    let page = sidecar.page().await?;
    assert_eq!(page.value(name, &[("x", "0")]), Some(1.0));
    let resident = page.value("agents_sidecar_memory_resident_bytes", &[]);
    let resident = resident.context("a number")? / f64::from(1 << 20);
    ensure!(resident < MOST_MIB, "{resident} MiB");
    Ok(())
}

/// What one request of 4 MiB may take for a moment, whatever it is made of.
const MOST_BY_REQUEST: u64 = 16 << 20;

#[tokio::test]
async fn no_request_takes_more_memory_than_a_request_may_not_even_for_a_moment() -> Result<()> {
    let mut grown = Vec::new();
    for shape in shapes() {
        let sidecar = Sidecar::start(&[]).await;
        let process = sidecar.process.id();
        // Known before, because some of what follows takes all the names that there may be.
        check(&sidecar, "good").await?;
        let before = resident(process)?;
        let status = shape.send(sidecar.http).await?;
        ensure!([200, 413].contains(&status), "{}: {status}", shape.name);
        grown.push((shape.name, status, peak(process)? - before));
        check(&sidecar, "good").await.context(shape.name)?;
    }
    let is_within = grown.iter().all(|(_, _, grown)| *grown <= MOST_BY_REQUEST);
    ensure!(is_within, "{grown:#?}");
    Ok(())
}

#[tokio::test]
async fn clients_that_never_finish_hold_up_nobody() -> Result<()> {
    let sidecar = Sidecar::start(&[]).await;
    let mut slow = Vec::new();
    for number in 0..100 {
        let mut stream = TcpStream::connect(sidecar.http).await?;
        let part: &[u8] = match number % 3 {
            0 => b"POST /v1/metr",
            1 => b"POST /v1/metrics HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n",
            _ => b"POST /v1/metrics HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: 1024\r\n\r\n{",
        };
        stream.write_all(part).await?;
        slow.push(stream);
    }
    check(&sidecar, "good").await
}

/// A frame of HTTP/2: kind, flags, stream, and what is in it.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = (payload.len() as u32).to_be_bytes();
    let head = [kind, flags, 0, 0, 0, stream];
    [&length[..], &head, payload].concat()
}

/// A call of gRPC up to the first bytes of its message, by hand: a library would end what it began.
fn begun_call() -> Vec<u8> {
    const PATH: &[u8] = b"/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";
    const KIND: &[u8] = b"application/grpc";
    // POST and http have numbers; so do the names of the other three, whose values are written out.
    let headers = [
        &[0x83, 0x86, 0x04, PATH.len() as u8][..],
        PATH,
        &[0x01, 1, b't'],
        &[0x0f, 0x10, KIND.len() as u8],
        KIND,
    ]
    .concat();
    [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(4, 0, 0, &[]),
        frame(1, 4, 1, &headers),
        frame(0, 0, 1, &[0, 0, 0, 4, 0, b'x']),
    ]
    .concat()
}

/// More than there are requests for which there is room if each is as large as it may be.
const STALLED: usize = 20;

#[tokio::test]
async fn bodies_that_stall_leave_room_for_others_whatever_length_they_say() -> Result<()> {
    const POST: &str = "POST /v1/metrics HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n";
    let chunked = format!("{POST}Transfer-Encoding: chunked\r\n\r\n1\r\n{{\r\n");
    let long = format!("{POST}Content-Length: 4194304\r\n\r\n{{");
    let call = begun_call();
    for (kind, begun) in [
        ("chunked", chunked.as_bytes()),
        ("long", long.as_bytes()),
        ("grpc", &call[..]),
    ] {
        let sidecar = Sidecar::start(&[]).await;
        let address = match kind {
            "grpc" => sidecar.grpc,
            _ => sidecar.http,
        };
        let mut stalled = Vec::new();
        for _ in 0..STALLED {
            let mut stream = TcpStream::connect(address).await?;
            stream.write_all(begun).await?;
            stalled.push(stream);
        }
        // When the last one comes, all that stall have been read.
        for name in ["good", "again", "later"] {
            check(&sidecar, name).await.context(kind)?;
        }
    }
    Ok(())
}

/// Connections that come at once.
const CROWD: usize = 1_000;

/// The ports with the connections that each has room for.
const PORTS: [(&str, usize); 3] = [("otlp-grpc", 256), ("otlp-http", 256), ("admin", 64)];

/// How many of them the other side has closed.
fn closed(crowd: &[TcpStream]) -> usize {
    let is_closed = |stream: &&TcpStream| matches!(stream.try_read(&mut [0]), Ok(0));
    crowd.iter().filter(is_closed).count()
}

#[tokio::test]
async fn a_thousand_connections_to_any_port_are_displaced_but_for_those_that_fit() -> Result<()> {
    for (server, room) in PORTS {
        let sidecar = Sidecar::start(&[]).await;
        let address = match server {
            "otlp-grpc" => sidecar.grpc,
            "otlp-http" => sidecar.http,
            _ => sidecar.admin,
        };
        let mut crowd = Vec::new();
        for _ in 0..CROWD {
            crowd.push(TcpStream::connect(address).await?);
        }
        // Each of them wanted in, and whoever had waited longest had to leave for it.
        retry("a crowd that is let in", DEADLINE, || async {
            let page = sidecar.page().await?;
            let closed_labels = [("cause", "displaced"), ("server", server)];
            let displaced = page.value(
                "agents_sidecar_http_connections_closed_total",
                &closed_labels,
            );
            let open = page.value("agents_sidecar_http_connections", &[("server", server)]);
            let (displaced, open) = (displaced.context("a count")?, open.context("a number")?);
            ensure!(
                displaced >= (CROWD - room) as f64,
                "{server}: {displaced} displaced"
            );
            ensure!(open <= room as f64, "{server}: {open} open");
            let closed = closed(&crowd);
            ensure!(closed >= CROWD - room, "{server}: {closed} closed");
            Ok(())
        })
        .await?;
        check(&sidecar, "good").await.context(server)?;
        let endpoint = format!("http://{}", sidecar.grpc);
        spawn_blocking(move || push_by_sdk(endpoint)).await??;
        let page = sidecar.page().await?;
        let scope = [("otel_scope_name", "till")];
        assert_eq!(page.value("oven_temperature_celsius", &scope), Some(21.5));
        drop(crowd);
        check(&sidecar, "later").await.context(server)?;
    }
    Ok(())
}

#[tokio::test]
async fn a_source_that_invents_series_for_ever_gets_no_more_than_its_share() -> Result<()> {
    const SHARE: usize = 2_000;
    /// As many as a build for tests takes in some seconds; `make bench-sidecar` invents ten million.
    const INVENTED: usize = 200_000;
    const BATCH: usize = 10_000;
    let share = SHARE.to_string();
    let sidecar = Sidecar::start(&[
        (variable::METRIC_SERIES, &share),
        (variable::SERIES, "3000"),
    ])
    .await;
    for first in (0..INVENTED).step_by(BATCH) {
        let body = request("invented", first..first + BATCH, 8);
        let mut stream = TcpStream::connect(sidecar.http).await?;
        let head = format!(
            "POST /v1/metrics HTTP/1.1\r\nHost: t\r\nContent-Type: application/x-protobuf\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(&body).await?;
        let mut answer = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut answer).await?;
        ensure!(answer.starts_with(b"HTTP/1.1 200 OK"));
    }
    let page = sidecar.page().await?;
    assert_eq!(page.series("invented").len(), SHARE);
    let strict = "application/openmetrics-text; version=1.0.0";
    let strict = http::get_as(&sidecar.admin.to_string(), path::METRICS, strict).await?;
    let read = open_metrics::read(&String::from_utf8(strict)?)?;
    ensure!(read.samples > SHARE, "{read:?}");
    let labels = [("reason", "metric_limit")];
    let refused = page.value("agents_sidecar_otlp_refused_points_total", &labels);
    assert_eq!(refused, Some((INVENTED - SHARE) as f64));
    check(&sidecar, "good").await
}
