use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::fixtures::{job, object, review, stored};
use crate::review::*;
use agents::api::kind::Kind;

fn bytes(review: &Value) -> Vec<u8> {
    serde_json::to_vec(review).unwrap()
}

fn tool() -> Value {
    object(Kind::Tool, json!({"image": "x", "command": ["y"]}))
}

#[test]
fn everything_that_decisions_look_at_is_found() {
    let old = stored(Kind::Tool, json!({"image": "x"}));
    let body = bytes(&review("UPDATE", Some(&tool()), Some(&old)));
    let request = decode(&body).unwrap();
    assert_eq!(&*request.uid, "705ab4f5");
    assert_eq!(&*request.resource.resource, "tools");
    assert_eq!(&*request.operation, "UPDATE");
    assert_eq!(request.dry_run, Some(false));
    assert!(request.user_info.is("jane@example.com"));
    assert!(request.user_info.is("system:authenticated"));
    assert!(!request.user_info.is("system:masters"));
    let (new, old) = (request.object.unwrap(), request.old_object.unwrap());
    assert_eq!(new.spec.unwrap().get(), r#"{"command":["y"],"image":"x"}"#);
    assert_eq!(&*old.metadata.uid, "u-1");
    assert_eq!(old.metadata.generation, Some(2));
}

#[test]
fn of_all_annotations_only_ours_are_kept() {
    let mut job = job();
    job["metadata"]["annotations"] = json!({
        "kubectl.kubernetes.io/last-applied-configuration": "{\"a\": \"\\n\"}",
        "agents.proompteng.ai/traceparent": "t",
        "agents.proompteng.ai/outcome-recorded": "2026-01-01T00:00:00Z",
    });
    let body = bytes(&review("DELETE", None, Some(&job)));
    let job = decode(&body).unwrap().old_object.unwrap();
    assert_eq!(job.metadata.traceparent().map(|text| &**text), Some("t"));
    assert!(job.metadata.outcome_recorded());
    assert_eq!(&*job.metadata.owner_references.unwrap()[0].kind, "AgentRun");
}

#[test]
fn labels_are_in_order_however_they_come() {
    let text = r#"{"labels": {"b": "2", "c": "3", "a": "1"}}"#;
    let metadata: Metadata<'_> = serde_json::from_str(text).unwrap();
    let labels: Vec<_> = metadata.labels.iter().flat_map(Labels::iter).collect();
    assert_eq!(labels, [("a", "1"), ("b", "2"), ("c", "3")]);
    assert_eq!(
        (metadata.label("c"), metadata.label("d")),
        (Some("3"), None)
    );
}

#[test]
fn what_is_no_review_is_named() {
    let whole = String::from_utf8(bytes(&review("CREATE", Some(&tool()), None))).unwrap();
    let asked = review("CREATE", Some(&tool()), None)["request"].clone();
    let request = format!(r#""request":{asked}"#);
    let labels = r#""labels":{"team":"a","app":"x","team":"b"},"name":"demo""#;
    let labelled = whole.replace(r#""name":"demo""#, labels);
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("empty", vec![], "EOF while parsing"),
        ("no JSON", b"hello".to_vec(), "expected value"),
        (
            "cut off",
            whole.as_bytes()[..whole.len() / 2].to_vec(),
            "EOF while parsing",
        ),
        (
            "not UTF-8",
            b"{\"kind\": \"\xff\xfe\"}".to_vec(),
            "invalid unicode",
        ),
        (
            "another kind",
            whole.replace("AdmissionReview", "Pod").into(),
            "the body is \"Pod\"",
        ),
        (
            "an older version",
            whole.replace("k8s.io/v1\"", "k8s.io/v1beta1\"").into(),
            "k8s.io/v1beta1",
        ),
        ("no uid", whole.replace("705ab4f5", "").into(), "no uid"),
        (
            "no request",
            br#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}"#.to_vec(),
            "missing field `request`",
        ),
        (
            "two requests",
            whole.replacen('{', &format!("{{{request},"), 1).into(),
            "duplicate field `request`",
        ),
        (
            "two uids",
            whole.replace(r#""uid":"#, r#""uid":"x","uid":"#).into(),
            "duplicate field `uid`",
        ),
        (
            "two labels of one key",
            labelled.into(),
            r#"the label "team" stands twice"#,
        ),
        ("a list", b"[]".to_vec(), "invalid"),
        (
            "something behind it",
            format!("{whole}x").into(),
            "trailing characters",
        ),
    ];
    for (row, body, expected) in cases {
        let error = decode(&body).expect_err(row).to_string();
        assert!(error.contains(expected), "{row}: {error}");
    }
}

#[test]
fn the_uid_is_found_however_broken_the_rest_is() {
    let whole = bytes(&review("CREATE", Some(&tool()), None));
    for end in 0..whole.len() {
        let found = uid_of(&whole[..end]);
        assert!(
            found.is_none() || found.as_deref() == Some("705ab4f5"),
            "{end}"
        );
    }
    assert_eq!(uid_of(&whole).as_deref(), Some("705ab4f5"));
    let cut = br#"{"request":{"uid":"a","object":{"spec":"#;
    assert_eq!(uid_of(cut).as_deref(), Some("a"));
    for none in [
        &b""[..],
        b"[]",
        b"{\"request\": 1}",
        b"{\"request\": {\"uid\": 1}}",
    ] {
        assert_eq!(uid_of(none), None);
    }
}

#[test]
fn a_part_that_two_readers_could_read_differently_is_not_read() {
    let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
    assert_eq!(
        read(&raw(r#"{"a": [1, -2, 2.5, "x", null, true], "b": {}}"#)).unwrap(),
        json!({"a": [1, -2, 2.5, "x", null, true], "b": {}})
    );
    let twice = read(&raw(r#"{"a": {"image": 1, "image": 2}}"#)).unwrap_err();
    assert!(
        twice
            .to_string()
            .contains(r#"the key "image" stands twice"#),
        "{twice}"
    );
    let deep = read(&raw(&format!("{}{}", "[".repeat(500), "]".repeat(500)))).unwrap_err();
    assert!(deep.to_string().contains("recursion limit"), "{deep}");
    let zeros = read(&raw(&format!("[{}0]", "0,".repeat(100_000)))).unwrap_err();
    assert!(
        zeros.to_string().contains("holds too many values"),
        "{zeros}"
    );
}

#[test]
fn a_review_whose_lists_have_no_end_is_not_read() {
    let workspace = object(Kind::Workspace, json!({"size": "1Gi"}));
    let many = |part: &str, value: Value| {
        let mut review = review("CREATE", Some(&workspace), None);
        *review.pointer_mut(part).unwrap() = value;
        serde_json::to_vec(&review).unwrap()
    };
    let labels = (0..50_000).map(|key| (format!("k{key}"), json!("")));
    let metadata = |field: &str, value: Value| json!({"name": "x", field: value});
    let at = "/request/object/metadata";
    for body in [
        many("/request/userInfo", json!({"groups": vec![""; 10_001]})),
        many(
            at,
            metadata("ownerReferences", json!(vec![json!({}); 10_001])),
        ),
        many(at, metadata("labels", Value::Object(labels.collect()))),
    ] {
        let error = decode(&body).unwrap_err().to_string();
        assert!(error.contains("holds too many values"), "{error}");
    }
    assert!(decode(&many("/request/userInfo", json!({"groups": null}))).is_ok());
    assert!(decode(&many(at, metadata("ownerReferences", json!(null)))).is_ok());
}
