//! Clients that take their time.

use agents::api::contract::door;
use anyhow::{Context, Result, ensure};
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{interval, timeout},
};

use super::target::{Target, clear, head};
use crate::webhook::hook::DEADLINE;

/// Bytes that drip in, one a second: far longer than a body may take, and far fewer than were announced.
const DRIPS: usize = 6;

#[tokio::test]
async fn clients_that_dawdle_or_speak_no_tls_are_cut_off() -> Result<()> {
    support::kinds!();
    let target = Target::start().await?;
    let cut = async |bytes: &'static [u8]| -> Result<()> {
        let mut tcp = TcpStream::connect(target.address()).await?;
        tcp.write_all(bytes).await?;
        let mut said = Vec::new();
        // An alert may come before the end; a reset is an end as well.
        let ended = timeout(DEADLINE, tcp.read_to_end(&mut said)).await;
        ended.map(drop).context("the connection stays open")
    };
    let garbage: &[u8] = &[0x5a; 2048];
    let oversized_record: &[u8] = &[0x16, 0x03, 0x01, 0xff, 0xff, 0x01, 0x00, 0x00];
    let half_a_hello: &[u8] = &[
        0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03,
    ];
    let plain: &[u8] = b"POST /validate HTTP/1.1\r\nHost: webhook\r\n\r\n";
    let slow_head = async {
        let mut stream = target.connect().await?;
        stream
            .write_all(b"POST /validate HTTP/1.1\r\nHost: web")
            .await?;
        target.answer(&mut stream).await.map(drop)
    };
    let slow_body = async {
        let mut stream = target.connect().await?;
        stream
            .write_all(&head(door::VALIDATE, "application/json", 1000))
            .await?;
        stream.write_all(b"{\"kind\":").await?;
        clear(
            "a body that never comes",
            &target.answer(&mut stream).await?,
        )
    };
    let dripping_body = async {
        let mut stream = target.connect().await?;
        stream
            .write_all(&head(door::VALIDATE, "application/json", 1000))
            .await?;
        // A byte a second is not nothing, and still not enough.
        let mut drips = interval(Duration::from_secs(1));
        for _ in 0..DRIPS {
            drips.tick().await;
            if stream.write_all(b" ").await.is_err() || stream.flush().await.is_err() {
                break;
            }
        }
        clear("a body that drips", &target.answer(&mut stream).await?)
    };
    tokio::try_join!(
        cut(garbage),
        cut(oversized_record),
        cut(half_a_hello),
        cut(plain),
        cut(b""),
        slow_head,
        slow_body,
        dripping_body,
        async { target.still_answers().await.context("while others dawdle") },
    )?;
    let late = target.metric("late_total", &[]).await?;
    ensure!(late >= 2.0, "{late} bodies were given up");
    target.still_answers().await?;
    target.stays_small("dawdling clients")
}
