//! What is said about the log of a run that has ended and whose pods are gone: since when, and by which setting. Pure.

use http::StatusCode;
use jiff::{SignedDuration, Timestamp};

use crate::api::contract::env;
use crate::api::custody::Outcome;
use crate::api::kinds::AgentRun;
use crate::api::phase::Phase;
use crate::controller::{Keep, job_ttl};
use crate::serve::carry_out::runs::view::Summary;
use crate::serve::fault::{Fault, Reason};

/// Where a run says itself how long its Job is kept.
const OWN: &str = "spec.runtime.config.ttlSecondsAfterFinished";

/// Why there is nothing to read any more.
pub(super) fn fault(run: &AgentRun, seen: &Summary, finished: Timestamp, keep: Keep) -> Fault {
    let outcome = match Phase::parse(seen.phase()) {
        Some(Phase::Failed) => Outcome::Failed,
        Some(Phase::Succeeded | Phase::Cancelled | Phase::Pending | Phase::Running) | None => {
            Outcome::Succeeded
        }
    };
    let begun = run.status.as_ref().and_then(|status| status.started_at);
    let why = if begun.is_none() && seen.phase() != Phase::Succeeded.as_str() {
        "without a pod".to_owned()
    } else if let Some(missing) = seen.job_missing() {
        let class = missing.class.as_deref().unwrap_or("unknown");
        let noticed = missing
            .noticed_at
            .map(|at| format!(" since {at} at the latest"));
        let noticed = noticed.unwrap_or_default();
        format!("and its Job went before its time ({class}), and its log with it{noticed}")
    } else {
        match job_ttl(run, outcome, keep) {
            Some(seconds) => kept(run, outcome, (finished, seconds)),
            None => "and its Job is kept as long as the run, so someone removed its pods, and its log with them".to_owned(),
        }
    };
    let message = format!("the log is gone: the run ended at {finished}, {why}");
    Fault::new(StatusCode::GONE, Reason::LogsGone, message).next(format!(
        "to keep logs of later runs longer, set {} of the controllers (here it is {} s)",
        env::RUNNER_JOB_LOG_RETENTION,
        keep.logs.as_secs(),
    ))
}

/// Since when, and by which setting.
fn kept(run: &AgentRun, outcome: Outcome, (finished, seconds): (Timestamp, i32)) -> String {
    let since = finished.checked_add(SignedDuration::from_secs(seconds.into()));
    let since = since.unwrap_or(finished);
    let config = run.spec.runtime.config.as_ref();
    let is_own = config.is_some_and(|config| config.contains_key("ttlSecondsAfterFinished"));
    let setting = match (is_own, outcome) {
        (true, _) => format!("{OWN} of the run"),
        (false, Outcome::Failed) => {
            format!(
                "{}, else {}",
                env::RUNNER_FAILED_JOB_TTL,
                env::RUNNER_JOB_TTL
            )
        }
        (false, Outcome::Succeeded) => env::RUNNER_JOB_TTL.to_owned(),
    };
    format!(
        "and its log went with its pods at about {since}, {seconds} s after the end; how long is set by {setting}, \
        within {} and a week, and {} keeps it longer",
        env::RUNNER_JOB_TTL_FLOOR,
        env::RUNNER_JOB_LOG_RETENTION,
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use serde_json::{Value, json};

    fn keep(logs: u64) -> Keep {
        let seconds = Duration::from_secs;
        Keep {
            succeeded: seconds(600),
            failed: seconds(86400),
            floor: seconds(30),
            logs: seconds(logs),
        }
    }

    fn said(config: Value, mut status: Value, keep: Keep) -> String {
        status["finishedAt"] = json!("2026-01-01T00:00:00Z");
        let object = json!({
            "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun", "metadata": {"name": "r"},
            "spec": {"agentRef": {"name": "a"}, "runtime": {"type": "job", "config": config}}, "status": status,
        });
        let run: AgentRun = serde_json::from_value(object.clone()).unwrap();
        let seen = Summary::of(&serde_json::from_value(object).unwrap());
        let finished = run.status.as_ref().unwrap().finished_at.unwrap();
        format!("{:?}", fault(&run, &seen, finished, keep))
    }

    #[test]
    fn who_comes_too_late_is_told_since_when_and_by_which_setting() {
        let over = |phase: &str| json!({"phase": phase, "startedAt": "2025-12-31T23:00:00Z"});
        let mut lost = over("Failed");
        lost["jobRef"] = json!({"name": "j", "missing": {"class": "JobDeletedByActor", "noticedAt": "2026-01-01T00:00:01Z"}});
        let own = |seconds: Value| json!({"ttlSecondsAfterFinished": seconds});
        let by_run = "set by spec.runtime.config.ttlSecondsAfterFinished of the run";
        for (row, config, status, keep, expected) in [
            (
                "succeeded",
                json!({}),
                over("Succeeded"),
                keep(0),
                [
                    "about 2026-01-01T00:10:00Z, 600 s",
                    "set by JANGAR_AGENT_RUNNER_JOB_TTL_SECONDS",
                ],
            ),
            (
                "failed",
                json!({}),
                over("Failed"),
                keep(0),
                [
                    "about 2026-01-02T00:00:00Z, 86400 s",
                    "set by AGENTS_RUNNER_FAILED_JOB_TTL_SECONDS",
                ],
            ),
            (
                "the run's own",
                own(json!(60)),
                over("Succeeded"),
                keep(0),
                ["about 2026-01-01T00:01:00Z, 60 s", by_run],
            ),
            (
                "the run's own and failed",
                own(json!(90.7)),
                over("Failed"),
                keep(0),
                ["about 2026-01-01T00:01:30Z, 90 s", by_run],
            ),
            (
                "below the floor",
                own(json!(1)),
                over("Failed"),
                keep(0),
                ["about 2026-01-01T00:00:30Z, 30 s", by_run],
            ),
            (
                "logs are kept longer",
                own(json!(60)),
                over("Succeeded"),
                keep(3600),
                [
                    "about 2026-01-01T01:00:00Z, 3600 s",
                    "AGENTS_RUNNER_JOB_LOG_RETENTION_SECONDS of the controllers (here it is 3600 s)",
                ],
            ),
            (
                "for ever",
                own(json!(0)),
                over("Succeeded"),
                keep(0),
                ["kept as long as the run", "someone removed its pods"],
            ),
            (
                "its Job is missing",
                json!({}),
                lost,
                keep(0),
                [
                    "before its time (JobDeletedByActor)",
                    "since 2026-01-01T00:00:01Z at the latest",
                ],
            ),
            (
                "never begun",
                json!({}),
                json!({"phase": "Cancelled"}),
                keep(0),
                ["LogsGone", "ended at 2026-01-01T00:00:00Z, without a pod"],
            ),
        ] {
            let told = said(config, status, keep);
            for expected in expected {
                assert!(told.contains(expected), "{row}: {expected}: {told}");
            }
        }
    }
}
