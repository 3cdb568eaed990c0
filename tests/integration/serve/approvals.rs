//! Approvals and signals.

use agents::api::kinds::{ApprovalPolicy, SignalDelivery};
use anyhow::Result;
use kube::api::PostParams;
use serde_json::json;
use support::wait;

use super::scene::{ALL, DEADLINE, Plane};

#[tokio::test]
async fn an_approval_is_given_once_and_the_controllers_see_it() -> Result<()> {
    support::kinds!();
    let plane = Plane::start(&[]).await?;
    let token = plane.person("boss", ALL).await?;
    let _controller = plane.scene.controller().await?;
    let policy: ApprovalPolicy = serde_json::from_value(json!({
        "apiVersion": "approvals.proompteng.ai/v1alpha1", "kind": "ApprovalPolicy",
        "metadata": {"name": "gate"}, "spec": {"mode": "manual"},
    }))?;
    let policies = plane.scene.here.api::<ApprovalPolicy>();
    policies.create(&PostParams::default(), &policy).await?;
    let phase = |policy: &ApprovalPolicy| {
        policy
            .status
            .as_ref()
            .and_then(|status| status.phase.clone())
    };
    wait::until(&policies, "gate", DEADLINE, |policy| {
        phase(policy).as_deref() == Some("Active")
    })
    .await?;
    let namespace = plane.namespace();
    let list = format!("/v1/approval-policies?namespace={namespace}");
    let open = plane.expect(("GET", &list), &token, None, 200).await?;
    assert_eq!(open["items"][0]["name"], "gate");
    assert!(open["items"][0].get("approved").is_none(), "{open}");
    let decide = format!("/v1/approval-policies/{namespace}/gate/decision");
    let (yes, no) = (json!({"approved": true}), json!({"approved": false}));
    for _ in 0..2 {
        let given = plane
            .expect(("POST", &decide), &token, Some(&yes), 200)
            .await?;
        assert_eq!(
            (&given["approved"], &given["phase"]),
            (&json!(true), &json!("Approved"))
        );
    }
    let refused = plane
        .expect(("POST", &decide), &token, Some(&no), 409)
        .await?;
    assert_eq!(refused["reason"], "AlreadyDecided");
    // The controllers take it over and let it stand.
    let told = |policy: &ApprovalPolicy| {
        let status = policy.status.clone().unwrap_or_default();
        let ready = status.conditions.unwrap_or_default();
        let ready = ready
            .iter()
            .any(|condition| condition.message.as_deref() == Some("decided: Approved"));
        ready && status.last_decision_at.is_some()
    };
    let policy = wait::until(&policies, "gate", DEADLINE, told).await?;
    assert_eq!(phase(&policy).as_deref(), Some("Approved"));
    Ok(())
}

#[tokio::test]
async fn a_signal_is_made_and_delivered_once_for_each_id() -> Result<()> {
    support::kinds!();
    let plane = Plane::start(&[]).await?;
    let token = plane.person("boss", ALL).await?;
    let namespace = plane.namespace();
    let signals = format!("/v1/signals?namespace={namespace}");
    let deliveries = format!("/v1/signals/{namespace}/go/deliveries");
    let delivery = json!({"deliveryId": "one", "payload": {"a": 1}});
    plane
        .expect(("POST", &deliveries), &token, Some(&delivery), 404)
        .await?;
    let signal = json!({"name": "go", "channel": "x"});
    plane
        .expect(("POST", &signals), &token, Some(&signal), 201)
        .await?;
    plane
        .expect(("POST", &signals), &token, Some(&signal), 409)
        .await?;
    let wrong = json!({"name": "Not A Name"});
    plane
        .expect(("POST", &signals), &token, Some(&wrong), 422)
        .await?;
    let first = plane
        .expect(("POST", &deliveries), &token, Some(&delivery), 201)
        .await?;
    let again = plane
        .expect(("POST", &deliveries), &token, Some(&delivery), 201)
        .await?;
    assert_eq!(first, again);
    let other = json!({"deliveryId": "one", "payload": {"a": 2}});
    let refused = plane
        .expect(("POST", &deliveries), &token, Some(&other), 409)
        .await?;
    assert_eq!(refused["reason"], "IdempotencyConflict");
    let unnamed = json!({});
    plane
        .expect(("POST", &deliveries), &token, Some(&unnamed), 201)
        .await?;
    let stored = plane.scene.here.api::<SignalDelivery>();
    let stored = stored.list(&kube::api::ListParams::default()).await?;
    assert_eq!(stored.items.len(), 2);
    Ok(())
}
