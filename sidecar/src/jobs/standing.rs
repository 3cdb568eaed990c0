//! What the status of a run says about one of its Jobs. Pure.

#[cfg(test)]
mod tests;

use agents::api::condition::{Condition, ConditionType, Lifecycle};
use agents::api::custody::{Class, actor_of};
use agents::api::kinds::shared::JobRef;
use agents::api::phase::{Phase, StepPhase};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::sight::{AgentRunSight, ToolRunSight};
use super::view::{Turn, View};

/// What a run says about one of its Jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// It is being deleted.
    pub(super) is_going: bool,
    /// Its status has the outcome of the Job, or says that it is lost.
    pub(super) is_recorded: bool,
    /// Its status says that the Job is missing, and why.
    pub(super) missing: Option<Class>,
    /// Its status warns of a time to live that someone put on the Job.
    pub(super) is_warned: bool,
    /// Who deleted the Job, if admission saw it.
    pub(super) actor: Option<String>,
}

impl Standing {
    /// What an AgentRun says about a Job.
    pub(super) fn of_agent_run(run: &AgentRunSight, job: &View) -> Self {
        let status = run.status.as_ref();
        let workflow = status.and_then(|status| status.workflow.as_ref());
        let steps = workflow.and_then(|workflow| workflow.steps.as_deref());
        let steps = steps.unwrap_or_default();
        let whole = status.and_then(|status| status.job_ref.as_ref());
        let step = job.turn.and_then(|turn| steps.get(turn.index));
        let is_told = step.zip(job.turn).is_some_and(|(step, turn)| {
            let stored = Turn {
                index: turn.index,
                iteration: step.iteration.unwrap_or(1),
                attempt: step.attempt.unwrap_or_default(),
            };
            let phase = step.phase.as_deref().and_then(StepPhase::parse);
            let has_ended =
                phase.is_some_and(StepPhase::is_terminal) || step.next_retry_at.is_some();
            stored > turn || (stored == turn && has_ended)
        });
        let of_steps = steps.iter().filter_map(|step| step.job_ref.as_ref());
        let named = whole.into_iter().chain(of_steps);
        let phase = status.and_then(|status| status.phase.as_deref());
        let conditions = status.and_then(|status| status.conditions.as_deref());
        let said = Said {
            meta: &run.metadata,
            reference: named.into_iter().find(|named| is_of(named, job)),
            phase,
            conditions: conditions.unwrap_or_default(),
        };
        let standing = said.about(job);
        Self {
            is_recorded: standing.is_recorded || is_told,
            ..standing
        }
    }

    /// What a ToolRun says about a Job.
    pub(super) fn of_tool_run(run: &ToolRunSight, job: &View) -> Self {
        let status = run.status.as_ref();
        let reference = status.and_then(|status| status.job_ref.as_ref());
        let conditions = status.and_then(|status| status.conditions.as_deref());
        let said = Said {
            meta: &run.metadata,
            reference: reference.filter(|named| is_of(named, job)),
            phase: status.and_then(|status| status.phase.as_deref()),
            conditions: conditions.unwrap_or_default(),
        };
        said.about(job)
    }
}

fn is_of(reference: &JobRef, job: &View) -> bool {
    reference.uid.as_deref() == Some(&*job.uid)
}

/// What both kinds of runs say in the same words.
struct Said<'a> {
    meta: &'a ObjectMeta,
    /// What the status has about this very Job.
    reference: Option<&'a JobRef>,
    phase: Option<&'a str>,
    conditions: &'a [Condition],
}

impl Said<'_> {
    fn about(self, job: &View) -> Standing {
        let phase = self.phase.and_then(Phase::parse);
        let stored = self.reference.and_then(|job| job.missing.as_ref());
        let stored = stored.and_then(|missing| missing.class.as_deref());
        // While a pod still works, only the condition says it.
        let shown = self
            .reference
            .and_then(|_| self.holds(ConditionType::JobMissing));
        let warned = self.holds(ConditionType::Warning);
        Standing {
            is_going: self.meta.deletion_timestamp.is_some(),
            is_recorded: phase.is_some_and(Phase::is_terminal),
            missing: stored.or(shown).and_then(Class::parse),
            is_warned: warned == Some(Lifecycle::JobTtlInjected.as_str()),
            actor: actor_of(self.meta.annotations.as_ref(), &job.uid),
        }
    }

    /// The reason of a condition that holds.
    fn holds(&self, type_: ConditionType) -> Option<&str> {
        let mut conditions = self.conditions.iter();
        let found = conditions.find(|condition| condition.type_ == type_.as_str())?;
        (found.status == "True").then_some(found.reason.as_deref())?
    }
}
