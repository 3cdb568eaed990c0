//! The look at the cluster before anything is done. What is missing for good ends the program with all of it in one
//! message; an API server that does not answer is waited for, and readiness says so.

pub(super) mod needs;

use std::time::Duration;

use kube::Client;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::cluster::{Need, Obstacle, Unfit, examine};
use crate::kit::readiness::Gate;
use crate::kit::shutdown::Shutdown;

/// Wait before the second and, after doubling, before each further look.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Whether the cluster has been found fit. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Fit(watch::Receiver<bool>);

impl Fit {
    /// It has been.
    #[cfg(test)]
    pub(crate) fn known() -> Self {
        Self(watch::channel(true).1)
    }

    /// Waits until it has been.
    pub(crate) async fn found(&self) {
        let mut fit = self.0.clone();
        if fit.wait_for(|fit| *fit).await.is_err() {
            // Nobody looks any more, because the program ends.
            std::future::pending().await
        }
    }
}

/// Looks at the cluster.
pub(crate) struct Checks {
    client: Client,
    needs: Vec<Need>,
    gate: Gate,
    fit: watch::Sender<bool>,
}

impl Checks {
    /// The task, which the caller must run, and what tells how it went.
    pub(crate) fn new(client: Client, needs: Vec<Need>, gate: Gate) -> (Self, Fit) {
        let (sender, fit) = watch::channel(false);
        let checks = Self {
            client,
            needs,
            gate,
            fit: sender,
        };
        (checks, Fit(fit))
    }

    /// Looks until the cluster is fit; then waits for the end.
    ///
    /// # Errors
    ///
    /// All that is missing, if waiting does not help.
    pub(crate) async fn run(self, shutdown: Shutdown) -> Result<(), Unfit> {
        tokio::select! {
            _ = shutdown.started() => return Ok(()),
            looked = self.look() => looked?,
        }
        self.gate.open();
        self.fit.send_replace(true);
        shutdown.started().await;
        Ok(())
    }

    async fn look(&self) -> Result<(), Unfit> {
        let mut wait = FIRST_WAIT;
        loop {
            match examine(&self.client, &self.needs).await {
                Ok(()) => return Ok(()),
                Err(Obstacle::Lasting(unfit)) => return Err(unfit),
                Err(Obstacle::Passing(why)) => {
                    tracing::warn!(error = why, "The API server does not answer, trying again");
                    self.gate
                        .close(format!("the API server does not answer: {why}"));
                }
            }
            sleep(wait.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
            wait = (2 * wait).min(LONGEST_WAIT);
        }
    }
}
