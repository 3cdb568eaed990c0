//! Senders that mean harm: whatever they do, the next good request works, the page is whole and memory is bounded.

use agents_sidecar::args::variable;
use anyhow::{Context, Result, ensure};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use super::{
    memory::{push, request},
    otlp::Sidecar,
};

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

#[tokio::test]
async fn a_thousand_connections_leave_room_for_one_more() -> Result<()> {
    let sidecar = Sidecar::start(&[]).await;
    let mut crowd = Vec::new();
    for _ in 0..1_000 {
        crowd.push(TcpStream::connect(sidecar.http).await?);
    }
    check(&sidecar, "good").await?;
    drop(crowd);
    check(&sidecar, "later").await
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
    let labels = [("reason", "metric_limit")];
    let refused = page.value("agents_sidecar_otlp_refused_points_total", &labels);
    assert_eq!(refused, Some((INVENTED - SHARE) as f64));
    check(&sidecar, "good").await
}
