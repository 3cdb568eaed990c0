//! Clients that take their time.

use std::time::Duration;

use agents::api::{contract::door, registration::TIMEOUT_SECONDS};
use anyhow::{Context, Result, bail, ensure};
use futures::{StreamExt, TryStreamExt, future::join_all, stream};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::client::TlsStream;

use super::target::{Target, clear, head};
use crate::webhook::hook::DEADLINE;

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
    tokio::try_join!(
        cut(garbage),
        cut(oversized_record),
        cut(half_a_hello),
        cut(plain),
        cut(b""),
        slow_head,
        slow_body,
        async { target.still_answers().await.context("while others dawdle") },
    )?;
    target.still_answers().await?;
    target.stays_small("dawdling clients")
}

/// Announces a body that never comes.
async fn announce(stream: &mut TlsStream<TcpStream>, length: usize) -> Result<()> {
    let head = head(door::VALIDATE, "application/json", length);
    stream.write_all(&head).await?;
    Ok(stream.flush().await?)
}

#[tokio::test]
async fn slow_bodies_keep_no_other_review_from_its_answer() -> Result<()> {
    support::kinds!();
    const PATIENCE: Duration = Duration::from_secs(TIMEOUT_SECONDS as u64);
    const LARGE: usize = 65 << 10;
    let target = Target::start().await?;
    // All have their connection before the first body is announced, since a slow sender has little time from there on.
    let lengths = [vec![1000; 600], vec![LARGE; 4]].concat();
    let connecting = stream::iter(&lengths).map(|_| target.connect_and_rest());
    let mut slow: Vec<_> = connecting.buffered(16).try_collect().await?;
    let mut small = target.connect_and_rest().await?;
    let mut large = target.connect_and_rest().await?;
    for (stream, length) in slow.iter_mut().zip(&lengths) {
        announce(stream, *length).await?;
    }
    let mut given_up = join_all(slow.iter_mut().map(|stream| target.answer(stream)));
    tokio::select! {
        biased;
        _ = &mut given_up => bail!("a small review waited for slow ones"),
        answered = target.answers(&mut small, 0) => answered?,
    }
    let answered = timeout(PATIENCE, target.answers(&mut large, LARGE));
    let (answered, given_up) = tokio::join!(answered, given_up);
    answered.context("a large review waited too long")??;
    for answer in given_up {
        clear("a body that never comes", &answer?)?;
    }
    let late = target.metric("late_total", &[]).await?;
    ensure!(late == 604.0, "{late} were given up");
    target.still_answers().await?;
    target.stays_small("slow bodies")
}
