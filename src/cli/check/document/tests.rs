use serde_json::json;

use super::*;
use crate::api::object::cause::Path;

fn one(text: &str) -> Node {
    let mut all = documents(text);
    assert_eq!(all.len(), 1, "{text}");
    all.remove(0).unwrap()
}

fn at(node: &Node, path: &[&str]) -> (usize, usize, usize) {
    let segments = path.iter().map(|part| match part.parse() {
        Ok(index) => Segment::Index(index),
        Err(_) => Segment::Field((*part).to_owned()),
    });
    let Place {
        line,
        column,
        width,
    } = node.find(&segments.collect());
    (line, column, width)
}

const RUN: &str = "\
# a comment
kind: AgentRun
spec:
  agentRef: {name: coder}
  workload:
    image: \"my runner\"
    env:
    - name: A
      value: ä b
  secrets: []
";

#[test]
fn every_value_knows_where_it_stands() {
    let node = one(RUN);
    for (path, expected) in [
        (&["kind"][..], (2, 7, 8)),
        (&["spec"], (3, 1, 4)),
        (&["spec", "agentRef"], (4, 3, 8)),
        (&["spec", "agentRef", "name"], (4, 20, 5)),
        (&["spec", "workload", "image"], (6, 12, 11)),
        (&["spec", "workload", "env", "0", "value"], (9, 14, 3)),
        (&["spec", "secrets"], (10, 3, 7)),
    ] {
        assert_eq!(at(&node, path), expected, "{path:?}");
    }
}

#[test]
fn what_is_not_there_is_at_what_would_hold_it() {
    let node = one(RUN);
    assert_eq!(at(&node, &["spec", "runtime", "type"]), (3, 1, 4));
    assert_eq!(at(&node, &["spec", "workload", "tag"]), (5, 3, 8));
    assert_eq!(at(&node, &["spec", "secrets", "3"]), (10, 3, 7));
    assert_eq!(at(&node, &["status"]).0, 2);
}

#[test]
fn words_are_read_as_kubectl_reads_them() {
    let node =
        one("{a: yes, b: 0644, c: \"yes\", d: ~, e: 1.5, f: -3, g: 1e3, h: 2026-01-01, 1: x}");
    assert_eq!(
        node.value(),
        json!({"a": true, "b": 420, "c": "yes", "d": null, "e": 1.5, "f": -3, "g": 1000.0, "h": "2026-01-01", "1": "x"})
    );
}

#[test]
fn a_text_has_many_documents_and_json_is_one_too() {
    let all = documents("---\n# nothing\n---\na: 1\n---\n\n---\nb: 2\n...\n");
    let values: Vec<Value> = all.into_iter().map(|node| node.unwrap().value()).collect();
    assert_eq!(values, [json!({"a": 1}), json!({"b": 2})]);
    let node = one("{\n  \"spec\": {\n    \"image\": \"x\"\n  }\n}\n");
    assert_eq!(at(&node, &["spec", "image"]), (3, 14, 3));
}

#[test]
fn an_alias_stands_where_it_is_used() {
    let node = one("a: &x {image: one}\nb: *x\nc:\n  <<: *x\n  d: 1\n");
    assert_eq!(at(&node, &["b", "image"]).0, 2);
    assert_eq!(node.value()["c"], json!({"image": "one", "d": 1}));
}

#[test]
fn a_document_that_cannot_be_read_hides_no_other() {
    let all = documents("a: 1\na: 2\n---\nb: 2\n");
    assert_eq!(all.len(), 2);
    let wrong = all[0].as_ref().unwrap_err();
    assert_eq!(wrong.place.line, 2, "{wrong:?}");
    assert!(wrong.message.contains("duplicate"), "{wrong:?}");
    assert_eq!(all[1].as_ref().unwrap().value(), json!({"b": 2}));
    let broken = documents("a: [1, 2\nb: {\n");
    assert!(broken[0].is_err());
}

#[test]
fn a_path_of_a_rule_finds_its_place() {
    let spec = Path::root("spec");
    let agent = spec.field("agentRef");
    let place = one(RUN).find(&(&agent.field("name")).into());
    assert_eq!((place.line, place.column), (4, 20));
}
