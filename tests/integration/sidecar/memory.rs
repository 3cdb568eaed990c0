//! Memory that runs short: senders are told to come back, the page stays, and it passes.

use agents_sidecar::{args::variable, otlp::write::Writer};
use anyhow::{Context, Result, ensure};
use std::net::SocketAddr;
use support::wait::retry;

use super::otlp::{PROTOBUF, Sidecar, post};
use crate::kit::client::{Answer, DEADLINE};

/// More than the program takes by itself, also when it is built for tests.
const LIMIT: usize = 96 << 20;

/// A request with so many series of a metric, each with a label of so many bytes.
pub(crate) fn request(metric: &str, series: std::ops::Range<usize>, label: usize) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.message(1, |target| {
        target.message(2, |scope| {
            scope.message(2, |message| {
                message.bytes(1, metric.as_bytes());
                message.message(5, |gauge| {
                    for number in series {
                        gauge.message(1, |point| {
                            point.fixed64(3, 1);
                            point.double(4, 1.0);
                            point.message(7, |pair| {
                                pair.bytes(1, b"x");
                                let value = format!("{number:0label$}");
                                pair.message(2, |any| any.bytes(1, value.as_bytes()));
                            });
                        });
                    }
                });
            });
        });
    });
    writer.into_bytes()
}

/// Sends a request of protobuf; its answer is read as text, so refused points are no concern here.
pub(crate) async fn push(address: SocketAddr, body: &[u8]) -> Result<Answer> {
    post(address, "/v1/metrics", PROTOBUF, body).await
}

#[tokio::test]
async fn a_source_that_fills_the_memory_is_told_to_come_back_and_the_page_stays() -> Result<()> {
    let limit = LIMIT.to_string();
    let mut sidecar =
        Sidecar::start(&[(variable::MEMORY_LIMIT, &limit), (variable::EXPIRY, "10s")]).await;
    let (mut told, mut last) = (None, String::new());
    for number in 0..200 {
        let name = format!("m{number}");
        let body = request(&name, 0..400, 2_000);
        let answer = push(sidecar.http, &body).await?;
        if answer.status == 429 {
            told = Some(answer);
            break;
        }
        assert_eq!(answer.status, 200, "{answer:?}");
        last = name;
    }
    let told = told.context("memory never ran short")?;
    ensure!(told.head.contains("retry-after: 10"), "{}", told.head);
    let page = sidecar.page().await?;
    let value = |name: &str| page.value(name, &[]).unwrap_or(f64::NAN);
    ensure!(value("agents_sidecar_memory_stage") >= 1.0);
    let (resident, limit) = (
        value("agents_sidecar_memory_resident_bytes"),
        value("agents_sidecar_memory_limit_bytes"),
    );
    ensure!(
        limit == LIMIT as f64 && resident < limit,
        "{resident} of {limit}"
    );
    let shown = page.series(&last).len(); // others may be over by now
    ensure!(shown == 400, "the page has {shown} series of {last}");
    let short = |line: &serde_json::Value| {
        let message = line["message"].as_str().unwrap_or_default();
        message.starts_with("Memory is short")
    };
    sidecar.process.line("memory", short).await;
    // What the source sent is no longer shown after a while, and then there is room again.
    let body = request("good", 0..1, 1);
    retry("a good request is taken", DEADLINE, || async {
        let answer = push(sidecar.http, &body).await?;
        ensure!(answer.status == 200, "{answer:?}");
        Ok(())
    })
    .await?;
    let page = sidecar.page().await?;
    assert_eq!(page.value("good", &[("x", "0")]), Some(1.0));
    assert_eq!(page.value("agents_sidecar_memory_stage", &[]), Some(0.0));
    let turned_away = page.value(
        "agents_sidecar_otlp_requests_total",
        &[("outcome", "memory"), ("transport", "http")],
    );
    ensure!(turned_away.is_some_and(|times| times >= 1.0));
    Ok(())
}
