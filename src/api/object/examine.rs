//! Everything that is wrong with an object: the schema of its CRD and the rules beyond it, each fault once.
//!
//! The API server stops at the schema; people then mend faults in several rounds. Here they see all at once. The rules
//! for specs are in `validate`, those for statuses in `status`; what the operator allows is `policy`.

mod steps;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use crate::api::condition::Moment;
use crate::api::kind::Kind;
use crate::api::object::cause::{Cause, Causes, FieldPath, Reason};
use crate::api::object::conform::{Mended, conform_spec, conform_status, mend};
use crate::api::{status, validate};

/// Faults of the schema beyond which nobody asks for the rules.
const ENOUGH: usize = 100;

/// All faults of an object. With `old`, those that the update brings: a fault that the object had before, at the same
/// place with the same value, does not keep anyone from changing something else.
pub fn examine(kind: Kind, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    if old.is_some_and(|old| old.get("spec") == object.get("spec")) {
        return Vec::new();
    }
    let mut causes = conform_spec(kind, object, old);
    if causes.iter().len() < ENOUGH {
        let mut rules = rules(kind, object);
        if let Some(old) = old {
            if !rules.is_empty() {
                let before = self::rules(kind, old);
                rules.forgive(&before, |field| field.find(object) == field.find(old));
            }
            validate::check_frozen(&mut rules, kind, object, old);
        }
        causes.retain(|cause| !rules.iter().any(|rule| is_same(cause, rule)));
        causes.append(rules);
    }
    causes.told()
}

/// All faults of the status of an object that the API server has not looked at yet, and of how it changed from `old`.
pub fn examine_status(kind: Kind, object: &Value, old: &Value, at: Moment) -> Vec<Cause> {
    let mut causes = status::check(kind, old.get("status"), object.get("status"), at);
    let mut schema = conform_status(kind, object, Some(old));
    schema.retain(|cause| !causes.iter().any(|rule| is_same(cause, rule)));
    causes.extend(schema.told());
    causes
}

/// What the rules say about the parts of an object that can be read.
fn rules(kind: Kind, object: &Value) -> Causes {
    let no_spec = Value::Object(Map::new());
    let spec = validate::spec_of(object).unwrap_or(&no_spec);
    let rules = validate::rules(kind, object, spec);
    let mut causes = rules.unwrap_or_else(|_| rules_of_mended(kind, object, spec));
    if kind == Kind::Orchestration {
        steps::examine(&mut causes, spec);
    }
    causes
}

/// Keeps what the rules say in whichever way the object is mended.
fn rules_of_mended(kind: Kind, object: &Value, spec: &Value) -> Causes {
    let first = mend(kind, spec, 0);
    let mut causes = rules_of_one(kind, object, &first);
    for way in 1..first.ways {
        let more = rules_of_one(kind, object, &mend(kind, spec, way));
        let again = |cause: &Cause| {
            let mut more = more.iter();
            more.any(|other| other.field == cause.field && other.reason == cause.reason)
        };
        causes.retain(again);
    }
    causes
}

fn rules_of_one(kind: Kind, object: &Value, mended: &Mended) -> Causes {
    match validate::rules(kind, object, &mended.spec) {
        Ok(mut causes) => {
            causes.retain(|cause| !is_guesswork(cause, &mended.places));
            causes
        }
        Err(unread) => {
            let mut causes = Causes::default();
            causes.push(unread);
            causes
        }
    }
}

/// Whether a fault is about what stands in for something that could not be read.
fn is_guesswork(cause: &Cause, places: &[FieldPath]) -> bool {
    let about_steps = matches!(
        cause.reason,
        Reason::MissingDependency | Reason::EntrypointMissing
    );
    // The step that is not found may be one whose name cannot be read.
    places
        .iter()
        .any(|place| cause.field.is_within(place) || (about_steps && may_name_a_step(place)))
}

/// Whether a step of an orchestration, its name or all steps could not be read.
fn may_name_a_step(place: &FieldPath) -> bool {
    let place = place.to_string();
    let inner = place.strip_prefix("spec.steps").unwrap_or(".");
    inner.is_empty() || inner.ends_with(".name") || inner.ends_with(']')
}

/// Whether a rule says again, and better, what the schema says.
fn is_same(schema: &Cause, rule: &Cause) -> bool {
    match (schema.reason, rule.reason) {
        // The rule names the field of the entry that is there twice.
        (Reason::Duplicate, Reason::ConditionDuplicate) => rule.field.is_within(&schema.field),
        (Reason::TooMany, Reason::ParametersTooLarge) => schema.field == rule.field,
        (of_schema, of_rule) => of_schema == of_rule && schema.field == rule.field,
    }
}
