//! Many at once, and answers that are held to a time: these run after all others, with the machine for themselves.

use std::{any::type_name_of_val, net::SocketAddr, time::Duration};

use agents::api::{contract::door, registration::TIMEOUT_SECONDS};
use anyhow::{Context, Result, bail, ensure};
use futures::{StreamExt, TryStreamExt, future::join_all, stream};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use support::{left_out, wait};
use tokio::{io::AsyncWriteExt, net::TcpStream, time::timeout};
use tokio_rustls::client::TlsStream;

use super::target::{Target, clear, head};
use crate::webhook::hook::DEADLINE;

/// What the API server waits for an answer.
const PATIENCE: Duration = Duration::from_secs(TIMEOUT_SECONDS as u64);

/// Announces a body that never comes.
async fn announce(stream: &mut TlsStream<TcpStream>, length: usize) -> Result<()> {
    let head = head(door::VALIDATE, "application/json", length);
    stream.write_all(&head).await?;
    Ok(stream.flush().await?)
}

#[tokio::test]
async fn slow_bodies_keep_no_other_review_from_its_answer() -> Result<()> {
    support::kinds!();
    const LARGE: usize = 65 << 10;
    let target = Target::start().await?;
    // All have their connection before the first body is announced, since a slow sender has little time from there on.
    let lengths = [vec![1000; 600], vec![LARGE; 4]].concat();
    // Getting there is not what is tested, and takes more than one try where the machine has no time for a handshake.
    let connect = || wait::retry("a connection", DEADLINE, || target.connect_and_rest());
    let mut slow = Vec::new();
    for _ in &lengths {
        slow.push(connect().await?);
    }
    let (mut small, mut large) = (connect().await?, connect().await?);
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
    ensure!(late >= 604.0, "{late} were given up");
    target.still_answers().await?;
    target.stays_small("slow bodies")
}

/// Connections of the crowd.
const CROWD: u64 = 10_000;
/// Files that this process has open besides.
const OTHERS: u64 = 1024;

/// Lets this process and those that it starts open as many files as they need; gives the limit if that cannot be.
fn make_room() -> Result<Result<(), u64>> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let needed = CROWD + OTHERS;
    if hard < needed {
        return Ok(Err(hard));
    }
    if soft < needed {
        setrlimit(Resource::RLIMIT_NOFILE, needed, hard)?;
    }
    Ok(Ok(()))
}

/// Connections that say nothing.
async fn gather(address: SocketAddr) -> Result<Vec<TcpStream>> {
    let connecting = stream::iter(0..CROWD).map(|_| TcpStream::connect(address));
    let gathering = connecting.buffer_unordered(64).try_collect();
    let crowd = timeout(DEADLINE, gathering).await;
    Ok(crowd.context("the crowd does not get in")??)
}

#[tokio::test]
async fn ten_thousand_idle_connections_do_not_keep_a_review_from_its_answer() -> Result<()> {
    support::kinds!();
    fn here() {}
    if let Err(limit) = make_room()? {
        let test = left_out::test_name(type_name_of_val(&here));
        let reason =
            format!("it needs {CROWD} connections, and no more than {limit} files may be open");
        return left_out::note(&test, &reason);
    }
    let target = Target::start().await?;
    let crowd = gather(target.address()).await?;
    timeout(PATIENCE, target.still_answers())
        .await
        .context("a good review waits longer than the API server does")??;
    let labels = [("server", "admission"), ("cause", "displaced")];
    let displaced = target
        .metric("http_connections_closed_total", &labels)
        .await?;
    eprintln!("answered among {CROWD} idle connections, of which {displaced} had made room");
    ensure!(displaced > 0.0, "nobody made room");
    target.stays_small("idle connections")?;
    drop(crowd);
    target.still_answers().await?;
    target.stays_small("the crowd has gone")
}
