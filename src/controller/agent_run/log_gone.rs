//! What is said about the log of a run that has ended and whose pods are gone: since when, and by which setting. Pure; the
//! control plane and the command line say the same.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use super::retention::{job_ttl, own_ttl};
use super::settings::Keep;
use crate::api::contract::env;
use crate::api::custody::Outcome;
use crate::api::kinds::AgentRun;
use crate::api::kinds::shared::JobMissing;
use crate::api::phase::Phase;

/// Where a run says itself how long its Job is kept.
const OWN: &str = "spec.runtime.config.ttlSecondsAfterFinished";

/// Why the log of a run that has ended is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LogGone {
    /// There never was one.
    NoPod,
    /// The Job went before its time.
    JobLost {
        class: String,
        noticed: Option<Timestamp>,
    },
    /// Only the pods went.
    PodsRemoved,
    /// The Job went when its time was over: when that was, as far as it is known, and what sets it.
    Expired {
        after: Option<(Timestamp, u64)>,
        setting: String,
    },
}

impl LogGone {
    /// From what is known of the run and its Job; `keep` is how the controllers are set, where that is known.
    pub(crate) fn of(
        run: &AgentRun,
        missing: Option<&JobMissing>,
        job_is_there: bool,
        keep: Option<Keep>,
    ) -> Self {
        let status = run.status.as_ref();
        let phase = status.and_then(|status| Phase::parse(status.phase.as_deref()?));
        let has_begun = status.is_some_and(|status| status.started_at.is_some());
        if !has_begun && phase != Some(Phase::Succeeded) {
            return Self::NoPod;
        }
        if let Some(missing) = missing {
            return Self::JobLost {
                class: missing
                    .class
                    .clone()
                    .unwrap_or_else(|| "unknown".to_owned()),
                noticed: missing.noticed_at,
            };
        }
        let outcome = match phase {
            Some(Phase::Failed) => Outcome::Failed,
            Some(Phase::Succeeded | Phase::Cancelled | Phase::Pending | Phase::Running) | None => {
                Outcome::Succeeded
            }
        };
        let own = own_ttl(run);
        let seconds = match keep {
            Some(keep) => job_ttl(run, outcome, keep).and_then(|ttl| u64::try_from(ttl).ok()),
            None => own.map(|ttl| ttl.as_secs()).filter(|ttl| *ttl > 0),
        };
        if job_is_there || (keep.is_some() && seconds.is_none()) {
            return Self::PodsRemoved;
        }
        let finished = status.and_then(|status| status.finished_at);
        let after = finished.zip(seconds).and_then(|(finished, seconds)| {
            let at = finished.checked_add(Duration::from_secs(seconds));
            Some((at.ok()?, seconds))
        });
        Self::Expired {
            after,
            setting: setting(own.is_some(), outcome),
        }
    }
}

/// What sets how long a Job is kept.
fn setting(is_own: bool, outcome: Outcome) -> String {
    match (is_own, outcome) {
        (true, _) => format!("{OWN} of the run"),
        (false, Outcome::Failed) => {
            let (failed, any) = (env::RUNNER_FAILED_JOB_TTL, env::RUNNER_JOB_TTL);
            format!("{failed}, else {any}")
        }
        (false, Outcome::Succeeded) => env::RUNNER_JOB_TTL.to_owned(),
    }
}

/// The end of a sentence that says when the run ended.
impl fmt::Display for LogGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPod => f.write_str("without a pod"),
            Self::JobLost { class, noticed } => {
                write!(
                    f,
                    "and its Job went before its time ({class}), and its log with it"
                )?;
                match noticed {
                    Some(at) => write!(f, " since {at} at the latest"),
                    None => Ok(()),
                }
            }
            Self::PodsRemoved => f.write_str(
                "and its Job is kept, so someone removed its pods, and its log with them",
            ),
            Self::Expired { after, setting } => {
                f.write_str("and its log went with its pods ")?;
                match after {
                    Some((at, seconds)) => write!(f, "at about {at}, {seconds} s after the end")?,
                    None => f.write_str("when its Job was removed")?,
                }
                let (floor, logs) = (env::RUNNER_JOB_TTL_FLOOR, env::RUNNER_JOB_LOG_RETENTION);
                write!(
                    f,
                    "; how long is set by {setting}, within {floor} and a week, and {logs} keeps it longer"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn keep(logs: u64) -> Option<Keep> {
        let seconds = Duration::from_secs;
        Some(Keep {
            succeeded: seconds(600),
            failed: seconds(86400),
            floor: seconds(30),
            logs: seconds(logs),
        })
    }

    fn said(config: Value, mut status: Value, keep: Option<Keep>) -> String {
        status["finishedAt"] = json!("2026-01-01T00:00:00Z");
        let run: AgentRun = serde_json::from_value(json!({
            "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun", "metadata": {"name": "r"},
            "spec": {"agentRef": {"name": "a"}, "runtime": {"type": "job", "config": config}}, "status": status,
        }))
        .unwrap();
        LogGone::of(&run, None, false, keep).to_string()
    }

    fn over(phase: &str) -> Value {
        json!({"phase": phase, "startedAt": "2025-12-31T23:00:00Z"})
    }

    fn own(seconds: Value) -> Value {
        json!({"ttlSecondsAfterFinished": seconds})
    }

    #[test]
    fn a_log_that_went_in_its_time_went_then_and_by_that_setting() {
        let by_run = "set by spec.runtime.config.ttlSecondsAfterFinished of the run";
        let by_operator = "set by JANGAR_AGENT_RUNNER_JOB_TTL_SECONDS";
        let by_failure =
            "set by AGENTS_RUNNER_FAILED_JOB_TTL_SECONDS, else JANGAR_AGENT_RUNNER_JOB_TTL_SECONDS";
        for (row, config, phase, keep, expected) in [
            (
                "succeeded",
                json!({}),
                "Succeeded",
                keep(0),
                ["at about 2026-01-01T00:10:00Z, 600 s", by_operator],
            ),
            (
                "failed",
                json!({}),
                "Failed",
                keep(0),
                ["at about 2026-01-02T00:00:00Z, 86400 s", by_failure],
            ),
            (
                "the run's own",
                own(json!(60)),
                "Succeeded",
                keep(0),
                ["at about 2026-01-01T00:01:00Z, 60 s", by_run],
            ),
            (
                "the run's own and failed",
                own(json!(90.7)),
                "Failed",
                keep(0),
                ["at about 2026-01-01T00:01:30Z, 90 s", by_run],
            ),
            (
                "no number",
                own(json!("soon")),
                "Succeeded",
                keep(0),
                ["at about 2026-01-01T00:10:00Z, 600 s", by_operator],
            ),
            (
                "below the floor",
                own(json!(1)),
                "Failed",
                keep(0),
                ["at about 2026-01-01T00:00:30Z, 30 s", by_run],
            ),
            (
                "logs are kept longer",
                own(json!(60)),
                "Succeeded",
                keep(3600),
                [
                    "at about 2026-01-01T01:00:00Z, 3600 s",
                    "AGENTS_RUNNER_JOB_LOG_RETENTION_SECONDS keeps it longer",
                ],
            ),
            (
                "nobody knows the operator's settings",
                json!({}),
                "Failed",
                None,
                ["when its Job was removed; how long", by_failure],
            ),
            (
                "the run's own, whatever those are",
                own(json!(60)),
                "Succeeded",
                None,
                ["at about 2026-01-01T00:01:00Z, 60 s", by_run],
            ),
            (
                "for ever, and yet someone removed it",
                own(json!(0)),
                "Succeeded",
                None,
                ["when its Job was removed; how long", by_run],
            ),
        ] {
            let told = said(config, over(phase), keep);
            for expected in expected {
                assert!(told.contains(expected), "{row}: {expected}: {told}");
            }
        }
    }

    #[test]
    fn a_log_that_went_otherwise_went_with_its_job_or_its_pods_or_never_was() {
        let kept = "and its Job is kept, so someone removed its pods, and its log with them";
        assert_eq!(said(own(json!(0)), over("Succeeded"), keep(0)), kept);
        let never = json!({"phase": "Cancelled"});
        assert_eq!(said(json!({}), never, keep(0)), "without a pod");
        let run: AgentRun = serde_json::from_value(json!({
            "metadata": {"name": "r"}, "spec": {"agentRef": {"name": "a"}, "runtime": {"type": "job"}},
            "status": over("Failed"),
        }))
        .unwrap();
        assert_eq!(LogGone::of(&run, None, true, None), LogGone::PodsRemoved);
        let missing: JobMissing = serde_json::from_value(
            json!({"class": "JobDeletedByActor", "noticedAt": "2026-01-01T00:00:01Z"}),
        )
        .unwrap();
        assert_eq!(
            LogGone::of(&run, Some(&missing), false, keep(0)).to_string(),
            "and its Job went before its time (JobDeletedByActor), and its log with it since 2026-01-01T00:00:01Z at the latest"
        );
    }
}
