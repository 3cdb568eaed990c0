//! Two replicas are restarted in turn while the API server is busy with them: nobody notices.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use agents::{api::registration::TIMEOUT_SECONDS, kit::args::variable as common};
use anyhow::{Result, ensure};
use support::wait;

use super::{
    balancer::{self, Endpoints},
    load::{self, Tally},
};
use crate::webhook::hook::{Certificates, DEADLINE, Hook, Registered};

const RESTARTS: usize = 20;
const WRITES: usize = 20_000;
const WRITERS: usize = 8;
/// Writes that the API server has made between two restarts at least, so that each of them happens under load.
const WRITES_BETWEEN: usize = WRITES / RESTARTS;
/// The API server waits so long for one answer as the chart registers us. A hand-over that costs a write as much is one too
/// slow, also if this registration is more patient.
const SLOWEST: Duration = Duration::from_secs(TIMEOUT_SECONDS.unsigned_abs() as u64);

/// Long enough for the balancer to notice, as five seconds are for a Service.
const LINGER: [(&str, &str); 1] = [(common::SHUTDOWN_LINGER, "2s")];

async fn join(certificates: &Certificates, endpoints: &Endpoints) -> Result<Hook> {
    let hook = Hook::start(certificates, &LINGER).await?;
    endpoints.add(hook.address, hook.admin);
    Ok(hook)
}

async fn until<F: Future<Output = Result<()>>>(
    what: &str,
    attempt: impl FnMut() -> F,
) -> Result<()> {
    wait::retry(what, DEADLINE * 5, attempt).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn restarts_of_two_replicas_under_load_fail_no_request() -> Result<()> {
    support::own_lab!();
    let certificates = Certificates::new();
    let endpoints = Endpoints::default();
    let (listener, address) = balancer::listen().await?;
    let serving = balancer::serve(listener, endpoints.clone());
    let story = async {
        let mut replicas = vec![
            join(&certificates, &endpoints).await?,
            join(&certificates, &endpoints).await?,
        ];
        let both = || async {
            let ready = endpoints.ready();
            ensure!(ready == 2, "{ready} are ready");
            Ok(())
        };
        until("two ready replicas", both).await?;
        let registered = Registered::new(address, &certificates.authority).await?;
        let here = registered.namespace("restarts").await?;
        let (tally, start) = (Tally::default(), Instant::now());
        let restarting = async {
            for turn in 1..=RESTARTS {
                tally.until(turn * WRITES_BETWEEN).await?;
                let old = replicas.remove(0);
                let gone = old.address;
                let (status, log) = old.end().await?;
                endpoints.remove(gone);
                ensure!(
                    status.success(),
                    "restart {turn} ended with {status}: {log}"
                );
                replicas.push(join(&certificates, &endpoints).await?);
                until("two ready replicas", both).await?;
            }
            tally.until(WRITES).await
        };
        let restarting = async {
            let done = restarting.await;
            tally.stop(); // also after a failure, or the writers would go on
            done
        };
        tokio::try_join!(restarting, load::write(&here, WRITERS, &tally))?;
        tally.verdict("20 restarts of two replicas", start)?;
        let slowest = tally.slowest();
        ensure!(slowest < SLOWEST, "the slowest write took {slowest:?}");
        Ok(())
    };
    tokio::select! {
        told = story => told,
        served = serving => served,
    }
}
