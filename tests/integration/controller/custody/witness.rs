//! All that a run left to be seen when it is over: status, Events and metrics, compared whole with `tests/fixtures/lifecycle`.

use std::collections::BTreeMap;

use agents::api::contract::metric;
use agents::api::kinds::AgentRun;
use anyhow::{Context, Result};
use kube::ResourceExt;
use nix::sys::signal::Signal;
use serde_json::Value;
use support::events;
use support::otlp::{Labels, Receiver};
use support::outcome::{Outcome, counted};

use crate::controller::scene::Scene;
use crate::kit::process::Process;

/// What counts runs and their Jobs.
const METRICS: [&str; 4] = [
    metric::RUNS,
    metric::RUN_DURATION,
    metric::OUTCOME_RECORD,
    metric::JOBS_MISSING,
];

/// Who listens to what a controller counts.
pub(super) struct Witness {
    receiver: Receiver,
}

/// What a controller has counted until its end.
pub(super) struct Seen {
    metrics: Value,
}

/// What differs each time.
pub(super) struct Known<'a> {
    /// The run as it was made.
    pub(super) run: &'a AgentRun,
    /// Uid of its Job.
    pub(super) job: &'a str,
    /// Name of its pod.
    pub(super) pod: &'a str,
}

impl Witness {
    pub(super) async fn start() -> Result<Self> {
        let receiver = Receiver::start().await?;
        Ok(Self { receiver })
    }

    /// Where controllers have to send what they count.
    pub(super) fn endpoint(&self) -> String {
        self.receiver.endpoint()
    }

    /// Waits until the controller has heard of so many Jobs that have ended and whose outcome is not stored.
    pub(super) async fn until_unrecorded(&mut self, wanted: f64) -> Result<()> {
        let are_so_many = |series: &BTreeMap<Labels, f64>| series.values().sum::<f64>() == wanted;
        let name = metric::OUTCOME_UNRECORDED;
        self.receiver.until(name, are_so_many).await?;
        Ok(())
    }

    /// Ends the controller. What is left to tell is told before it ends.
    pub(super) async fn end(self, controller: Process) -> Result<Seen> {
        controller.signal(Signal::SIGTERM);
        let ended = controller.end().await;
        anyhow::ensure!(ended.code == Some(0), "{}", ended.log.join("\n"));
        let metrics = counted(&self.receiver.end().await?, &METRICS);
        Ok(Seen { metrics })
    }
}

impl Seen {
    /// Compares all that there is to see with what is agreed for a case.
    pub(super) async fn agrees(self, case: &str, scene: &Scene, known: Known<'_>) -> Result<()> {
        let Known { run, job, pod } = known;
        let name = run.name_any();
        let stored = scene.here.api::<AgentRun>().get_opt(&name).await?;
        let status = stored.map(|run| serde_json::to_value(run.status));
        let outcome = Outcome {
            status: status.transpose()?.unwrap_or_default(),
            events: events::about(&scene.here.client, run).await?,
            metrics: self.metrics,
        };
        let uid = run.uid().context("a uid")?;
        let known = [
            (&*scene.here.name, "the namespace"),
            (&*uid, "uid of the run"),
            (job, "uid of the Job"),
            (pod, "the pod"),
        ];
        outcome.is_agreed(case, &known)
    }
}
