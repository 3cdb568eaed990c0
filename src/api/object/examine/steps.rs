//! What the steps of an Orchestration hand to their runs as it is. The schema of Orchestrations does not know these
//! fields, so they are held against that of runs, and then against the rules of runs.

use serde_json::{Map, Value, json};

use super::{ENOUGH, is_same, rules};
use crate::api::kind::Kind;
use crate::api::object::cause::{Cause, Causes, FieldPath, Path};
use crate::api::object::conform::conform_spec;
use crate::api::validate::StepKind;

/// Fields that a step hands to its run.
const HANDED_ON: [&str; 4] = ["runtime", "workload", "workflow", "secrets"];

pub(super) fn examine(causes: &mut Causes, spec: &Value) {
    let root = Path::root("spec");
    let steps_at = root.field("steps");
    let steps = spec.get("steps").and_then(Value::as_array);
    for (index, step) in steps.into_iter().flatten().enumerate() {
        if causes.iter().len() >= ENOUGH {
            return;
        }
        let kind = step.get("kind").and_then(Value::as_str).map(str::trim);
        if kind == Some(StepKind::AgentRun.as_str()) {
            examine_step(causes, &steps_at.index(index), step);
        }
    }
}

fn examine_step(causes: &mut Causes, at: &Path<'_>, step: &Value) {
    let handed_on: Map<String, Value> = HANDED_ON
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), step.get(name)?.clone())))
        .filter(|(_, value)| !value.is_null())
        .collect();
    if handed_on.is_empty() {
        return;
    }
    let run = json!({ "spec": handed_on });
    let rules = rules(Kind::AgentRun, &run);
    let mut faults = conform_spec(Kind::AgentRun, &run, None);
    faults.retain(|cause| !rules.iter().any(|rule| is_same(cause, rule)));
    faults.append(rules);
    for fault in faults.iter().filter(|fault| is_about(fault, &run)) {
        let field = FieldPath::from(at).into_iter();
        causes.push(Cause {
            field: field
                .chain(fault.field.clone().into_iter().skip(1))
                .collect(),
            ..fault.clone()
        });
    }
}

/// Whether a fault is about something that the step gives; the rest of the run is made up later.
fn is_about(fault: &Cause, run: &Value) -> bool {
    let given = run.get("spec").and_then(Value::as_object);
    let mut names = given.into_iter().flat_map(Map::keys);
    let spec = Path::root("spec");
    names.any(|name| fault.field.is_within(&(&spec.field(name)).into()))
}
