//! Puts Events into the API server: creates, counts on, recreates, and finds the group that takes them.
//!
//! Needs only the verbs `create` and `patch`. When and how often it is asked is up to `writer`.

use std::time::Duration;

use k8s_openapi::api::core::v1::Event as CoreEvent;
use k8s_openapi::api::events::v1::Event as ModernEvent;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::Status;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::event::{Draft, Form, Reporter, Stored, Tally};
use super::limiter::Write;
use super::metrics::{Failure, Group, Metrics};
use crate::kit::fence::Fence;

/// How often a count is tried again at once when someone else changed the Event in between.
const CONFLICT_ROUNDS: usize = 3;

/// Why a call failed, and how long the API server asks to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) cause: Failure,
    pub(super) retry_after: Duration,
}

impl Failed {
    fn because(cause: Failure) -> Self {
        Self {
            cause,
            retry_after: Duration::ZERO,
        }
    }

    /// Whether the same write can still succeed.
    pub(super) fn may_pass(self) -> bool {
        match self.cause {
            Failure::Unreachable
            | Failure::Timeout
            | Failure::Throttled
            | Failure::Server
            | Failure::Unauthorized
            | Failure::EventGone
            | Failure::Exists
            | Failure::Conflict => true,
            Failure::Forbidden
            | Failure::GroupAbsent
            | Failure::NamespaceGone
            | Failure::Invalid
            | Failure::Fenced => false,
        }
    }

    fn concerns_group(self) -> bool {
        matches!(self.cause, Failure::Forbidden | Failure::GroupAbsent)
    }
}

/// What a write has led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) group: Group,
    /// Whether an Event was made, not only counted on.
    pub(super) is_new: bool,
    pub(super) stored: Stored,
}

/// The Events of a cluster.
pub(super) struct Store {
    client: Client,
    reporter: Reporter,
    deadline: Duration,
    metrics: Metrics,
    fence: Fence,
}

impl Store {
    pub(super) fn new(
        client: Client,
        reporter: Reporter,
        deadline: Duration,
        metrics: Metrics,
    ) -> Self {
        Self {
            client,
            reporter,
            deadline,
            metrics,
            fence: Fence::always(),
        }
    }

    /// The same for who may write only while a fence is open.
    pub(super) fn behind(self, fence: Fence) -> Self {
        Self { fence, ..self }
    }

    /// Carries out a write in the preferred group, else in the other one.
    pub(super) async fn carry_out(
        &self,
        preferred: Group,
        write: &Write,
    ) -> Result<Written, Failed> {
        let other = match preferred {
            Group::Events => Group::Core,
            Group::Core => Group::Events,
        };
        match self.carry_out_in(preferred, write).await {
            Err(failed) if failed.concerns_group() => self.carry_out_in(other, write).await,
            outcome => outcome,
        }
    }

    async fn carry_out_in(&self, group: Group, write: &Write) -> Result<Written, Failed> {
        let (is_new, stored) = match group {
            Group::Events => {
                self.events::<ModernEvent>(&write.draft)
                    .carry_out(write)
                    .await?
            }
            Group::Core => {
                self.events::<CoreEvent>(&write.draft)
                    .carry_out(write)
                    .await?
            }
        };
        Ok(Written {
            group,
            is_new,
            stored,
        })
    }

    fn events<E: Form>(&self, draft: &Draft) -> Events<'_, E> {
        let namespace = draft.regarding.event_namespace();
        Events {
            api: Api::namespaced(self.client.clone(), namespace),
            store: self,
        }
    }
}

/// The Events of one namespace in one form.
struct Events<'a, E> {
    api: Api<E>,
    store: &'a Store,
}

impl<E: Form> Events<'_, E> {
    /// Also says whether an Event was made.
    async fn carry_out(&self, write: &Write) -> Result<(bool, Stored), Failed> {
        match &write.stored {
            None => self.create_or_join(write).await,
            Some(stored) => self.count_on(write, write.adding, stored.clone()).await,
        }
    }

    /// An Event of this name may be there from before a restart, or from another replica; then this one adds to it.
    async fn create_or_join(&self, write: &Write) -> Result<(bool, Stored), Failed> {
        let created = self.create(write, write.adding).await;
        if !created
            .as_ref()
            .is_err_and(|failed| failed.cause == Failure::Exists)
        {
            return Ok((true, created?));
        }
        let Store { reporter, .. } = self.store;
        let there = self.read(&write.draft.name()).await?;
        let stored = Stored::of(&there);
        let missing = match there.is(&write.draft, reporter) {
            true => write.adding.saturating_sub(stored.count),
            // Someone else has told it, and it does not happen twice.
            false if write.draft.is_single() => return Ok((false, stored)),
            false => write.adding,
        };
        match missing {
            0 => Ok((true, stored)),
            missing => self.count_on(write, missing, stored).await,
        }
    }

    async fn count_on(
        &self,
        write: &Write,
        adding: u32,
        mut stored: Stored,
    ) -> Result<(bool, Stored), Failed> {
        for _ in 0..CONFLICT_ROUNDS {
            let count = stored.count.saturating_add(adding);
            match self.recount(&stored, self.tally(write, count)).await {
                Ok(counted) => return Ok((false, counted)),
                // Deleted by hand, or its time was over.
                Err(failed) if failed.cause == Failure::EventGone => {
                    return Ok((true, self.create(write, count).await?));
                }
                Err(failed) if failed.cause == Failure::Conflict => {
                    stored = Stored::of(&self.read(&stored.name).await?);
                }
                Err(failed) => return Err(failed),
            }
        }
        Err(Failed::because(Failure::Conflict))
    }

    fn tally(&self, write: &Write, count: u32) -> Tally {
        Tally {
            count,
            last_seen: write.last_seen,
        }
    }

    async fn create(&self, write: &Write, count: u32) -> Result<Stored, Failed> {
        let event = E::new(&write.draft, &self.store.reporter, self.tally(write, count));
        let params = PostParams::default();
        self.in_time(self.api.create(&params, &event))
            .await
            .map(|event| Stored::of(&event))
    }

    async fn recount(&self, stored: &Stored, tally: Tally) -> Result<Stored, Failed> {
        let mut change = E::recount(tally);
        // Two writers would otherwise overwrite each other's count.
        change["metadata"] = json!({ "resourceVersion": stored.resource_version });
        self.patch(&stored.name, change)
            .await
            .map(|event| Stored::of(&event))
    }

    /// A patch without content returns the Event as it is, so that the right to read Events is not needed.
    async fn read(&self, name: &str) -> Result<E, Failed> {
        self.patch(name, json!({})).await
    }

    async fn patch(&self, name: &str, change: Value) -> Result<E, Failed> {
        let change = Patch::Merge(change);
        self.in_time(self.api.patch(name, &PatchParams::default(), &change))
            .await
    }

    async fn in_time<T>(
        &self,
        call: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, Failed> {
        let Store {
            fence, deadline, ..
        } = self.store;
        let failed = match fence.guard(timeout(*deadline, call)).await {
            Some(Ok(Ok(answer))) => return Ok(answer),
            Some(Ok(Err(kube::Error::Api(status)))) => failure_of(&status),
            Some(Ok(Err(_))) => Failed::because(Failure::Unreachable),
            Some(Err(_)) => Failed::because(Failure::Timeout),
            None => Failed::because(Failure::Fenced),
        };
        self.store.metrics.count_error(failed.cause);
        Err(failed)
    }
}

fn failure_of(status: &Status) -> Failed {
    let details = status.details.as_ref();
    let kind = details.map_or("", |details| details.kind.as_str());
    let is_terminating = details.is_some_and(|details| {
        let mut causes = details.causes.iter();
        causes.any(|cause| cause.reason == "NamespaceTerminating")
    });
    let cause = match status.code {
        401 => Failure::Unauthorized,
        403 if is_terminating => Failure::NamespaceGone,
        403 => Failure::Forbidden,
        404 if kind == "namespaces" => Failure::NamespaceGone,
        404 if kind == "events" => Failure::EventGone,
        404 => Failure::GroupAbsent,
        408 | 504 => Failure::Timeout,
        409 if status.reason == "AlreadyExists" => Failure::Exists,
        409 => Failure::Conflict,
        429 => Failure::Throttled,
        500.. => Failure::Server,
        _ => Failure::Invalid,
    };
    let seconds = details.map_or(0, |details| details.retry_after_seconds);
    Failed {
        cause,
        retry_after: Duration::from_secs(seconds.into()),
    }
}
