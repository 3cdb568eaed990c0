//! How long what a run leaves behind is kept. Zero means off, everywhere.

use std::time::Duration;

use jiff::Timestamp;

use super::settings::Keep;
use crate::api::custody::Outcome;
use crate::api::kinds::AgentRun;

/// A Job goes no later.
const CEILING: Duration = Duration::from_secs(7 * 24 * 3600);

/// Seconds that a Job is kept after its end; none keeps it as long as its run.
pub(crate) fn job_ttl(run: &AgentRun, outcome: Outcome, keep: Keep) -> Option<i32> {
    keep_for(own_ttl(run), outcome, keep)
}

/// How long its Job is kept as the run itself says, if it does.
pub(super) fn own_ttl(run: &AgentRun) -> Option<Duration> {
    let config = run.spec.runtime.config.as_ref()?;
    let seconds = config.get("ttlSecondsAfterFinished")?.as_f64()?;
    Duration::try_from_secs_f64(seconds.trunc()).ok()
}

/// Seconds that a Job is kept which ended so: as its owner says, else as the operator does.
pub(crate) fn keep_for(own: Option<Duration>, outcome: Outcome, keep: Keep) -> Option<i32> {
    let ttl = own.unwrap_or(match outcome {
        Outcome::Succeeded => keep.succeeded,
        Outcome::Failed => keep.failed,
    });
    if ttl.is_zero() {
        return None;
    }
    let ttl = ttl.max(keep.floor).min(CEILING).max(keep.logs);
    Some(i32::try_from(ttl.as_secs()).unwrap_or(i32::MAX))
}

/// When a run that has ended goes; none if it stays. Its Jobs and their logs go with it, so it stays as long as these must.
pub(super) fn run_due(run: &AgentRun, retention: Duration, logs: Duration) -> Option<Timestamp> {
    let finished = run.status.as_ref()?.finished_at?;
    let own = run.spec.ttl_seconds_after_finished;
    let own = own.and_then(|seconds| u64::try_from(seconds).ok());
    let keep = own.map_or(retention, Duration::from_secs);
    if keep.is_zero() {
        return None;
    }
    finished.checked_add(keep.max(logs)).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(config: serde_json::Value, ttl: Option<i64>) -> AgentRun {
        serde_json::from_value(json!({
            "metadata": {"name": "r"},
            "spec": {"agentRef": {"name": "a"}, "runtime": {"type": "job", "config": config}, "ttlSecondsAfterFinished": ttl},
            "status": {"finishedAt": "2026-01-01T00:00:00Z"},
        }))
        .unwrap()
    }

    #[test]
    fn a_job_is_kept_by_its_outcome_within_bounds_and_zero_is_off() {
        let seconds = Duration::from_secs;
        let keep = |succeeded, failed, logs| Keep {
            succeeded: seconds(succeeded),
            failed: seconds(failed),
            floor: seconds(30),
            logs: seconds(logs),
        };
        let usual = keep(600, 86400, 0);
        for (row, config, outcome, keep, expected) in [
            ("succeeded", json!({}), Outcome::Succeeded, usual, Some(600)),
            ("failed", json!({}), Outcome::Failed, usual, Some(86400)),
            (
                "the run's own",
                json!({"ttlSecondsAfterFinished": 60}),
                Outcome::Failed,
                usual,
                Some(60),
            ),
            (
                "cut off",
                json!({"ttlSecondsAfterFinished": 90.7}),
                Outcome::Failed,
                usual,
                Some(90),
            ),
            (
                "the run's own zero",
                json!({"ttlSecondsAfterFinished": 0}),
                Outcome::Failed,
                usual,
                None,
            ),
            (
                "the operator's zero",
                json!({}),
                Outcome::Succeeded,
                keep(0, 60, 0),
                None,
            ),
            (
                "floor",
                json!({"ttlSecondsAfterFinished": 1}),
                Outcome::Succeeded,
                usual,
                Some(30),
            ),
            (
                "ceiling",
                json!({"ttlSecondsAfterFinished": 9_999_999}),
                Outcome::Succeeded,
                usual,
                Some(604_800),
            ),
            (
                "logs",
                json!({}),
                Outcome::Succeeded,
                keep(600, 600, 3600),
                Some(3600),
            ),
            (
                "logs do not switch on what is off",
                json!({}),
                Outcome::Succeeded,
                keep(0, 0, 3600),
                None,
            ),
        ] {
            assert_eq!(
                job_ttl(&run(config, None), outcome, keep),
                expected,
                "{row}"
            );
        }
    }

    #[test]
    fn a_run_is_kept_as_it_says_else_as_the_operator_says() {
        let kept = |ttl, retention, logs| {
            let seconds = Duration::from_secs;
            let due = run_due(&run(json!({}), ttl), seconds(retention), seconds(logs));
            due.map(|due| due.to_string())
        };
        let due = |ttl, retention| kept(ttl, retention, 0);
        let after = |seconds: i64| {
            Some(
                Timestamp::from_second(1_767_225_600 + seconds)
                    .unwrap()
                    .to_string(),
            )
        };
        assert_eq!(due(None, 60), after(60));
        assert_eq!(due(Some(30), 60), after(30));
        assert_eq!(due(Some(0), 60), None);
        assert_eq!(due(None, 0), None);
        assert_eq!(due(Some(-1), 60), after(60), "as if it said nothing");
        assert_eq!(
            kept(Some(2), 60, 3600),
            after(3600),
            "its logs are kept longer"
        );
        assert_eq!(kept(Some(7200), 60, 3600), after(7200));
        assert_eq!(kept(Some(0), 60, 3600), None);
    }
}
