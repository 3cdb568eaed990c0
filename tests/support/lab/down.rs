//! `lab down`: ends a lab and removes every trace of it, also when `lab up` itself was killed.

use super::{
    node,
    state::{Claim, Home, LabName, Phase, Record},
};
use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long `lab up` may take to stop by itself.
const ORDERLY: Duration = Duration::from_secs(30);
/// How long killed processes may take to disappear.
const KILLED: Duration = Duration::from_secs(15);
/// Between two looks.
const PERIOD: Duration = Duration::from_millis(20);

/// Stops a lab and removes what it left; a lab that does not exist is no error.
pub async fn down(home: &Home, name: &LabName) -> Result<()> {
    if !home.folder(name).exists() {
        return Ok(());
    }
    let claim = match home.claim(name)? {
        Some(claim) => claim,
        None => {
            let record = order_to_stop(home, name).await?;
            claim_of_dead(home, name, &record).await?
        }
    };
    clear(claim).await?;
    home.tidy();
    Ok(())
}

/// Removes the traces of every lab whose `lab up` is gone, except logs of a start that failed.
pub async fn sweep(home: &Home) -> Result<()> {
    for name in home.names()? {
        let Some(claim) = home.claim(&name)? else {
            continue;
        };
        // A record that cannot be read is of another version, whose `lab down` knows what to do.
        let Ok(record) = claim.record() else {
            continue;
        };
        if record.is_none_or(|record| record.phase != Phase::Failed) {
            let cleared = clear(claim).await;
            cleared.with_context(|| format!("could not clear up lab `{name}`"))?;
        }
    }
    Ok(())
}

/// Takes the folder of a `lab up` that has ended.
///
/// What it started was forked from it and shares its hold until the kernel has ended that, too.
async fn claim_of_dead(home: &Home, name: &LabName, dead: &Record) -> Result<Claim> {
    let end = Instant::now() + KILLED;
    loop {
        if let Some(claim) = home.claim(name)? {
            return Ok(claim);
        }
        let now = home.record(name)?;
        if now.is_some_and(|now| now.owner != dead.owner) || Instant::now() >= end {
            bail!("lab `{name}` was started again meanwhile");
        }
        sleep(PERIOD).await;
    }
}

/// Asks the running `lab up` to stop, then insists; returns what it had noted.
async fn order_to_stop(home: &Home, name: &LabName) -> Result<Record> {
    let Some(record) = home.record(name)? else {
        bail!("lab `{name}` is just being started; try again in a moment");
    };
    for (signal, patience) in [(Signal::SIGTERM, ORDERLY), (Signal::SIGKILL, KILLED)] {
        record.owner.signal(signal)?;
        let end = Instant::now() + patience;
        while Instant::now() < end {
            if !record.owner.runs()? {
                return Ok(record);
            }
            sleep(PERIOD).await;
        }
    }
    bail!("lab `{name}` (process {}) does not end", record.owner.pid)
}

/// Ends what the record names and removes the folder.
async fn clear(claim: Claim) -> Result<()> {
    if let Some(record) = claim.record()? {
        end(&record).await?;
    }
    claim.remove()
}

/// Ends what a record names and removes what it has outside its folder.
pub(super) async fn end(record: &Record) -> Result<()> {
    end_processes(record).await?;
    match &record.cgroup {
        Some(cgroup) => node::remove_cgroup(cgroup),
        None => Ok(()),
    }
}

/// The kernel kills parts together with their supervisor; this makes sure and waits until they are gone.
async fn end_processes(record: &Record) -> Result<()> {
    let parts = record.parts.iter().map(|part| &part.process);
    let processes: Vec<_> = parts.chain(&record.node).collect();
    for process in &processes {
        process.signal(Signal::SIGKILL)?;
    }
    let end = Instant::now() + KILLED;
    for process in processes {
        while process.runs()? {
            if Instant::now() >= end {
                bail!("process {} does not end", process.pid);
            }
            sleep(PERIOD).await;
        }
    }
    Ok(())
}
