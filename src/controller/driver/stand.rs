//! How objects that stand until someone deletes them are described: the words that all such kinds share.
//!
//! Pure. What is particular about a kind is a [`Stand`]; everything around it follows from the contract.

mod statused;

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;

use crate::api::condition::{
    Condition, ConditionStatus, ConditionType, Lifecycle, Observation, Reason,
};
use crate::api::kind::Kind;
use crate::api::object::cause::Cause;
use crate::controller::driver::fault::Fault;
use crate::controller::driver::plan::Standing;
use crate::events;
pub(in crate::controller) use statused::Statused;

/// Something that is needed and not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::controller) struct Lack {
    reason: Lifecycle,
    /// Kind and name, for people.
    what: String,
    /// Whether someone tells us when it comes.
    pub(in crate::controller) is_watched: bool,
}

impl Lack {
    pub(in crate::controller) fn object(kind: Kind, name: &str) -> Self {
        Self {
            reason: lack(kind),
            what: format!("{kind} {name}"),
            is_watched: true,
        }
    }

    /// What a schedule copies.
    pub(in crate::controller) fn target(what: String) -> Self {
        Self {
            reason: Lifecycle::MissingTarget,
            what,
            is_watched: true,
        }
    }

    pub(in crate::controller) fn secret(name: &str) -> Self {
        Self {
            reason: Lifecycle::SecretNotFound,
            what: format!("Secret {name}"),
            is_watched: false,
        }
    }

    /// An entry of a Secret.
    pub(in crate::controller) fn secret_key(name: &str, key: &str) -> Self {
        Self {
            reason: Lifecycle::SecretKeyMissing,
            what: format!("entry {key} of Secret {name}"),
            is_watched: false,
        }
    }

    /// An entry of a ConfigMap.
    pub(in crate::controller) fn config_map_key(name: &str, key: &str) -> Self {
        Self {
            reason: Lifecycle::ConfigMapKeyMissing,
            what: format!("entry {key} of ConfigMap {name}"),
            is_watched: false,
        }
    }

    pub(in crate::controller) fn config_map(name: &str) -> Self {
        Self {
            reason: Lifecycle::ConfigMapNotFound,
            what: format!("ConfigMap {name}"),
            is_watched: false,
        }
    }
}

/// How an object stands that is right and has all that it needs.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::controller) struct Stand<S> {
    /// Its status, with what the kind has to say.
    pub(in crate::controller) status: S,
    /// Its phase; none keeps the word of someone else.
    pub(in crate::controller) phase: Option<&'static str>,
    /// Whether it can be used.
    pub(in crate::controller) is_ready: bool,
    pub(in crate::controller) reason: Reason,
    pub(in crate::controller) message: String,
    /// What people should look at although it can be used.
    pub(in crate::controller) warning: Option<(Lifecycle, String)>,
    /// When it will stand differently by itself.
    pub(in crate::controller) due: Option<Timestamp>,
}

impl<S> Stand<S> {
    /// It can be used.
    pub(in crate::controller) fn ready(
        status: S,
        phase: &'static str,
        reason: impl Into<Reason>,
    ) -> Self {
        Self {
            status,
            phase: Some(phase),
            is_ready: true,
            reason: reason.into(),
            message: String::new(),
            warning: None,
            due: None,
        }
    }

    /// It cannot be used: not yet, if its phase is one of those on the way.
    pub(in crate::controller) fn unready(
        status: S,
        phase: &'static str,
        reason: impl Into<Reason>,
        message: String,
    ) -> Self {
        Self {
            is_ready: false,
            message,
            ..Self::ready(status, phase, reason)
        }
    }
}

/// When an object that is kept for so many seconds is over. Zero or less keeps it for ever.
pub(in crate::controller) fn due<K: Statused>(
    object: &K,
    seconds: Option<i64>,
) -> Option<Timestamp> {
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let seconds = seconds.filter(|seconds| *seconds > 0)?;
    let made = object.creation_timestamp()?.0;
    made.checked_add(Duration::from_secs(seconds)).ok()
}

/// Whether the newest spec of an object has been looked at.
pub(in crate::controller) fn is_judged<K: Statused>(object: &K) -> bool {
    let about = object.stored().and_then(K::observed_generation);
    about == object.meta().generation
}

/// The spec breaks rules. The webhook asks the same, but it may have been away.
pub(in crate::controller) fn invalid<K: Statused>(
    object: &K,
    causes: &[Cause],
    now: Timestamp,
) -> Standing<K::Status> {
    let told: Vec<_> = causes
        .iter()
        .map(|cause| format!("{}: {}", cause.field, cause.message))
        .collect();
    let message = told.join("; ");
    let reason = causes.first().map(|first| first.reason.into());
    let reason = reason.unwrap_or(Lifecycle::Reconciled.into());
    let mut status = stored(object);
    K::mark(&mut status, "Invalid");
    let mut next = of(object, status, reason, message.clone(), now);
    next.observed
        .push(holds(ConditionType::InvalidSpec, reason, &message));
    next.telling(events::Reason::InvalidSpec, message)
}

/// Something that the object needs is not there yet.
pub(in crate::controller) fn waiting<K: Statused>(
    object: &K,
    status: K::Status,
    missing: &[Lack],
    now: Timestamp,
) -> Standing<K::Status> {
    let names: Vec<_> = missing.iter().map(|lack| lack.what.as_str()).collect();
    let verb = if names.len() == 1 { "does" } else { "do" };
    let message = format!("{} {verb} not exist yet", names.join(", "));
    let reason = missing.first().map(|lack| lack.reason);
    let reason = reason.unwrap_or(Lifecycle::Reconciled);
    let secret = [Lifecycle::SecretNotFound, Lifecycle::SecretKeyMissing];
    let event = if secret.contains(&reason) {
        events::Reason::MissingSecret
    } else {
        events::Reason::ReferenceMissing
    };
    blocked(object, status, reason, message.clone(), now).telling(event, message)
}

/// Something keeps the object from being of use: it is on its way, not broken.
pub(in crate::controller) fn blocked<K: Statused>(
    object: &K,
    mut status: K::Status,
    reason: Lifecycle,
    message: String,
    now: Timestamp,
) -> Standing<K::Status> {
    K::mark(&mut status, "Pending");
    let mut next = of(object, status, reason.into(), message, now);
    for type_ in [ConditionType::Blocked, ConditionType::Progressing] {
        let observed = holds(type_, reason.into(), &next.message);
        next.observed.push(observed);
    }
    next
}

/// Something outside that the object needs is not there, or not for us.
pub(in crate::controller) fn unreachable<K: Statused>(
    object: &K,
    reason: Lifecycle,
    event: events::Reason,
    message: &str,
    now: Timestamp,
) -> Standing<K::Status> {
    let stand = Stand::unready(stored(object), "Pending", reason, message.to_owned());
    let mut next = standing(object, stand, now);
    let observed = holds(ConditionType::Unreachable, reason.into(), message);
    next.observed.push(observed);
    next.telling(event, message)
}

/// The kind says how it stands.
pub(in crate::controller) fn standing<K: Statused>(
    object: &K,
    stand: Stand<K::Status>,
    now: Timestamp,
) -> Standing<K::Status> {
    let Stand {
        mut status,
        phase,
        is_ready,
        reason,
        message,
        warning,
        due: _,
    } = stand;
    if let Some(phase) = phase {
        K::mark(&mut status, phase);
    }
    let mut next = of(object, status, reason, message, now);
    next.observed.push(Observation::new(
        ConditionType::Ready,
        match is_ready {
            true => ConditionStatus::True,
            false => ConditionStatus::False,
        },
        reason,
        next.message.clone(),
    ));
    if let Some((reason, message)) = warning {
        // In place of the one that says that there is nothing to warn of.
        next.observed
            .retain(|entry| entry.type_ != ConditionType::Warning);
        next.observed
            .push(holds(ConditionType::Warning, reason.into(), &message));
    }
    next
}

/// A fault that is tried again: what was ready is no longer known to be.
pub(in crate::controller) fn failed<K: Statused>(
    object: &K,
    fault: &Fault,
) -> Option<Standing<K::Status>> {
    let (reason, event) = (fault.class.condition()?, fault.class.event()?);
    let message = fault.sentence();
    let mut next = Standing::new(stored(object), reason, message.clone());
    for type_ in [ConditionType::Warning, ConditionType::Progressing] {
        next.observed.push(holds(type_, reason, &message));
    }
    Some(next.telling(event, message))
}

pub(in crate::controller) fn stored<K: Statused>(object: &K) -> K::Status {
    object.stored().cloned().unwrap_or_default()
}

/// A standing without what was observed, except that an earlier warning no longer holds.
fn of<K: Statused>(
    object: &K,
    mut status: K::Status,
    reason: Reason,
    message: String,
    now: Timestamp,
) -> Standing<K::Status> {
    let conditions = object.stored().map(K::conditions).unwrap_or_default();
    if !is_judged(object) || !says(conditions, reason, &message) {
        K::looked_at(&mut status, now);
    }
    let warned = condition(conditions, ConditionType::Warning);
    let is_warned = warned.is_some_and(|warning| warning.status == "True");
    let quiet = is_warned.then(|| {
        let quiet = ConditionStatus::False;
        Observation::new(ConditionType::Warning, quiet, Lifecycle::None, "")
    });
    let mut next = Standing::new(status, reason, message);
    next.observed.extend(quiet);
    next
}

/// Whether the stored conditions say the same already.
fn says(conditions: &[Condition], reason: Reason, message: &str) -> bool {
    let wanted = holds(ConditionType::Ready, reason, message);
    condition(conditions, ConditionType::Ready).is_some_and(|ready| {
        ready.reason.as_deref() == Some(reason.as_str())
            && ready.message.as_deref() == Some(&*wanted.message)
    })
}

pub(in crate::controller) fn condition(
    conditions: &[Condition],
    type_: ConditionType,
) -> Option<&Condition> {
    let mut conditions = conditions.iter();
    conditions.find(|condition| condition.type_ == type_.as_str())
}

fn holds(type_: ConditionType, reason: Reason, message: &str) -> Observation {
    Observation::new(type_, ConditionStatus::True, reason, message)
}

/// The word for an object that is not there.
fn lack(kind: Kind) -> Lifecycle {
    match kind {
        Kind::Agent => Lifecycle::MissingAgent,
        Kind::AgentProvider => Lifecycle::MissingProvider,
        Kind::ImplementationSpec => Lifecycle::MissingImplementation,
        Kind::VersionControlProvider => Lifecycle::MissingVcsProvider,
        Kind::Memory => Lifecycle::MissingMemory,
        Kind::Orchestration => Lifecycle::MissingOrchestration,
        Kind::Tool => Lifecycle::MissingTool,
        Kind::Signal => Lifecycle::SignalMissing,
        Kind::AgentRun
        | Kind::ImplementationSource
        | Kind::OrchestrationRun
        | Kind::ToolRun
        | Kind::ApprovalPolicy
        | Kind::Budget
        | Kind::SecretBinding
        | Kind::SignalDelivery
        | Kind::Schedule
        | Kind::Artifact
        | Kind::Workspace => Lifecycle::MissingTarget,
    }
}
