//! Random histories of status writes by several writers, through both doors and the patch, against the contract as an
//! invariant of what is stored.

use agents::api::kind::Kind;
use agents::api::rung::Rung;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

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
const TERMINAL: [&str; 3] = ["Succeeded", "Failed", "Cancelled"];

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

/// S1 to S7 between two statuses that were stored one after the other.
fn contract(kind: Kind, old: &Value, new: &Value, generation: i64) -> Result<(), TestCaseError> {
    let (old, new) = (&old["status"], &new["status"]);
    let seen = |status: &Value| status["observedGeneration"].as_i64();
    prop_assert!(seen(new) <= Some(generation), "S1 ahead");
    prop_assert!(seen(new) >= seen(old), "S1 back");
    let is_bare = |status: &Value| status.as_object().is_none_or(Map::is_empty);
    if old != new && !(is_bare(old) && is_bare(new)) {
        prop_assert_ne!(&old["updatedAt"], &new["updatedAt"], "S2 not moved");
    }
    let list = |status: &Value| status["conditions"].as_array().cloned().unwrap_or_default();
    let (before, after) = (list(old), list(new));
    for (index, entry) in after.iter().enumerate() {
        let same = |other: &Value| other["type"] == entry["type"];
        prop_assert_eq!(after.iter().position(same), Some(index), "S6 twice");
        if let Some(earlier) = before.iter().find(|other| same(other)) {
            let flipped = earlier["status"] != entry["status"];
            let moved = earlier["lastTransitionTime"] != entry["lastTransitionTime"];
            prop_assert_eq!(flipped, moved, "S6 time and flip");
        }
    }
    if kind == Kind::ToolRun {
        return run_contract(old, new, &after);
    }
    Ok(())
}

fn run_contract(old: &Value, new: &Value, conditions: &[Value]) -> Result<(), TestCaseError> {
    for name in ["startedAt", "finishedAt"] {
        if !old[name].is_null() {
            prop_assert_eq!(&old[name], &new[name], "S3, S4, S7 {}", name);
        }
    }
    let ended = |status: &Value| {
        let phase = status["phase"].as_str()?;
        TERMINAL.into_iter().find(|terminal| *terminal == phase)
    };
    if let Some(phase) = ended(old) {
        prop_assert_eq!(ended(new), Some(phase), "S5 left");
    }
    if new["phase"] == "Running" {
        prop_assert!(!new["startedAt"].is_null(), "S3 running without a start");
    }
    let at = |name: &str| {
        new[name]
            .as_str()
            .map(|text| text.parse::<Timestamp>().unwrap())
    };
    if let (Some(start), Some(end)) = (at("startedAt"), at("finishedAt")) {
        prop_assert!(start <= end, "S4 backwards");
    }
    if let Some(phase) = ended(new) {
        prop_assert!(!new["finishedAt"].is_null(), "S4 no end");
        let holding: Vec<&str> = conditions
            .iter()
            .filter(|entry| entry["status"] == "True")
            .filter_map(|entry| entry["type"].as_str())
            .filter(|type_| TERMINAL.contains(type_))
            .collect();
        prop_assert_eq!(holding, vec![phase], "S6 terminal condition");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn no_history_of_status_writes_breaks_the_contract(
        kind in prop::sample::select(vec![Kind::ToolRun, Kind::ToolRun, Kind::Workspace]),
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
                contract(kind, &current, &result, generation)
                    .map_err(|error| TestCaseError::fail(format!("{error} after {write:?}")))?;
                before = std::mem::replace(&mut current, result);
            }
        }
    }
}
