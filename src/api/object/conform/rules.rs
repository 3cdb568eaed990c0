//! The CEL rules of the CRDs in Rust. A test holds that both say the same about the same objects.

use jiff::Timestamp;
use serde_json::Value;

use crate::api::crd::Rule;
use crate::api::object::cause::{Causes, Path, Reason};
use crate::api::object::tree::Json;
use crate::api::phase::Phase;

/// Rules on a part of a spec. Those about a change are [`check_change`].
pub(super) fn check_spec(rule: Rule, causes: &mut Causes, at: &Path<'_>, given: &impl Json) {
    let has = |name: &str| given.field(name).is_some_and(|value| !value.is_nothing());
    match rule {
        Rule::SomeWork => {
            if !has("implementationSpecRef") && !has("implementation") {
                let message = "there is nothing to do; set implementationSpecRef or implementation";
                causes.add(at, Reason::NothingToDo, message);
            }
        }
        Rule::OneSystemPrompt => {
            if has("systemPrompt") && has("systemPromptRef") {
                let message = "systemPrompt is set as well; keep one of the two";
                let place = at.field("systemPromptRef");
                causes.add(&place, Reason::SystemPromptConflict, message);
            }
        }
        Rule::GenerationNeverFalls
        | Rule::StartedOnce
        | Rule::FinishedOnce
        | Rule::EndsAfterStart
        | Rule::FinalPhase => {}
    }
}

/// Rules on how a status changes.
pub(super) fn check_change(
    rule: Rule,
    causes: &mut Causes,
    at: &Path<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
) {
    let change = Change { old, new };
    let (holds, field, reason, message) = match rule {
        Rule::SomeWork | Rule::OneSystemPrompt => return,
        Rule::GenerationNeverFalls => (
            change.generation_stays(),
            "observedGeneration",
            Reason::ObservedGenerationWentBack,
            "never falls and is never removed; read the object again before writing",
        ),
        Rule::StartedOnce => (
            change.time_stays("startedAt"),
            "startedAt",
            Reason::StartedAtChanged,
            "is written once; leave it as it is",
        ),
        Rule::FinishedOnce => (
            change.time_stays("finishedAt"),
            "finishedAt",
            Reason::FinishedAtChanged,
            "is written once; leave it as it is",
        ),
        Rule::EndsAfterStart => (
            change.ends_after_start(),
            "finishedAt",
            Reason::FinishedBeforeStarted,
            "lies before startedAt; a run ends after it starts",
        ),
        Rule::FinalPhase => (
            change.final_phase_stays(),
            "phase",
            Reason::TerminalPhaseLeft,
            "was final and stays as it was; create a new run instead",
        ),
    };
    if !holds {
        causes.add(&at.field(field), reason, message);
    }
}

/// A status before and after.
struct Change<'v> {
    old: Option<&'v Value>,
    new: Option<&'v Value>,
}

impl Change<'_> {
    fn generation_stays(&self) -> bool {
        let number = |status| get(status, "observedGeneration").map(Value::as_i64);
        number(self.old).is_none_or(|old| number(self.new).is_some_and(|new| new >= old))
    }

    fn time_stays(&self, field: &str) -> bool {
        let (old, new) = (get(self.old, field), get(self.new, field));
        old.is_none_or(|old| new.is_some_and(|new| same_time(old, new)))
    }

    fn ends_after_start(&self) -> bool {
        let both = |status| Some((get(status, "startedAt")?, get(status, "finishedAt")?));
        let Some((start, end)) = both(self.new) else {
            return true;
        };
        let unchanged = both(self.old).is_some_and(|(old_start, old_end)| {
            same_time(old_start, start) && same_time(old_end, end)
        });
        unchanged || time(end) >= time(start)
    }

    fn final_phase_stays(&self) -> bool {
        let (old, new) = (get(self.old, "phase"), get(self.new, "phase"));
        let ended = old.and_then(Value::as_str).and_then(Phase::parse);
        !ended.is_some_and(Phase::is_terminal) || new == old
    }
}

/// A field of a status; null counts as absent.
fn get<'v>(status: Option<&'v Value>, field: &str) -> Option<&'v Value> {
    status?.get(field).filter(|value| !value.is_null())
}

/// CEL compares moments, not texts.
fn same_time(one: &Value, other: &Value) -> bool {
    one == other || (time(one).is_some() && time(one) == time(other))
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests;
