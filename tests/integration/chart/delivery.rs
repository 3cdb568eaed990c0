//! Progressive delivery: which kind carries which component, and what is refused because it would leave a gap.

use anyhow::Result;
use serde_json::{Value, json};
use support::helm::{Helm, Rendered};

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
        json!({"canary": {"maxSurge": 1, "maxUnavailable": 0, "steps": [{"setWeight": 20}, {"pause": {}}]}})
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
