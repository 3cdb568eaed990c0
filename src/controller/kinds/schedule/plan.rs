//! What is to be done about a schedule, from what was observed.
//!
//! At most one run is made for all times that have come: the latest. A time that cannot be kept is told and passed over.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kube::{Resource, ResourceExt};

use super::copy::copy;
use super::times::{self, MANY};
use crate::api::condition::Lifecycle;
use crate::api::kind::Kind;
use crate::api::kinds::schedule::ConcurrencyPolicy;
use crate::api::kinds::{AgentRun, OrchestrationRun, Schedule, ScheduleStatus};
use crate::api::object::cause;
use crate::api::object::examine::examine;
use crate::api::validate::{Timetable, parse_time_zone, parse_timetable};
use crate::controller::driver::plan::{Next, Plan, Standing, Step};
use crate::controller::driver::stand::{
    Lack, Stand, invalid, is_judged, standing, stored, waiting,
};
use crate::events;

/// What was found about one schedule.
#[derive(Clone, Debug)]
pub(in crate::controller) struct Observed {
    pub(super) now: Timestamp,
    /// The schedule; none if it is gone.
    pub(super) schedule: Option<Arc<Schedule>>,
    /// What it copies.
    pub(super) target: Option<Run>,
    /// What it made and what has not ended; looked for only where that matters.
    pub(super) active: Vec<Run>,
}

/// A run that can be copied.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::controller) enum Run {
    Agent(Arc<AgentRun>),
    Orchestration(Arc<OrchestrationRun>),
}

impl Run {
    pub(super) fn name(&self) -> String {
        match self {
            Self::Agent(run) => run.name_any(),
            Self::Orchestration(run) => run.name_any(),
        }
    }
}

/// What can be done about a schedule besides writing its status.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::controller) enum Action {
    /// Make a run.
    Make(Run),
    /// Stop a run, and keep its record.
    Stop(Run),
}

type SchedulePlan = Plan<Action, ScheduleStatus>;
type ScheduleStanding = Standing<ScheduleStatus>;

/// What happens when a time comes and an earlier run has not ended.
pub(super) fn policy(schedule: &Schedule) -> ConcurrencyPolicy {
    schedule.spec.concurrency_policy.unwrap_or_default()
}

/// Decides.
pub(super) fn plan(seen: &Observed) -> SchedulePlan {
    let Some(schedule) = seen.schedule.as_deref() else {
        return Plan::idle(Next::Wait);
    };
    if schedule.meta().deletion_timestamp.is_some() {
        return Plan::idle(Next::Wait);
    }
    let json = serde_json::to_value(schedule).unwrap_or_default();
    let causes = examine(Kind::Schedule, &json, None);
    let zone = schedule.spec.timezone.as_deref();
    let zone = zone.map_or(Some(TimeZone::UTC), parse_time_zone);
    let table = parse_timetable(&schedule.spec.cron).ok();
    let (Some(table), Some(zone), true) = (table, zone, causes.is_empty()) else {
        return say(invalid(schedule, &causes, seen.now));
    };
    if !is_here(schedule) {
        return say(elsewhere(schedule, seen.now));
    }
    if schedule.spec.suspend == Some(true) {
        let stand = Stand::ready(stored(schedule), "Suspended", Lifecycle::Suspended);
        return say(standing(schedule, stand, seen.now));
    }
    let last = base(schedule, seen.now);
    let mut plan = match times::latest(&table, &zone, last, seen.now) {
        Some(due) => {
            let missed = times::between(&table, &zone, last, due);
            at_its_time(seen, schedule, due, missed)
        }
        None => say(quiet(seen, schedule, last)),
    };
    plan.next = coming(&table, &zone, last, seen.now);
    plan
}

fn say(standing: ScheduleStanding) -> SchedulePlan {
    Plan::steps(vec![Step::status(standing)])
}

fn coming(table: &Timetable, zone: &TimeZone, last: Timestamp, now: Timestamp) -> Next {
    times::next(table, zone, last, now).map_or(Next::Wait, Next::At)
}

/// A run is made beside its schedule: the rights of the controller are not those of who wrote the schedule.
fn is_here(schedule: &Schedule) -> bool {
    let wanted = schedule.spec.target_ref.namespace.as_deref();
    wanted.is_none_or(|wanted| schedule.namespace().as_deref() == Some(wanted.trim()))
}

fn elsewhere(schedule: &Schedule, now: Timestamp) -> ScheduleStanding {
    let message = "the target is in another namespace; put the schedule beside it".to_owned();
    let reason = cause::Reason::UnsupportedTarget;
    let stand = Stand::unready(stored(schedule), "Invalid", reason, message.clone());
    standing(schedule, stand, now).telling(events::Reason::InvalidSpec, message)
}

/// The time from which on times count: the last one that was dealt with, or that of the newest spec.
fn base(schedule: &Schedule, now: Timestamp) -> Timestamp {
    let Some(status) = &schedule.status else {
        return schedule.creation_timestamp().map_or(now, |made| made.0);
    };
    if !is_judged(schedule) {
        // A time that the spec did not have when it came was not missed.
        return now;
    }
    let dealt_with = status.last_schedule_time;
    dealt_with
        .or_else(|| schedule.creation_timestamp().map(|made| made.0))
        .unwrap_or(now)
}

/// No time has come.
fn quiet(seen: &Observed, schedule: &Schedule, last: Timestamp) -> ScheduleStanding {
    let mut status = stored(schedule);
    if schedule.status.is_some() && !is_judged(schedule) {
        status.last_schedule_time = Some(last);
    }
    described(seen, schedule, status)
}

/// How the schedule stands, whether or not anything is due.
fn described(seen: &Observed, schedule: &Schedule, status: ScheduleStatus) -> ScheduleStanding {
    if seen.target.is_none() {
        let target = &schedule.spec.target_ref;
        let what = format!("{} {}", target.kind.trim(), target.name.trim());
        return waiting(schedule, status, &[Lack::target(what)], seen.now);
    }
    let stand = Stand::ready(status, "Active", Lifecycle::Active);
    standing(schedule, stand, seen.now)
}

/// A time has come, after others that were missed.
fn at_its_time(
    seen: &Observed,
    schedule: &Schedule,
    due: Timestamp,
    missed: usize,
) -> SchedulePlan {
    let mut status = stored(schedule);
    status.last_schedule_time = Some(due);
    let hindrance = hindrance(seen, schedule, due);
    let (Some(target), None) = (&seen.target, &hindrance) else {
        let why = hindrance.unwrap_or("there is no target");
        let next = described(seen, schedule, status);
        let note = format!("no run was made for {due}: {why}");
        return say(next.telling(events::Reason::ScheduleMissed, note));
    };
    let run = copy(schedule, target, due);
    status.last_run_time = Some(due);
    let note = format!("run {} was made for {due}", run.name());
    let mut next = described(seen, schedule, status).telling(events::Reason::Scheduled, note);
    if missed > 0 {
        let count = if missed == MANY {
            "at least 100"
        } else {
            &missed.to_string()
        };
        let note = format!("{count} earlier times were passed over");
        next = next.telling(events::Reason::ScheduleMissed, note);
    }
    let stops = match policy(schedule) {
        ConcurrencyPolicy::Replace => seen.active.as_slice(),
        ConcurrencyPolicy::Allow | ConcurrencyPolicy::Forbid => &[],
    };
    let is_other = |active: &&Run| active.name() != run.name();
    let stops = stops.iter().filter(is_other).cloned().map(Action::Stop);
    let mut steps: Vec<_> = stops.map(Step::Do).collect();
    steps.push(Step::Do(Action::Make(run)));
    steps.push(Step::status(next));
    Plan::steps(steps)
}

/// Why no run is made although its time has come.
fn hindrance(seen: &Observed, schedule: &Schedule, due: Timestamp) -> Option<&'static str> {
    let limit = schedule.spec.starting_deadline_seconds;
    let limit = limit.and_then(|seconds| u64::try_from(seconds).ok());
    let last_call = limit.and_then(|limit| due.checked_add(Duration::from_secs(limit)).ok());
    if last_call.is_some_and(|last_call| last_call < seen.now) {
        return Some("it is too late by now");
    }
    let is_forbidden = policy(schedule) == ConcurrencyPolicy::Forbid;
    // The run of this very time may be there from before a crash.
    let own = seen
        .target
        .as_ref()
        .map(|target| copy(schedule, target, due).name());
    let others = seen.active.iter().any(|run| Some(run.name()) != own);
    (is_forbidden && others).then_some("an earlier run has not ended")
}
