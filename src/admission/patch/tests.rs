use json_patch::Patch;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn path(segments: &[&str]) -> FieldPath {
    let field = |name: &&str| match name.parse() {
        Ok(index) => Segment::Index(index),
        Err(_) => Segment::Field((*name).to_owned()),
    };
    segments.iter().map(field).collect()
}

#[test]
fn a_value_is_set_with_one_operation_or_none() {
    for (row, object, at, expected) in [
        (
            "absent",
            json!({"a": {}}),
            vec!["a", "b"],
            json!([{"op": "add", "path": "/a/b", "value": 1}]),
        ),
        (
            "parents absent",
            json!({"x": 1}),
            vec!["a", "b/c", "d"],
            json!([{"op": "add", "path": "/a", "value": {"b/c": {"d": 1}}}]),
        ),
        (
            "slash and tilde",
            json!({"a": {}}),
            vec!["a", "b/~c"],
            json!([{"op": "add", "path": "/a/b~1~0c", "value": 1}]),
        ),
        (
            "another value",
            json!({"a": {"b": null}}),
            vec!["a", "b"],
            json!([{"op": "replace", "path": "/a/b", "value": 1}]),
        ),
        (
            "in a list",
            json!({"a": [{}, {}]}),
            vec!["a", "1", "b"],
            json!([{"op": "add", "path": "/a/1/b", "value": 1}]),
        ),
        (
            "the same value",
            json!({"a": {"b": 1}}),
            vec!["a", "b"],
            json!([]),
        ),
        ("no such entry", json!({"a": []}), vec!["a", "0"], json!([])),
        ("no object", json!({"a": 5}), vec!["a", "b"], json!([])),
        ("no root", json!(5), vec!["a"], json!([])),
        ("a list to make up", json!({}), vec!["a", "0"], json!([])),
    ] {
        let mut changed = object.clone();
        let mut operations = Vec::new();
        set(&mut changed, path(&at), json!(1), &mut operations);
        assert_eq!(json!(operations), expected, "{row}");
        let mut patched = object;
        json_patch::patch(&mut patched, &operations).unwrap();
        assert_eq!(patched, changed, "{row}");
        let mut again = Vec::new();
        set(&mut changed, path(&at), json!(1), &mut again);
        assert_eq!(again, [], "{row}");
    }
}

#[test]
fn a_difference_names_only_what_differs() {
    let from = json!({"same": {"x": [1, 2]}, "gone": 1, "list": [{"a": 1, "b": 2}], "longer": [1]});
    let to = json!({"same": {"x": [1, 2]}, "new": 1, "list": [{"a": 1, "b": 3}], "longer": [1, 2]});
    assert_eq!(
        json!(difference("status", Some(&from), Some(&to))),
        json!([
            {"op": "remove", "path": "/status/gone"},
            {"op": "replace", "path": "/status/list/0/b", "value": 3},
            {"op": "replace", "path": "/status/longer", "value": [1, 2]},
            {"op": "add", "path": "/status/new", "value": 1},
        ])
    );
}

fn any_tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..3i64).prop_map(Value::from),
        "[a-c/~]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c/~]{1,2}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_difference_leads_from_one_tree_to_the_other_and_no_further(
        from in prop::option::of(any_tree()),
        to in prop::option::of(any_tree()),
    ) {
        let holding = |tree: &Option<Value>| match tree {
            Some(tree) => json!({"status": tree, "spec": {"kept": true}}),
            None => json!({"spec": {"kept": true}}),
        };
        let mut object = holding(&from);
        let operations = difference("status", from.as_ref(), to.as_ref());
        prop_assert_eq!(operations.is_empty(), from == to);
        // Through JSON, as the API server reads it.
        let patch: Patch = serde_json::from_value(json!(operations)).unwrap();
        json_patch::patch(&mut object, &patch).unwrap();
        prop_assert_eq!(&object, &holding(&to));
    }
}
