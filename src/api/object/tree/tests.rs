use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::api::kinds::AgentRunSpec;

#[test]
fn a_tree_says_what_a_value_says() {
    let text = r#"{"b": [1, -2, 2.5, "x", null, true], "a": {"t": "tab\t", "on": false}, "c": {}}"#;
    let (tree, value) = (
        Tree::parse(text).unwrap(),
        serde_json::from_str::<Value>(text).unwrap(),
    );
    assert_eq!(Value::deserialize(&tree).unwrap(), value);
    for field in ["a", "b", "c", "d"] {
        assert_eq!(tree.field(field).is_some(), value.field(field).is_some());
    }
    let inner = tree.field("a").unwrap();
    assert_eq!(inner.field("t").unwrap().text(), Some("tab\t"));
    assert_eq!(inner.field("on").unwrap().truth(), Some(false));
    assert_eq!(tree.field("b").unwrap().entries().len(), 6);
    assert_eq!(
        (tree.text(), tree.truth(), tree.entries()),
        (None, None, &[][..])
    );
}

#[test]
fn texts_are_borrowed_unless_they_are_escaped() {
    let tree = Tree::parse(r#"{"plain": "x", "tab": "\t"}"#).unwrap();
    let Tree::Fields(fields) = tree else {
        panic!("no object")
    };
    let borrowed = fields.iter().map(|(name, value)| {
        let Tree::Text(text) = value else {
            panic!("no text")
        };
        (
            matches!(name, Cow::Borrowed(_)),
            matches!(text, Cow::Borrowed(_)),
        )
    });
    assert_eq!(borrowed.collect::<Vec<_>>(), [(true, true), (true, false)]);
}

#[test]
fn what_two_readers_could_read_differently_is_not_read() {
    for (text, problem) in [
        (
            r#"{"a": {"image": 1, "image": 2}}"#,
            "the key \"image\" stands twice",
        ),
        (r#"{"b": 1, "a": 2, "b": 3}"#, "the key \"b\" stands twice"),
        (r#"{"a": 1} x"#, "trailing characters"),
        (r#"{"a": "#, "EOF"),
    ] {
        let error = Tree::parse(text).unwrap_err().to_string();
        assert!(error.contains(problem), "{text}: {error}");
    }
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    let error = Tree::parse(&deep).unwrap_err().to_string();
    assert!(error.contains("recursion limit"), "{error}");
}

#[test]
fn what_would_take_too_much_memory_is_not_read() {
    let list = |entry: &str, count: usize| format!("[{}]", vec![entry; count].join(","));
    let keys = |count: usize| {
        let fields: Vec<String> = (0..count).map(|key| format!(r#""{key:05}":0"#)).collect();
        format!("{{{}}}", fields.join(","))
    };
    let text = |length: usize| format!("[\"{}\"]", "x".repeat(length));
    for (some, too_many) in [
        (list("0", 60_000), list("0", 70_000)),
        (list("{}", 60_000), list("{}", 70_000)),
        (list("\"\"", 40_000), list("\"\"", 50_000)),
        (list(r#"{"a":0}"#, 4_000), list(r#"{"a":0}"#, 5_000)),
        (keys(20_000), keys(30_000)),
        (text(3 << 20), text(4 << 20)),
    ] {
        assert!(Tree::parse(&some).is_ok(), "{}", &some[..20]);
        let error = Tree::parse(&too_many).unwrap_err().to_string();
        assert!(error.contains("holds too many values"), "{error}");
    }
}

#[test]
fn many_keys_in_the_wrong_order_take_no_time() {
    let fields = (0..20_000).rev().map(|key| format!(r#""{key:05}":0"#));
    let text = format!("{{{}}}", fields.collect::<Vec<_>>().join(","));
    let Tree::Fields(fields) = Tree::parse(&text).unwrap() else {
        panic!("no object")
    };
    assert!(fields.is_sorted_by(|(one, _), (next, _)| one < next));
}

#[test]
fn types_are_read_from_either_alike() {
    let full = json!({
        "agentRef": {"name": "coder"}, "runtime": {"type": "job", "config": {"backoffLimit": 1, "x": [1.5]}},
        "implementation": {"inline": {"text": "do \"it\"", "contract": {"requiredKeys": ["repository"]}}},
        "parameters": {"a": "b"}, "secrets": ["s"], "ttlSecondsAfterFinished": 0, "systemPrompt": null,
        "workload": {"image": "i", "resources": {"limits": {"cpu": "1", "memory": 128}}},
    });
    for (field, wrong) in [
        ("none", json!(1)),
        ("runtime", json!({"type": "jbo"})),
        ("runtime", json!([])),
        ("secrets", json!("s")),
        ("ttlSecondsAfterFinished", json!("0")),
        ("agentRef", json!(null)),
        ("parameters", json!({"a": 1})),
    ] {
        let mut spec = full.clone();
        spec[field] = wrong;
        let text = spec.to_string();
        let tree = Tree::parse(&text).unwrap();
        let (of_tree, of_value) = (
            AgentRunSpec::deserialize(&tree),
            AgentRunSpec::deserialize(&spec),
        );
        assert_eq!(of_tree.is_ok(), of_value.is_ok(), "{field}: {of_tree:?}");
        if let (Ok(of_tree), Ok(of_value)) = (of_tree, of_value) {
            assert_eq!(json!(of_tree), json!(of_value));
        }
    }
}
