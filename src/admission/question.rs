//! A review that nobody sent: what the API server would ask about an object that is in a file.

use serde_json::{Value, json};

use super::review::{API_VERSION, KIND};
use super::subject::Operation;
use crate::api::contract::VERSION;
use crate::api::kind::Kind;

/// The review of an object of this kind: it is made, or changed if there is an `old` one.
pub fn question(kind: Kind, namespace: &str, object: &Value, old: Option<&Value>) -> Value {
    let operation = match old {
        None => Operation::Create,
        Some(_) => Operation::Update,
    };
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "request": {
            "uid": "question",
            "kind": {"group": kind.group(), "version": VERSION, "kind": kind.as_str()},
            "resource": {"group": kind.group(), "version": VERSION, "resource": kind.plural()},
            "name": name.unwrap_or_default(),
            "namespace": namespace,
            "operation": operation.as_str(),
            "object": object,
            "oldObject": old,
            "dryRun": true,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::review::decode;
    use crate::admission::subject::{Door, Sorted, Target, sort};

    #[test]
    fn a_question_is_a_review_that_is_ours_and_in_harmony() {
        for kind in Kind::ALL {
            let object = json!({
                "apiVersion": kind.api_version(), "kind": kind.as_str(),
                "metadata": {"name": "demo", "namespace": "team"}, "spec": {},
            });
            for (old, operation) in [
                (None, Operation::Create),
                (Some(&object), Operation::Update),
            ] {
                let asked = question(kind, "team", &object, old).to_string();
                let request = decode(asked.as_bytes()).unwrap();
                let Sorted::Ours(subject) = sort(Door::Validate, request) else {
                    panic!("foreign: {asked}");
                };
                assert_eq!(subject.target, Target::Spec(kind));
                assert_eq!(subject.operation, operation);
                assert_eq!(subject.contradiction(), None, "{asked}");
            }
        }
    }
}
