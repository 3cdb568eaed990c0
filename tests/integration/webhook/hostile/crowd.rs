//! More connections than there is room for.

use std::{any::type_name_of_val, net::SocketAddr, time::Duration};

use agents::api::registration::TIMEOUT_SECONDS;
use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use support::left_out;
use tokio::{net::TcpStream, time::timeout};

use super::target::Target;
use crate::webhook::hook::DEADLINE;

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
    let gathering = connecting.buffer_unordered(256).try_collect();
    let crowd = timeout(DEADLINE, gathering).await;
    Ok(crowd.context("the crowd does not get in")??)
}

#[tokio::test]
async fn ten_thousand_idle_connections_do_not_keep_a_review_from_its_answer() -> Result<()> {
    support::kinds!();
    const PATIENCE: Duration = Duration::from_secs(TIMEOUT_SECONDS as u64);
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
