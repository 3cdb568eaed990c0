//! How an object of such a kind stands. Pure.

use std::sync::Arc;

use serde_json::Value;

use super::{Nothing, Plain};
use crate::api::cause::Cause;
use crate::api::condition::{ConditionStatus, ConditionType, Lifecycle, Observation, Reason};
use crate::api::kind::Kind;
use crate::api::references::Reference;
use crate::api::validate::validate;
use crate::controller::driver::fault::Fault;
use crate::controller::driver::plan::{Next, Notice, Plan, Standing, Step};
use crate::events;

/// What was found about one object.
#[derive(Debug)]
pub(in crate::controller) struct Observed<K> {
    /// The object; none if it is gone.
    pub(super) object: Option<Arc<K>>,
    /// The same as its rules read it.
    pub(super) json: Value,
    /// What it needs and what is not there.
    pub(super) missing: Vec<Reference>,
}

/// How an object stands whose spec is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::controller) enum Stand {
    /// It can be used.
    Ready {
        phase: &'static str,
        reason: Lifecycle,
    },
    /// It can be used, and its phase is someone else's word.
    Kept { reason: Lifecycle },
    /// It cannot be used.
    Degraded {
        phase: &'static str,
        reason: Lifecycle,
        message: String,
    },
}

pub(super) fn plan<K: Plain>(seen: &Observed<K>) -> Plan<Nothing, K::Status> {
    let Some(object) = seen.object.as_deref() else {
        return Plan::idle(Next::Wait);
    };
    if object.meta().deletion_timestamp.is_some() {
        return Plan::idle(Next::Wait);
    }
    let causes = validate(K::KIND, &seen.json, None);
    let next = if let Some(first) = causes.first() {
        let reason = Reason::from(first.reason);
        invalid(object, reason, told(&causes))
    } else if let Some(first) = seen.missing.first() {
        waiting(object, lack(first.kind), &seen.missing)
    } else {
        standing(object)
    };
    Plan::steps(vec![Step::status(next)])
}

fn of<K: Plain>(object: &K, reason: impl Into<Reason>, message: String) -> Standing<K::Status> {
    Standing {
        status: object.stored().cloned().unwrap_or_default(),
        observed: Vec::new(),
        reason: reason.into(),
        message,
        notices: Vec::new(),
        facts: Vec::new(),
    }
}

fn told(causes: &[Cause]) -> String {
    let told: Vec<_> = causes
        .iter()
        .map(|cause| format!("{}: {}", cause.field, cause.message))
        .collect();
    told.join("; ")
}

fn invalid<K: Plain>(object: &K, reason: Reason, message: String) -> Standing<K::Status> {
    let mut next = of(object, reason, message.clone());
    K::mark(&mut next.status, "Invalid");
    let type_ = ConditionType::InvalidSpec;
    let observed = Observation::new(type_, ConditionStatus::True, reason, message.clone());
    next.observed.push(observed);
    next.notices.push(notice(events::Reason::InvalidSpec, message));
    next
}

/// Something that the object needs is not there yet: it is on its way, not broken.
fn waiting<K: Plain>(object: &K, reason: Lifecycle, missing: &[Reference]) -> Standing<K::Status> {
    let names: Vec<_> = missing
        .iter()
        .map(|reference| format!("{} {}", reference.kind, reference.name))
        .collect();
    let verb = if names.len() == 1 { "does" } else { "do" };
    let message = format!("{} {verb} not exist yet", names.join(", "));
    let mut next = of(object, reason, message.clone());
    K::mark(&mut next.status, "Pending");
    for type_ in [ConditionType::Blocked, ConditionType::Progressing] {
        let observed = Observation::new(type_, ConditionStatus::True, reason, message.clone());
        next.observed.push(observed);
    }
    next.notices
        .push(notice(events::Reason::ReferenceMissing, message));
    next
}

fn standing<K: Plain>(object: &K) -> Standing<K::Status> {
    match object.stand() {
        Stand::Ready { phase, reason } => {
            let mut next = ready(object, reason);
            K::mark(&mut next.status, phase);
            next
        }
        Stand::Kept { reason } => ready(object, reason),
        Stand::Degraded {
            phase,
            reason,
            message,
        } => {
            let mut next = of(object, reason, message.clone());
            K::mark(&mut next.status, phase);
            let type_ = ConditionType::Ready;
            let observed = Observation::new(type_, ConditionStatus::False, reason, message);
            next.observed.push(observed);
            next
        }
    }
}

fn ready<K: Plain>(object: &K, reason: Lifecycle) -> Standing<K::Status> {
    let mut next = of(object, reason, String::new());
    let type_ = ConditionType::Ready;
    next.observed
        .push(Observation::new(type_, ConditionStatus::True, reason, ""));
    next
}

pub(super) fn failed<K: Plain>(object: &K, fault: &Fault) -> Option<Standing<K::Status>> {
    let (reason, event) = (fault.class.condition()?, fault.class.event()?);
    let message = fault.sentence();
    let mut next = of(object, reason, message.clone());
    let type_ = ConditionType::Unreachable;
    let observed = Observation::new(type_, ConditionStatus::True, reason, message.clone());
    next.observed.push(observed);
    next.notices.push(notice(event, message));
    Some(next)
}

fn notice(reason: events::Reason, note: String) -> Notice {
    Notice {
        reason,
        note,
        job: None,
    }
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
