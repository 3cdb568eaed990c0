//! Defaults are seen, are the documented ones, are filled in once, and make nothing wrong.

use serde_json::{Value, json};

use super::*;
use crate::api::kinds::tests::fixtures::{self, Fixture};
use crate::api::object::examine::examine;

/// The object with a value put in.
fn filled(mut object: Value, place: FieldPath, value: Value) -> Value {
    let mut here = &mut object;
    for segment in place {
        match segment {
            Segment::Field(name) | Segment::Key(name) => here = &mut here[name],
            Segment::Index(index) => here = &mut here[index],
        }
    }
    *here = value;
    object
}

fn with_all(kind: Kind, object: &Value) -> Value {
    let wanted = defaults(kind, object).into_iter();
    wanted.fold(object.clone(), |object, (place, value)| {
        filled(object, place, value)
    })
}

/// Every full object and every example.
fn objects() -> Vec<Fixture> {
    let mut all = fixtures::objects("tests/fixtures/full");
    all.extend(fixtures::objects("examples"));
    all
}

#[test]
fn absent_fields_show_what_they_stand_for() {
    for (row, kind, spec, expected) in [
        (
            "a policy about a repository",
            Kind::AgentRun,
            json!({"vcsPolicy": {}}),
            vec![
                r#"spec.vcsPolicy.required=false"#,
                r#"spec.vcsPolicy.mode="read-write""#,
            ],
        ),
        ("no policy stays none", Kind::AgentRun, json!({}), vec![]),
        (
            "a claim",
            Kind::Workspace,
            json!({"size": "1Gi"}),
            vec![r#"spec.accessModes=["ReadWriteOnce"]"#],
        ),
        (
            "what is given stays",
            Kind::Workspace,
            json!({"accessModes": []}),
            vec![],
        ),
        (
            "a null is the API server's",
            Kind::Workspace,
            json!({"accessModes": null}),
            vec![],
        ),
        (
            "a parent of the wrong type",
            Kind::AgentRun,
            json!({"vcsPolicy": "none"}),
            vec![],
        ),
        (
            "entries of a secret",
            Kind::VersionControlProvider,
            json!({"auth": {"token": {"secretRef": {"name": "a"}}, "ssh": {}}}),
            vec![r#"spec.auth.token.secretRef.key="token""#],
        ),
    ] {
        let object = json!({ "spec": spec });
        let wanted = defaults(kind, &object).into_iter();
        let wanted: Vec<String> = wanted
            .map(|(place, value)| format!("{place}={value}"))
            .collect();
        assert_eq!(wanted, expected, "{row}");
    }
    assert_eq!(defaults(Kind::Workspace, &json!({})), []);
}

#[test]
fn defaults_are_filled_in_once_and_make_nothing_wrong() {
    for Fixture { kind, object, .. } in objects() {
        for (path, _) in table(kind) {
            let mut less = object.clone();
            let (field, parents) = path.split_last().unwrap();
            let parents: String = parents.iter().map(|name| format!("/{name}")).collect();
            if let Some(Value::Object(parent)) = less.pointer_mut(&format!("/spec{parents}")) {
                parent.remove(*field);
                assert_ne!(defaults(kind, &less), [], "{kind} {path:?}");
            }
            let more = with_all(kind, &less);
            assert_eq!(defaults(kind, &more), [], "{kind} {path:?}");
            let before = examine(kind, &less, None);
            assert_eq!(examine(kind, &more, None), before, "{kind} {path:?}");
        }
    }
}
