//! How the queue stands, in numbers: as the controllers tell it, and the command line reads it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// All runs, and the runs of each scope.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// All of them.
    pub(crate) cluster: Load,
    /// By namespace.
    pub(crate) namespaces: Ranked,
    /// By agent.
    pub(crate) agents: Ranked,
    /// By repository.
    pub(crate) repositories: Ranked,
}

/// The runs of one scope.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Load {
    /// In line for a slot.
    pub(crate) waiting: usize,
    /// Begun and not ended.
    pub(crate) running: usize,
    /// Held back, by reason: by a limit, or by something that is missing. Not told of the scopes that are told together by a
    /// leader of an earlier version.
    #[serde(default)]
    pub(crate) blocked: BTreeMap<Cow<'static, str>, usize>,
    /// When the one was made that has been in line for longest.
    pub(crate) oldest_waiting_since: Option<Timestamp>,
}

/// Scopes of one sort: those with most to do one by one, the others together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ranked {
    /// One by one.
    pub(crate) top: Vec<Named>,
    /// Together.
    pub(crate) rest: Rest,
}

/// A scope and its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Named {
    /// Where it is, if it is in a namespace.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) namespace: Option<String>,
    /// Its name.
    pub(crate) name: String,
    /// Its runs.
    #[serde(flatten)]
    pub(crate) load: Load,
}

/// Scopes that are not told one by one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rest {
    /// How many they are.
    pub(crate) scopes: usize,
    /// Their runs.
    #[serde(flatten)]
    pub(crate) load: Load,
}

impl Load {
    /// With the runs of another scope.
    pub(crate) fn and(mut self, other: &Self) -> Self {
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
