//! Random histories of status writes by several writers, through both doors and the patch, against the contract as an
//! invariant of what is stored.

use agents::api::kind::Kind;
use agents::api::phase::is_run;
use agents::api::registration::rung::Rung;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::contract::{self, TERMINAL};
use crate::fixtures::{now, patched, status_review, stored, webhook};
use crate::service::Admission;
use crate::subject::Door;

/// What a writer does to the status that it read.
#[derive(Clone, Debug)]
enum Write {
    Phase(&'static str),
    /// A phase together with the condition that goes with it, as a careful writer does.
    End(&'static str),
    Drop(&'static str),
    Time(&'static str, i64),
    Generation(i64),
    Condition(&'static str, &'static str, Option<i64>),
    Twice(&'static str),
    Clear,
}

const FIELDS: [&str; 6] = [
    "phase",
    "startedAt",
    "finishedAt",
    "updatedAt",
    "observedGeneration",
    "conditions",
];

fn any_write() -> impl Strategy<Value = Write> {
    let phases = [
        "Pending",
        "Running",
        "Succeeded",
        "Failed",
        "Cancelled",
        "Odd",
    ];
    let types = || prop::sample::select(vec!["Succeeded", "Failed", "Cancelled", "Ready"]);
    let states = prop::sample::select(vec!["True", "False", "Unknown"]);
    let times = prop::sample::select(vec!["startedAt", "finishedAt", "updatedAt"]);
    prop_oneof![
        3 => prop::sample::select(phases.to_vec()).prop_map(Write::Phase),
        4 => prop::sample::select(TERMINAL.to_vec()).prop_map(Write::End),
        3 => prop::sample::select(FIELDS.to_vec()).prop_map(Write::Drop),
        2 => (times, -900..900i64).prop_map(|(name, second)| Write::Time(name, second)),
        1 => (0..6i64).prop_map(Write::Generation),
        3 => (types(), states, prop::option::of(-200..200i64))
            .prop_map(|(type_, status, second)| Write::Condition(type_, status, second)),
        1 => types().prop_map(Write::Twice),
        1 => Just(Write::Clear),
    ]
}

fn time(second: i64) -> String {
    (now() + SignedDuration::from_secs(second)).to_string()
}

/// The object that a writer sends, from the one that it read.
fn sent(write: &Write, read: &Value) -> Value {
    let mut object = read.clone();
    if let Write::Clear = write {
        object.as_object_mut().unwrap().remove("status");
        return object;
    }
    if object.get("status").is_none() {
        object["status"] = json!({});
    }
    let status = &mut object["status"];
    match write {
        Write::Phase(phase) => status["phase"] = json!(phase),
        Write::End(phase) => {
            status["phase"] = json!(phase);
            set_condition(status, phase, "True", None);
        }
        Write::Drop(field) => {
            status.as_object_mut().unwrap().remove(*field);
        }
        Write::Time(name, second) => status[*name] = json!(time(*second)),
        Write::Generation(generation) => status["observedGeneration"] = json!(generation),
        Write::Condition(type_, state, second) => set_condition(status, type_, state, *second),
        Write::Twice(type_) => conditions(status).push(json!({"type": type_, "status": "False"})),
        Write::Clear => {}
    }
    object
}

fn conditions(status: &mut Value) -> &mut Vec<Value> {
    if status.get("conditions").is_none() {
        status["conditions"] = json!([]);
    }
    status["conditions"].as_array_mut().unwrap()
}

fn set_condition(status: &mut Value, type_: &str, state: &str, second: Option<i64>) {
    let list = conditions(status);
    let position = list.iter().position(|entry| entry["type"] == type_);
    let position = position.unwrap_or_else(|| {
        list.push(json!({"type": type_}));
        list.len() - 1
    });
    list[position]["status"] = json!(state);
    if let Some(second) = second {
        list[position]["lastTransitionTime"] = json!(time(second));
    }
}

/// The object as it is stored after one write, if both doors let it through.
fn written(
    admission: &Admission,
    sent: &Value,
    stored: &Value,
    at: Timestamp,
) -> Result<Option<Value>, TestCaseError> {
    let ask = |door: Door, object: &Value, at: Timestamp| {
        let body = serde_json::to_vec(&status_review(object, stored)).unwrap();
        let answer = admission.answer_at(door, &body, at, None);
        let mut answer: Value = serde_json::from_slice(&answer.body).unwrap();
        answer["response"].take()
    };
    let mended = ask(Door::MutateStatus, sent, at);
    if mended["allowed"] == false {
        return Ok(None);
    }
    let result = patched(sent, &mended);
    let later = at + SignedDuration::from_secs(3);
    let again = ask(Door::MutateStatus, &result, later);
    prop_assert!(again.get("patch").is_none(), "mended twice: {again}");
    match ask(Door::ValidateStatus, &result, at)["allowed"] == true {
        true => Ok(Some(result)),
        false => Err(TestCaseError::fail(
            "the second door refused what the first let through",
        )),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_history_of_status_writes_breaks_the_contract(
        kind in prop::sample::select(Kind::ALL.to_vec()),
        writes in prop::collection::vec((any_write(), 0..4i64, any::<bool>(), any::<bool>()), 1..25),
    ) {
        let admission = webhook(Rung::Fail, json!({}));
        let mut current = stored(kind, json!({}));
        let mut before = current.clone();
        let mut second = 0;
        for (write, pause, edited, stale) in writes {
            second += pause;
            if edited {
                let generation = current["metadata"]["generation"].as_i64().unwrap();
                current["metadata"]["generation"] = json!(generation + 1);
            }
            // A writer that read too early sends what it made of that; the API server takes its status, not its metadata.
            let read = if stale { &before } else { &current };
            let mut sent = sent(&write, read);
            sent["metadata"] = current["metadata"].clone();
            let at = now() + SignedDuration::from_secs(second);
            if let Some(result) = written(&admission, &sent, &current, at)? {
                let generation = result["metadata"]["generation"].as_i64().unwrap();
                contract::holds(is_run(kind), &current["status"], &result["status"], generation)
                    .map_err(|broken| TestCaseError::fail(format!("{broken} after {write:?}")))?;
                before = std::mem::replace(&mut current, result);
            }
        }
    }
}
