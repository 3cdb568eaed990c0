//! What may not change once a run has started: it would say something else than what is being carried out.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::api::kind::Kind;
use crate::api::object::cause::{Causes, Path, Reason};
use crate::api::object::defaults::settled_spec;
use crate::api::phase::{self, Phase};

/// Fields that say something about a run beside what it does: whether it shall end, and how long it is kept.
const FREE: [&str; 2] = ["cancel", "ttlSecondsAfterFinished"];

pub(in crate::api::validate) fn check(causes: &mut Causes, kind: Kind, old: &Value, new: &Value) {
    if !phase::is_run(kind) || !has_started(old) {
        return;
    }
    // Writing a default out, or leaving it out again, changes nothing.
    let (before, after) = (settled_spec(kind, old), settled_spec(kind, new));
    let fields = [&before, &after].map(Value::as_object);
    let names: BTreeSet<&String> = fields.into_iter().flatten().flat_map(Map::keys).collect();
    let spec = Path::root("spec");
    for name in names
        .into_iter()
        .filter(|name| !FREE.contains(&name.as_str()))
    {
        if value(&before, name) != value(&after, name) {
            causes.add(
                &spec.field(name),
                Reason::SpecImmutableViolation,
                "the run has started, so this cannot change any more; create a new run instead",
            );
        }
    }
}

/// Accepted, or in any phase but Pending.
fn has_started(object: &Value) -> bool {
    let phase = object
        .pointer("/status/phase")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let conditions = object
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    let accepted = |entry: &Value| entry["type"] == "Accepted" && entry["status"] == "True";
    let accepted = conditions.is_some_and(|list| list.iter().any(accepted));
    accepted || !(phase.is_empty() || phase == Phase::Pending.as_str())
}

/// The value to compare: null is absent, and the order of secrets means nothing.
fn value(spec: &Value, field: &str) -> Option<Value> {
    let value = spec.get(field).filter(|value| !value.is_null())?;
    if field != "secrets" {
        return Some(value.clone());
    }
    let list = value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let mut names: Vec<&str> = list
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    names.sort_unstable();
    (!names.is_empty()).then(|| names.into())
}
