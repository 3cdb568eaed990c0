//! What is to be done about a run, from what was observed. Pure.
//!
//! The status of a step says what is to be done, and is stored first: an object is made only for a step whose status
//! names it, so it does not matter where the last pass stopped.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Resource;

use super::child::{self, Child};
use super::status;
use super::step::{self, At, Sight};
use crate::api::condition::Lifecycle;
use crate::api::kind::Kind;
use crate::api::kinds::orchestrations::orchestration::Step as Definition;
use crate::api::kinds::orchestrations::orchestration_run::StepStatus;
use crate::api::kinds::{Orchestration, OrchestrationRun, OrchestrationRunStatus};
use crate::api::object::examine::examine;
use crate::api::phase::StepPhase;
use crate::api::validate::{StepGraph, StepKind};
use crate::controller::driver::plan::{Next, Plan, Step};

/// What was found about one run.
#[derive(Clone, Debug)]
pub(in crate::controller) struct Observed {
    pub(super) now: Timestamp,
    /// The run; none if it is gone.
    pub(super) run: Option<Arc<OrchestrationRun>>,
    /// What it runs, if that is there.
    pub(super) orchestration: Option<Arc<Orchestration>>,
    /// What was seen of each step, in the order of the orchestration; of one that is to be tried again, what was seen of
    /// its last try.
    pub(super) seen: Vec<Sight>,
    /// Objects of steps that have ended although their object has not.
    pub(super) left: Vec<Child>,
}

/// What can be done about a run besides writing its status.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::controller) enum Action {
    /// Make the object of a step.
    Make(Child),
    /// Stop the object of a step; its record stays.
    Stop(Child),
}

pub(super) type RunPlan = Plan<Action, OrchestrationRunStatus>;

/// Decides.
pub(super) fn plan(seen: &Observed, grace: Duration) -> RunPlan {
    let Some(run) = seen.run.as_deref() else {
        return Plan::idle(Next::Wait);
    };
    if run.meta().deletion_timestamp.is_some() {
        // What belongs to it goes with it.
        return Plan::idle(Next::Wait);
    }
    if status::phase(run).is_terminal() {
        return settle(seen, run);
    }
    if run.spec.cancel == Some(true) {
        return store(status::cancelled(run, seen.now));
    }
    let own = serde_json::to_value(run).unwrap_or_default();
    if let Some(refused) =
        status::refused(run, &examine(Kind::OrchestrationRun, &own, None), seen.now)
    {
        return store(refused);
    }
    let Some(orchestration) = seen.orchestration.as_deref() else {
        return wait(seen, run, grace);
    };
    let whole = serde_json::to_value(orchestration).unwrap_or_default();
    let causes = examine(Kind::Orchestration, &whole, None);
    if let Some(refused) = status::refused(run, &causes, seen.now) {
        return store(refused);
    }
    follow(seen, run, orchestration)
}

fn store(next: status::RunStanding) -> RunPlan {
    Plan::steps(vec![Step::status(next)])
}

/// Waits for the orchestration within the grace, or gives up.
fn wait(seen: &Observed, run: &OrchestrationRun, grace: Duration) -> RunPlan {
    let since = status::missing_since(run).unwrap_or(seen.now);
    let over = match grace.is_zero() {
        true => None,
        false => since.checked_add(grace).ok(),
    };
    if over.is_some_and(|over| over <= seen.now) {
        return store(status::unfit(run, seen.now));
    }
    Plan {
        steps: vec![Step::status(status::waiting(run))],
        next: over.map_or(Next::Wait, Next::At),
    }
}

/// A run that has ended: what its steps left at work is stopped.
fn settle(seen: &Observed, run: &OrchestrationRun) -> RunPlan {
    let stops = seen.left.iter().filter(|child| !child.is_stopped());
    let mut steps: Vec<_> = stops.cloned().map(Action::Stop).map(Step::Do).collect();
    if steps.is_empty() && status::is_edited(run) {
        steps.extend(status::ratified(run).map(Step::status));
    }
    Plan::steps(steps)
}

/// Moves every step as far as it goes.
fn follow(seen: &Observed, run: &OrchestrationRun, orchestration: &Orchestration) -> RunPlan {
    let now = Timestamp::from_second(seen.now.as_second()).unwrap_or(seen.now);
    let definitions = &orchestration.spec.steps;
    let before = status::steps(run, definitions);
    let mut after = before.clone();
    let at = |index: usize, step| At {
        run,
        step,
        index,
        now,
    };
    for (index, (step, sight)) in definitions.iter().zip(&seen.seen).enumerate() {
        after[index] = step::follow(at(index, step), &before[index], sight);
    }
    let dropped = status::dropped(run, definitions).into_iter();
    let dropped: Vec<_> = dropped.map(|status| step::dropped(status, now)).collect();
    let is_failing = after
        .iter()
        .chain(&dropped)
        .any(|status| step::phase(status) == StepPhase::Failed);
    for index in order(definitions) {
        let here = at(index, &definitions[index]);
        let next = match is_failing {
            true => given_up(here, &after[index]),
            false if is_free(&definitions[index], definitions, &after) => {
                started(here, &after[index])
            }
            false => after[index].clone(),
        };
        after[index] = next;
    }
    let all = after.iter().cloned().chain(dropped).collect();
    let mut steps = vec![Step::status(status::moved(run, &before, all, seen.now))];
    // First of all what is over is stopped: it must not work on because something else cannot be made.
    let stops = seen.left.iter().filter(|child| !child.is_stopped());
    steps.extend(stops.cloned().map(Action::Stop).map(Step::Do));
    let stored = before.iter().zip(&after);
    steps.extend(makes(seen, run, definitions, stored).map(Step::Do));
    let due = definitions.iter().zip(&after);
    let due = due.filter_map(|(definition, status)| step::due(definition, status));
    Plan {
        steps,
        next: due.min().map_or(Next::Wait, Next::At),
    }
}

/// The order in which steps can run; the rules refuse circles.
fn order(definitions: &[Definition]) -> Vec<usize> {
    let waits = |step: &Definition| step.depends_on.clone().unwrap_or_default();
    let waits: Vec<Vec<String>> = definitions.iter().map(waits).collect();
    let names = definitions.iter().map(|step| step.name.as_str());
    let graph = StepGraph::new(names.zip(waits.iter().map(Vec::as_slice)));
    graph.order().unwrap_or_default()
}

/// Whether all that a step depends on has succeeded.
fn is_free(step: &Definition, all: &[Definition], statuses: &[StepStatus]) -> bool {
    let mut names = step.depends_on.iter().flatten();
    names.all(|name| {
        let index = all.iter().position(|other| other.name == *name);
        index.is_some_and(|index| step::phase(&statuses[index]) == StepPhase::Succeeded)
    })
}

/// Begins a step that has not begun; one that only marks a point has ended with it.
fn started(at: At<'_>, status: &StepStatus) -> StepStatus {
    if step::phase(status) != StepPhase::Pending {
        return status.clone();
    }
    let begun = step::begin(at, status);
    match StepKind::parse(at.step.kind.trim()) {
        Some(StepKind::Checkpoint | StepKind::MemoryOp) => {
            step::moved(at, &begun, StepPhase::Succeeded, "passed")
        }
        Some(
            StepKind::AgentRun
            | StepKind::ToolRun
            | StepKind::SubOrchestration
            | StepKind::ApprovalGate
            | StepKind::SignalWait,
        )
        | None => begun,
    }
}

/// What becomes of a step when another one has failed: what works goes on to its end, nothing else begins.
fn given_up(at: At<'_>, status: &StepStatus) -> StepStatus {
    let has_object = status.resource_ref.is_some();
    let message = "another step has failed";
    match step::phase(status) {
        StepPhase::Pending => step::moved(at, status, StepPhase::Skipped, message),
        StepPhase::Retrying => step::moved(at, status, StepPhase::Cancelled, message),
        // Nobody works on it, so there is no end to wait for.
        StepPhase::Running if !has_object => step::moved(at, status, StepPhase::Cancelled, message),
        StepPhase::Running
        | StepPhase::Succeeded
        | StepPhase::Failed
        | StepPhase::Cancelled
        | StepPhase::Skipped => status.clone(),
    }
}

/// The objects that stored statuses name and that are not there yet, unless their step ends with this very pass.
fn makes<'a>(
    seen: &'a Observed,
    run: &'a OrchestrationRun,
    definitions: &'a [Definition],
    statuses: impl Iterator<Item = (&'a StepStatus, &'a StepStatus)> + 'a,
) -> impl Iterator<Item = Action> + 'a {
    let all = definitions.iter().zip(statuses).zip(&seen.seen);
    all.filter_map(|((step, (stored, next)), sight)| {
        let is_wanted = |status| step::phase(status) == StepPhase::Running;
        let Sight::Absent = sight else {
            return None;
        };
        let name = stored.resource_ref.as_ref()?.name.as_deref()?;
        let kind = StepKind::parse(step.kind.trim())?;
        let made = child::make(run, step, kind, name).ok().flatten();
        made.filter(|_| is_wanted(stored) && is_wanted(next))
            .map(Action::Make)
    })
}

/// Why the object of a step cannot be made, if it cannot.
pub(super) fn flaw(run: &OrchestrationRun, step: &Definition, name: &str) -> Option<String> {
    let kind = StepKind::parse(step.kind.trim())?;
    child::make(run, step, kind, name).err()
}

/// The word for a run that waits for its orchestration.
pub(super) const WAITS: Lifecycle = Lifecycle::MissingOrchestration;
