//! Many at once, and answers that are held to a time: these run after all others, with the machine for themselves.

mod memory;

use std::{any::type_name_of_val, net::SocketAddr, time::Duration};

use agents::api::{contract::door, registration::TIMEOUT_SECONDS};
use anyhow::{Context, Result, bail, ensure};
use futures::{StreamExt, TryStreamExt, future::join_all, stream};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use support::{left_out, wait};
use tokio::{io::AsyncWriteExt, net::TcpStream, time::timeout};
use tokio_rustls::client::TlsStream;

use super::target::{LARGEST, Target, clear, head};
use crate::webhook::hook::DEADLINE;

/// What the API server waits for an answer.
const PATIENCE: Duration = Duration::from_secs(TIMEOUT_SECONDS as u64);

/// A slow sender: how long a body it announces, and how much of that it sends.
#[derive(Clone, Copy)]
struct Slow {
    announced: usize,
    sent: usize,
}

impl Slow {
    async fn begin(self, stream: &mut TlsStream<TcpStream>) -> Result<()> {
        let head = head(door::VALIDATE, "application/json", self.announced);
        stream.write_all(&head).await?;
        stream.write_all(&vec![b' '; self.sent]).await?;
        Ok(stream.flush().await?)
    }
}

/// More than a body has that is judged where it is read.
const LARGE: usize = 65 << 10;

/// Small ones and large ones of which nothing comes, and as many as there are places for of which half comes.
fn slow_ones() -> Vec<Slow> {
    let (small, large) = (
        Slow {
            announced: 1000,
            sent: 0,
        },
        Slow {
            announced: LARGE,
            sent: 0,
        },
    );
    let half = Slow {
        announced: 2 * LARGE,
        sent: LARGE,
    };
    [vec![small; 600], vec![large; 64], vec![half; 4]].concat()
}

#[tokio::test]
async fn slow_bodies_keep_no_other_review_from_its_answer() -> Result<()> {
    support::kinds!();
    let target = Target::start().await?;
    // All have their connection before the first body is announced, since a slow sender has little time from there on.
    let senders = slow_ones();
    // Getting there is not what is tested, and takes more than one try where the machine has no time for a handshake.
    let connect = || wait::retry("a connection", DEADLINE, || target.connect_and_rest());
    let mut slow = Vec::new();
    for _ in &senders {
        slow.push(connect().await?);
    }
    let (mut small, mut large) = (connect().await?, connect().await?);
    for (stream, sender) in slow.iter_mut().zip(&senders) {
        sender.begin(stream).await?;
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
    let (late, all) = (target.metric("late_total", &[]).await?, senders.len());
    ensure!(late >= all as f64, "{late} of {all} were given up");
    target.still_answers().await?;
    target.stays_small("slow bodies")
}

#[tokio::test]
async fn silent_senders_of_large_bodies_hold_no_place_of_a_large_review() -> Result<()> {
    support::kinds!();
    let target = Target::start().await?;
    let silent = Slow {
        announced: LARGEST,
        sent: 0,
    };
    let mut slow = Vec::new();
    for _ in 0..64 {
        slow.push(target.connect_and_rest().await?);
    }
    let mut large = target.connect_and_rest().await?;
    for stream in &mut slow {
        silent.begin(stream).await?;
    }
    let mut given_up = join_all(slow.iter_mut().map(|stream| target.answer(stream)));
    tokio::select! {
        biased;
        _ = &mut given_up => bail!("a large review waited for silent ones"),
        answered = target.answers(&mut large, LARGE) => answered?,
    }
    for answer in given_up.await {
        clear("a body that never comes", &answer?)?;
    }
    target.stays_small("silent senders")
}

/// Connections of the crowd.
const CROWD: u64 = 10_000;
/// Connections before it, and after it, that finish their handshake.
const POLITE: u64 = 64;
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

/// Connections that say nothing once they are encrypted.
async fn shake_hands(target: &Target) -> Result<Vec<TlsStream<TcpStream>>> {
    let mut polite = Vec::new();
    for _ in 0..POLITE {
        polite.push(target.connect().await?);
    }
    Ok(polite)
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
    let before = shake_hands(&target).await?;
    let crowd = gather(target.address()).await?;
    let after = shake_hands(&target).await?;
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
    drop((before, crowd, after));
    target.still_answers().await?;
    target.stays_small("the crowd has gone")
}
