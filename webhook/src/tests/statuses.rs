use agents::api::kind::Kind;
use agents::api::registration::rung::Rung;
use serde_json::{Value, json};

use crate::fixtures::{
    RESTORER, ask, ask_of, faults, patch_of, patched, status_review, stored, webhook,
};
use crate::subject::Door;

fn run(status: Value) -> Value {
    let mut run = stored(Kind::ToolRun, json!({"toolRef": {"name": "a"}}));
    run["status"] = status;
    run
}

fn running() -> Value {
    run(json!({
        "phase": "Running", "startedAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z",
        "observedGeneration": 1, "runId": "r-1",
    }))
}

fn ended() -> Value {
    let flip = "2026-01-01T00:01:00Z";
    run(json!({
        "phase": "Succeeded", "startedAt": "2026-01-01T00:00:00Z", "finishedAt": flip, "updatedAt": flip,
        "observedGeneration": 1,
        "conditions": [{"type": "Succeeded", "status": "True", "lastTransitionTime": flip}],
    }))
}

#[test]
fn what_a_writer_leaves_out_is_filled_in_with_the_smallest_patch() {
    let old = run(json!({"phase": "Pending", "updatedAt": "2026-01-01T00:00:00Z"}));
    let new = run(json!({"phase": "Running", "updatedAt": "2026-01-01T00:00:00Z", "mystery": 7}));
    let response = ask(Door::MutateStatus, &status_review(&new, &old));
    assert_eq!(response["allowed"], true);
    assert_eq!(
        patch_of(&response),
        json!([
            {"op": "add", "path": "/status/startedAt", "value": "2027-01-15T08:00:00Z"},
            {"op": "replace", "path": "/status/updatedAt", "value": "2027-01-15T08:00:00Z"},
        ])
    );
    let result = patched(&new, &response);
    assert_eq!(result["status"]["mystery"], 7, "unknown fields survive");
    let again = ask(Door::MutateStatus, &status_review(&result, &old));
    assert_eq!(patch_of(&again), json!([]), "a second pass changes nothing");
    let judged = ask(Door::ValidateStatus, &status_review(&result, &old));
    assert_eq!(judged["allowed"], true);
}

#[test]
fn a_write_that_changes_nothing_stays_one() {
    let old = running();
    let mut new = old.clone();
    let same = ask(Door::MutateStatus, &status_review(&new, &old));
    assert_eq!(patch_of(&same), json!([]));
    new["status"]["updatedAt"] = json!("2026-06-01T00:00:00Z");
    let response = ask(Door::MutateStatus, &status_review(&new, &old));
    assert_eq!(patched(&new, &response), old, "only updatedAt moved");
}

#[test]
fn a_status_that_is_taken_away_comes_back_as_far_as_it_is_written_once() {
    let old = ended();
    let mut new = old.clone();
    new.as_object_mut().unwrap().remove("status");
    let response = ask(Door::MutateStatus, &status_review(&new, &old));
    // Its terminal condition is gone for good, which is a contradiction; without it the rest comes back.
    assert_eq!(response["allowed"], false);
    let admission = webhook(Rung::Fail, json!({"statusModes": {"Conditions": "audit"}}));
    let response = ask_of(&admission, Door::MutateStatus, &status_review(&new, &old));
    let result = patched(&new, &response);
    assert_eq!(result["status"]["finishedAt"], "2026-01-01T00:01:00Z");
    assert_eq!(result["status"]["phase"], "Succeeded");
}

type Change = fn(&mut Value);

/// How a status can contradict itself or what was before: what it was, what is done to it, the reason, the rule.
fn contradictions() -> Vec<(Value, Change, &'static str, &'static str)> {
    vec![
        (
            running(),
            |status| status["observedGeneration"] = json!(9),
            "ObservedGenerationAhead",
            "ObservedGeneration",
        ),
        (
            running(),
            |status| status["observedGeneration"] = json!(0),
            "ObservedGenerationWentBack",
            "ObservedGeneration",
        ),
        (
            running(),
            |status| status["startedAt"] = json!("2026-01-02T00:00:00Z"),
            "StartedAtChanged",
            "StartedAt",
        ),
        (
            ended(),
            |status| status["finishedAt"] = json!("2026-01-02T00:00:00Z"),
            "FinishedAtChanged",
            "FinishedAt",
        ),
        (
            ended(),
            |status| {
                status["phase"] = json!("Failed");
                status["conditions"][0]["type"] = json!("Failed");
            },
            "TerminalPhaseLeft",
            "TerminalPhase",
        ),
        (
            running(),
            |status| status["conditions"] = json!([{"type": "Failed", "status": "True"}]),
            "TerminalConditionConflict",
            "Conditions",
        ),
        (
            running(),
            |status| {
                let late = "2099-01-01T00:00:00Z";
                status["conditions"] =
                    json!([{"type": "A", "status": "True", "lastTransitionTime": late}]);
            },
            "TimeInFuture",
            "FutureTime",
        ),
    ]
}

#[test]
fn each_contradiction_is_refused_with_its_own_reason_and_has_its_own_mode() {
    for (old, change, reason, rule) in contradictions() {
        let mut new = old.clone();
        change(&mut new["status"]);
        let review = status_review(&new, &old);
        for door in [Door::MutateStatus, Door::ValidateStatus] {
            let response = ask(door, &review);
            assert_eq!(response["allowed"], false, "{reason}");
            let faults = faults(&response).into_iter();
            let reasons: Vec<_> = faults.map(|(_, reason)| reason).collect();
            assert_eq!(reasons, [reason]);
            assert_eq!(response["auditAnnotations"]["rule"], rule);
        }
        for (mode, warnings) in [("warn", 1), ("audit", 0)] {
            let admission = webhook(Rung::Fail, json!({"statusModes": {rule: mode}}));
            let response = ask_of(&admission, Door::ValidateStatus, &review);
            assert_eq!(response["allowed"], true, "{reason} {mode}");
            let told = response["warnings"].as_array().map_or(0, Vec::len);
            assert_eq!(told, warnings, "{reason} {mode}");
        }
    }
}

#[test]
fn mending_has_modes_too() {
    let (old, new) = (
        run(json!({"phase": "Pending"})),
        run(json!({"phase": "Running"})),
    );
    for (modes, paths) in [
        (json!({}), vec!["/status/startedAt", "/status/updatedAt"]),
        // The start that is not filled in is missing, which refuses unless that is let go as well.
        (json!({"Omission": "warn"}), vec![]),
        (
            json!({"Omission": "warn", "StartedAt": "warn"}),
            vec!["/status/updatedAt"],
        ),
        (json!({"UpdatedAt": "audit"}), vec!["/status/startedAt"]),
    ] {
        let admission = webhook(Rung::Fail, json!({"statusModes": modes}));
        let response = ask_of(&admission, Door::MutateStatus, &status_review(&new, &old));
        let patch = patch_of(&response);
        let operations = patch.as_array().unwrap().iter();
        let patched: Vec<&str> = operations
            .map(|operation| operation["path"].as_str().unwrap())
            .collect();
        assert_eq!(patched, paths, "{modes}");
    }
}

#[test]
fn the_lower_rungs_mend_and_refuse_nothing() {
    let (old, mut new) = (ended(), ended());
    new["status"]["phase"] = json!("Running");
    for rung in [Rung::Audit, Rung::Warn] {
        let admission = webhook(rung, json!({}));
        let response = ask_of(&admission, Door::MutateStatus, &status_review(&new, &old));
        assert_eq!(response["allowed"], true, "{rung}");
        assert_ne!(patch_of(&response), json!([]), "{rung}");
    }
}

#[test]
fn whoever_restores_a_backup_writes_what_was() {
    let (old, new) = (ended(), running());
    let mut review = status_review(&new, &old);
    assert_eq!(ask(Door::ValidateStatus, &review)["allowed"], false);
    review["request"]["userInfo"]["username"] = json!(RESTORER);
    for door in [Door::MutateStatus, Door::ValidateStatus] {
        let response = ask(door, &review);
        assert_eq!(response["allowed"], true);
        assert_eq!(patch_of(&response), json!([]));
    }
}

#[test]
fn a_status_of_another_shape_is_not_mended() {
    let old = running();
    for status in [json!(5), json!([]), json!("x")] {
        let mut new = old.clone();
        new["status"] = status;
        let response = ask(Door::MutateStatus, &status_review(&new, &old));
        assert_eq!(patch_of(&response), json!([]));
    }
}
