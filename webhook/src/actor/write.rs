//! The one task that writes deletions down, one at a time, a few times over while the API server cannot take them.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use agents::api::contract::{VERSION, annotation};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Error};
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::{Deletion, Metrics};

/// Tries for one deletion.
const ATTEMPTS: u32 = 5;
/// Pause after the first failure; doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Time for one call.
const CALL: Duration = Duration::from_secs(5);

/// The task behind every [`super::Actors`]. Run it as a support task, so that it ends after all who keep.
#[must_use = "without it nothing is written down"]
pub struct Scribe {
    client: Client,
    queue: Receiver<Deletion>,
    metrics: Metrics,
}

impl Scribe {
    pub(super) fn new(client: Client, queue: Receiver<Deletion>, metrics: Metrics) -> Self {
        Self {
            client,
            queue,
            metrics,
        }
    }

    /// Writes until `shutdown` gives the time by which all must be over; then writes what is left, as far as it gets.
    pub async fn run(mut self, shutdown: impl Future<Output = Instant>) {
        let mut shutdown = pin!(shutdown);
        let deadline = loop {
            tokio::select! {
                deadline = &mut shutdown => break deadline,
                Some(deletion) = self.queue.recv() => {
                    tokio::select! {
                        deadline = &mut shutdown => {
                            self.write_by(deadline, &deletion).await;
                            break deadline;
                        }
                        () = self.write(&deletion) => {}
                    }
                }
            }
        };
        self.queue.close();
        while let Ok(deletion) = self.queue.try_recv() {
            self.write_by(deadline, &deletion).await;
        }
    }

    /// Writes one deletion down by this time, or counts it as lost.
    async fn write_by(&self, deadline: Instant, deletion: &Deletion) {
        let written = timeout_at(deadline, self.write(deletion)).await;
        if written.is_err() {
            self.give_up(deletion, "the program ends");
        }
    }

    /// Writes one deletion down, or counts it as lost.
    async fn write(&self, deletion: &Deletion) {
        let mut pause = FIRST_PAUSE;
        for attempt in 1..=ATTEMPTS {
            let problem = match timeout(CALL, self.patch(deletion)).await {
                Ok(Ok(())) => {
                    self.metrics.written.inc();
                    return;
                }
                Ok(Err(error)) if is_final(&error) => {
                    self.give_up(deletion, &error.to_string());
                    return;
                }
                Ok(Err(error)) => error.to_string(),
                Err(elapsed) => elapsed.to_string(),
            };
            if attempt == ATTEMPTS {
                self.give_up(deletion, &problem);
                return;
            }
            sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
            pause *= 2;
        }
    }

    fn give_up(&self, deletion: &Deletion, problem: &str) {
        let Deletion {
            namespace,
            name,
            record,
            ..
        } = deletion;
        let job = &record.job;
        tracing::warn!(%namespace, run = %name, %job, problem, "Who deleted a Job could not be written down");
        self.metrics.lost.inc();
    }

    async fn patch(&self, deletion: &Deletion) -> Result<(), Error> {
        let kind = deletion.kind;
        let group = GroupVersionKind::gvk(kind.group(), VERSION, kind.as_str());
        let resource = ApiResource::from_gvk_with_plural(&group, kind.plural());
        let runs: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &deletion.namespace, &resource);
        let change = Patch::Merge(change(deletion).map_err(Error::SerdeError)?);
        runs.patch_metadata(&deletion.name, &PatchParams::default(), &change)
            .await
            .map(drop)
    }
}

/// The annotation, and the uid if it is known: the API server then refuses to write it on another run.
pub(super) fn change(deletion: &Deletion) -> Result<Value, serde_json::Error> {
    let record = serde_json::to_string(&deletion.record)?;
    let mut metadata = json!({ "annotations": { annotation::JOB_DELETED_BY: record } });
    if let Some(uid) = &deletion.uid {
        metadata["uid"] = json!(uid);
    }
    Ok(json!({ "metadata": metadata }))
}

/// Whether trying again cannot help: the run is gone or another one, or we may not.
fn is_final(error: &Error) -> bool {
    if let Error::Api(status) = error {
        return (400..500).contains(&status.code) && status.code != 429;
    }
    matches!(error, Error::SerdeError(_))
}
