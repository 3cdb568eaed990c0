use serde_json::{Value, json};

use super::*;

fn workflow(steps: Value, status: Value) -> AgentRun {
    serde_json::from_value(json!({
        "metadata": {"name": "r"},
        "spec": {"agentRef": {"name": "a"}, "runtime": {"type": "workflow"}, "workflow": {"steps": steps}},
        "status": {"workflow": {"steps": status}},
    }))
    .unwrap()
}

fn attempt(index: usize, iteration: i64, attempt: i64) -> Turn {
    Turn::Step(Try {
        index,
        iteration,
        attempt,
    })
}

#[test]
fn where_a_workflow_stands_is_read_from_its_status() {
    let due: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let before = |turn, due| Stage::Before { turn, due };
    let done = json!({"name": "a", "phase": "Succeeded", "attempt": 1, "jobRef": {"name": "x", "uid": "u"}});
    for (row, status, expected) in [
        ("nothing yet", json!([]), before(attempt(0, 1, 1), None)),
        (
            "laid out",
            json!([{"phase": "Pending", "attempt": 0}]),
            before(attempt(0, 1, 1), None),
        ),
        (
            "reserved",
            json!([{"phase": "Pending", "attempt": 1, "jobRef": {"name": "x"}}]),
            Stage::Under(attempt(0, 1, 1)),
        ),
        (
            "at work",
            json!([{"phase": "Running", "attempt": 2, "jobRef": {"name": "x", "uid": "u"}}]),
            Stage::Under(attempt(0, 1, 2)),
        ),
        (
            "failed, tried again later",
            json!([{"phase": "Retrying", "attempt": 2, "nextRetryAt": due, "jobRef": {"name": "x", "uid": "u"}}]),
            before(attempt(0, 1, 3), Some(due)),
        ),
        (
            "the next round",
            json!([{"phase": "Running", "iteration": 2, "attempt": 0}]),
            before(attempt(0, 2, 1), None),
        ),
        (
            "the next step",
            json!([done, {"phase": "Pending", "attempt": 0}]),
            before(attempt(1, 1, 1), None),
        ),
        ("everything done", json!([done, done]), Stage::Over),
    ] {
        let run = workflow(json!([{"name": "a"}, {"name": "b"}]), status);
        assert_eq!(stage(&run), expected, "{row}");
    }
}

#[test]
fn every_try_has_names_and_labels_of_its_own() {
    let run = workflow(
        json!([{"name": "Plan it"}, {"name": "b", "loop": {"maxIterations": 2}}]),
        json!([]),
    );
    let plain = attempt(0, 1, 2);
    assert_eq!(plain.job(&run), "r-step-1-attempt-2");
    assert_eq!(plain.child(&run, "spec"), "r-spec-step-1-attempt-2");
    let round = attempt(1, 2, 1);
    assert_eq!(round.job(&run), "r-step-2-iteration-2-attempt-1");
    assert_eq!(Turn::Whole.job(&run), "r-job");
    assert_eq!(Turn::Whole.child(&run, "spec"), "r-spec");
    assert_eq!(
        serde_json::to_value(plain.labels(&run)).unwrap(),
        json!({
            "agents.proompteng.ai/step": "plan-it", "agents.proompteng.ai/step-index": "1",
            "agents.proompteng.ai/step-iteration": "1", "agents.proompteng.ai/step-attempt": "2",
        })
    );
}

#[test]
fn only_jobs_of_earlier_tries_have_a_stored_end() {
    let run = workflow(json!([{"name": "a"}, {"name": "b"}]), json!([]));
    let job = |turn: Turn| -> AgentRun {
        let mut made = run.clone();
        made.metadata.labels = Some(turn.labels(&run));
        made
    };
    let under = Stage::Under(attempt(1, 1, 2));
    for (turn, expected) in [
        (attempt(0, 1, 9), true),
        (attempt(1, 1, 1), true),
        (attempt(1, 1, 2), false),
        (attempt(1, 1, 3), false),
        (Turn::Whole, false),
    ] {
        assert_eq!(is_earlier(&job(turn), under), expected, "{turn:?}");
    }
}
