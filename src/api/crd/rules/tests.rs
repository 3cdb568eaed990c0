//! Every rule as a table of writes: what is stored, what is written over it, and which rules refuse that.

use super::super::definition;
use super::*;
use serde_json::{Value, json};

const FALLS: &str = "observedGeneration never falls and is never removed";
const START: &str = "startedAt is written once: it is never changed and never removed";
const FINISH: &str = "finishedAt is written once: it is never changed and never removed";
const ORDER: &str = "finishedAt is not before startedAt";
const FINAL: &str =
    "Succeeded, Failed and Cancelled are final: the phase is never changed and never removed";

const RUNS: [Kind; 3] = [Kind::AgentRun, Kind::OrchestrationRun, Kind::ToolRun];

/// An object with this status; null stands for no status at all.
fn object(status: &Value) -> Value {
    // Satisfies the rules on the spec of an AgentRun; other kinds have none.
    let mut object = json!({ "spec": { "implementationSpecRef": { "name": "task" } } });
    if !status.is_null() {
        object["status"] = status.clone();
    }
    object
}

fn check(kinds: &[Kind], table: &[(&str, Value, Value, &[&str])]) {
    let validator = kube_cel::Validator::new();
    for kind in kinds {
        let crd = serde_json::to_value(definition(*kind)).unwrap();
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let schema = kube_cel::compile_schema(schema);
        for (sentence, old, new, expected) in table {
            let refusals: Vec<_> =
                match validator.validate_compiled(&schema, &object(new), Some(&object(old))) {
                    Ok(()) => Vec::new(),
                    Err(errors) => errors.iter().map(|error| error.message.clone()).collect(),
                };
            assert_eq!(refusals, *expected, "{kind}: {sentence}");
        }
    }
}

#[test]
fn observed_generation_never_falls_in_any_kind() {
    let three = || json!({ "observedGeneration": 3 });
    check(
        &Kind::ALL,
        &[
            ("the first status is free", Value::Null, three(), &[]),
            ("the same again", three(), three(), &[]),
            (
                "a later one",
                three(),
                json!({ "observedGeneration": 4 }),
                &[],
            ),
            (
                "an earlier one",
                three(),
                json!({ "observedGeneration": 2 }),
                &[FALLS],
            ),
            (
                "left out",
                three(),
                json!({ "updatedAt": "2026-02-08T10:00:00Z" }),
                &[FALLS],
            ),
            ("the whole status removed", three(), Value::Null, &[FALLS]),
            ("none stored, none written", json!({}), json!({}), &[]),
        ],
    );
}

#[test]
fn times_of_a_run_are_written_once() {
    let started = || json!({ "startedAt": "2026-02-08T10:00:00.123Z" });
    let ended =
        || json!({ "startedAt": "2026-02-08T10:00:00Z", "finishedAt": "2026-02-08T10:05:00Z" });
    check(
        &RUNS,
        &[
            ("set for the first time", json!({}), started(), &[]),
            ("set with the first status", Value::Null, ended(), &[]),
            (
                "the same instant in other words",
                started(),
                json!({ "startedAt": "2026-02-08T11:00:00.123000+01:00" }),
                &[],
            ),
            (
                "moved by a fraction",
                started(),
                json!({ "startedAt": "2026-02-08T10:00:00Z" }),
                &[START],
            ),
            ("start left out", started(), json!({}), &[START]),
            (
                "the whole status removed",
                ended(),
                Value::Null,
                &[START, FINISH],
            ),
            (
                "end moved",
                ended(),
                json!({ "startedAt": "2026-02-08T10:00:00Z", "finishedAt": "2026-02-08T10:06:00Z" }),
                &[FINISH],
            ),
            (
                "end left out",
                ended(),
                json!({ "startedAt": "2026-02-08T10:00:00Z" }),
                &[FINISH],
            ),
            (
                "an end without a start, for a run that never ran",
                json!({}),
                json!({ "finishedAt": "2026-02-08T10:05:00Z" }),
                &[],
            ),
        ],
    );
}

#[test]
fn a_run_does_not_end_before_it_starts() {
    let wrong =
        || json!({ "startedAt": "2026-02-08T10:00:00Z", "finishedAt": "2026-02-08T09:00:00Z" });
    let wrong_but_touched = || {
        let mut status = wrong();
        status["updatedAt"] = json!("2026-02-08T12:00:00Z");
        status
    };
    let instant =
        || json!({ "startedAt": "2026-02-08T10:00:00Z", "finishedAt": "2026-02-08T10:00:00Z" });
    check(
        &RUNS,
        &[
            (
                "both at once, in the wrong order",
                Value::Null,
                wrong(),
                &[ORDER],
            ),
            (
                "an end before the start",
                json!({ "startedAt": "2026-02-08T10:00:00Z" }),
                wrong(),
                &[ORDER],
            ),
            (
                "a start after the end",
                json!({ "finishedAt": "2026-02-08T09:00:00Z" }),
                wrong(),
                &[ORDER],
            ),
            (
                "an end at the start",
                json!({ "startedAt": "2026-02-08T10:00:00Z" }),
                instant(),
                &[],
            ),
            (
                "an old fault stays changeable elsewhere",
                wrong(),
                wrong_but_touched(),
                &[],
            ),
        ],
    );
}

#[test]
fn a_final_phase_stays() {
    let phase = |phase: &str| json!({ "phase": phase });
    check(
        &RUNS,
        &[
            (
                "Pending to Running",
                phase("Pending"),
                phase("Running"),
                &[],
            ),
            ("back to Pending", phase("Running"), phase("Pending"), &[]),
            ("Running to Failed", phase("Running"), phase("Failed"), &[]),
            (
                "straight to Cancelled",
                Value::Null,
                phase("Cancelled"),
                &[],
            ),
            ("Failed again", phase("Failed"), phase("Failed"), &[]),
            (
                "Failed to Succeeded",
                phase("Failed"),
                phase("Succeeded"),
                &[FINAL],
            ),
            (
                "Succeeded to Running",
                phase("Succeeded"),
                phase("Running"),
                &[FINAL],
            ),
            (
                "Cancelled left out",
                phase("Cancelled"),
                json!({}),
                &[FINAL],
            ),
            (
                "status of a finished run removed",
                phase("Succeeded"),
                Value::Null,
                &[FINAL],
            ),
            (
                "a phase that nobody knows",
                phase("Paused"),
                phase("Running"),
                &[],
            ),
        ],
    );
}

#[test]
fn phases_of_other_kinds_come_and_go() {
    let phase = |phase: &str| json!({ "phase": phase });
    check(
        &[Kind::Workspace, Kind::SignalDelivery, Kind::Tool],
        &[("Failed to Ready", phase("Failed"), phase("Ready"), &[])],
    );
}

#[test]
fn every_rule_names_its_field_and_says_one_sentence() {
    for kind in Kind::ALL {
        for rule in of(kind) {
            let field = rule.field_path.unwrap();
            let message = rule.message.unwrap();
            assert!(field.starts_with(".status."), "{kind}: {field}");
            assert!(!message.contains('\n'), "{kind}: {message}");
        }
    }
}
