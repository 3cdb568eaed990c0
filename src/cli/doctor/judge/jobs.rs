//! Jobs whose outcome must not be lost, and runs that do not get on.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;

use crate::api::condition::Hindrance;
use crate::api::contract::{annotation, env, finalizer};
use crate::api::custody::{LastStatus, last_status_of};
use crate::cli::doctor::check::Verdict::{self, Bad, Beside, Good, Warning};
use crate::cli::doctor::check::{Check, When, none_of, seen, some};
use crate::cli::doctor::facts::{Component, Facts};
use crate::cli::queue::count::held_back;
use crate::cli::run::view::ended;

/// An outcome that is not stored after this time needs someone.
const LATE: SignedDuration = SignedDuration::from_secs(300);

/// What must be left of the time to live of a Job whose outcome is not stored.
const HEADROOM: SignedDuration = SignedDuration::from_secs(60);

/// A run that waits longer needs someone.
const LONG: SignedDuration = SignedDuration::from_secs(1800);

/// About Jobs and runs.
pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "jobs-recorded",
        title: "the outcome of every Job that ended is stored",
        hint: "see that a controller leads and may write statuses; `agents explain RUN` says what is known of a run",
        link: "docs/runbooks/AgentsJobUnrecorded.md",
        when: When::After,
        judge: recorded,
    },
    Check {
        id: "job-ttl",
        title: "no Job goes before its outcome is stored",
        hint: "take the time to live off these Jobs and stop who sets it; ours is set once the outcome is stored",
        link: "docs/runbooks/AgentsJobTtlShort.md",
        when: When::After,
        judge: ttl,
    },
    Check {
        id: "jobs-held",
        title: "no Job is held on its way out",
        hint: "the controllers let go once the outcome is stored; where none is left, `agents release` does",
        link: "docs/runbooks/AgentsJobsHeld.md",
        when: When::After,
        judge: held,
    },
    Check {
        id: "runs-blocked",
        title: "no run is held back by something that is missing",
        hint: "`agents explain RUN` says what it waits for",
        link: "docs/runbooks/AgentsRunsBlocked.md",
        when: When::After,
        judge: blocked,
    },
    Check {
        id: "runs-waiting",
        title: "no run waits long for its turn",
        hint: "`agents queue` shows who is in line and which limit is reached",
        link: "docs/runbooks/AgentsRunsWaitLong.md",
        when: When::After,
        judge: waiting,
    },
];

/// When a Job ended, if it has.
fn end(job: &Job) -> Option<Timestamp> {
    match last_status_of(job) {
        LastStatus::Finished { at, .. } => Some(at),
        LastStatus::Active | LastStatus::Unknown => None,
    }
}

fn is_recorded(job: &Job) -> bool {
    job.annotations().contains_key(annotation::OUTCOME_RECORDED)
}

fn shown(job: &Job) -> String {
    let namespace = job.namespace().unwrap_or_default();
    format!("{namespace}/{}", job.name_any())
}

fn recorded(facts: &Facts) -> Verdict {
    seen(&facts.jobs, |jobs| {
        let late = jobs.iter().filter(|job| !is_recorded(job));
        let late = late.filter_map(|job| {
            let since = facts.now.duration_since(end(job)?);
            (since > LATE).then(|| format!("{} ended {} s ago", shown(job), since.as_secs()))
        });
        let late: Vec<String> = late.collect();
        none_of(&late, format!("{} Jobs", jobs.len()))
    })
}

/// The longest time from the end of a Job to its stored outcome that can be seen now.
fn lag(jobs: &[Job], now: Timestamp) -> SignedDuration {
    let each = jobs.iter().filter_map(|job| {
        let mark = job.annotations().get(annotation::OUTCOME_RECORDED);
        let stored = match mark {
            Some(mark) => mark.parse().ok()?,
            None => now,
        };
        Some(stored.duration_since(end(job)?))
    });
    each.max().unwrap_or_default().max(SignedDuration::ZERO)
}

fn ttl(facts: &Facts) -> Verdict {
    seen(&facts.jobs, |jobs| {
        let lag = lag(jobs, facts.now);
        let short = jobs.iter().filter(|job| !is_recorded(job));
        let short = short.filter_map(|job| {
            let seconds = job.spec.as_ref()?.ttl_seconds_after_finished?;
            let ttl = SignedDuration::from_secs(seconds.into());
            let left = end(job).map_or(ttl - lag, |end| ttl - facts.now.duration_since(end));
            let text = format!("{} lives {seconds} s after its end", shown(job));
            (left < HEADROOM).then_some(text)
        });
        let short: Vec<String> = short.collect();
        let seconds = lag.as_secs();
        match (short.as_slice(), kept(facts)) {
            ([], Some(kept)) if kept < lag => Warning(format!(
                "Jobs are kept for {} s, and storing an outcome took {seconds} s",
                kept.as_secs()
            )),
            ([], _) => Good(format!("outcomes were stored within {seconds} s")),
            (short, _) => Bad(format!(
                "{}; storing an outcome takes up to {seconds} s",
                some(short)
            )),
        }
    })
}

/// How long Jobs are kept by the settings of the controllers; none if for as long as their run.
fn kept(facts: &Facts) -> Option<SignedDuration> {
    let program = facts.program(Component::Controllers)?;
    let seconds = |name: &str, or: i64| {
        let given = program.variables.get(name);
        given.map_or(Some(or), |text| text.trim_end_matches('s').parse().ok())
    };
    let ttl = seconds(env::RUNNER_JOB_TTL, 600)?;
    let floor = seconds(env::RUNNER_JOB_TTL_FLOOR, 30)?;
    (ttl > 0).then(|| SignedDuration::from_secs(ttl.max(floor)))
}

fn held(facts: &Facts) -> Verdict {
    seen(&facts.jobs, |jobs| {
        let stuck = jobs.iter().filter_map(|job| {
            let since = job.metadata.deletion_timestamp.as_ref()?.0;
            let ours = job.finalizers().iter().any(|one| one == finalizer::OUTCOME);
            let for_long = facts.now.duration_since(since) > LATE;
            (ours && for_long).then(|| format!("{} has been held since {since}", shown(job)))
        });
        none_of(&stuck.collect::<Vec<_>>(), "none")
    })
}

fn blocked(facts: &Facts) -> Verdict {
    seen(&facts.runs, |runs| {
        let open = runs.iter().filter(|run| ended(run).is_none());
        let blocked = open.filter_map(|run| {
            let reason = held_back(run).filter(|reason| !Hindrance::names_capacity(reason))?;
            let namespace = run.namespace().unwrap_or_default();
            Some(format!("{namespace}/{}: {reason}", run.name_any()))
        });
        let blocked: Vec<String> = blocked.collect();
        match blocked.as_slice() {
            [] => Good("none".to_owned()),
            blocked => Warning(some(blocked)),
        }
    })
}

fn waiting(facts: &Facts) -> Verdict {
    seen(&facts.runs, |runs| {
        let open = runs
            .iter()
            .filter(|run| run.status.as_ref().is_none_or(|it| it.started_at.is_none()));
        let open = open.filter(|run| ended(run).is_none());
        let waits = open.filter(|run| held_back(run).is_none_or(Hindrance::names_capacity));
        let since = waits.filter_map(|run| run.creation_timestamp().map(|made| made.0));
        match since.min().map(|since| facts.now.duration_since(since)) {
            Some(longest) if longest > LONG => {
                Warning(format!("one has waited for {} s", longest.as_secs()))
            }
            Some(longest) => Good(format!("the longest for {} s", longest.as_secs())),
            None => Beside("none waits".to_owned()),
        }
    })
}
