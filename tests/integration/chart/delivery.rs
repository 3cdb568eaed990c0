//! Progressive delivery: which kind carries which component, and what is refused because it would leave a gap.

use std::collections::BTreeSet;

use agents::api::contract::label;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use support::helm::{Helm, Rendered};

use crate::observability::{names, rules};

/// Kinds that carry a component.
fn carriers(rendered: &Rendered, name: &str) -> Vec<&'static str> {
    let kinds = ["Deployment", "Rollout"].into_iter();
    kinds
        .filter(|kind| rendered.get(&format!("{kind}/{name}")).is_ok())
        .collect()
}

#[tokio::test]
async fn the_stages_of_the_switch_render_one_kind_or_both() -> Result<()> {
    let helm = Helm::new().await?;
    let on = |delivery: Value| json!({"progressiveDelivery": delivery});
    let (deployment, both, rollout) = (
        vec!["Deployment"],
        vec!["Deployment", "Rollout"],
        vec!["Rollout"],
    );
    let cases = [
        (on(json!({})), &deployment, &deployment),
        (on(json!({"mode": "both"})), &deployment, &deployment),
        (on(json!({"enabled": true})), &rollout, &rollout),
        (on(json!({"enabled": true, "mode": "both"})), &both, &both),
        (
            on(json!({"enabled": true, "mode": "deployment"})),
            &deployment,
            &deployment,
        ),
        (
            on(json!({"controllers": {"enabled": true}})),
            &rollout,
            &deployment,
        ),
        (
            on(json!({"enabled": true, "controlPlane": {"enabled": false}})),
            &rollout,
            &deployment,
        ),
    ];
    let services = |rendered: &Rendered| rendered.all("Service").cloned().collect::<Vec<_>>();
    let before = services(&helm.render(&cases[0].0, &[]).await?);
    for (values, controllers, plane) in cases {
        let rendered = helm.render(&values, &[]).await?;
        assert_eq!(
            carriers(&rendered, "agents-controllers"),
            *controllers,
            "{values}"
        );
        assert_eq!(carriers(&rendered, "agents"), *plane, "{values}");
        assert_eq!(
            carriers(&rendered, "agents-webhook"),
            deployment,
            "it is canaried by scope"
        );
        assert_eq!(services(&rendered), before, "no Service changes");
    }
    Ok(())
}

/// As the design of the feature has an operator look, word for word.
#[tokio::test]
async fn one_flag_of_helm_renders_rollouts() -> Result<()> {
    let helm = Helm::new().await?;
    let words = ["template", "agents", "charts/agents"];
    let flag = ["--set", "progressiveDelivery.enabled=true"];
    let said = helm.run(&[&words[..], &flag].concat(), "").await?.ok()?;
    assert_eq!(said.matches("\nkind: Rollout\n").count(), 2);
    let said = helm.run(&words, "").await?.ok()?;
    assert!(!said.contains("kind: Rollout"));
    Ok(())
}

#[tokio::test]
async fn a_rollout_has_the_pods_and_selectors_of_the_deployment_and_waits_after_one_step()
-> Result<()> {
    let helm = Helm::new().await?;
    let values = json!({"progressiveDelivery": {"enabled": true, "mode": "both"}});
    let rendered = helm.render(&values, &[]).await?;
    let deployment = &rendered.get("Deployment/agents-controllers")?["spec"];
    let rollout = &rendered.get("Rollout/agents-controllers")?["spec"];
    for field in ["selector", "template", "replicas"] {
        assert_eq!(rollout[field], deployment[field]);
    }
    assert_eq!(
        rollout["strategy"],
        json!({"canary": {
            "maxSurge": 1, "maxUnavailable": 0, "steps": [{"setWeight": 20}, {"pause": {}}],
            "canaryMetadata": {"labels": {label::ROLLOUT: label::ROLLOUT_CANARY}},
            "stableMetadata": {"labels": {label::ROLLOUT: "stable"}},
        }})
    );
    Ok(())
}

#[tokio::test]
async fn the_analysis_stands_behind_the_first_step_and_asks_recording_rules_that_there_are()
-> Result<()> {
    let helm = Helm::new().await?;
    let values = json!({
        "progressiveDelivery": {"enabled": true, "analysis": {"enabled": true}},
        "webhook": {"canary": {"enabled": true}},
    });
    let rendered = helm.render(&values, &[]).await?;
    let steps = |name: &str| -> Result<Value> {
        Ok(rendered.get(name)?["spec"]["strategy"]["canary"]["steps"].clone())
    };
    let analysis = json!({"analysis": {
        "templates": [{"templateName": "agents-controllers"}],
        "args": [{"name": "revision", "valueFrom": {"podTemplateHashValue": "Latest"}}],
    }});
    assert_eq!(
        steps("Rollout/agents-controllers")?,
        json!([{"setWeight": 20}, analysis, {"pause": {}}])
    );
    assert_eq!(
        steps("Rollout/agents")?,
        json!([{"setWeight": 20}, {"pause": {}}])
    );
    let rules = rules::all().into_iter().filter_map(|rule| rule.record);
    let rules: BTreeSet<_> = rules.collect();
    let mut asked = 0;
    for template in rendered
        .all("AnalysisTemplate")
        .chain(rendered.all("AnalysisRun"))
    {
        for metric in template["spec"]["metrics"].as_array().into_iter().flatten() {
            let query = metric["provider"]["prometheus"]["query"]
                .as_str()
                .unwrap_or_default();
            let names = names::asked(&query.replace("{{args.revision}}", "x"));
            assert!(
                !names.is_empty() && names.iter().all(|name| rules.contains(name)),
                "{query}"
            );
            assert!(
                !metric["failureCondition"].is_null(),
                "else what is not good is bad"
            );
            asked += 1;
        }
    }
    assert_eq!(asked, 12);
    Ok(())
}

/// Every request is the business of one of the two versions: what one leaves out, the other takes.
#[tokio::test]
async fn a_webhook_on_trial_takes_what_the_other_leaves_out() -> Result<()> {
    let helm = Helm::new().await?;
    let before = helm.render(&json!({}), &[]).await?;
    let canary =
        json!({"webhook": {"canary": {"enabled": true, "share": 4, "image": {"tag": "next"}}}});
    let rendered = helm.render(&canary, &[]).await?;
    let entries = |rendered: &Rendered, name: &str| -> Result<Vec<Value>> {
        Ok(rendered.get(name)?["webhooks"]
            .as_array()
            .cloned()
            .unwrap_or_default())
    };
    let slice = |operator: &str| json!({"key": "agents.proompteng.ai/webhook", "operator": operator, "values": ["canary"]});
    let last = |list: &Value| {
        list.as_array()
            .and_then(|list| list.last().cloned())
            .unwrap_or_default()
    };
    for (kind, shares) in [("Mutating", false), ("Validating", true)] {
        let kind = format!("{kind}WebhookConfiguration");
        let first = entries(&before, &format!("{kind}/agents-webhook"))?;
        let stable = entries(&rendered, &format!("{kind}/agents-webhook"))?;
        let canary = entries(&rendered, &format!("{kind}/agents-webhook-canary"))?;
        assert_eq!(canary.len(), first.len() * if shares { 2 } else { 1 });
        for (entry, before) in stable.iter().zip(&first) {
            assert_eq!(entry["rules"], before["rules"]);
            assert_eq!(
                last(&entry["namespaceSelector"]["matchExpressions"]),
                slice("NotIn")
            );
            let name = entry["name"].as_str().unwrap_or_default();
            let find = |prefix: &str| {
                canary
                    .iter()
                    .find(|entry| entry["name"] == format!("{prefix}-{name}"))
            };
            let labelled = find("canary").context("an entry for labelled namespaces")?;
            assert_eq!(labelled["rules"], before["rules"]);
            assert_eq!(labelled["matchConditions"], before["matchConditions"]);
            assert_eq!(
                labelled["clientConfig"]["service"]["name"],
                "agents-webhook-canary"
            );
            assert_eq!(
                last(&labelled["namespaceSelector"]["matchExpressions"]),
                slice("In")
            );
            let share = find("share");
            assert_eq!(share.is_some(), shares, "{name}");
            let Some(share) = share else { continue };
            assert_eq!(
                last(&share["namespaceSelector"]["matchExpressions"]),
                slice("NotIn")
            );
            let [taken, left] =
                [share, entry].map(|entry| last(&entry["matchConditions"])["expression"].clone());
            assert_eq!(left, format!("!{}", taken.as_str().unwrap_or_default()));
        }
    }
    let image = |name: &str| -> Result<Value> {
        Ok(rendered.get(name)?["spec"]["template"]["spec"]["containers"][0]["image"].clone())
    };
    assert_eq!(
        image("Deployment/agents-webhook-canary")?,
        "ghcr.io/proompteng/agents-webhook:next"
    );
    assert_ne!(
        image("Deployment/agents-webhook")?,
        image("Deployment/agents-webhook-canary")?
    );
    let selector =
        |name: &str| -> Result<Value> { Ok(rendered.get(name)?["spec"]["selector"].clone()) };
    assert_ne!(
        selector("Service/agents-webhook")?,
        selector("Service/agents-webhook-canary")?
    );
    Ok(())
}

#[tokio::test]
async fn the_autoscaler_follows_the_kind_and_owns_the_number_of_pods() -> Result<()> {
    let helm = Helm::new().await?;
    for (enabled, kind, version) in [
        (false, "Deployment", "apps/v1"),
        (true, "Rollout", "argoproj.io/v1alpha1"),
    ] {
        let values = json!({
            "progressiveDelivery": {"enabled": enabled},
            "controllers": {"autoscaling": {"enabled": true}, "podDisruptionBudget": {"enabled": true}},
        });
        let rendered = helm.render(&values, &[]).await?;
        let scaler = rendered.get("HorizontalPodAutoscaler/agents-controllers")?;
        let target = json!({"apiVersion": version, "kind": kind, "name": "agents-controllers"});
        assert_eq!(scaler["spec"]["scaleTargetRef"], target);
        let carrier = rendered.get(&format!("{kind}/agents-controllers"))?;
        assert_eq!(carrier["spec"]["replicas"], Value::Null);
        let budget = rendered.get("PodDisruptionBudget/agents-controllers")?;
        assert_eq!(budget["spec"]["selector"], carrier["spec"]["selector"]);
    }
    Ok(())
}

#[tokio::test]
async fn known_traps_are_refused() -> Result<()> {
    let helm = Helm::new().await?;
    let delivery = |more: Value| {
        let mut values = json!({"progressiveDelivery": {"enabled": true}});
        super::variables::merge(&mut values, &more);
        values
    };
    let steps = |steps: Value| delivery(json!({"progressiveDelivery": {"canarySteps": steps}}));
    let cases = [
        (
            steps(json!([])),
            "progressiveDelivery.canarySteps: without a step",
        ),
        (
            steps(json!([{"setWeight": 1, "pause": {}}])),
            "progressiveDelivery.canarySteps[0]: a step is one thing, and this is 2",
        ),
        (
            steps(json!([{"pause": {}}, {"setCanaryScale": {}}])),
            "progressiveDelivery.canarySteps[1]: setCanaryScale needs a traffic router",
        ),
        (
            delivery(json!({"progressiveDelivery": {"maxSurge": 0}})),
            "progressiveDelivery.maxSurge: with maxUnavailable 0",
        ),
        (
            delivery(
                json!({"progressiveDelivery": {"mode": "both"}, "controllers": {"autoscaling": {"enabled": true}}}),
            ),
            "controllers.autoscaling.enabled: one autoscaler cannot hold two kinds",
        ),
        (
            delivery(
                json!({"controllers": {"autoscaling": {"enabled": true, "targetMemoryUtilizationPercentage": 50}}}),
            ),
            "controllers.autoscaling.targetMemoryUtilizationPercentage: during a canary",
        ),
        (
            delivery(
                json!({"progressiveDelivery": {"analysis": {"enabled": true}}, "metrics": {"enabled": false}}),
            ),
            "progressiveDelivery.analysis.enabled: with metrics.enabled false",
        ),
        (
            json!({"webhook": {"canary": {"enabled": true}}, "progressiveDelivery": {"analysis": {"enabled": true}}, "metrics": {"enabled": false}}),
            "progressiveDelivery.analysis.enabled: with metrics.enabled false",
        ),
        (
            json!({"webhook": {"canary": {"enabled": true}, "rung": "fail"}}),
            "webhook.canary.replicaCount: on the rung fail",
        ),
        (
            json!({"webhook": {"canary": {"enabled": true}}, "progressiveDelivery": {"renderMode": "require", "analysis": {"enabled": true}}}),
            "progressiveDelivery.renderMode: the cluster has no AnalysisRun",
        ),
        (
            delivery(json!({"progressiveDelivery": {"renderMode": "require"}})),
            "progressiveDelivery.renderMode: the cluster has no Rollout",
        ),
    ];
    for (values, sentence) in cases {
        let said = helm.refusal(&values, &[]).await?;
        assert!(said.contains(&format!("  - {sentence}")), "{said}");
    }
    let said = helm
        .refusal(
            &delivery(json!({"progressiveDelivery": {"provider": "flagger"}})),
            &[],
        )
        .await?;
    assert!(said.contains("argo-rollouts"), "{said}");
    Ok(())
}
