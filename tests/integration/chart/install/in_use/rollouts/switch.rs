//! From Deployments to Rollouts and back, without a moment in which pods are missing.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, ensure};
use futures::TryStreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use support::wait;
use tokio::task::JoinSet;

use super::{CONTROL_PLANE, CONTROLLERS, Delivery, is_ready};
use crate::chart::install::stage::DEADLINE;
use crate::chart::variables::merge;

/// Pods that are wanted of each component.
const WANTED: [(&str, usize); 2] = [("control-plane", 1), ("controllers", 2)];

/// Counts the ready pods of a component at every change of any of them.
struct Watch {
    of: (&'static str, usize),
    least: Arc<AtomicUsize>,
    task: JoinSet<Result<()>>,
}

impl Watch {
    fn start(pods: Api<Pod>, of: (&'static str, usize)) -> Self {
        let least = Arc::new(AtomicUsize::new(usize::MAX));
        let seen = least.clone();
        let labels = format!("app.kubernetes.io/component={}", of.0);
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut events = pin!(watcher(pods, Config::default().labels(&labels)));
            let mut known = BTreeMap::new();
            let mut is_listed = false;
            while let Some(event) = events.try_next().await? {
                match event {
                    Event::Init => is_listed = false,
                    Event::InitDone => is_listed = true,
                    Event::Apply(pod) | Event::InitApply(pod) => {
                        known.insert(pod.name_any(), is_ready(&pod));
                    }
                    Event::Delete(pod) => drop(known.remove(&pod.name_any())),
                }
                if is_listed {
                    let ready = known.values().filter(|ready| **ready).count();
                    seen.fetch_min(ready, Ordering::Relaxed);
                }
            }
            Ok(())
        });
        Self { of, least, task }
    }

    /// There were never fewer than wanted, and nothing was missed.
    fn end(mut self) -> Result<()> {
        let ended = self.task.try_join_next();
        ensure!(ended.is_none(), "nobody watched to the end: {ended:?}");
        let (component, wanted) = self.of;
        let least = self.least.load(Ordering::Relaxed);
        ensure!(least >= wanted, "{component}: {least} of {wanted} pods");
        Ok(())
    }
}

/// The Deployment of the controllers is there and has its pods.
async fn until_deployed(delivery: &Delivery) -> Result<()> {
    let deployments = delivery.stage.here.api::<Deployment>();
    let available = |deployment: &Deployment| {
        let status = deployment.status.as_ref();
        status.and_then(|status| status.available_replicas) == Some(2)
    };
    wait::until(&deployments, CONTROLLERS, DEADLINE, available)
        .await
        .map(drop)
}

/// Waits until no pod is left that the other kind had.
async fn until_only(delivery: &Delivery, label: &str) -> Result<()> {
    let pods = delivery.stage.here.api::<Pod>();
    for (component, wanted) in WANTED {
        let labels = format!("app.kubernetes.io/component={component}");
        let settled = |pods: &[Pod]| {
            let has = |pod: &&Pod| pod.labels().contains_key(label);
            pods.len() == wanted && pods.iter().filter(has).count() == wanted
        };
        wait::until_listed(&pods, &labels, DEADLINE, settled).await?;
    }
    Ok(())
}

fn watch(delivery: &Delivery) -> [Watch; 2] {
    WANTED.map(|wanted| Watch::start(delivery.stage.here.api(), wanted))
}

/// Values of a stage of the switch, and more.
fn stage(mode: &str, more: &Value) -> Value {
    let mut values = json!({"progressiveDelivery": {"enabled": true, "mode": mode}});
    merge(&mut values, more);
    values
}

/// An upgrade that is refused, since pods would be missing.
async fn jump(delivery: &Delivery, values: &Value, gap: &str) -> Result<()> {
    let jump = delivery.put("upgrade", values).await;
    let said = format!("{:#}", jump.unwrap_err());
    ensure!(said.contains(gap), "{said}");
    Ok(())
}

/// From Deployments to Rollouts.
pub(super) async fn there(delivery: &Delivery) -> Result<()> {
    until_deployed(delivery).await?;
    let watches = watch(delivery);
    let gap = "the Deployment agents-controllers would go while the Rollout has 0 of 2 pods";
    jump(delivery, &stage("rollout", &json!({})), gap).await?;
    delivery.put("upgrade", &stage("both", &json!({}))).await?;
    for name in [CONTROLLERS, CONTROL_PLANE] {
        delivery.until_healthy(name).await?;
        delivery.say(&["status", name, "--timeout=120s"]).await?;
    }
    delivery
        .put("upgrade", &stage("rollout", &json!({})))
        .await?;
    until_only(delivery, "rollouts-pod-template-hash").await?;
    watches.into_iter().try_for_each(Watch::end)
}

/// The same way back, with the version that was kept.
pub(super) async fn back(delivery: &Delivery, kept: &Value) -> Result<()> {
    let watches = watch(delivery);
    let gap = "the Rollout agents-controllers would go while the Deployment has 0 of 2 pods";
    jump(delivery, kept, gap).await?;
    delivery.put("upgrade", &stage("both", kept)).await?;
    until_deployed(delivery).await?;
    delivery.put("upgrade", kept).await?;
    until_only(delivery, "pod-template-hash").await?;
    watches.into_iter().try_for_each(Watch::end)
}
