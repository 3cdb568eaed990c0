use serde_json::{Value, json};

use super::*;

/// A Job of the run `r`, with more laid over it.
pub(in crate::jobs) fn sight(more: &[Value]) -> JobSight {
    let mut job = json!({
        "metadata": {
            "name": "r-job", "namespace": "here", "uid": "j-1", "creationTimestamp": at(0),
            "labels": {label::RUN_UID: "r-1"}, "annotations": {}, "finalizers": [finalizer::OUTCOME],
            "managedFields": [{"manager": "agents-controller", "fieldsV1": {"f:spec": {"f:template": {}}}}],
            "ownerReferences": [
                {"apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun", "name": "r", "uid": "r-1", "controller": true},
            ],
        },
        "spec": {"template": {"spec": {"containers": [{"name": "agent-runner", "image": "x"}]}}},
        "status": {},
    });
    for more in more {
        lay(&mut job, more);
    }
    serde_json::from_value(job).unwrap()
}

fn lay(under: &mut Value, over: &Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                lay(under.entry(key).or_insert(Value::Null), value);
            }
        }
        (under, over) => *under = over.clone(),
    }
}

pub(in crate::jobs) fn view(more: &[Value]) -> View {
    View::of(&sight(more)).unwrap()
}

pub(in crate::jobs) fn at(second: i64) -> String {
    time(second).to_string()
}

pub(in crate::jobs) fn time(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

pub(in crate::jobs) fn running() -> Value {
    json!({"status": {"startTime": at(2), "active": 1}})
}

pub(in crate::jobs) fn finished(condition: &str) -> Value {
    json!({"status": {"startTime": at(2), "active": null, "conditions": [
        {"type": "SuccessCriteriaMet", "status": "True", "lastTransitionTime": at(9)},
        {"type": condition, "status": "True", "lastTransitionTime": at(10)},
    ]}})
}

pub(in crate::jobs) fn going(finalizers: &[&str]) -> Value {
    json!({"metadata": {"deletionTimestamp": at(20), "finalizers": finalizers}})
}

pub(in crate::jobs) fn marked() -> Value {
    json!({"metadata": {"annotations": {annotation::OUTCOME_RECORDED: at(13)}, "finalizers": []}})
}

pub(in crate::jobs) fn of_step(attempt: &str) -> Value {
    json!({"metadata": {"labels": {
        label::STEP_INDEX: "1", label::STEP_ITERATION: "1", label::STEP_ATTEMPT: attempt,
    }}})
}

#[test]
fn a_job_is_read_as_far_as_anybody_looks() {
    let read = view(&[
        finished("Failed"),
        going(&["foregroundDeletion", finalizer::OUTCOME]),
        json!({"spec": {"ttlSecondsAfterFinished": 60}}),
        json!({"metadata": {"labels": {
            label::STEP_INDEX: "2", label::STEP_ITERATION: "1", label::STEP_ATTEMPT: "3",
        }}}),
    ]);
    let expected = View {
        uid: "j-1".into(),
        namespace: "here".into(),
        name: "r-job".into(),
        owner: Owner {
            kind: Kind::AgentRun,
            name: "r".into(),
            uid: "r-1".into(),
        },
        turn: Some(Turn {
            index: 1,
            iteration: 1,
            attempt: 3,
        }),
        created: Some(time(0)),
        started: Some(time(2)),
        is_active: false,
        last: LastStatus::Finished {
            at: time(10),
            outcome: Outcome::Failed,
        },
        deletion: Some(Box::new(Deletion {
            at: time(20),
            finalizers: vec![
                "foregroundDeletion".to_owned(),
                finalizer::OUTCOME.to_owned(),
            ],
        })),
        is_recorded: false,
        recorded: None,
        is_held: true,
        ttl: Some(60),
    };
    assert_eq!(read, expected);
    assert_eq!(read.due(), Some(time(70)));
    let size = size_of::<View>();
    assert!(size <= 320, "{size} bytes, and names and uids besides");
}

#[test]
fn a_job_that_only_says_that_it_is_ours_is_not() {
    let rows = [
        (
            "belongs to nobody",
            json!({"metadata": {"ownerReferences": []}}),
        ),
        (
            "belongs to another run",
            json!({"metadata": {"labels": {label::RUN_UID: "r-2"}}}),
        ),
        (
            "belongs to another kind",
            json!({"metadata": {"ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "CronJob", "name": "r", "uid": "r-1"},
            ]}}),
        ),
        ("no label", json!({"metadata": {"labels": null}})),
    ];
    for (row, more) in rows {
        assert_eq!(View::of(&sight(&[more])), None, "{row}");
    }
}

#[test]
fn every_state_has_its_word() {
    for (expected, more) in [
        (State::Pending, vec![]),
        (State::Running, vec![running()]),
        (State::Unrecorded, vec![finished("Complete")]),
        (State::Recorded, vec![finished("Complete"), marked()]),
        (State::Going, vec![running(), going(&[finalizer::OUTCOME])]),
        (
            State::Recorded,
            vec![finished("Complete"), going(&[]), marked()],
        ),
    ] {
        assert_eq!(view(&more).state(), expected);
    }
}

#[test]
fn what_happened_between_two_looks_is_told_once() {
    let seconds = |seconds| Some(SignedDuration::from_secs(seconds));
    let succeeded = Transition::Finished {
        outcome: Outcome::Succeeded,
        after: seconds(8),
    };
    let failed = Transition::Finished {
        outcome: Outcome::Failed,
        after: seconds(8),
    };
    let recorded = Transition::Recorded { after: seconds(3) };
    let (new, runs) = (view(&[]), view(&[running()]));
    let done = view(&[finished("Complete")]);
    let stored = view(&[finished("Complete"), marked()]);
    use Transition::{Created, Running};
    for (row, before, now, expected) in [
        ("first sight", None, &new, vec![Created]),
        ("no change", Some(&new), &new, vec![]),
        ("begins", Some(&new), &runs, vec![Running]),
        ("ends", Some(&runs), &done, vec![succeeded]),
        (
            "ends badly, unseen until now",
            Some(&new),
            &view(&[finished("Failed")]),
            vec![Running, failed],
        ),
        ("stored", Some(&done), &stored, vec![recorded]),
        (
            "all in a gap",
            None,
            &stored,
            vec![Created, Running, succeeded, recorded],
        ),
        ("settled", Some(&stored), &stored, vec![]),
    ] {
        assert_eq!(transitions(before, now), expected, "{row}");
    }
}

#[test]
fn the_first_sight_of_a_deletion_stays() {
    let first = view(&[running(), going(&["orphan", finalizer::OUTCOME])]);
    let later = view(&[running(), going(&[finalizer::OUTCOME])]).after(&first);
    assert_eq!(later.deletion, first.deletion);
    let none = view(&[running(), going(&["orphan"])]).after(&view(&[running()]));
    assert_eq!(none.deletion.unwrap().finalizers, ["orphan"]);
}
