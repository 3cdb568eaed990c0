//! What admission needs to know of a run.

use jiff::Timestamp;
use kube::{Resource, ResourceExt};

use crate::api::condition::{Hindrance, Reason};
use crate::api::kinds::AgentRun;
use crate::controller::agent_run::status;
use crate::controller::agent_run::turn;
use crate::controller::cache::Key;
use crate::controller::runs::read_reason;

/// Parameters that name the repository of a run, the first that is there.
const REPOSITORY: [&str; 3] = ["repository", "repo", "issueRepository"];

/// Where someone else gave a reason that we do not know.
const OTHER: &str = "Other";

/// A run as admission sees it.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::controller::agent_run) struct Ticket {
    pub(super) key: Key,
    pub(super) uid: String,
    pub(super) created: Timestamp,
    pub(super) agent: String,
    /// In lower case, since hosts do not tell such names apart.
    pub(super) repository: Option<String>,
    pub(super) idempotency: Option<String>,
    /// The reason for which it is held back, of a closed list.
    pub(super) blocked: Option<&'static str>,
    pub(super) place: Place,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::controller::agent_run) enum Place {
    /// In line.
    Waiting,
    /// Out of line: it waits for something else, or shall end.
    Aside,
    /// It has begun.
    Running { since: Timestamp },
    /// It has ended.
    Ended {
        began: Option<Timestamp>,
        at: Timestamp,
    },
}

impl Ticket {
    /// The ticket of a run, as its status tells it.
    pub(in crate::controller::agent_run) fn of(run: &AgentRun) -> Self {
        let created = run.creation_timestamp();
        let blocked = status::blocked_reason(run);
        Self {
            key: Key::of(run),
            uid: run.uid().unwrap_or_default(),
            created: created.map_or(Timestamp::UNIX_EPOCH, |time| time.0),
            agent: run.spec.agent_ref.name.clone(),
            repository: repository(run),
            idempotency: idempotency(run).map(str::to_owned),
            blocked: blocked.map(|word| read_reason(word).map_or(OTHER, Reason::as_str)),
            place: place(run),
        }
    }

    /// Who comes first: who was made first, and of two in the same second one for certain.
    pub(super) fn order(&self) -> (Timestamp, &Key) {
        (self.created, &self.key)
    }
}

/// The idempotency key of a run; a blank one is none.
fn idempotency(run: &AgentRun) -> Option<&str> {
    let key = run.spec.idempotency_key.as_deref()?.trim();
    (!key.is_empty()).then_some(key)
}

fn repository(run: &AgentRun) -> Option<String> {
    let resolved = run.status.as_ref().and_then(|status| status.vcs.as_ref());
    let resolved = resolved.and_then(|vcs| vcs.repository.as_deref());
    let parameters = run.spec.parameters.as_ref();
    let given = || REPOSITORY.iter().find_map(|name| parameters?.get(*name));
    let name = resolved.or_else(|| given().map(String::as_str))?;
    let name = name.trim().to_lowercase();
    (!name.is_empty()).then_some(name)
}

/// Where a run stands, by its status.
fn place(run: &AgentRun) -> Place {
    let stored = run.status.as_ref();
    let began = stored.and_then(|status| status.started_at);
    let updated = stored.and_then(|status| status.updated_at);
    if status::phase(run).is_terminal() {
        let at = stored.and_then(|status| status.finished_at);
        return Place::Ended {
            began,
            at: at.or(updated).unwrap_or(Timestamp::UNIX_EPOCH),
        };
    }
    if turn::has_begun(run) {
        let since = began.or(updated);
        return Place::Running {
            since: since.unwrap_or(Timestamp::UNIX_EPOCH),
        };
    }
    let is_stopping = run.meta().deletion_timestamp.is_some() || run.spec.cancel == Some(true);
    match status::blocked_reason(run) {
        // One that meets trouble does not hold back the others meanwhile.
        _ if is_stopping || status::is_troubled(run) => Place::Aside,
        Some(reason) if !Hindrance::names_capacity(reason) => Place::Aside,
        Some(_) | None => Place::Waiting,
    }
}

/// Whether a change of a run gives others a chance: it has left the line, or given back its slot.
pub(in crate::controller::agent_run) fn makes_room(
    before: &AgentRun,
    after: Option<&AgentRun>,
) -> bool {
    let had = matches!(place(before), Place::Waiting | Place::Running { .. });
    let has =
        after.is_some_and(|after| matches!(place(after), Place::Waiting | Place::Running { .. }));
    had && !has
}
