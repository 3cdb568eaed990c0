use serde_json::{Value, json};

use agents::api::kind::Kind;

use crate::fixtures::{job, object, review, status_review, stored};
use crate::review::decode;
use crate::subject::*;

fn tool() -> Value {
    object(Kind::Tool, json!({"image": "x"}))
}

/// What a review turns out to be about: target and operation, if it is ours.
fn sorted(door: Door, review: &Value) -> Option<(Target, Operation)> {
    let body = serde_json::to_vec(review).unwrap();
    match sort(door, decode(&body).unwrap()) {
        Sorted::Ours(subject) => Some((subject.target, subject.operation)),
        Sorted::Foreign(_) => None,
    }
}

/// The field in which a review contradicts itself.
fn contradiction(door: Door, review: &Value) -> Option<String> {
    let body = serde_json::to_vec(review).unwrap();
    let Sorted::Ours(subject) = sort(door, decode(&body).unwrap()) else {
        panic!("foreign: {review}");
    };
    subject.contradiction().map(|cause| cause.field.to_string())
}

#[test]
fn every_door_has_its_own_reviews() {
    use Operation::{Create, Delete, Update};
    let (new, old) = (tool(), stored(Kind::Tool, json!({"image": "x"})));
    let create = review("CREATE", Some(&new), None);
    let update = review("UPDATE", Some(&new), Some(&old));
    let status = status_review(&new, &old);
    let delete = review("DELETE", None, Some(&job()));
    let delete_tool = review("DELETE", None, Some(&old));
    for door in Door::ALL {
        let spec = matches!(door, Door::Mutate | Door::Validate);
        let target = |wanted: bool, target, operation| wanted.then_some((target, operation));
        let of_spec = Target::Spec(Kind::Tool);
        assert_eq!(
            sorted(door, &create),
            target(spec, of_spec, Create),
            "{door:?}"
        );
        assert_eq!(
            sorted(door, &update),
            target(spec, of_spec, Update),
            "{door:?}"
        );
        let of_status = matches!(door, Door::MutateStatus | Door::ValidateStatus);
        assert_eq!(
            sorted(door, &status),
            target(of_status, Target::Status(Kind::Tool), Update),
            "{door:?}"
        );
        let of_job = door == Door::ValidateDelete;
        assert_eq!(
            sorted(door, &delete),
            target(of_job, Target::Job, Delete),
            "{door:?}"
        );
        assert_eq!(sorted(door, &delete_tool), None, "{door:?}");
    }
}

#[test]
fn all_kinds_are_known_and_others_are_not() {
    for kind in Kind::ALL {
        let review = review("CREATE", Some(&object(kind, json!({}))), None);
        let known = Some((Target::Spec(kind), Operation::Create));
        assert_eq!(sorted(Door::Validate, &review), known);
    }
    let mut foreign = review("CREATE", Some(&tool()), None);
    foreign["request"]["resource"]["group"] = json!("example.com");
    assert_eq!(sorted(Door::Validate, &foreign), None);
}

#[test]
fn an_object_that_contradicts_its_request_is_found_out() {
    let (new, old) = (tool(), stored(Kind::Tool, json!({"image": "x"})));
    let with = |change: &dyn Fn(&mut Value)| {
        let mut review = review("UPDATE", Some(&new), Some(&old));
        change(&mut review["request"]);
        contradiction(Door::Validate, &review)
    };
    let field = |field: &str| Some(field.to_owned());
    assert_eq!(with(&|_| {}), None);
    assert_eq!(
        with(&|r| r["object"]["kind"] = json!("ToolRun")),
        field("kind")
    );
    assert_eq!(
        with(&|r| r["oldObject"]["kind"] = json!("ToolRun")),
        field("kind")
    );
    let group = "agents.proompteng.ai/v1alpha1";
    assert_eq!(
        with(&|r| r["object"]["apiVersion"] = json!(group)),
        field("apiVersion")
    );
    assert_eq!(
        with(&|r| r["object"]["apiVersion"] = json!("v1")),
        field("apiVersion")
    );
    assert_eq!(with(&|r| r["kind"]["kind"] = json!("Agent")), field("kind"));
    assert_eq!(with(&|r| r["kind"]["version"] = json!("v2")), field("kind"));
    assert_eq!(
        with(&|r| r["name"] = json!("other")),
        field("metadata.name")
    );
    assert_eq!(
        with(&|r| r["namespace"] = json!("other")),
        field("metadata.namespace")
    );
    assert_eq!(with(&|r| r["object"] = json!(null)), field("object"));
    assert_eq!(with(&|r| r["oldObject"] = json!(null)), field("oldObject"));
    let nameless = |r: &mut Value| {
        r["object"].as_object_mut().unwrap().remove("metadata");
    };
    assert_eq!(with(&nameless), field("metadata.name"));
}

#[test]
fn a_name_that_is_yet_to_be_made_up_contradicts_nothing() {
    let mut object = tool();
    object["metadata"] = json!({"generateName": "demo-", "namespace": "team"});
    let mut review = review("CREATE", Some(&object), None);
    review["request"]["name"] = json!("");
    assert_eq!(contradiction(Door::Mutate, &review), None);
    let body = serde_json::to_vec(&review).unwrap();
    let Sorted::Ours(subject) = sort(Door::Mutate, decode(&body).unwrap()) else {
        panic!("foreign");
    };
    assert_eq!(subject.name(), "demo-");
    assert_eq!(subject.uid(), None);
}
