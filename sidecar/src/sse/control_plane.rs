//! What a control plane tells that only says what happens to its objects: the runs are counted here. Pure.
//!
//! Its messages have no ids, so nothing can be resumed: after a new connection the runs of the one before stay until they are
//! told again, or until the grace is over.

#[cfg(test)]
mod tests;

use std::{collections::HashMap, fmt};

use agents::api::{
    condition::ConditionType, contract::control_plane_event, kind::Kind, phase::Phase,
};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, de};

use super::{
    load::{Load, Word, known},
    parse::Event,
    shown::Sort,
};

/// Longest name of a run with its namespace; the API server allows none that is longer.
const LONGEST: usize = 63 + 1 + 253;

/// Other words for a run that has not begun.
const PENDING: [&str; 3] = ["Queued", "Progressing", "InProgress"];

/// How messages are called: by nothing in particular, or as their type.
const NAMES: [&str; 4] = [
    "message",
    control_plane_event::RESOURCE,
    control_plane_event::STATUS,
    control_plane_event::ERROR,
];

/// What an event says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Message {
    /// Something happened to a run.
    Run {
        /// Its namespace and its name.
        key: Box<str>,
        /// None if it is gone or over.
        stands: Option<Stands>,
    },
    /// How the control plane itself stands.
    Status(Status),
    /// Nothing that is counted.
    Nothing,
}

/// How a run stands that is not over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stands {
    is_running: bool,
    blocked: Option<&'static str>,
    created: Option<Timestamp>,
}

/// How the control plane itself stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Status {
    /// When it was told.
    pub(super) at: Option<Timestamp>,
    /// Runs that nobody has looked at yet.
    pub(super) untouched: Option<u64>,
    /// Seconds that the oldest of them has waited for that.
    pub(super) oldest_untouched: Option<f64>,
}

#[derive(Deserialize)]
struct Typed<'a> {
    #[serde(rename = "type", borrow)]
    sort: Option<Word<'a>>,
}

#[derive(Deserialize)]
struct Change<'a> {
    #[serde(borrow)]
    kind: Option<Word<'a>>,
    #[serde(borrow)]
    namespace: Option<Word<'a>>,
    #[serde(borrow)]
    name: Option<Word<'a>>,
    #[serde(borrow)]
    action: Option<Word<'a>>,
    #[serde(borrow)]
    resource: Option<Resource<'a>>,
}

#[derive(Deserialize)]
struct Resource<'a> {
    #[serde(borrow)]
    metadata: Option<Metadata<'a>>,
    #[serde(borrow)]
    status: Option<RunStatus<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    creation_timestamp: Option<Word<'a>>,
}

#[derive(Deserialize)]
struct RunStatus<'a> {
    #[serde(borrow)]
    phase: Option<Word<'a>>,
    conditions: Option<Conditions>,
}

/// Of all conditions, why the run is held back.
struct Conditions {
    blocked: Option<&'static str>,
}

#[derive(Deserialize)]
struct Told<'a> {
    #[serde(borrow)]
    status: Health<'a>,
}

#[derive(Deserialize)]
struct Health<'a> {
    #[serde(borrow)]
    generated_at: Option<Word<'a>>,
    agentrun_ingestion: Option<Ingestion>,
}

#[derive(Deserialize)]
struct Ingestion {
    untouched_run_count: Option<u64>,
    oldest_untouched_age_seconds: Option<f64>,
}

/// What sort of event it is, and what it says.
pub(super) fn read(event: Event<'_>) -> (Sort, serde_json::Result<Message>) {
    let Event { name, data } = event;
    if !NAMES.contains(&name) {
        return (Sort::Other, Ok(Message::Nothing));
    }
    let typed: Typed<'_> = match serde_json::from_str(data) {
        Ok(typed) => typed,
        Err(error) => return (Sort::Other, Err(error)),
    };
    match typed.sort.as_deref() {
        Some("resource") => (Sort::Resource, serde_json::from_str(data).map(changed)),
        Some("status") => (Sort::Status, serde_json::from_str(data).map(told)),
        Some("error") => (Sort::Error, Ok(Message::Nothing)),
        Some(_) | None => (Sort::Other, Ok(Message::Nothing)),
    }
}

fn changed(change: Change<'_>) -> Message {
    let of_run = change.kind.as_deref() == Some(Kind::AgentRun.as_str());
    let (Some(name), true) = (change.name, of_run) else {
        return Message::Nothing;
    };
    let namespace = change.namespace.as_deref().unwrap_or_default();
    let key = format!("{namespace}/{}", &*name);
    if key.len() > LONGEST {
        return Message::Nothing;
    }
    let is_gone = change.action.as_deref() == Some("DELETED");
    let stands = change.resource.filter(|_| !is_gone).and_then(stands);
    Message::Run {
        key: key.into(),
        stands,
    }
}

/// How a run stands, unless it is over.
fn stands(resource: Resource<'_>) -> Option<Stands> {
    let created = resource.metadata.and_then(|of| of.creation_timestamp);
    let (phase, conditions) = match resource.status {
        Some(RunStatus { phase, conditions }) => (phase, conditions),
        None => (None, None),
    };
    let is_running = match phase.as_deref() {
        None | Some("") => false,
        Some(word) => match Phase::parse(word) {
            Some(Phase::Running) => true,
            Some(Phase::Pending) => false,
            Some(Phase::Succeeded | Phase::Failed | Phase::Cancelled) => return None,
            None if PENDING.contains(&word) => false,
            None => return None,
        },
    };
    Some(Stands {
        is_running,
        blocked: conditions.and_then(|conditions| conditions.blocked),
        created: created.and_then(|created| created.parse().ok()),
    })
}

fn told(told: Told<'_>) -> Message {
    let Health {
        generated_at,
        agentrun_ingestion,
    } = told.status;
    let runs = agentrun_ingestion.as_ref();
    Message::Status(Status {
        at: generated_at.and_then(|at| at.parse().ok()),
        untouched: runs.and_then(|runs| runs.untouched_run_count),
        oldest_untouched: runs.and_then(|runs| runs.oldest_untouched_age_seconds),
    })
}

/// Looked through while it is read, so that a long list needs no more memory than a short one.
impl<'de> Deserialize<'de> for Conditions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Condition<'a> {
            #[serde(rename = "type", borrow)]
            sort: Option<Word<'a>>,
            #[serde(borrow)]
            status: Option<Word<'a>>,
            #[serde(borrow)]
            reason: Option<Word<'a>>,
        }

        struct List;

        impl<'de> de::Visitor<'de> for List {
            type Value = Conditions;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("conditions")
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Conditions, A::Error> {
                let mut blocked = None;
                while let Some(condition) = list.next_element::<Condition<'de>>()? {
                    let is_blocked = condition.sort.as_deref()
                        == Some(ConditionType::Blocked.as_str())
                        && condition.status.as_deref() == Some("True");
                    if is_blocked {
                        blocked = Some(known(condition.reason.as_deref().unwrap_or_default()));
                    }
                }
                Ok(Conditions { blocked })
            }
        }

        deserializer.deserialize_seq(List)
    }
}

/// The runs that are not over, as far as they were told.
#[derive(Debug)]
pub(super) struct Runs {
    most: usize,
    /// With the number of the connection that told each last.
    runs: HashMap<Box<str>, (Stands, u64)>,
    connection: u64,
    /// Whether there was a message that still holds.
    is_told: bool,
    /// Changes of runs that were not counted, because there are too many.
    pub(super) overflow: u64,
    /// What was last told of the control plane itself.
    pub(super) status: Status,
}

impl Runs {
    /// None yet, and never more than so many.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            runs: HashMap::new(),
            connection: 0,
            is_told: false,
            overflow: 0,
            status: Status::default(),
        }
    }

    /// There was a message, whatever it says.
    pub(super) fn heard(&mut self) {
        self.is_told = true;
    }

    /// Something happened to a run.
    pub(super) fn put(&mut self, key: Box<str>, stands: Option<Stands>) {
        let Some(stands) = stands else {
            self.runs.remove(&key);
            return;
        };
        if self.runs.len() < self.most || self.runs.contains_key(&key) {
            self.runs.insert(key, (stands, self.connection));
        } else {
            self.overflow = self.overflow.saturating_add(1);
        }
    }

    /// A new connection: what an earlier one told may not hold any more.
    pub(super) fn reconnected(&mut self) {
        self.connection += 1;
    }

    /// What the present connection has not told by now is gone.
    pub(super) fn settle(&mut self) {
        self.runs.retain(|_, (_, told)| *told == self.connection);
        self.runs.shrink_to_fit();
    }

    /// Nothing holds any more.
    pub(super) fn forget(&mut self) {
        self.runs = HashMap::new();
        self.is_told = false;
        self.status = Status::default();
    }

    /// How the queue stands; nothing as long as nothing was told.
    pub(super) fn load(&self, now: Timestamp) -> Option<Load> {
        if !self.is_told {
            return None;
        }
        let mut load = Load::default();
        let mut oldest = None;
        for (stands, _) in self.runs.values() {
            if let Some(reason) = stands.blocked {
                load.blocked.add(reason, 1);
            }
            if stands.is_running {
                load.running += 1;
                continue;
            }
            load.depth += 1;
            oldest = [oldest, stands.created].into_iter().flatten().min();
        }
        let age = oldest.map(|oldest: Timestamp| now.duration_since(oldest).as_secs_f64());
        load.oldest = age.unwrap_or_default().max(0.0);
        Some(load)
    }
}
