//! The walk agrees with the API server, whose verdicts stand in the fixtures, and knows all that the schemas use.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::{Value, json};

use super::*;
use crate::api::crd::Rule;
use crate::api::kind::Kind;
use crate::api::kinds::tests::fixtures::{Fixture, objects};

fn root(kind: Kind) -> JSONSchemaProps {
    let version = crd::definition(kind).spec.versions.remove(0);
    version.schema.unwrap().open_api_v3_schema.unwrap()
}

/// Calls `visit` for the schema and every schema in it, with its path.
fn visit_all(path: &str, schema: &JSONSchemaProps, visit: &mut impl FnMut(&str, &JSONSchemaProps)) {
    visit(path, schema);
    for (name, property) in schema.properties.iter().flatten() {
        visit_all(&format!("{path}.{name}"), property, visit);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        visit_all(&format!("{path}[]"), items, visit);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
        visit_all(&format!("{path}{{}}"), values, visit);
    }
}

fn lines(causes: Causes) -> Vec<String> {
    let line = |cause: crate::api::object::cause::Cause| {
        format!("{} {}: {}", cause.field, cause.reason, cause.message)
    };
    causes.told().into_iter().map(line).collect()
}

fn faults(kind: Kind, spec: Value) -> Vec<String> {
    lines(conform_spec(kind, &json!({ "spec": spec }), None))
}

#[test]
fn nothing_in_a_schema_goes_unnoticed() {
    let known_formats = ["date-time", "uri", "int32", "int64"];
    let known_types = ["object", "array", "string", "integer", "number", "boolean"];
    for kind in Kind::ALL {
        visit_all("", &root(kind), &mut |path, schema| {
            let here = format!("{kind} {path}");
            let combined = [&schema.all_of, &schema.any_of, &schema.one_of];
            assert!(combined.iter().all(|list| list.is_none()), "{here}");
            assert!(
                schema.not.is_none() && schema.pattern_properties.is_none(),
                "{here}"
            );
            assert_eq!(
                (schema.min_items, schema.min_properties),
                (None, None),
                "{here}"
            );
            assert_eq!(
                (schema.unique_items, schema.multiple_of),
                (None, None),
                "{here}"
            );
            let exclusive = (schema.exclusive_minimum, schema.exclusive_maximum);
            assert_eq!(exclusive, (None, None), "{here}");
            let format = schema.format.as_deref();
            assert!(
                format.is_none_or(|format| known_formats.contains(&format)),
                "{here}"
            );
            let type_ = schema.type_.as_deref();
            assert!(
                type_.is_none_or(|type_| known_types.contains(&type_)),
                "{here}"
            );
            for word in schema.enum_.iter().flatten() {
                assert!(type_ == Some("string") && word.0.is_string(), "{here}");
            }
            let list = schema.x_kubernetes_list_type.as_deref();
            assert!(matches!(list, None | Some("map")), "{here}");
            let pattern = schema.pattern.as_deref();
            assert!(
                pattern.is_none_or(|text| regex::Regex::new(text).is_ok()),
                "{here}"
            );
            for name in schema.required.iter().flatten() {
                let properties = schema.properties.as_ref();
                assert!(
                    properties.is_some_and(|all| all.contains_key(name)),
                    "{here} {name}"
                );
            }
            let free = &schema.additional_properties;
            assert!(
                !matches!(free, Some(JSONSchemaPropsOrBool::Bool(_))),
                "{here}"
            );
        });
    }
}

#[test]
fn every_rule_of_a_definition_is_known_and_stands_where_it_is_looked_for() {
    for kind in Kind::ALL {
        visit_all("", &root(kind), &mut |path, schema| {
            for rule in schema.x_kubernetes_validations.iter().flatten() {
                let known = Rule::ALL.into_iter().find(|known| known.cel() == rule.rule);
                let known = known.unwrap_or_else(|| panic!("{kind} {path}: {}", rule.rule));
                let about_spec = matches!(known, Rule::SomeWork | Rule::OneSystemPrompt);
                assert_eq!(path.starts_with(".spec"), about_spec, "{kind} {path}");
                assert_eq!(path.is_empty(), !about_spec, "{kind} {path}");
            }
        });
    }
}

#[test]
fn every_full_object_and_every_example_conforms() {
    let mut all = objects("tests/fixtures/full");
    all.extend(objects("examples"));
    assert!(all.len() >= 2 * Kind::ALL.len());
    for Fixture { kind, object, .. } in all {
        let name = object["metadata"]["name"].clone();
        let none = Vec::<String>::new();
        assert_eq!(
            lines(conform_spec(kind, &object, None)),
            none,
            "{kind} {name}"
        );
        let unchanged = conform_status(kind, &object, Some(&object));
        assert_eq!(lines(unchanged), none, "{kind} {name}");
        assert_eq!(
            lines(conform_status(kind, &object, None)),
            none,
            "{kind} {name}"
        );
    }
}

/// The first line of each file says what the API server says about it; the lab holds that.
#[test]
fn what_the_api_server_refuses_is_refused_at_the_same_place() {
    let folders = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/wrong");
    let mut checked = 0;
    for folder in std::fs::read_dir(folders).unwrap() {
        let folder = folder.unwrap().path();
        for fixture in objects(folder.to_str().unwrap()) {
            let Fixture {
                first_line,
                kind,
                object,
            } = fixture;
            let expected = first_line.strip_prefix("# expect: ").unwrap();
            let place = expected.split(": ").next().unwrap();
            let found = lines(conform_spec(kind, &object, None));
            let at_place = |line: &String| {
                // The API server writes entries of a map like fields.
                let line = line
                    .replace("[number]", ".number")
                    .replace("[count]", ".count");
                line.starts_with(place)
            };
            assert!(found.iter().any(at_place), "{kind} {expected}: {found:?}");
            checked += 1;
        }
    }
    assert!(checked > 70, "only {checked} files were found");
}

#[test]
fn each_fault_says_what_would_be_right() {
    let run = |more: Value| {
        let mut spec = json!({
            "agentRef": {"name": "a"}, "implementationSpecRef": {"name": "i"}, "runtime": {"type": "job"},
        });
        for (name, value) in more.as_object().unwrap() {
            spec[name] = value.clone();
        }
        faults(Kind::AgentRun, spec)
    };
    for (more, expected) in [
        (
            json!({"runtime": {"type": "workfow"}}),
            r#"spec.runtime.type NotSupported: "workfow" is not known; did you mean "workflow"? allowed: "workflow", "job", "custom""#,
        ),
        (
            json!({"runtime": {"type": 3}}),
            r#"spec.runtime.type TypeMismatch: is a number; write one of "workflow", "job", "custom""#,
        ),
        (
            json!({"runtime": {}}),
            r#"spec.runtime.type Required: is missing; write one of "workflow", "job", "custom" (Which sort of runtime)"#,
        ),
        (
            json!({"agentRef": null}),
            "spec.agentRef Required: is missing; write an object (Agent that does the work)",
        ),
        (
            json!({"agentRef": "a"}),
            "spec.agentRef TypeMismatch: is a text; write an object",
        ),
        (
            json!({"parameters": {"count": 12}}),
            "spec.parameters[count] TypeMismatch: is a number; write a text, in quotes",
        ),
        (
            json!({"secrets": ["a", null]}),
            "spec.secrets[1] TypeMismatch: is null; write a text, in quotes",
        ),
        (
            json!({"secrets": {"a": 1}}),
            "spec.secrets TypeMismatch: is an object; write a list",
        ),
        (
            json!({"ttlSecondsAfterFinished": "60"}),
            "spec.ttlSecondsAfterFinished TypeMismatch: is a text; write a whole number, without quotes",
        ),
        (
            json!({"ttlSecondsAfterFinished": 1.5}),
            "spec.ttlSecondsAfterFinished TypeMismatch: is a number with a fraction; write a whole number, without quotes",
        ),
        (
            json!({"ttlSecondsAfterFinished": -1}),
            "spec.ttlSecondsAfterFinished OutOfRange: -1 is out of range; use 0 or more",
        ),
        (
            json!({"cancel": "yes"}),
            "spec.cancel TypeMismatch: is a text; write true or false, without quotes",
        ),
        (
            json!({"systemPrompt": "ä".repeat(16385)}),
            "spec.systemPrompt TooLong: has 16385 characters; use at most 16384",
        ),
        (
            json!({"implementationSpecRef": null}),
            "spec NothingToDo: there is nothing to do; set implementationSpecRef or implementation",
        ),
        (
            json!({"systemPrompt": "", "systemPromptRef": {"kind": "Secret", "name": "a", "key": "b"}}),
            "spec.systemPromptRef SystemPromptConflict: systemPrompt is set as well; keep one of the two",
        ),
    ] {
        assert_eq!(run(more), [expected]);
    }
}

#[test]
fn what_the_api_server_takes_is_taken() {
    let agent = |more: Value| {
        let mut spec = json!({"providerRef": {"name": "p"}});
        for (name, value) in more.as_object().unwrap() {
            spec[name] = value.clone();
        }
        faults(Kind::Agent, spec)
    };
    for right in [
        json!({"unknown": {"anything": [1]}}),
        json!({"env": null, "security": null}),
        json!({"config": {"a": null, "b": [1, {"c": true}]}}),
        json!({"defaults": {"timeoutSeconds": 3.0, "retryLimit": 5_000_000_000_i64}}),
        json!({"defaults": {"systemPrompt": "ä".repeat(16384)}}),
    ] {
        assert_eq!(agent(right.clone()), Vec::<String>::new(), "{right}");
    }
    assert_eq!(
        lines(conform_spec(Kind::Tool, &json!({}), None)),
        Vec::<String>::new()
    );
    let nothing = json!({"spec": null});
    assert_eq!(
        lines(conform_spec(Kind::Agent, &nothing, None)),
        ["spec Required: is missing; write an object (How the agent is run and what it may touch)"]
    );
}

#[test]
fn a_status_is_held_to_its_schema() {
    let condition = json!({
        "type": "Ready", "status": "True", "reason": "Fine", "message": "", "lastTransitionTime": "2026-02-08T10:00:00Z",
    });
    let with = |name: &str, value: Value| {
        let mut condition = condition.clone();
        condition[name] = value;
        json!({"status": {"conditions": [condition]}})
    };
    for (object, expected) in [
        (with("type", json!("Ready")), None),
        (
            with("status", json!("true")),
            Some(
                r#"status.conditions[0].status NotSupported: "true" is not known; did you mean "True"? allowed: "True", "False", "Unknown""#,
            ),
        ),
        (
            with("reason", json!("two words")),
            Some(
                r#"status.conditions[0].reason PatternMismatch: "two words" does not have the right form; it must match ^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"#,
            ),
        ),
        (
            with("lastTransitionTime", json!("now")),
            Some(
                r#"status.conditions[0].lastTransitionTime InvalidTime: "now" is not a time; write one like 2026-02-08T10:00:00Z"#,
            ),
        ),
        (
            json!({"status": {"conditions": [condition, condition]}}),
            Some(
                r#"status.conditions[1] Duplicate: "Ready" is already given at index 0; give each only once"#,
            ),
        ),
        (json!({"status": null}), None),
    ] {
        let found = lines(conform_status(Kind::Agent, &object, None));
        assert_eq!(found, Vec::from_iter(expected.map(str::to_owned)));
    }
}

#[test]
fn what_an_update_leaves_as_it_was_is_forgiven() {
    let old = json!({"spec": {
        "providerRef": {}, "env": [{"name": "A"}, {"name": "B", "value": "b"}],
        "defaults": {"timeoutSeconds": -1, "retryLimit": 0},
    }});
    let change = |pointer: &str, value: Value| {
        let mut new = old.clone();
        *new.pointer_mut(pointer).unwrap() = value;
        let causes = conform_spec(Kind::Agent, &new, Some(&old));
        causes
            .iter()
            .map(|cause| cause.field.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(lines(conform_spec(Kind::Agent, &old, None)).len(), 3);
    for (row, pointer, value, expected) in [
        ("nothing", "/spec/defaults/retryLimit", json!(0), vec![]),
        ("a neighbour", "/spec/defaults/retryLimit", json!(1), vec![]),
        (
            "the value itself",
            "/spec/defaults/timeoutSeconds",
            json!(-2),
            vec!["spec.defaults.timeoutSeconds"],
        ),
        (
            "an entry of the same list: entries without a key cannot be followed",
            "/spec/env/1/value",
            json!("c"),
            vec!["spec.env[0].value"],
        ),
    ] {
        assert_eq!(change(pointer, value), expected, "{row}");
    }
}

#[test]
fn entries_with_a_key_are_followed_wherever_they_stand() {
    let bad = json!({"type": "Old", "status": "maybe", "reason": "R", "message": "", "lastTransitionTime": "2026-02-08T10:00:00Z"});
    let good = json!({"type": "New", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-02-08T10:00:00Z"});
    let old = json!({"status": {"conditions": [bad]}});
    let new = json!({"status": {"conditions": [good, bad]}});
    assert_eq!(
        lines(conform_status(Kind::Agent, &new, Some(&old))),
        Vec::<String>::new()
    );
    assert_eq!(lines(conform_status(Kind::Agent, &new, None)).len(), 1);
}

#[test]
fn a_huge_object_of_tiny_faults_is_told_in_short() {
    let secrets = vec![json!(1); 100_000];
    let spec = json!({"agentRef": {"name": "a"}, "implementation": {}, "runtime": {"type": "job"}, "secrets": secrets});
    assert_eq!(faults(Kind::AgentRun, spec).len(), 101);
}
