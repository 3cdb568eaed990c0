//! The same operations over gRPC, as a client sees them that knows nothing but what the server says of itself.

mod client;

use agents::api::contract::env;
use agents::api::kind::Kind;
use agents::serve::variable;
use anyhow::{Context, Result};
use jiff::Timestamp;
use serde_json::{Value, json};
use support::wait;
use tonic::Code;

use super::scene::{ALL, DEADLINE, Plane, person, submission};
use super::token::good_until;
use client::Client;

/// Over gRPC as well, at any port.
const ON: [(&str, &str); 3] = [
    (env::GRPC_ENABLED, "true"),
    (env::GRPC_HOST, "127.0.0.1"),
    (env::GRPC_PORT, "0"),
];

async fn plane(more: &[(&str, &str)]) -> Result<(Plane, Client)> {
    let settings: Vec<_> = ON.iter().chain(more).copied().collect();
    let mut plane = Plane::start(&settings).await?;
    let address = plane.process.address("grpc").await;
    let client = Client::connect(address).await?;
    Ok((plane, client))
}

type Row = (
    &'static str,
    Value,
    (&'static str, &'static str, &'static str),
    Code,
);

/// Every method with a right of its own: its message, the least right for it, and the code that who has it gets.
fn methods(namespace: &str) -> Vec<Row> {
    let run = json!({"namespace": namespace, "name": "one"});
    let there = json!({"namespace": namespace});
    let with = |of: &Value, body: Value| {
        let mut given = of.clone();
        given["body"] = body;
        given
    };
    let agents = "agents.proompteng.ai";
    let (approvals, signals) = ("approvals.proompteng.ai", "signals.proompteng.ai");
    let none = json!({"namespace": namespace, "name": "none"});
    let mut brief = run.clone();
    brief["timeout"] = json!("1ms");
    vec![
        (
            "SubmitRun",
            with(&there, submission(json!({}))),
            (agents, "agentruns", "create"),
            Code::Ok,
        ),
        (
            "ListRuns",
            there.clone(),
            (agents, "agentruns", "list"),
            Code::Ok,
        ),
        (
            "GetRun",
            run.clone(),
            (agents, "agentruns", "get"),
            Code::Ok,
        ),
        ("WaitForRun", brief, (agents, "agentruns", "get"), Code::Ok),
        (
            "CancelRun",
            run.clone(),
            (agents, "agentruns", "update"),
            Code::Ok,
        ),
        ("RunEvents", run.clone(), ("", "events", "list"), Code::Ok),
        (
            "ListEvents",
            there.clone(),
            ("", "events", "list"),
            Code::Ok,
        ),
        // The run has not begun.
        (
            "RunLogs",
            run,
            ("", "pods/log", "get"),
            Code::FailedPrecondition,
        ),
        (
            "ListApprovals",
            there.clone(),
            (approvals, "approvalpolicies", "list"),
            Code::Ok,
        ),
        (
            "Decide",
            with(&none, json!({"approved": true})),
            (approvals, "approvalpolicies/status", "update"),
            Code::NotFound,
        ),
        (
            "CreateSignal",
            with(&there, json!({"name": "news"})),
            (signals, "signals", "create"),
            Code::Ok,
        ),
        (
            "DeliverSignal",
            with(&none, json!({"payload": {"a": 1}})),
            (signals, "signaldeliveries", "create"),
            Code::NotFound,
        ),
        (
            "ControlPlaneStream",
            there,
            (agents, "agentruns", "watch"),
            Code::Ok,
        ),
        (
            "Queue",
            json!({}),
            (agents, "agentruns", "list"),
            Code::Unavailable,
        ),
        (
            "QueueStream",
            json!({}),
            (agents, "agentruns", "list"),
            Code::Ok,
        ),
        (
            "Sidecar",
            json!({}),
            (agents, "agentruns", "list"),
            Code::Unavailable,
        ),
    ]
}

#[tokio::test]
async fn each_method_needs_a_token_and_its_right_in_its_namespace() -> Result<()> {
    support::kinds!();
    let (plane, mut client) = plane(&[(variable::REVIEWS_KEPT, "0s")]).await?;
    plane.scene.run("one", json!({})).await?;
    let nobody = plane.person("nobody", &[]).await?;
    let (former, now) = (
        plane.person("former", ALL).await?,
        Timestamp::now().as_second(),
    );
    let elsewhere = support::namespace("serve").await?;
    let stranger = person(&elsewhere, "stranger", ALL).await?;
    client.learn(&nobody).await?;
    // Nothing but its end is wrong with the other one.
    let good = good_until(&former, now + 3600).await?;
    let there = json!({"namespace": plane.namespace()});
    client.call("ListRuns", &there, Some(&good)).await?;
    let expired = good_until(&former, now - 3600).await?;
    let methods = methods(plane.namespace());
    let mut offered = client.methods()?;
    offered.retain(|method| method != "WhoAmI");
    let known: Vec<_> = methods
        .iter()
        .map(|(method, ..)| (*method).to_owned())
        .collect();
    for method in offered {
        assert!(known.contains(&method), "{method} is not tried");
    }
    for (number, (method, message, right, expected)) in methods.iter().enumerate() {
        let able = plane.person(&format!("able-{number}"), &[*right]).await?;
        for (who, token, code) in [
            ("without a token", None, Code::Unauthenticated),
            ("with an unknown token", Some("abc"), Code::Unauthenticated),
            (
                "with an expired token",
                Some(&*expired),
                Code::Unauthenticated,
            ),
            ("without the right", Some(&*nobody), Code::PermissionDenied),
            (
                "with the right elsewhere",
                Some(&*stranger),
                Code::PermissionDenied,
            ),
            ("with the right", Some(&*able), *expected),
        ] {
            let given = client.first(method, message, token).await;
            let found = given.as_ref().err().map_or(Code::Ok, tonic::Status::code);
            assert_eq!(found, code, "{method} {who}: {given:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_run_is_submitted_followed_and_cancelled() -> Result<()> {
    support::kinds!();
    let (mut plane, mut client) = plane(&[]).await?;
    let boss = plane.person("boss", ALL).await?;
    client.learn(&boss).await?;
    let namespace = plane.namespace().to_owned();
    let there = json!({"namespace": namespace});
    let mut events = client.open("ControlPlaneStream", &there, &boss).await?;

    let mut body = submission(json!({"labels": {"team": "x"}}));
    body["spec"]["runtime"] = json!({"type": "job", "config": {"backoffLimit": 2}});
    let submit = json!({"namespace": namespace, "body": body, "idempotencyKey": "k"});
    let made = client.call("SubmitRun", &submit, Some(&boss)).await?;
    let again = client.call("SubmitRun", &submit, Some(&boss)).await?;
    assert_eq!(made["name"], again["name"]);
    let mut other = submit.clone();
    other["body"]["spec"]["implementation"] = json!({"inline": {"text": "Do another."}});
    let refused = client
        .call("SubmitRun", &other, Some(&boss))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    let reason = refused
        .metadata()
        .get("agents-reason")
        .context("a reason")?;
    assert_eq!(reason.to_str()?, "IdempotencyConflict");
    let mut wrong = submit.clone();
    wrong["body"]["spec"]["runtime"]["config"]["backoffLimit"] = json!("many");
    wrong["idempotencyKey"] = json!("other");
    let refused = client
        .call("SubmitRun", &wrong, Some(&boss))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let problem = refused
        .metadata()
        .get_bin("agents-problem-bin")
        .context("all of it")?;
    let problem: Value = serde_json::from_slice(&problem.to_bytes()?)?;
    assert_eq!(
        problem["causes"][0]["field"],
        "spec.runtime.config.backoffLimit"
    );

    let name = made["name"].as_str().context("a name")?.to_owned();
    let run = json!({"namespace": namespace, "name": name});
    let event = events
        .until(|event| event["event"] == "resource" && event["data"]["name"] == name)
        .await?;
    assert_eq!(event["data"]["kind"], "AgentRun");
    let id = event["id"].as_str().unwrap_or_default().to_owned();
    drop(events);

    let listed = json!({"namespace": namespace, "labelSelector": "team=x", "limit": 10});
    let page = client.call("ListRuns", &listed, Some(&boss)).await?;
    assert_eq!(page["items"][0]["name"], name);
    let one = client.call("GetRun", &run, Some(&boss)).await?;
    assert_eq!(
        one["resource"]["spec"]["runtime"]["config"]["backoffLimit"],
        2.0
    );
    let unknown = client.call("CancelRun", &run, None).await.unwrap_err();
    assert_eq!(unknown.code(), Code::Unauthenticated);
    let turned_away = |line: &Value| line["message"] == "Audit" && line["status"] == 401;
    let line = plane.process.line("who was turned away", turned_away).await;
    assert_eq!(line["operation"], "cancelRun");
    client.call("CancelRun", &run, Some(&boss)).await?;
    // A write leaves the same line as over HTTP.
    for (operation, about, status) in [("submitRun", "", 201), ("cancelRun", &*name, 200)] {
        let line = plane
            .process
            .line(operation, |line| {
                let is_about = line["operation"] == operation && line["status"] != 401;
                line["message"] == "Audit" && is_about
            })
            .await;
        let user = format!("system:serviceaccount:{namespace}:boss");
        assert_eq!(
            (&line["user"], &line["namespace"]),
            (&json!(user), &json!(namespace))
        );
        assert_eq!(
            (&line["name"], &line["status"]),
            (&json!(about), &json!(status))
        );
        assert!(!line.to_string().contains(&boss));
    }
    if !id.is_empty() {
        let from = json!({"namespace": namespace, "lastEventId": id});
        let mut rest = client.open("ControlPlaneStream", &from, &boss).await?;
        rest.until(|event| event["data"]["name"] == name).await?;
    }
    let who = client.call("WhoAmI", &json!({}), Some(&boss)).await?;
    assert!(who.to_string().contains("boss"), "{who}");
    Ok(())
}

#[tokio::test]
async fn an_approval_is_given_and_a_signal_is_delivered() -> Result<()> {
    support::kinds!();
    let (plane, mut client) = plane(&[]).await?;
    let boss = plane.person("boss", ALL).await?;
    client.learn(&boss).await?;
    let namespace = plane.namespace().to_owned();
    let policy = json!({"mode": "manual"});
    plane
        .scene
        .make(Kind::ApprovalPolicy, "gate", policy)
        .await?;
    let mut gate = json!({"namespace": namespace, "name": "gate", "body": {"approved": true}});
    let given = client.call("Decide", &gate, Some(&boss)).await?;
    assert_eq!(
        (&given["approved"], &given["phase"]),
        (&json!(true), &json!("Approved"))
    );
    // It stands: another is refused.
    gate["body"]["approved"] = json!(false);
    let refused = client.call("Decide", &gate, Some(&boss)).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);

    let signal = json!({"namespace": namespace, "body": {"name": "go"}});
    client.call("CreateSignal", &signal, Some(&boss)).await?;
    let delivery = json!({"deliveryId": "one", "payload": {"a": 1}});
    let delivery = json!({"namespace": namespace, "name": "go", "body": delivery});
    let first = client.call("DeliverSignal", &delivery, Some(&boss)).await?;
    assert_eq!(first["kind"], "SignalDelivery");
    let again = client.call("DeliverSignal", &delivery, Some(&boss)).await?;
    assert_eq!(first, again);
    Ok(())
}

#[tokio::test]
async fn health_is_open_and_the_schema_is_for_those_who_are_known() -> Result<()> {
    support::kinds!();
    let (plane, mut client) = plane(&[]).await?;
    wait::retry("a service that is ready", DEADLINE, || {
        let mut client = client.clone();
        async move {
            for service in ["", "agents.v1.ControlPlane"] {
                let status = client.health(service).await?;
                anyhow::ensure!(status == 1, "{service} is {status}");
            }
            Ok(())
        }
    })
    .await?;
    assert!(client.learn("abc").await.is_err());
    let nobody = plane.person("nobody", &[]).await?;
    client.learn(&nobody).await?;
    let none = client
        .raw("agents.v1.ControlPlane/None", Some(&nobody))
        .await;
    assert_eq!(none.unwrap_err().code(), Code::Unimplemented);
    let none = client.raw("agents.v1.ControlPlane/None", None).await;
    assert_eq!(none.unwrap_err().code(), Code::Unauthenticated);
    Ok(())
}
