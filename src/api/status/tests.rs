//! Tables of the contract; the histories of random writers are in `histories`.

mod histories;

use serde_json::json;

use super::*;

pub(super) fn time(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

pub(super) fn text(second: i64) -> String {
    time(second).to_string()
}

pub(super) fn at(second: i64, generation: i64) -> Moment {
    Moment {
        generation,
        now: time(second),
    }
}

/// The status after a reconciler wanted this phase.
fn advanced(stored: Option<&Value>, phase: Phase, second: i64) -> Advance {
    let wanted = Wanted {
        status: &json!({"phase": phase.as_str()}),
        observed: &[],
        reason: Lifecycle::Reconciled.into(),
        message: "",
    };
    advance(Kind::AgentRun, stored, &wanted, at(second, 1)).unwrap()
}

#[track_caller]
fn written(result: Advance) -> Value {
    match result {
        Advance::Write(status) => status,
        Advance::Unchanged => panic!("expected a write"),
    }
}

fn condition<'a>(status: &'a Value, type_: &str) -> &'a Value {
    let list = status["conditions"].as_array().unwrap();
    list.iter().find(|entry| entry["type"] == type_).unwrap()
}

#[test]
fn a_run_gets_each_time_once_on_its_way() {
    let pending = written(advanced(None, Phase::Pending, 0));
    let running = written(advanced(Some(&pending), Phase::Running, 10));
    let ended = written(advanced(Some(&running), Phase::Succeeded, 20));
    let times = |status: &Value| {
        ["startedAt", "finishedAt", "updatedAt"]
            .map(|name| status[name].as_str().map(str::to_owned))
    };
    assert_eq!(times(&pending), [None, None, Some(text(0))]);
    assert_eq!(times(&running), [Some(text(10)), None, Some(text(10))]);
    assert_eq!(
        times(&ended),
        [Some(text(10)), Some(text(20)), Some(text(20))]
    );
    assert_eq!(
        advanced(Some(&ended), Phase::Succeeded, 30),
        Advance::Unchanged
    );
    assert_eq!(
        advanced(Some(&ended), Phase::Running, 30),
        Advance::Unchanged
    );
}

#[test]
fn a_run_that_never_started_has_only_an_end() {
    let failed = written(advanced(None, Phase::Failed, 5));
    assert_eq!(failed.get("startedAt"), None);
    assert_eq!(failed["finishedAt"], json!(text(5)));
}

#[test]
fn times_that_the_reconciler_knows_win_over_the_clock() {
    let wanted = Wanted {
        status: &json!({"phase": "Failed", "startedAt": text(1), "finishedAt": text(7)}),
        observed: &[],
        reason: Lifecycle::JobFailed.into(),
        message: "exit code 3",
    };
    let status = written(advance(Kind::ToolRun, None, &wanted, at(9, 4)).unwrap());
    assert_eq!(
        (
            &status["startedAt"],
            &status["finishedAt"],
            &status["observedGeneration"]
        ),
        (&json!(text(1)), &json!(text(7)), &json!(4))
    );
}

#[test]
fn an_end_before_the_start_becomes_the_start() {
    let wanted = Wanted {
        status: &json!({"phase": "Failed", "startedAt": text(8), "finishedAt": text(7)}),
        observed: &[],
        reason: Lifecycle::JobFailed.into(),
        message: "",
    };
    let status = written(advance(Kind::AgentRun, None, &wanted, at(9, 1)).unwrap());
    assert_eq!(status["finishedAt"], json!(text(8)));
}

#[test]
fn a_failed_run_says_why_in_every_place_people_look() {
    let wanted = Wanted {
        status: &json!({"phase": "Failed"}),
        observed: &[],
        reason: Lifecycle::JobFailed.into(),
        message: "exit code 3",
    };
    let status = written(advance(Kind::AgentRun, None, &wanted, at(0, 1)).unwrap());
    let seen: Vec<(&str, &str, &str, &str)> = status["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            let word = |name: &str| entry[name].as_str().unwrap();
            (
                word("type"),
                word("status"),
                word("reason"),
                word("message"),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("Succeeded", "False", "JobFailed", "exit code 3"),
            ("Failed", "True", "JobFailed", "exit code 3"),
            ("Cancelled", "False", "JobFailed", ""),
            ("InProgress", "False", "JobFailed", ""),
            ("Ready", "False", "JobFailed", "exit code 3"),
            ("Progressing", "False", "JobFailed", ""),
            ("Degraded", "True", "JobFailed", "exit code 3"),
            ("Reconciling", "False", "JobFailed", ""),
            ("Stalled", "True", "JobFailed", "exit code 3"),
        ]
    );
}

#[test]
fn what_is_no_longer_observed_no_longer_holds() {
    let invalid = [Observation::new(
        ConditionType::InvalidSpec,
        ConditionStatus::True,
        Lifecycle::MissingProvider,
        "no provider",
    )];
    let ready = [Observation::new(
        ConditionType::Ready,
        ConditionStatus::True,
        Lifecycle::ValidSpec,
        "",
    )];
    let wanted = |observed, reason: Lifecycle| Wanted {
        status: &Value::Null,
        observed,
        reason: reason.into(),
        message: "",
    };
    let broken = wanted(&invalid, Lifecycle::MissingProvider);
    let mended = wanted(&ready, Lifecycle::ValidSpec);
    let first = written(advance(Kind::Agent, None, &broken, at(0, 1)).unwrap());
    let second = written(advance(Kind::Agent, Some(&first), &mended, at(5, 2)).unwrap());
    let status = |status: &Value, type_: &str| condition(status, type_)["status"].clone();
    assert_eq!(status(&first, "Ready"), "False");
    assert_eq!(status(&first, "Stalled"), "True");
    assert_eq!(status(&second, "InvalidSpec"), "False");
    assert_eq!(status(&second, "Ready"), "True");
    assert_eq!(status(&second, "Degraded"), "False");
}

#[test]
fn settled_objects_cause_no_write() {
    for kind in Kind::ALL {
        let status = match phase::model(kind) {
            phase::PhaseModel::Run => json!({"phase": "Succeeded"}),
            phase::PhaseModel::Standing => json!({"phase": "Active"}),
            phase::PhaseModel::None => json!({}),
        };
        let wanted = Wanted {
            status: &status,
            observed: &[],
            reason: Lifecycle::Active.into(),
            message: "",
        };
        let stored = written(advance(kind, None, &wanted, at(0, 1)).unwrap());
        for pass in 1..=100 {
            let again = advance(kind, Some(&stored), &wanted, at(pass, 1)).unwrap();
            assert_eq!(again, Advance::Unchanged, "{kind}, pass {pass}");
        }
    }
}

#[test]
fn a_new_generation_is_acknowledged_even_if_nothing_else_changed() {
    let stored = written(advanced(None, Phase::Succeeded, 0));
    let wanted = Wanted {
        status: &stored,
        observed: &[],
        reason: Lifecycle::Reconciled.into(),
        message: "",
    };
    let next = written(advance(Kind::AgentRun, Some(&stored), &wanted, at(5, 2)).unwrap());
    assert_eq!(next["observedGeneration"], 2);
    assert_eq!(next["updatedAt"], json!(text(5)));
}

#[test]
fn typed_statuses_go_through_the_same_door() {
    use crate::api::kinds::AgentRunStatus;
    let wanted = Wanted {
        status: &AgentRunStatus {
            phase: Some("Running".to_owned()),
            ..AgentRunStatus::default()
        },
        observed: &[],
        reason: Lifecycle::Running.into(),
        message: "",
    };
    let status = written(advance(Kind::AgentRun, None, &wanted, at(0, 1)).unwrap());
    let stored: AgentRunStatus = serde_json::from_value(status).unwrap();
    assert_eq!(stored.started_at, Some(time(0)));
    let again = Wanted {
        status: &stored,
        ..wanted
    };
    let result = advance(Kind::AgentRun, Some(&stored), &again, at(9, 1)).unwrap();
    assert_eq!(result, Advance::Unchanged);
}

/// A run that has ended, as the contract wants it.
fn ended() -> Value {
    let running = written(advanced(None, Phase::Running, 0));
    written(advanced(Some(&running), Phase::Succeeded, 20))
}

#[test]
fn what_a_writer_leaves_out_is_filled_or_kept() {
    let done = ended();
    let with = |changes: Value| {
        let mut status = done.clone();
        for (name, value) in changes.as_object().unwrap() {
            status[name] = value.clone();
        }
        status
    };
    let mended =
        |old: Option<&Value>, new: Option<&Value>| repair(Kind::AgentRun, old, new, at(50, 1));
    for (row, new) in [
        ("nothing changed", done.clone()),
        ("start taken away", with(json!({"startedAt": null}))),
        ("end taken away", with(json!({"finishedAt": null}))),
        ("phase taken away", with(json!({"phase": null}))),
        (
            "generation taken away",
            with(json!({"observedGeneration": null})),
        ),
        ("only updatedAt moved", with(json!({"updatedAt": text(40)}))),
    ] {
        assert_eq!(mended(Some(&done), Some(&new)), Some(done.clone()), "{row}");
    }
    assert_eq!(mended(None, None), None, "no status");
    assert_eq!(
        mended(None, Some(&json!({"phase": "Running"}))),
        Some(json!({"phase": "Running", "startedAt": text(50), "updatedAt": text(50)})),
        "first transition to Running"
    );
    let unreadable = json!({"phase": "Running", "startedAt": "soon", "updatedAt": text(50)});
    assert_eq!(
        mended(None, Some(&unreadable)),
        Some(unreadable.clone()),
        "a start that is no time is not replaced in silence"
    );
    assert_eq!(
        mended(
            None,
            Some(&json!({"phase": "Failed", "startedAt": text(60)}))
        ),
        Some(json!({
            "phase": "Failed", "startedAt": text(60), "finishedAt": text(60), "updatedAt": text(60),
        })),
        "the end is never stamped before the start"
    );
    assert_eq!(
        mended(
            Some(&json!({"message": "a", "updatedAt": text(5)})),
            Some(&json!({"message": "b", "updatedAt": text(5)}))
        ),
        Some(json!({"message": "b", "updatedAt": text(50)})),
        "a change that does not move updatedAt"
    );
}

#[test]
fn removing_the_whole_status_keeps_what_is_written_once() {
    let done = ended();
    let left = repair(Kind::AgentRun, Some(&done), None, at(50, 1)).unwrap();
    assert_eq!(
        left,
        json!({
            "phase": "Succeeded", "startedAt": text(0), "finishedAt": text(20),
            "observedGeneration": 1, "updatedAt": text(50),
        })
    );
}

#[test]
fn a_client_that_keeps_whole_seconds_changes_no_time() {
    let old = json!({
        "phase": "Running", "startedAt": "2026-01-01T00:00:00.750Z", "updatedAt": "2026-01-01T00:00:00.750Z",
        "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00.500Z"}],
    });
    let mut new = old.clone();
    new["startedAt"] = json!("2026-01-01T00:00:00Z");
    new["updatedAt"] = json!("2026-01-01T00:00:00Z");
    new["conditions"][0]["lastTransitionTime"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(
        repair(Kind::AgentRun, Some(&old), Some(&new), at(0, 1)),
        Some(old)
    );
}

#[test]
fn conditions_of_a_careless_writer_are_completed() {
    let old = json!({"observedGeneration": 3, "updatedAt": text(0), "conditions": [
        {"type": "Stays", "status": "True", "lastTransitionTime": text(1), "observedGeneration": 2},
        {"type": "Flips", "status": "True", "lastTransitionTime": text(1), "observedGeneration": 2},
        {"type": "Lazy", "status": "True", "lastTransitionTime": text(1), "observedGeneration": 2},
    ]});
    let new = json!({"observedGeneration": 4, "conditions": [
        {"type": "Stays", "status": "True"},
        {"type": "Flips", "status": "False"},
        {"type": "Lazy", "status": "False", "lastTransitionTime": text(1)},
        {"type": "New", "status": "True"},
    ]});
    assert_eq!(
        repair(Kind::Agent, Some(&old), Some(&new), at(50, 4)).unwrap(),
        json!({"observedGeneration": 4, "updatedAt": text(50), "conditions": [
            {"type": "Stays", "status": "True", "lastTransitionTime": text(1), "observedGeneration": 2},
            {"type": "Flips", "status": "False", "lastTransitionTime": text(50), "observedGeneration": 4},
            {"type": "Lazy", "status": "False", "lastTransitionTime": text(50), "observedGeneration": 4},
            {"type": "New", "status": "True", "lastTransitionTime": text(50), "observedGeneration": 4},
        ]})
    );
}

#[test]
fn each_contradiction_is_named_with_its_place() {
    let done = ended();
    let edit = |edits: &[(&str, Value)]| {
        let mut status = done.clone();
        for (pointer, value) in edits {
            *status.pointer_mut(pointer).unwrap() = value.clone();
        }
        status
    };
    type Places = Vec<(&'static str, &'static str)>;
    let rows: Vec<(&str, Option<Value>, Value, Places)> = vec![
        ("no change", Some(done.clone()), done.clone(), vec![]),
        (
            "S1 ahead",
            Some(done.clone()),
            edit(&[("/observedGeneration", json!(9))]),
            vec![("status.observedGeneration", "ObservedGenerationAhead")],
        ),
        (
            "S1 back",
            Some(done.clone()),
            edit(&[("/observedGeneration", json!(0))]),
            vec![("status.observedGeneration", "ObservedGenerationWentBack")],
        ),
        (
            "S3 changed",
            Some(done.clone()),
            edit(&[("/startedAt", json!(text(1)))]),
            vec![("status.startedAt", "StartedAtChanged")],
        ),
        (
            "S3 too early",
            None,
            json!({"phase": "Pending", "startedAt": text(1)}),
            vec![("status.startedAt", "StartedAtTooEarly")],
        ),
        (
            "S4 changed",
            Some(done.clone()),
            edit(&[("/finishedAt", json!(text(21)))]),
            vec![("status.finishedAt", "FinishedAtChanged")],
        ),
        (
            "S4 too early",
            None,
            json!({"phase": "Running", "startedAt": text(1), "finishedAt": text(2)}),
            vec![("status.finishedAt", "FinishedAtTooEarly")],
        ),
        (
            "S4 missing, S6 no terminal condition",
            None,
            json!({"phase": "Failed"}),
            vec![
                ("status.finishedAt", "FinishedAtMissing"),
                ("status.conditions", "TerminalConditionConflict"),
            ],
        ),
        (
            "S4 before the start",
            None,
            json!({"phase": "Failed", "startedAt": text(9), "finishedAt": text(8),
                "conditions": [{"type": "Failed", "status": "True"}]}),
            vec![("status.finishedAt", "FinishedBeforeStarted")],
        ),
        (
            "S5 left",
            Some(json!({"phase": "Failed"})),
            json!({"phase": "Running", "startedAt": text(1)}),
            vec![("status.phase", "TerminalPhaseLeft")],
        ),
        (
            "S6 two ends",
            Some(done.clone()),
            edit(&[("/conditions/1/status", json!("True"))]),
            vec![("status.conditions", "TerminalConditionConflict")],
        ),
        (
            "S6 an end before the end",
            None,
            json!({"phase": "Running", "startedAt": text(1),
                "conditions": [{"type": "Succeeded", "status": "True"}]}),
            vec![("status.conditions", "TerminalConditionConflict")],
        ),
        (
            "S6 twice the same type",
            None,
            json!({"conditions": [{"type": "A", "status": "True"}, {"type": "A", "status": "True"}]}),
            vec![("status.conditions[1].type", "ConditionDuplicate")],
        ),
        (
            "S6 time moved without a flip",
            Some(done.clone()),
            edit(&[("/conditions/3/lastTransitionTime", json!(text(40)))]),
            vec![(
                "status.conditions[3].lastTransitionTime",
                "TransitionTimeMoved",
            )],
        ),
        (
            "S6 condition about a generation that is not there",
            Some(done.clone()),
            edit(&[("/conditions/3/observedGeneration", json!(8))]),
            vec![(
                "status.conditions[3].observedGeneration",
                "ObservedGenerationAhead",
            )],
        ),
        (
            "a start in the future",
            None,
            json!({"phase": "Running", "startedAt": text(100_000)}),
            vec![("status.startedAt", "TimeInFuture")],
        ),
    ];
    for (row, old, new, expected) in rows {
        let causes = check(Kind::AgentRun, old.as_ref(), Some(&new), at(50, 1));
        let found: Vec<(String, &str)> = causes
            .iter()
            .map(|cause| (cause.field.to_string(), cause.reason.as_str()))
            .collect();
        let expected: Vec<(String, &str)> = expected
            .into_iter()
            .map(|(field, reason)| (field.to_owned(), reason))
            .collect();
        assert_eq!(found, expected, "{row}");
    }
}

#[test]
fn a_refusal_says_what_would_be_right() {
    let old = json!({"observedGeneration": 4, "phase": "Succeeded", "finishedAt": text(1),
        "conditions": [{"type": "Succeeded", "status": "True"}]});
    let new = json!({"observedGeneration": 3, "phase": "Running", "finishedAt": text(2), "startedAt": text(0),
        "conditions": [{"type": "Succeeded", "status": "True"}]});
    let messages: Vec<String> = check(Kind::ToolRun, Some(&old), Some(&new), at(5, 4))
        .into_iter()
        .map(|cause| cause.message)
        .collect();
    assert_eq!(
        messages,
        [
            "observedGeneration was 4 and is set to 3; it only grows: read the object again before writing",
            "the run has ended as Succeeded and cannot become \"Running\"; create a new run instead",
            "finishedAt was \"2023-11-14T22:13:21Z\" and is \"2023-11-14T22:13:22Z\"; it is written once: leave it as it is",
        ]
    );
}

#[test]
fn an_object_that_broke_a_rule_before_can_be_updated_elsewhere() {
    let old = json!({
        "phase": "Failed", "startedAt": text(100_000), "observedGeneration": 9, "conditions": [
            {"type": "Succeeded", "status": "True"}, {"type": "Succeeded", "status": "True"},
        ],
    });
    let mut new = old.clone();
    new["artifacts"] = json!([{"name": "log"}]);
    assert_eq!(check(Kind::AgentRun, Some(&old), Some(&new), at(50, 1)), []);
}

#[test]
fn run_rules_are_not_for_kinds_that_do_not_end() {
    let old = json!({"phase": "Failed"});
    let new = json!({"phase": "Ready"});
    assert_eq!(
        check(Kind::Workspace, Some(&old), Some(&new), at(50, 1)),
        []
    );
}
