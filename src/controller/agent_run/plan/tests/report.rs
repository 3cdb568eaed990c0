//! What the runner says itself: the last resort where nobody else can tell, and a warning where others say something else.

use super::*;

/// The pod of a run in a phase, whose runner has said this and ended.
fn reported(phase: &str, message: &str) -> Arc<Pod> {
    let status = json!({"phase": phase, "containerStatuses": [
        {"name": "proxy", "image": "", "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}}},
        {"name": "agent-runner", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": 0, "message": message}}},
    ]});
    pod(
        json!({"labels": {"agents.proompteng.ai/run-uid": UID}}),
        status,
    )
}

fn with(pods: Vec<Arc<Pod>>, job: Sight) -> Observed {
    Observed {
        pods,
        ..seen(running(), job)
    }
}

const GOOD: &str = r#"{"outcome": "succeeded"}"#;
const BAD: &str = r#"{"outcome": "failed", "runUid": "run-uid", "attempt": 1}"#;

#[test]
fn the_runner_is_believed_where_nobody_else_can_tell() {
    check(vec![
        (
            "the Job is gone, and something beside the runner keeps the pod at work",
            with(vec![reported("Running", GOOD)], gone(None)),
            &[
                "Succeeded Completed: the Job is missing, but its runner told how it ended: it ended well [Succeeded JobDeletedUnknown OutcomeRecovered]",
            ],
        ),
        (
            "the same, and it went badly",
            with(vec![reported("Running", BAD)], gone(None)),
            &[
                "Failed JobFailed: the Job is missing, but its runner told how it ended: it ended badly [Failed JobDeletedUnknown OutcomeRecovered]",
            ],
        ),
        (
            "what is no report is no witness: the pod still works",
            with(vec![reported("Running", "done")], gone(None)),
            &[
                "Running Running: the Job is gone (JobDeletedUnknown), but its pod still works [JobDeletedUnknown]",
            ],
        ),
        (
            "nor is it one if it says both",
            with(
                vec![reported("Running", GOOD), reported("Running", BAD)],
                gone(None),
            ),
            &[
                "Running Running: the Job is gone (JobDeletedUnknown), but its pod still works [JobDeletedUnknown]",
            ],
        ),
        (
            "a Job that is there is waited for",
            with(vec![reported("Running", GOOD)], active()),
            &["Running Running: Job r-job does the work []"],
        ),
    ]);
}

#[test]
fn where_runner_and_cluster_disagree_the_cluster_counts_and_people_are_told() {
    let complete = || job(json!({}), condition("Complete", "Completed"));
    let failed = || job(json!({}), condition("Failed", "BackoffLimitExceeded"));
    for (row, here, conflict) in [
        (
            "both well",
            with(vec![reported("Succeeded", GOOD)], complete()),
            None,
        ),
        (
            "both badly",
            with(vec![reported("Failed", BAD)], failed()),
            None,
        ),
        (
            "no report",
            with(vec![reported("Failed", "oops")], failed()),
            None,
        ),
        (
            "the runner says badly",
            with(vec![reported("Succeeded", BAD)], complete()),
            Some(("Succeeded", "badly, but the cluster saw it end well")),
        ),
        (
            "the runner says well",
            with(vec![reported("Failed", GOOD)], failed()),
            Some(("Failed", "well, but the cluster saw it end badly")),
        ),
        (
            "the Job is gone and its pod tells",
            with(vec![reported("Failed", GOOD)], gone(None)),
            Some(("Failed", "well, but the cluster saw it end badly")),
        ),
    ] {
        let plan = plan(&here, &settings());
        let next = one_status(&plan);
        let mut warnings = next.observed.iter();
        let warning = warnings.find(|entry| entry.type_ == ConditionType::Warning);
        let told = next
            .notices
            .iter()
            .find(|notice| notice.reason.as_str() == "OutcomeConflict");
        let Some((phase, words)) = conflict else {
            assert!(warning.is_none() && told.is_none(), "{row}");
            continue;
        };
        assert_eq!(next.status.phase.as_deref(), Some(phase), "{row}");
        let message = format!("the runner reported that it ended {words}, and that counts");
        assert_eq!(told.map(|told| &told.note), Some(&message), "{row}");
        let warning = warning.map(|entry| (entry.reason.as_str(), &entry.message));
        assert_eq!(warning, Some(("OutcomeConflict", &message)), "{row}");
    }
}
