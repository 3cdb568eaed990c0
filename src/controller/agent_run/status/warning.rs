//! What people should know about a run while it goes on.

use super::{RunStanding, condition, holds};
use crate::api::condition::{ConditionStatus, ConditionType, Lifecycle, Observation, Reason};
use crate::api::kinds::AgentRun;
use crate::api::object::cause::{self, Cause};
use crate::api::text::hash::spec_hash;
use crate::controller::agent_run::vcs::{self, Resolved};
use crate::controller::policy::is_of_policy;
use crate::controller::runs::{read_reason, told};
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
    let Some((reason, note)) = told(causes) else {
        return next;
    };
    let warning = Warning {
        reason: reason.into(),
        event: events::Reason::PolicyDenied,
        note,
    };
    warn(run, next, Some(warning))
}

/// The repository of a turn, or why it goes on without, and what people should know about it.
pub(in crate::controller::agent_run) fn with_vcs(
    run: &AgentRun,
    mut next: RunStanding,
    resolved: &Resolved,
) -> RunStanding {
    let observed = match resolved {
        Resolved::Unasked => None,
        Resolved::Skipped { reason, message } => {
            Some((ConditionStatus::True, *reason, message.as_str()))
        }
        Resolved::Use(_) => holds(run, ConditionType::VcsSkipped)
            .then(|| (ConditionStatus::False, Lifecycle::Reconciled.into(), "")),
    };
    let observed = observed.map(|(status, reason, message)| {
        Observation::new(ConditionType::VcsSkipped, status, reason, message)
    });
    next.observed.extend(observed);
    let Some(vcs) = resolved.used() else {
        return next;
    };
    next.status.vcs = Some(vcs::status(vcs));
    let Some((reason, note)) = vcs.warning.clone() else {
        return next;
    };
    let warning = Warning {
        reason,
        event: event(reason),
        note,
    };
    warn(run, next, Some(warning))
}

/// What was said when the run began and still holds.
pub(super) fn kept_warning(run: &AgentRun) -> Option<Warning> {
    let warning = condition(run, ConditionType::Warning)?;
    let reason = read_reason(warning.reason.as_deref()?)?;
    let is_kept = match reason {
        Reason::Refused(reason) => is_of_policy(reason),
        Reason::Lifecycle(reason) => reason == Lifecycle::DeprecatedAuth,
        Reason::JobMissing(_) => false,
    };
    (is_kept && warning.status == "True").then(|| Warning {
        reason,
        event: event(reason),
        note: warning.message.clone().unwrap_or_default(),
    })
}

/// The Event that tells of such a warning.
fn event(reason: Reason) -> events::Reason {
    match reason {
        Reason::Refused(_) => events::Reason::PolicyDenied,
        Reason::Lifecycle(_) | Reason::JobMissing(_) => events::Reason::DeprecatedAuth,
    }
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

/// Warns, and tells it once.
pub(super) fn warn(run: &AgentRun, mut next: RunStanding, warning: Option<Warning>) -> RunStanding {
    let Some(Warning {
        reason,
        event,
        note,
    }) = warning
    else {
        return next;
    };
    if !has_warning(run, reason) {
        next = next.tell(event, note.clone());
    }
    next.observed
        .retain(|entry| entry.type_ != ConditionType::Warning);
    next.observed.push(Observation::new(
        ConditionType::Warning,
        ConditionStatus::True,
        reason,
        note,
    ));
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
