//! A new version of the controllers, tried by the lease that it takes over and gives back; and one of the control plane, which
//! has none.

use std::time::{Duration, Instant};

use agents::api::kinds::AgentProvider;
use anyhow::{Context, Result, ensure};
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use support::{
    lab::report::{measured, spoken},
    prometheus::Prometheus,
    wait,
};

use super::{CONTROL_PLANE, CONTROLLERS, Delivery, is_seen};
use crate::chart::install::stage::DEADLINE;
use crate::chart::variables::merge;

/// As long as the lease is held without a renewal, which is the default.
const LEASE_TIME: Duration = Duration::from_secs(30);

/// A version of the controllers, told from others by something that changes nothing.
fn named(name: &str) -> Value {
    json!({"controllers": {"env": {"vars": {"VERSION_ON_TRIAL": name}}}})
}

/// A version that is judged; with what is more about it.
fn version(name: &str, prometheus: &Prometheus, more: &Value) -> Value {
    let mut values = named(name);
    let judged = json!({
        "progressiveDelivery": {"enabled": true, "analysis": {
            "enabled": true, "address": format!("http://{}", prometheus.authority()),
            "initialDelay": "20s", "interval": "2s", "count": 3,
            "controllers": {"minReconciles": 1},
        }},
    });
    merge(&mut values, &judged);
    merge(&mut values, more);
    values
}

/// The version that a Rollout tries now.
fn tried(status: &Value) -> Result<String> {
    let hash = status["currentPodHash"].as_str();
    Ok(hash.context("a version on trial")?.to_owned())
}

/// Why a Rollout waits, if it does.
fn waits_for(status: &Value, reason: &str) -> bool {
    let pauses = status["pauseConditions"].as_array();
    pauses
        .into_iter()
        .flatten()
        .any(|pause| pause["reason"] == reason)
}

impl Delivery {
    /// Upgrades, and gives the version that is then on trial.
    async fn try_out(&self, rollout: &str, values: &Value) -> Result<String> {
        self.put("upgrade", values).await?;
        let on_trial = |status: &Value| status["currentPodHash"] != status["stableRS"];
        let status = self.until(rollout, "a version on trial", on_trial).await?;
        tried(&status)
    }

    /// Gives the controllers something to do until a Rollout is as wanted, and gives its status.
    async fn work_until(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        let providers = self.stage.here.api::<AgentProvider>();
        let rollouts = self.kind("Rollout");
        let mut count = 0;
        wait::retry(what, DEADLINE, || {
            count += 1;
            let touch = json!({"metadata": {"annotations": {"touched": count.to_string()}}});
            let (providers, rollouts, wanted) = (&providers, &rollouts, &wanted);
            async move {
                let touch = Patch::Merge(touch);
                providers
                    .patch("probe", &PatchParams::default(), &touch)
                    .await?;
                let rollout = rollouts.get(CONTROLLERS).await?;
                let status = &rollout.data["status"];
                ensure!(is_seen(&rollout) && wanted(status), "{status:#}");
                Ok(status.clone())
            }
        })
        .await
        .with_context(|| self.argo.log())
    }

    /// How the analysis of a version went.
    async fn verdict(&self, revision: &str) -> Result<Value> {
        let label = format!("rollouts-pod-template-hash={revision}");
        let runs = self
            .kind("AnalysisRun")
            .list(&ListParams::default().labels(&label))
            .await?;
        let [run] = &runs.items[..] else {
            anyhow::bail!("{} analyses", runs.items.len())
        };
        Ok(run.data["status"].clone())
    }

    /// Waits until the stable version leads again, no longer than a lease lasts, and nothing of the other is left.
    async fn until_back(&self, stable: &str, since: Instant, why: &str) -> Result<()> {
        self.until_held_by(stable, LEASE_TIME).await?;
        let took = since.elapsed();
        measured(format!("the lease was back {} after {why}", spoken(took)));
        assert!(took < LEASE_TIME, "{took:?}");
        let alone = |status: &Value| status["replicas"] == 2 && status["readyReplicas"] == 2;
        self.until(CONTROLLERS, "the stable version alone", alone)
            .await?;
        assert_eq!(self.held_by().await?, stable);
        Ok(())
    }
}

/// A new version is judged while it leads, and gives the lease back if it is not kept. Gives the values of the one that is.
pub(super) async fn several(delivery: &Delivery) -> Result<Value> {
    let prometheus = delivery.prometheus(&json!({})).await?;
    let version = |name: &str, more: Value| version(name, &prometheus, &more);
    let first = tried(&delivery.until_healthy(CONTROLLERS).await?)?;
    delivery.until_held_by(&first, DEADLINE).await?;
    delivery.stage.make_agent(&delivery.stage.here).await?;

    // It does not know what it is, so it never asks.
    let blind = json!({"controllers": {"env": {"vars": {"AGENTS_POD_LABELS_FILE": "/nowhere"}}}});
    let second = delivery
        .try_out(CONTROLLERS, &version("two", blind))
        .await?;
    let inconclusive = |status: &Value| waits_for(status, "InconclusiveAnalysisRun");
    delivery
        .work_until("an analysis that says nothing", inconclusive)
        .await?;
    let verdict = delivery.verdict(&second).await?;
    assert_eq!(verdict["phase"], "Inconclusive", "{verdict:#}");
    assert_eq!(delivery.held_by().await?, first);
    delivery.say(&["abort", CONTROLLERS]).await?;
    delivery
        .until_back(
            &first,
            Instant::now(),
            "an abort of a version that never led",
        )
        .await?;

    // A bar that nobody can pass.
    let strict =
        json!({"progressiveDelivery": {"analysis": {"controllers": {"maxReconcileSeconds": 0}}}});
    let third = delivery
        .try_out(CONTROLLERS, &version("three", strict))
        .await?;
    let asked = Instant::now();
    delivery.until_held_by(&third, DEADLINE).await?;
    measured(format!(
        "a canary held the lease {} after it was made",
        spoken(asked.elapsed())
    ));
    let aborted = |status: &Value| status["abort"] == true;
    delivery
        .work_until("an analysis that fails", aborted)
        .await?;
    delivery
        .until_back(&first, Instant::now(), "an analysis that failed")
        .await?;
    assert_eq!(delivery.verdict(&third).await?["phase"], "Failed");

    let fourth = delivery
        .try_out(CONTROLLERS, &version("four", json!({})))
        .await?;
    delivery.until_held_by(&fourth, DEADLINE).await?;
    let good = |status: &Value| waits_for(status, "CanaryPauseStep");
    delivery
        .work_until("a version that waits for a person", good)
        .await?;
    let verdict = delivery.verdict(&fourth).await?;
    assert_eq!(verdict["phase"], "Successful", "{verdict:#}");
    delivery.say(&["promote", CONTROLLERS]).await?;
    let healthy = delivery.until_healthy(CONTROLLERS).await?;
    assert_eq!(healthy["stableRS"], fourth.as_str());
    delivery.until_held_by(&fourth, DEADLINE).await?;

    // Without analysis: one step, a pause, and a person who says no.
    let plain = json!({"progressiveDelivery": {"analysis": {"enabled": false}}});
    let fifth = delivery
        .try_out(CONTROLLERS, &version("five", plain))
        .await?;
    delivery
        .until(CONTROLLERS, "a canary that waits", good)
        .await?;
    delivery.until_held_by(&fifth, DEADLINE).await?;
    delivery.say(&["abort", CONTROLLERS]).await?;
    delivery
        .until_back(&fourth, Instant::now(), "an abort")
        .await?;
    Ok(named("four"))
}

/// The same for the control plane, by a person alone: there is no lease to be led by. Gives the values of what is kept of both.
pub(super) async fn of_the_control_plane(delivery: &Delivery, kept: &Value) -> Result<Value> {
    let both = |name: &str| {
        let mut values = kept.clone();
        let own = json!({"controlPlane": {"env": {"vars": {"VERSION_ON_TRIAL": name}}}});
        merge(&mut values, &own);
        values
    };
    let version = |name: &str| {
        let mut values = both(name);
        merge(
            &mut values,
            &json!({"progressiveDelivery": {"enabled": true}}),
        );
        values
    };
    let waits = |status: &Value| waits_for(status, "CanaryPauseStep");
    let second = delivery.try_out(CONTROL_PLANE, &version("two")).await?;
    let what = "a control plane that waits for a person";
    delivery.until(CONTROL_PLANE, what, waits).await?;
    delivery.say(&["promote", CONTROL_PLANE]).await?;
    let healthy = delivery.until_healthy(CONTROL_PLANE).await?;
    assert_eq!(healthy["stableRS"], second.as_str());

    let third = delivery.try_out(CONTROL_PLANE, &version("three")).await?;
    assert_ne!(third, second);
    delivery.until(CONTROL_PLANE, what, waits).await?;
    delivery.say(&["abort", CONTROL_PLANE]).await?;
    let alone = |status: &Value| {
        status["abort"] == true && status["replicas"] == 1 && status["readyReplicas"] == 1
    };
    let what = "the stable control plane alone";
    let left = delivery.until(CONTROL_PLANE, what, alone).await?;
    assert_eq!(left["stableRS"], second.as_str());
    delivery.until_healthy(CONTROLLERS).await?;
    Ok(both("two"))
}
