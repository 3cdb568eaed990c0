//! Who deleted a Job before its outcome was stored: kept as an annotation on the run that the Job belongs to, so that
//! whoever misses the Job can name them.
//!
//! Written after the decision by a task of its own, from a bounded queue; what does not fit is counted and let go. Never
//! on a dry run.

#[cfg(test)]
mod tests;
mod write;

use agents::api::contract::label;
use agents::api::kind::Kind;
use jiff::Timestamp;
use kube::Client;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use serde::Serialize;
use tokio::sync::mpsc::{self, Sender};

pub use write::Scribe;

use crate::decide::goes_unrecorded;
use crate::decision::Decision;
use crate::review::Object;
use crate::subject::Subject;

/// Deletions that wait to be written down.
const QUEUE: usize = 256;
/// Characters of a user's name that are kept.
const USER: usize = 256;

/// A deletion and where to write it down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// Kind of the run.
    pub kind: Kind,
    /// Namespace of the run.
    pub namespace: String,
    /// Name of the run.
    pub name: String,
    /// Uid of the run, if the Job says so: another run of the same name is not concerned.
    pub uid: Option<String>,
    /// What is written.
    pub record: Record,
}

/// What the annotation says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Record {
    /// Name of the Job.
    pub job: String,
    /// Uid of the Job.
    pub uid: String,
    /// Who deleted it.
    pub user: String,
    /// When the request was seen.
    pub at: Timestamp,
}

/// Keeps who deleted what. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Actors {
    /// None where there is no cluster.
    queue: Option<Sender<Deletion>>,
    metrics: Metrics,
}

/// What is counted.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    written: Counter,
    lost: Counter,
}

impl Metrics {
    /// Registers them; the caller chooses the prefix.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let Self { written, lost } = &metrics; // a metric left out here does not compile
        registry.register(
            "actors_written",
            "Deletions of Jobs that were written down at their run",
            written.clone(),
        );
        registry.register(
            "actors_lost",
            "Deletions of Jobs that could not be written down",
            lost.clone(),
        );
        metrics
    }
}

impl Actors {
    /// The handle, and the task that does the writing, which the caller must run.
    pub fn new(client: Client, metrics: Metrics) -> (Self, Scribe) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let scribe = Scribe::new(client, receiver, metrics.clone());
        let queue = Some(sender);
        (Self { queue, metrics }, scribe)
    }

    /// Keeps who made this request, if it deletes a Job before its outcome is stored. Returns at once in any case.
    pub fn keep(&self, subject: &Subject<'_>, decision: &Decision, now: Timestamp) {
        let Some(queue) = &self.queue else { return };
        if subject.dry_run() || !goes_unrecorded(subject, decision) {
            return;
        }
        let deletion = deletion(subject, now);
        if deletion.is_none_or(|deletion| queue.try_send(deletion).is_err()) {
            self.metrics.lost.inc();
        }
    }
}

/// What to write down where; none if the Job does not say whose it is.
fn deletion(subject: &Subject<'_>, at: Timestamp) -> Option<Deletion> {
    let job = subject.request.old_object.as_ref()?;
    let (kind, name, uid) = run_of(job)?;
    Some(Deletion {
        kind,
        namespace: subject.namespace().to_owned(),
        name,
        uid,
        record: Record {
            job: subject.name().to_owned(),
            uid: (*job.metadata.uid).to_owned(),
            user: subject.user().username.chars().take(USER).collect(),
            at,
        },
    })
}

/// The run that a Job belongs to: its owner, else the one that its labels name.
fn run_of(job: &Object<'_>) -> Option<(Kind, String, Option<String>)> {
    let mut owners = job.metadata.owner_references.iter().flatten();
    let owner = owners.find_map(|owner| {
        let (group, _) = owner.api_version.split_once('/')?;
        let kind = Kind::ALL
            .into_iter()
            .find(|kind| kind.as_str() == &*owner.kind && kind.group() == group)?;
        let uid = Some((*owner.uid).to_owned()).filter(|uid| !uid.is_empty());
        Some((kind, (*owner.name).to_owned(), uid))
    });
    owner.or_else(|| {
        let named = |sort| job.metadata.label(sort).map(str::to_owned);
        let sorts = [
            (Kind::AgentRun, label::AGENT_RUN),
            (Kind::ToolRun, label::TOOL_RUN),
        ];
        sorts
            .into_iter()
            .find_map(|(kind, sort)| Some((kind, named(sort)?, named(label::RUN_UID))))
    })
}
