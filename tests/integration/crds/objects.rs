//! The objects that other tests apply: full ones set every field, wrong ones are well-formed, examples line up.

use super::schema;
use agents::api::kind::Kind;
use agents::api::kinds;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;
use support::fixtures;

/// Every path that the object sets, in the notation of the field list.
fn paths(object: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for part in ["spec", "status"] {
        if !object[part].is_null() {
            collect(&object[part], part, &mut found);
        }
    }
    found
}

fn collect(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    found.insert(path.to_owned());
    for (name, value) in value.as_object().into_iter().flatten() {
        collect(value, &format!("{path}.{name}"), found);
    }
    for value in value.as_array().into_iter().flatten() {
        collect(value, &format!("{path}[]"), found);
    }
}

/// Fields of the object that the API server would drop because no schema names them.
fn pruned(value: &Value, schema: &Value, path: &str) -> Vec<String> {
    if schema["x-kubernetes-preserve-unknown-fields"] == Value::Bool(true)
        || schema["additionalProperties"].is_object()
    {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        match schema["properties"].get(name) {
            None => found.push(path),
            Some(property) => found.extend(pruned(value, property, &path)),
        }
    }
    for value in value.as_array().into_iter().flatten() {
        found.extend(pruned(value, &schema["items"], &format!("{path}[]")));
    }
    found
}

fn pruned_parts(object: &Value, kind: Kind) -> Vec<String> {
    let schema = schema::of(kind);
    ["spec", "status"]
        .into_iter()
        .flat_map(|part| pruned(&object[part], &schema["properties"][part], part))
        .collect()
}

/// What remains of an object that is read into the Rust type of its kind and written again.
fn through_the_type(kind: Kind, object: &Value) -> Value {
    fn through<T: DeserializeOwned + Serialize>(object: &Value) -> Value {
        let read: T = serde_json::from_value(object.clone()).unwrap();
        serde_json::to_value(read).unwrap()
    }
    match kind {
        Kind::Agent => through::<kinds::Agent>(object),
        Kind::AgentRun => through::<kinds::AgentRun>(object),
        Kind::AgentProvider => through::<kinds::AgentProvider>(object),
        Kind::ImplementationSpec => through::<kinds::ImplementationSpec>(object),
        Kind::ImplementationSource => through::<kinds::ImplementationSource>(object),
        Kind::VersionControlProvider => through::<kinds::VersionControlProvider>(object),
        Kind::Memory => through::<kinds::Memory>(object),
        Kind::Orchestration => through::<kinds::Orchestration>(object),
        Kind::OrchestrationRun => through::<kinds::OrchestrationRun>(object),
        Kind::Tool => through::<kinds::Tool>(object),
        Kind::ToolRun => through::<kinds::ToolRun>(object),
        Kind::ApprovalPolicy => through::<kinds::ApprovalPolicy>(object),
        Kind::Budget => through::<kinds::Budget>(object),
        Kind::SecretBinding => through::<kinds::SecretBinding>(object),
        Kind::Signal => through::<kinds::Signal>(object),
        Kind::SignalDelivery => through::<kinds::SignalDelivery>(object),
        Kind::Schedule => through::<kinds::Schedule>(object),
        Kind::Artifact => through::<kinds::Artifact>(object),
        Kind::Workspace => through::<kinds::Workspace>(object),
    }
}

fn kind_of(object: &Value) -> Option<Kind> {
    Kind::ALL.into_iter().find(|kind| {
        object["kind"] == kind.as_str()
            && object["apiVersion"] == format!("{}/v1alpha1", kind.group())
    })
}

#[test]
fn full_objects_set_every_field_of_their_kind() {
    for kind in Kind::ALL {
        let set: BTreeSet<String> = fixtures::full(kind)
            .unwrap()
            .iter()
            .flat_map(paths)
            .collect();
        let missing: Vec<_> = schema::fields(&schema::of(kind))
            .into_keys()
            .filter(|path| !set.contains(path))
            .collect();
        assert_eq!(missing, Vec::<String>::new(), "{kind}");
    }
}

#[test]
fn full_objects_come_out_of_the_rust_types_as_they_went_in() {
    for kind in Kind::ALL {
        for object in fixtures::full(kind).unwrap() {
            assert_eq!(kind_of(&object), Some(kind));
            assert_eq!(through_the_type(kind, &object), object);
            assert_eq!(pruned_parts(&object, kind), Vec::<String>::new());
        }
    }
}

#[test]
fn wrong_objects_are_at_least_three_per_kind_and_of_that_kind() {
    for kind in Kind::ALL {
        let wrong = fixtures::wrong(kind).unwrap();
        assert!(wrong.len() >= 3, "{kind} has {} wrong objects", wrong.len());
        for wrong in wrong {
            assert_eq!(kind_of(&wrong.object), Some(kind), "{}", wrong.file);
        }
    }
}

#[test]
fn examples_cover_every_kind_and_lose_nothing() {
    let mut covered = BTreeSet::new();
    for (path, objects) in fixtures::examples().unwrap() {
        for object in objects {
            let Some(kind) = kind_of(&object) else {
                continue; // A Secret or ConfigMap that the story needs.
            };
            covered.insert(kind);
            assert_eq!(
                pruned_parts(&object, kind),
                Vec::<String>::new(),
                "{}",
                path.display()
            );
            assert_eq!(
                through_the_type(kind, &object),
                object,
                "{}",
                path.display()
            );
        }
    }
    assert_eq!(covered, BTreeSet::from(Kind::ALL));
}

/// Kind and name of every object that the value refers to.
fn references(value: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (field, value) in value.as_object().into_iter().flatten() {
        let kind = match field.as_str() {
            "providerRef" => "AgentProvider",
            "agentRef" => "Agent",
            "implementationSpecRef" => "ImplementationSpec",
            "memoryRef" => "Memory",
            "vcsRef" => "VersionControlProvider",
            "toolRef" => "Tool",
            "orchestrationRef" => "Orchestration",
            "policyRef" => "ApprovalPolicy",
            "signalRef" => "Signal",
            "secretRef" | "secrets" | "allowedSecrets" => "Secret",
            _ => value["kind"].as_str().unwrap_or_default(),
        };
        let names = match value {
            Value::Array(names) => names.iter().collect(),
            Value::Object(object) => object.get("name").into_iter().collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => vec![value],
        };
        if kind.is_empty() {
            found.extend(references(value));
        } else {
            found.extend(
                names
                    .into_iter()
                    .filter_map(Value::as_str)
                    .map(|name| (kind.to_owned(), name.to_owned())),
            );
        }
    }
    for value in value.as_array().into_iter().flatten() {
        found.extend(references(value));
    }
    found
}

#[test]
fn examples_refer_only_to_each_other() {
    let objects: Vec<Value> = fixtures::examples()
        .unwrap()
        .into_iter()
        .flat_map(|(_, objects)| objects)
        .collect();
    let there: BTreeSet<_> = objects
        .iter()
        .filter_map(|object| {
            Some((
                object["kind"].as_str()?.to_owned(),
                object["metadata"]["name"].as_str()?.to_owned(),
            ))
        })
        .collect();
    let meant: BTreeSet<_> = objects
        .iter()
        .flat_map(|object| references(&object["spec"]))
        .collect();
    assert!(meant.len() > 12, "the references were not found: {meant:?}");
    assert_eq!(
        meant.difference(&there).collect::<Vec<_>>(),
        Vec::<&(String, String)>::new()
    );
}
