//! What people should know about a run while it goes on.

use super::{RunStanding, condition, holds};
use crate::api::cause::{self, Cause};
use crate::api::condition::{ConditionStatus, ConditionType, Lifecycle, Observation, Reason};
use crate::api::hash::spec_hash;
use crate::api::kinds::AgentRun;
use crate::controller::policy::{is_of_policy, told};
use crate::events;

/// Something that people should know.
pub(super) struct Warning {
    reason: Reason,
    event: events::Reason,
    note: String,
}

/// Someone else put a time to live on the Job: it is held all the same.
pub(super) fn ttl_warning(ttl: Option<i32>) -> Option<Warning> {
    let ttl = ttl?;
    Some(Warning {
        reason: Lifecycle::JobTtlInjected.into(),
        event: events::Reason::JobTtlInjected,
        note: format!(
            "someone put a time to live of {ttl} s on the Job; it is held until its outcome is stored"
        ),
    })
}

/// The spec was changed where that only warns: what is being done is what it said before.
pub(super) fn change_warning(run: &AgentRun) -> Option<Warning> {
    is_changed(run).then(|| Warning {
        reason: cause::Reason::SpecImmutableViolation.into(),
        event: events::Reason::SpecImmutableViolation,
        note: CHANGED.to_owned(),
    })
}

/// The policy would rather not have let the run begin. It is told when the name of its Job is reserved, and stays.
pub(in crate::controller::agent_run) fn warned(
    run: &AgentRun,
    next: RunStanding,
    causes: &[Cause],
) -> RunStanding {
    let Some(first) = causes.first() else {
        return next;
    };
    let warning = Warning {
        reason: first.reason.into(),
        event: events::Reason::PolicyDenied,
        note: told(causes),
    };
    warn(run, next, Some(warning))
}

/// What was said when the run began and still holds.
pub(super) fn kept_warning(run: &AgentRun) -> Option<Warning> {
    let warning = condition(run, ConditionType::Warning)?;
    let reason = cause::Reason::parse(warning.reason.as_deref()?)?;
    let is_kept = warning.status == "True" && is_of_policy(reason);
    is_kept.then(|| Warning {
        reason: reason.into(),
        event: events::Reason::PolicyDenied,
        note: warning.message.clone().unwrap_or_default(),
    })
}

/// Said of a run whose spec is not what it began with.
pub(super) const CHANGED: &str =
    "the spec was changed after the run had begun; make a new run instead";

/// Whether the spec says something else than when the run began.
pub(in crate::controller::agent_run) fn is_changed(run: &AgentRun) -> bool {
    let stored = run
        .status
        .as_ref()
        .and_then(|status| status.spec_hash.as_ref());
    stored.is_some_and(|stored| *stored != spec_hash(&run.spec))
}

/// Warns, once, or takes back a warning of an earlier pass.
pub(super) fn warn(run: &AgentRun, mut next: RunStanding, warning: Option<Warning>) -> RunStanding {
    let Some(Warning {
        reason,
        event,
        note,
    }) = warning
    else {
        return without_warning(run, next);
    };
    if !has_warning(run, reason) {
        next = next.tell(event, note.clone());
    }
    next.observed.push(Observation::new(
        ConditionType::Warning,
        ConditionStatus::True,
        reason,
        note,
    ));
    next
}

/// Takes back a warning of an earlier pass.
pub(super) fn without_warning(run: &AgentRun, mut next: RunStanding) -> RunStanding {
    if holds(run, ConditionType::Warning) {
        next.observed.push(Observation::new(
            ConditionType::Warning,
            ConditionStatus::False,
            Lifecycle::None,
            "",
        ));
    }
    next
}

fn has_warning(run: &AgentRun, reason: Reason) -> bool {
    condition(run, ConditionType::Warning).is_some_and(|warning| {
        warning.status == "True" && warning.reason.as_deref() == Some(reason.as_str())
    })
}

/// Whether something went wrong with it last, so that it is tried again.
pub(in crate::controller::agent_run) fn is_troubled(run: &AgentRun) -> bool {
    holds(run, ConditionType::Warning)
}
