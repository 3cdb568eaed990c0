//! How the queue stands, in numbers; as the controllers tell it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What is shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Snapshot {
    pub(super) at: Timestamp,
    pub(super) source: Source,
    /// The pod that leads, if it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) leader: Option<String>,
    #[serde(rename = "queue")]
    pub(super) figures: Figures,
}

/// Who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Source {
    /// The controller that leads.
    Leader,
    /// The runs, as they were counted here.
    Runs,
}

/// What the leader answers.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Told {
    pub(super) at: Timestamp,
    /// None where the controller does not lead.
    pub(super) queue: Option<Figures>,
}

/// All runs, and the runs of each scope.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Figures {
    pub(super) cluster: Load,
    pub(super) namespaces: Ranked,
    pub(super) agents: Ranked,
    pub(super) repositories: Ranked,
}

/// The runs of one scope.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Load {
    pub(super) waiting: usize,
    pub(super) running: usize,
    /// Not told of the scopes that are told together by a leader of an earlier version.
    #[serde(default)]
    pub(super) blocked: BTreeMap<String, usize>,
    pub(super) oldest_waiting_since: Option<Timestamp>,
}

/// Scopes of one sort: those with most to do one by one, the others together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Ranked {
    pub(super) top: Vec<Named>,
    pub(super) rest: Rest,
}

/// A scope and its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Named {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) load: Load,
}

/// Scopes that are not told one by one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Rest {
    pub(super) scopes: usize,
    #[serde(flatten)]
    pub(super) load: Load,
}

impl Load {
    /// With the runs of another scope.
    pub(super) fn and(mut self, other: &Self) -> Self {
        let Self {
            waiting,
            running,
            blocked,
            oldest_waiting_since,
        } = other;
        self.waiting += waiting;
        self.running += running;
        for (reason, count) in blocked {
            *self.blocked.entry(reason.clone()).or_default() += count;
        }
        let oldest = self.oldest_waiting_since.into_iter();
        self.oldest_waiting_since = oldest.chain(*oldest_waiting_since).min();
        self
    }
}
