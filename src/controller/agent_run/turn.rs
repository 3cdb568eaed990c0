//! Turns: what one Job does is one turn. A run of type job has one; a workflow has one for each try of each round of each
//! step. Where a run stands is read from its spec and its status alone.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::{Resource, ResourceExt};

use crate::api::contract::label;
use crate::api::kinds::AgentRun;
use crate::api::kinds::agents::agent_run::{RuntimeType, WorkflowStep, WorkflowStepStatus};
use crate::api::kinds::shared::JobRef;
use crate::api::phase::StepPhase;
use crate::api::text::names::{ChildName, LabelValue};

/// What one Job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The whole run.
    Whole,
    /// One try of a step.
    Step(Try),
}

/// One try of one round of one step. They are ordered as they are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Try {
    /// Position of the step, from 0.
    pub(super) index: usize,
    /// Round, from 1.
    pub(super) iteration: i64,
    /// Try within the round, from 1.
    pub(super) attempt: i64,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// This turn comes next, not before its time.
    Before { turn: Turn, due: Option<Timestamp> },
    /// The Job of this turn is reserved, made, or at work.
    Under(Turn),
    /// Every step is done.
    Over,
}

impl Try {
    pub(super) fn first(index: usize) -> Self {
        Self {
            index,
            iteration: 1,
            attempt: 1,
        }
    }

    /// The part of names that tells this try from every other one of the run.
    fn suffix(self, step: Option<&WorkflowStep>) -> String {
        let Self {
            index,
            iteration,
            attempt,
        } = self;
        let number = index + 1;
        match step.and_then(|step| step.loop_.as_ref()) {
            Some(_) => format!("step-{number}-iteration-{iteration}-attempt-{attempt}"),
            None => format!("step-{number}-attempt-{attempt}"),
        }
    }

    /// The try that a Job was made for, from its labels.
    pub(super) fn of<K: Resource>(object: &K) -> Option<Self> {
        let labels = object.labels();
        let number = |name: &str| labels.get(name)?.parse::<i64>().ok();
        let index = usize::try_from(number(label::STEP_INDEX)?).ok()?;
        Some(Self {
            index: index.checked_sub(1)?,
            iteration: number(label::STEP_ITERATION)?,
            attempt: number(label::STEP_ATTEMPT)?,
        })
    }
}

impl Turn {
    /// Name of the Job.
    pub(super) fn job(self, run: &AgentRun) -> String {
        match self {
            Self::Whole => child(run, "job"),
            Self::Step(this) => child(run, &this.suffix(step(run, this.index))),
        }
    }

    /// Name of something else that is made for the turn.
    pub(super) fn child(self, run: &AgentRun, part: &str) -> String {
        match self {
            Self::Whole => child(run, part),
            Self::Step(this) => {
                let suffix = this.suffix(step(run, this.index));
                child(run, &format!("{part}-{suffix}"))
            }
        }
    }

    /// Labels that tell one turn of a run from another.
    pub(super) fn labels(self, run: &AgentRun) -> BTreeMap<String, String> {
        let Self::Step(this) = self else {
            return BTreeMap::new();
        };
        let name = step(run, this.index).map_or("", |step| &step.name);
        let name = LabelValue::normalise(name).as_str().to_owned();
        BTreeMap::from([
            (label::STEP.to_owned(), name),
            (label::STEP_INDEX.to_owned(), (this.index + 1).to_string()),
            (label::STEP_ITERATION.to_owned(), this.iteration.to_string()),
            (label::STEP_ATTEMPT.to_owned(), this.attempt.to_string()),
        ])
    }
}

fn child(run: &AgentRun, part: &str) -> String {
    ChildName::derive(&run.name_any(), part).as_str().to_owned()
}

/// The steps of a workflow; none of any other run.
pub(super) fn steps(run: &AgentRun) -> &[WorkflowStep] {
    match (run.spec.runtime.type_, &run.spec.workflow) {
        (RuntimeType::Workflow, Some(workflow)) => &workflow.steps,
        (RuntimeType::Workflow, None) => &[],
        (RuntimeType::Job | RuntimeType::Temporal | RuntimeType::Custom, _) => &[],
    }
}

/// A step of a workflow.
pub(super) fn step(run: &AgentRun, index: usize) -> Option<&WorkflowStep> {
    steps(run).get(index)
}

/// What is stored about a step.
pub(super) fn step_status(run: &AgentRun, index: usize) -> Option<&WorkflowStepStatus> {
    let workflow = run.status.as_ref()?.workflow.as_ref()?;
    workflow.steps.as_ref()?.get(index)
}

/// Where the run stands. The first step that has not succeeded is the one that counts.
pub(super) fn stage(run: &AgentRun) -> Stage {
    if run.spec.runtime.type_ != RuntimeType::Workflow {
        let status = run.status.as_ref();
        let is_reserved = match run.spec.runtime.type_ {
            RuntimeType::Custom => status.is_some_and(|status| status.runtime_ref.is_some()),
            RuntimeType::Job | RuntimeType::Workflow | RuntimeType::Temporal => {
                status.is_some_and(|status| status.job_ref.is_some())
            }
        };
        return match is_reserved {
            true => Stage::Under(Turn::Whole),
            false => Stage::Before {
                turn: Turn::Whole,
                due: None,
            },
        };
    }
    let has_succeeded = |index: usize| {
        let phase = step_status(run, index).and_then(|step| step.phase.as_deref());
        phase == Some(StepPhase::Succeeded.as_str())
    };
    let Some(index) = (0..steps(run).len()).find(|index| !has_succeeded(*index)) else {
        return Stage::Over;
    };
    let Some(stored) = step_status(run, index) else {
        return Stage::Before {
            turn: Turn::Step(Try::first(index)),
            due: None,
        };
    };
    let this = Try {
        index,
        iteration: stored.iteration.unwrap_or(1),
        attempt: stored.attempt.unwrap_or_default(),
    };
    // The Job of a try that failed is still named while the next one is waited for.
    match (&stored.job_ref, stored.next_retry_at) {
        (Some(_), None) => Stage::Under(Turn::Step(this)),
        (_, due) => Stage::Before {
            turn: Turn::Step(Try {
                attempt: this.attempt.saturating_add(1),
                ..this
            }),
            due,
        },
    }
}

/// Whether the first Job of the run was reserved.
pub(super) fn has_begun(run: &AgentRun) -> bool {
    match stage(run) {
        Stage::Before {
            turn: Turn::Whole, ..
        } => false,
        Stage::Before {
            turn: Turn::Step(next),
            ..
        } => next != Try::first(0),
        Stage::Under(_) | Stage::Over => true,
    }
}

/// The Job that the status names as the one that is made now, or at work.
pub(super) fn job_ref(run: &AgentRun) -> Option<&JobRef> {
    match stage(run) {
        Stage::Under(Turn::Whole) => run.status.as_ref()?.job_ref.as_ref(),
        Stage::Under(Turn::Step(this)) => step_status(run, this.index)?.job_ref.as_ref(),
        Stage::Before { .. } | Stage::Over => None,
    }
}

/// Whether a Job was made for a try before this one, whose end is therefore stored.
pub(super) fn is_earlier<K: Resource>(job: &K, stage: Stage) -> bool {
    let next = match stage {
        Stage::Before {
            turn: Turn::Step(next),
            ..
        }
        | Stage::Under(Turn::Step(next)) => next,
        Stage::Before {
            turn: Turn::Whole, ..
        }
        | Stage::Under(Turn::Whole) => return false,
        Stage::Over => return true,
    };
    Try::of(job).is_some_and(|made| made < next)
}
