//! What becomes of a step, as a table: a line is how it stood and what was seen of it, and how it then stands.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::api::kinds::AgentRun;

const START: &str = "2026-01-01T00:00:00Z";

fn run() -> OrchestrationRun {
    serde_json::from_value(json!({
        "metadata": {"name": "r", "namespace": "here", "uid": "u-1"},
        "spec": {"orchestrationRef": {"name": "o"}},
    }))
    .unwrap()
}

fn ours(phase: &str) -> Sight {
    let run: AgentRun = serde_json::from_value(json!({
        "metadata": {"name": "r-0-build-1", "uid": "c-1"},
        "spec": {"agentRef": {"name": "coder"}, "runtime": {"type": "job"}},
        "status": {"phase": phase},
    }))
    .unwrap();
    Sight::Ours(Child::Agent(Arc::new(run)))
}

fn status(more: &Value) -> StepStatus {
    let mut status = json!({
        "name": "build", "kind": "AgentRun", "phase": "Running", "attempt": 1,
        "startedAt": START, "lastTransitionTime": START,
        "resourceRef": {"kind": "AgentRun", "name": "r-0-build-1"},
    });
    json_patch::merge(&mut status, more);
    serde_json::from_value(status).unwrap()
}

/// The step after a number of seconds, in words.
fn after(seconds: u64, step: &Value, before: &StepStatus, seen: &Sight) -> String {
    let mut given = json!({"name": "build", "kind": "AgentRun"});
    json_patch::merge(&mut given, step);
    let step: Step = serde_json::from_value(given).unwrap();
    let start: Timestamp = START.parse().unwrap();
    let run = run();
    let at = At {
        run: &run,
        step: &step,
        index: 0,
        now: start + Duration::from_secs(seconds),
    };
    let next = follow(at, before, seen);
    let why = match next.extra.get(REASON) {
        Some(reason) => format!(" {}", reason.as_str().unwrap()),
        None => String::new(),
    };
    let due = due(&step, &next).map(|due| format!(", due {due}"));
    let name = next.resource_ref.and_then(|found| found.name);
    format!(
        "{}{why} {} {}{}",
        next.phase.unwrap_or_default(),
        next.attempt.unwrap_or(0),
        name.unwrap_or_default(),
        due.unwrap_or_default()
    )
}

#[test]
fn a_step_follows_its_object() {
    let plain = json!({});
    let patient = json!({"retries": 1, "retryBackoffSeconds": 30});
    let brief = json!({"timeoutSeconds": 60});
    let first = status(&json!({}));
    let second = status(&json!({"attempt": 2}));
    let pause = status(&json!({"phase": "Retrying", "nextRetryAt": "2026-01-01T00:00:30Z"}));
    let waits = status(&json!({"phase": "Retrying"}));
    for (row, seconds, step, before, seen, expected) in [
        (
            "not made",
            1,
            &plain,
            &first,
            Sight::Absent,
            "Running 1 r-0-build-1",
        ),
        (
            "at work",
            1,
            &plain,
            &first,
            ours("Running"),
            "Running 1 r-0-build-1",
        ),
        (
            "done",
            1,
            &plain,
            &first,
            ours("Succeeded"),
            "Succeeded 1 r-0-build-1",
        ),
        (
            "failed",
            1,
            &plain,
            &first,
            ours("Failed"),
            "Failed AgentRunFailed 1 r-0-build-1",
        ),
        (
            "cancelled",
            1,
            &plain,
            &first,
            ours("Cancelled"),
            "Failed AgentRunFailed 1 r-0-build-1",
        ),
        (
            "gone",
            1,
            &plain,
            &first,
            Sight::Gone,
            "Failed AgentRunMissing 1 r-0-build-1",
        ),
        (
            "name taken",
            1,
            &patient,
            &first,
            Sight::Taken,
            "Failed StepError 1 r-0-build-1",
        ),
        (
            "refused",
            1,
            &patient,
            &first,
            Sight::Refused("no".to_owned()),
            "Failed StepError 1 r-0-build-1",
        ),
        (
            "failed, with a try left",
            1,
            &patient,
            &first,
            ours("Failed"),
            "Retrying AgentRunFailed 1 r-0-build-1, due 2026-01-01T00:00:31Z",
        ),
        (
            "not yet again",
            29,
            &patient,
            &pause,
            Sight::Nothing,
            "Retrying 1 r-0-build-1, due 2026-01-01T00:00:30Z",
        ),
        (
            "again",
            30,
            &patient,
            &pause,
            Sight::Nothing,
            "Running 2 r-0-build-2",
        ),
        (
            "not again beside the last try",
            30,
            &patient,
            &pause,
            ours("Running"),
            "Retrying 1 r-0-build-1",
        ),
        (
            "still not beside it",
            99,
            &patient,
            &waits,
            ours("Running"),
            "Retrying 1 r-0-build-1",
        ),
        (
            "again once it has ended",
            99,
            &patient,
            &waits,
            ours("Cancelled"),
            "Running 2 r-0-build-2",
        ),
        (
            "again once it is gone",
            99,
            &patient,
            &waits,
            Sight::Nothing,
            "Running 2 r-0-build-2",
        ),
        (
            "failed again",
            31,
            &patient,
            &second,
            ours("Failed"),
            "Failed RetriesExhausted 2 r-0-build-1",
        ),
        (
            "in time",
            59,
            &brief,
            &first,
            ours("Running"),
            "Running 1 r-0-build-1, due 2026-01-01T00:01:00Z",
        ),
        (
            "too late",
            60,
            &brief,
            &first,
            ours("Running"),
            "Failed StepTimedOut 1 r-0-build-1",
        ),
        (
            "late but done",
            60,
            &brief,
            &first,
            ours("Succeeded"),
            "Succeeded 1 r-0-build-1",
        ),
    ] {
        assert_eq!(after(seconds, step, before, &seen), expected, "{row}");
    }
}

#[test]
fn a_step_is_not_done_again_because_what_did_it_vanished_unless_that_does_no_harm() {
    let ended = |phase: &str, reason: &str| {
        let Sight::Ours(Child::Agent(run)) = ours(phase) else {
            panic!("a run");
        };
        let mut run = (*run).clone();
        let failed = json!([{"type": "Failed", "status": "True", "reason": reason}]);
        run.status.as_mut().unwrap().conditions = serde_json::from_value(failed).unwrap();
        Sight::Ours(Child::Agent(Arc::new(run)))
    };
    let lost = "Failed AgentRunMissing 1 r-0-build-1";
    let lost_again = "Retrying AgentRunMissing 1 r-0-build-1, due 2026-01-01T00:00:01Z";
    let failed = "Failed AgentRunFailed 1 r-0-build-1";
    let failed_again = "Retrying AgentRunFailed 1 r-0-build-1, due 2026-01-01T00:00:01Z";
    for (row, seen, once, again) in [
        (
            "its Job vanished",
            ended("Failed", "JobDeletedWhileRunning"),
            lost,
            lost_again,
        ),
        (
            "the Job of a step of it vanished",
            ended("Failed", "WorkflowJobMissing"),
            lost,
            lost_again,
        ),
        ("it is gone itself", Sight::Gone, lost, lost_again),
        (
            "someone stopped it",
            ours("Cancelled"),
            failed,
            failed_again,
        ),
        (
            "it did its work and failed",
            ended("Failed", "JobFailed"),
            failed_again,
            failed_again,
        ),
    ] {
        let first = status(&json!({}));
        for (idempotent, expected) in [(false, once), (true, again)] {
            let step = json!({"retries": 1, "idempotent": idempotent});
            assert_eq!(
                after(1, &step, &first, &seen),
                expected,
                "{row}, {idempotent}"
            );
        }
    }
}

#[test]
fn a_step_that_waits_goes_on_when_what_it_waits_for_comes() {
    let gate = json!({"kind": "ApprovalGate", "timeoutSeconds": 60, "retries": 3});
    let waits = status(&json!({"kind": "ApprovalGate", "resourceRef": null}));
    for (row, seconds, seen, expected) in [
        (
            "undecided",
            1,
            Sight::Waits("waits".to_owned()),
            "Running 1 , due 2026-01-01T00:01:00Z",
        ),
        ("given", 1, Sight::Open, "Succeeded 1 "),
        ("refused", 1, Sight::Denied, "Failed ApprovalDenied 1 "),
        (
            "too late",
            60,
            Sight::Waits("waits".to_owned()),
            "Failed StepTimedOut 1 ",
        ),
    ] {
        assert_eq!(after(seconds, &gate, &waits, &seen), expected, "{row}");
    }
}

#[test]
fn the_object_of_a_step_is_known_by_its_uid() {
    let step: Step = serde_json::from_value(json!({"name": "build", "kind": "AgentRun"})).unwrap();
    let run = run();
    let at = At {
        run: &run,
        step: &step,
        index: 0,
        now: START.parse().unwrap(),
    };
    let begun = begin(at, &StepStatus::default());
    assert_eq!(begun.resource_ref.as_ref().unwrap().uid, None);
    let next = follow(at, &begun, &ours("Pending"));
    assert_eq!(next.resource_ref.unwrap().uid.as_deref(), Some("c-1"));
}
