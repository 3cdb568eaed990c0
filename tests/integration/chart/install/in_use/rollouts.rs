//! Real pods under a real Argo Rollouts: how a release is switched to it and back, and how a new version of the controllers is
//! tried.

mod canary;
mod slice;
mod switch;

use std::time::Duration;

use agents::api::contract::annotation;
use anyhow::{Context, Result};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Pod, Service, ServiceSpec};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use support::{fixtures::repository, prometheus::Prometheus, rollouts, rollouts::Rollouts, wait};

use crate::chart::install::scraped;
use crate::chart::install::stage::{DEADLINE, Stage};

const CONTROLLERS: &str = "agents-controllers";
const CONTROL_PLANE: &str = "agents";
const LEASE: &str = "jangar-controller-leader";

/// A release in the hands of a controller for Rollouts.
struct Delivery {
    stage: Stage,
    argo: Rollouts,
}

impl Delivery {
    async fn enter() -> Result<Self> {
        let mut stage = Stage::enter().await?;
        // Helm 4 cannot read the status of a Rollout, in which a number is a text, and would wait for ever.
        stage.wait = "--wait=legacy";
        rollouts::install_kinds(stage.lab).await?;
        let argo = Rollouts::start(stage.lab, &stage.here.name).await?;
        Ok(Self { stage, argo })
    }

    /// Values for pods of the controllers and the control plane, and more.
    fn values(more: &Value) -> Value {
        let mut values = json!({
            "webhook": {"enabled": false},
            "controllers": {"replicaCount": 2},
        });
        crate::chart::variables::merge(&mut values, more);
        values
    }

    /// A Prometheus with the rules of the chart, which scrapes what the chart of these values means to be scraped.
    async fn prometheus(&self, values: &Value) -> Result<Prometheus> {
        let [_, pods] = scraped::monitors(&self.stage, values).await?;
        let settings = json!({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [repository().join("charts/agents/rules/gates.yaml")],
            "scrape_configs": [pods],
        });
        Prometheus::inside(self.stage.lab, &settings).await
    }

    /// Installs or upgrades.
    async fn put(&self, verb: &str, more: &Value) -> Result<()> {
        let said = self.stage.put(verb, &Self::values(more)).await;
        said.map(drop).with_context(|| self.argo.log())
    }

    /// What a person says by `kubectl argo rollouts`; it must be fine.
    async fn say(&self, words: &[&str]) -> Result<String> {
        let said = self.argo.say(&self.stage.here.name, words).await?;
        said.ok().with_context(|| self.argo.log())
    }

    /// Waits until a Rollout is as wanted, and gives its status.
    async fn until(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let rollouts = self.kind("Rollout");
        let is = |found: Option<&DynamicObject>| {
            found.is_some_and(|rollout| is_seen(rollout) && wanted(&rollout.data["status"]))
        };
        let found = wait::until_any(&rollouts, what, name, DEADLINE, is).await;
        let found = found.with_context(|| self.argo.log())?;
        Ok(found.context("a Rollout")?.data["status"].take())
    }

    /// Waits until a Rollout has all its pods, all of the newest version.
    async fn until_healthy(&self, name: &str) -> Result<Value> {
        let healthy = |status: &Value| status["phase"] == "Healthy";
        self.until(name, "a healthy Rollout", healthy).await
    }

    fn kind(&self, kind: &str) -> Api<DynamicObject> {
        let known = GroupVersionKind::gvk("argoproj.io", "v1alpha1", kind);
        let here = &self.stage.here;
        Api::namespaced_with(
            here.client.clone(),
            &here.name,
            &ApiResource::from_gvk(&known),
        )
    }

    /// What Services mean: everything but who wrote what when.
    async fn services(&self) -> Result<Vec<(String, Option<ServiceSpec>)>> {
        let services = self.stage.here.api::<Service>();
        let all = services.list(&ListParams::default()).await?;
        let known = all
            .into_iter()
            .map(|service| (service.name_any(), service.spec));
        Ok(known.collect())
    }

    /// Waits until a pod of a version holds the lease.
    async fn until_held_by(&self, revision: &str, within: Duration) -> Result<()> {
        let leases = self.stage.here.api::<Lease>();
        let held = |lease: &Lease| holder_revision(lease) == Some(revision);
        wait::until(&leases, LEASE, within, held).await.map(drop)
    }

    /// The version that holds the lease now.
    async fn held_by(&self) -> Result<String> {
        let lease = self.stage.here.api::<Lease>().get(LEASE).await?;
        let revision = holder_revision(&lease).context("a version that holds the lease")?;
        Ok(revision.to_owned())
    }
}

/// Whether the controller for Rollouts has seen the newest spec.
fn is_seen(rollout: &DynamicObject) -> bool {
    let generation = rollout.metadata.generation.map(|number| number.to_string());
    rollout.data["status"]["observedGeneration"].as_str() == generation.as_deref()
}

fn holder_revision(lease: &Lease) -> Option<&str> {
    let holder = lease.spec.as_ref()?.holder_identity.as_deref()?;
    let revision = lease.annotations().get(annotation::HOLDER_REVISION)?;
    (!holder.is_empty()).then_some(revision)
}

/// Whether a pod is ready and is to stay.
fn is_ready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .iter()
        .flat_map(|status| &status.conditions)
        .flatten();
    let ready = |condition: &k8s_openapi::api::core::v1::PodCondition| {
        condition.type_ == "Ready" && condition.status == "True"
    };
    pod.metadata.deletion_timestamp.is_none() && conditions.into_iter().any(ready)
}

#[tokio::test]
async fn a_release_goes_over_to_rollouts_tries_versions_and_comes_back_without_a_gap() -> Result<()>
{
    support::node_lab!();
    let delivery = Delivery::enter().await?;
    delivery.put("install", &json!({})).await?;
    let services = delivery.services().await?;
    switch::there(&delivery).await?;
    let kinds = delivery
        .stage
        .here
        .kubectl
        .run(&["get", "crd"])
        .await?
        .ok()?;
    assert!(kinds.contains("rollouts.argoproj.io "), "{kinds}");
    let get = ["get", "rollout", "--output=name"];
    let found = delivery.stage.here.kubectl.run(&get).await?.ok()?;
    assert_eq!(
        found.lines().collect::<Vec<_>>(),
        [
            "rollout.argoproj.io/agents",
            "rollout.argoproj.io/agents-controllers"
        ]
    );
    assert_eq!(delivery.services().await?, services);
    let kept = canary::several(&delivery).await?;
    let kept = canary::of_the_control_plane(&delivery, &kept).await?;
    assert_eq!(delivery.services().await?, services);
    switch::back(&delivery, &kept).await?;
    assert_eq!(delivery.services().await?, services);
    delivery.stage.uninstall().await
}
