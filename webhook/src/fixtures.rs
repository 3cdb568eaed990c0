//! Reviews as the API server writes them, and a webhook to send them to, for unit tests.

use std::convert::Infallible;
use std::future::pending;

use agents::api::contract::label;
use agents::api::kind::Kind;
use agents::api::policy::Policy;
use agents::api::registration::rung::Rung;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Response};
use jiff::Timestamp;
use json_patch::Patch;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use crate::decide::Stance;
use crate::lookup::Lookup;
use crate::metrics::Metrics;
use crate::policy::Policies;
use crate::service::{Admission, Side};
use crate::subject::Door;

pub(crate) const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
pub(crate) const PERSON: &str = "jane@example.com";
pub(crate) const RESTORER: &str = "system:serviceaccount:velero:velero";

/// The time at which all reviews come.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

/// An object of a kind with this spec.
pub(crate) fn object(kind: Kind, spec: Value) -> Value {
    json!({
        "apiVersion": kind.api_version(),
        "kind": kind.as_str(),
        "metadata": {"name": "demo", "namespace": "team"},
        "spec": spec,
    })
}

/// The same, stored: it has a uid and a generation, and fields that nobody here looks at.
pub(crate) fn stored(kind: Kind, spec: Value) -> Value {
    let mut object = object(kind, spec);
    object["metadata"]["uid"] = json!("u-1");
    object["metadata"]["generation"] = json!(2);
    object["metadata"]["managedFields"] =
        json!([{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}]);
    object
}

/// A Job of ours.
pub(crate) fn job() -> Value {
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "demo-1", "namespace": "team", "uid": "j-1",
            "labels": {label::AGENT_RUN: "demo", label::RUN_UID: "u-1"},
            "ownerReferences": [{
                "apiVersion": Kind::AgentRun.api_version(), "kind": "AgentRun", "name": "demo", "uid": "u-1",
            }],
        },
        "spec": {"template": {}},
    })
}

/// A Job of a ToolRun of ours.
pub(crate) fn tool_job() -> Value {
    let mut job = job();
    job["metadata"]["labels"] = json!({label::TOOL_RUN: "demo", label::RUN_UID: "u-1"});
    job["metadata"]["ownerReferences"][0]["apiVersion"] = json!(Kind::ToolRun.api_version());
    job["metadata"]["ownerReferences"][0]["kind"] = json!("ToolRun");
    job
}

/// A review as the API server writes it.
pub(crate) fn review(operation: &str, new: Option<&Value>, old: Option<&Value>) -> Value {
    let shown = new.or(old).unwrap();
    let kind = shown["kind"].as_str().unwrap();
    let (group, version) = shown["apiVersion"]
        .as_str()
        .unwrap()
        .split_once('/')
        .unwrap();
    let known = Kind::ALL.into_iter().find(|known| known.as_str() == kind);
    let resource = known.map_or("jobs", Kind::plural);
    json!({
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "705ab4f5",
            "kind": {"group": group, "version": version, "kind": kind},
            "resource": {"group": group, "version": version, "resource": resource},
            "requestKind": {"group": group, "version": version, "kind": kind},
            "name": shown["metadata"]["name"],
            "namespace": shown["metadata"]["namespace"],
            "operation": operation,
            "userInfo": {"username": PERSON, "groups": ["system:authenticated"]},
            "object": new,
            "oldObject": old,
            "dryRun": false,
            "options": {"kind": "CreateOptions", "fieldManager": "kubectl"},
        },
    })
}

/// The same about a status.
pub(crate) fn status_review(new: &Value, old: &Value) -> Value {
    let mut review = review("UPDATE", Some(new), Some(old));
    review["request"]["subResource"] = json!("status");
    review
}

/// A webhook on a rung with a policy.
pub(crate) fn webhook(rung: Rung, policy: Value) -> Admission {
    webhook_with(rung, policy, Metrics::default())
}

/// The same, counted here.
pub(crate) fn webhook_with(rung: Rung, policy: Value, metrics: Metrics) -> Admission {
    trial(rung, policy, None, metrics)
}

/// The same, with a candidate policy beside the one in force.
pub(crate) fn trial(
    rung: Rung,
    policy: Value,
    candidate: Option<Value>,
    metrics: Metrics,
) -> Admission {
    let read = |policy: Value| -> Policy { serde_json::from_value(policy).unwrap() };
    let stance = Stance {
        rung,
        restorers: vec![RESTORER.to_owned()],
    };
    Admission::new(
        Policies::fixed(read(policy), candidate.map(read)),
        Lookup::empty(),
        stance,
        Side::default(),
        metrics,
    )
}

/// A cluster that takes every request and never answers.
pub(crate) fn silent_cluster() -> Client {
    let silent = |_: Request<Body>| pending::<Result<Response<Body>, Infallible>>();
    Client::new(service_fn(silent), "team")
}

/// The response of a webhook to a review.
pub(crate) fn ask_of(admission: &Admission, door: Door, review: &Value) -> Value {
    let body = serde_json::to_vec(review).unwrap();
    let answer = admission.answer_at(door, &body, now(), Some(TRACEPARENT));
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let mut answer: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(answer["kind"], "AdmissionReview");
    assert_eq!(answer["response"]["uid"], review["request"]["uid"]);
    answer["response"].take()
}

/// The response of a webhook that refuses and has no policy.
pub(crate) fn ask(door: Door, review: &Value) -> Value {
    ask_of(&webhook(Rung::Deny, json!({})), door, review)
}

/// The patch of a response, as the API server reads it.
pub(crate) fn patch_of(response: &Value) -> Value {
    let Some(patch) = response.get("patch") else {
        assert_eq!(response.get("patchType"), None);
        return json!([]);
    };
    assert_eq!(response["patchType"], "JSONPatch");
    let patch = STANDARD.decode(patch.as_str().unwrap()).unwrap();
    serde_json::from_slice(&patch).unwrap()
}

/// The object after the patch of a response.
pub(crate) fn patched(object: &Value, response: &Value) -> Value {
    let patch: Patch = serde_json::from_value(patch_of(response)).unwrap();
    let mut object = object.clone();
    json_patch::patch(&mut object, &patch).unwrap();
    object
}

/// The faults that a response names: field and reason of each.
pub(crate) fn faults(response: &Value) -> Vec<(String, String)> {
    let causes = response["status"]["details"]["causes"].as_array();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    causes
        .into_iter()
        .flatten()
        .map(|cause| (text(&cause["field"]), text(&cause["reason"])))
        .collect()
}
