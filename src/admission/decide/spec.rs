//! Specs: defaults and trace context are filled in, then all faults of the result are collected, whatever finds them.

use std::collections::BTreeMap;

use crate::api::kind::Kind;
use crate::api::object::cause::{Cause, Path, Reason};
use crate::api::object::defaults::defaults;
use crate::api::object::examine::examine;
use crate::api::object::references::{Reference, references};
use crate::api::policy::Mode;
use json_patch::PatchOperation;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{Context, clean, policy, trace};
use crate::admission::decision::{Decision, Rule};
use crate::admission::patch;
use crate::admission::review::{Metadata, Object, read};
use crate::admission::subject::{Door, Subject};

/// The object before and after, as trees.
pub(super) struct Change {
    pub(super) object: Value,
    pub(super) old: Option<Value>,
}

pub(super) fn decide(
    kind: Kind,
    subject: &Subject<'_>,
    context: &Context<'_>,
    decision: &mut Decision,
) {
    let Some(new) = &subject.request.object else {
        return;
    };
    let old = subject.request.old_object.as_ref();
    if old.is_some_and(|old| is_same(old, new)) {
        return;
    }
    if !clean::decide(kind, subject, context, new, decision) {
        decide_as_a_whole(kind, subject, context, new, decision);
    }
}

/// Decides about an object of which not even its form is known.
pub(super) fn decide_as_a_whole(
    kind: Kind,
    subject: &Subject<'_>,
    context: &Context<'_>,
    new: &Object<'_>,
    decision: &mut Decision,
) {
    let old = subject.request.old_object.as_ref();
    let spec_mode = context.stance.cap(Mode::Enforce);
    let mut change = match Change::read(new, old, subject.namespace()) {
        Ok(change) => change,
        Err(cause) => return decision.find(Rule::Spec, spec_mode, Some(cause)),
    };
    if subject.door.mutates() {
        mend(kind, subject, context, &mut change, &mut decision.patch);
    }
    let Change { object, old } = &change;
    decision.find(Rule::Spec, spec_mode, trace::fault(subject));
    decision.find(Rule::Spec, spec_mode, examine(kind, object, old.as_ref()));
    policy::decide(kind, subject, context, &change, decision);
    if subject.door == Door::Validate && context.stance.rung.warns() {
        note_missing(subject, context, &references(kind, object), decision);
    }
}

/// Whether nothing changes that a rule is about. The API server writes both objects the same way, so text is enough; a
/// difference in text alone costs a closer look and nothing else.
fn is_same(old: &Object<'_>, new: &Object<'_>) -> bool {
    old.spec.map(RawValue::get) == new.spec.map(RawValue::get)
        && old.metadata.labels == new.metadata.labels
        && old.metadata.traceparent() == new.metadata.traceparent()
}

impl Change {
    /// Both trees, or what cannot be judged in the new one. An old one that cannot be read counts as none: it was stored
    /// before anyone judged it.
    fn read(new: &Object<'_>, old: Option<&Object<'_>>, namespace: &str) -> Result<Self, Cause> {
        let object = tree(new, namespace)?;
        let old = old.and_then(|old| stored(old, namespace).ok());
        Ok(Self { object, old })
    }

    /// Whether the spec is another one.
    pub(super) fn is_of_spec(&self) -> bool {
        let old = self.old.as_ref();
        old.is_none_or(|old| old.get("spec") != self.object.get("spec"))
    }
}

/// The part of an object that rules look at: who it is and what is wanted. Its namespace is that of the request, whether
/// or not it says so itself.
fn tree(object: &Object<'_>, namespace: &str) -> Result<Value, Cause> {
    let mut tree = Map::new();
    tree.insert("apiVersion".into(), (*object.api_version).into());
    tree.insert("kind".into(), (*object.kind).into());
    tree.insert("metadata".into(), metadata(&object.metadata, namespace));
    if let Some(raw) = object.spec {
        let spec = read(raw).map_err(|unreadable| {
            let at = Path::root("spec");
            Cause::new(&at, Reason::Malformed, unreadable.to_string())
        })?;
        tree.insert("spec".into(), spec);
    }
    Ok(Value::Object(tree))
}

/// The same of a stored object, and its status, which says whether a run has started.
fn stored(object: &Object<'_>, namespace: &str) -> Result<Value, Cause> {
    let mut tree = tree(object, namespace)?;
    if let (Value::Object(fields), Some(Ok(status))) = (&mut tree, object.status.map(read)) {
        fields.insert("status".into(), status);
    }
    Ok(tree)
}

fn metadata(metadata: &Metadata<'_>, namespace: &str) -> Value {
    let mut tree = Map::new();
    for (name, text) in [
        ("name", &*metadata.name),
        ("generateName", &*metadata.generate_name),
        ("namespace", namespace),
    ] {
        if !text.is_empty() {
            tree.insert(name.into(), text.into());
        }
    }
    if let Some(labels) = &metadata.labels {
        let labels: BTreeMap<&str, &str> = labels.iter().collect();
        tree.insert("labels".into(), json!(labels));
    }
    Value::Object(tree)
}

/// Fills in what is left out, if the spec changes: an update of something else leaves the object as it is.
fn mend(
    kind: Kind,
    subject: &Subject<'_>,
    context: &Context<'_>,
    change: &mut Change,
    operations: &mut Vec<PatchOperation>,
) {
    if !change.is_of_spec() {
        return;
    }
    for (path, value) in defaults(kind, &change.object) {
        patch::set(&mut change.object, path, value, operations);
    }
    if change.is_of_spec() {
        operations.extend(trace::stamp(subject, context.traceparent));
    }
}

/// Notes what the object refers to and nobody has seen.
pub(super) fn note_missing(
    subject: &Subject<'_>,
    context: &Context<'_>,
    references: &[Reference],
    decision: &mut Decision,
) {
    let missing = context.known.missing(subject.namespace(), references);
    decision.missing.extend(missing);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_in_the_namespace_of_its_request_whether_or_not_it_says_so() {
        for said in ["", r#", "namespace": "team""#] {
            let text = format!(r#"{{"metadata": {{"name": "x"{said}}}, "spec": {{}}}}"#);
            let object: Object<'_> = serde_json::from_str(&text).unwrap();
            let tree = tree(&object, "team").unwrap();
            assert_eq!(
                tree["metadata"],
                json!({"name": "x", "namespace": "team"}),
                "{text}"
            );
        }
    }
}
