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
use serde_json::json;
use support::wait;
use tokio::task::JoinSet;

use super::{CONTROLLERS, Delivery, is_ready};
use crate::chart::install::stage::DEADLINE;

/// Pods that are wanted of each component.
const WANTED: [(&str, usize); 2] = [("control-plane", 1), ("controllers", 2)];

/// Counts the ready pods of a component at every change of any of them.
struct Watch {
    component: &'static str,
    least: Arc<AtomicUsize>,
    task: JoinSet<Result<()>>,
}

impl Watch {
    fn start(pods: Api<Pod>, (component, wanted): (&'static str, usize)) -> Self {
        let least = Arc::new(AtomicUsize::new(wanted));
        let seen = least.clone();
        let labels = format!("app.kubernetes.io/component={component}");
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
        Self {
            component,
            least,
            task,
        }
    }

    /// The least number that there ever was, if nothing was missed.
    fn end(mut self) -> Result<(&'static str, usize)> {
        let ended = self.task.try_join_next();
        ensure!(ended.is_none(), "nobody watched to the end: {ended:?}");
        Ok((self.component, self.least.load(Ordering::Relaxed)))
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

#[tokio::test]
async fn the_staged_switch_keeps_every_pod_that_is_wanted_both_ways() -> Result<()> {
    support::node_lab!();
    let delivery = Delivery::enter().await?;
    delivery.put("install", &json!({})).await?;
    until_deployed(&delivery).await?;
    let services = delivery.services().await?;
    let pods = delivery.stage.here.api::<Pod>();
    let watches = WANTED.map(|wanted| Watch::start(pods.clone(), wanted));

    let stage = |mode: &str| json!({"progressiveDelivery": {"enabled": true, "mode": mode}});
    let jump = delivery.put("upgrade", &stage("rollout")).await;
    let said = format!("{:#}", jump.unwrap_err());
    let gap = "the Deployment agents-controllers would go while the Rollout has 0 of 2 pods";
    assert!(said.contains(gap), "{said}");

    delivery.put("upgrade", &stage("both")).await?;
    for name in [CONTROLLERS, "agents"] {
        delivery.until_healthy(name).await?;
        delivery.say(&["status", name, "--timeout=120s"]).await?;
    }
    delivery.put("upgrade", &stage("rollout")).await?;
    until_only(&delivery, "rollouts-pod-template-hash").await?;
    assert_eq!(delivery.services().await?, services);

    let jump = delivery.put("upgrade", &json!({})).await;
    let said = format!("{:#}", jump.unwrap_err());
    let gap = "the Rollout agents-controllers would go while the Deployment has 0 of 2 pods";
    assert!(said.contains(gap), "{said}");

    delivery.put("upgrade", &stage("both")).await?;
    until_deployed(&delivery).await?;
    delivery.put("upgrade", &json!({})).await?;
    until_only(&delivery, "pod-template-hash").await?;
    assert_eq!(delivery.services().await?, services);
    for watch in watches {
        let (component, least) = watch.end()?;
        let wanted = WANTED.iter().find(|(name, _)| *name == component);
        assert_eq!(Some(&(component, least)), wanted);
    }
    delivery.stage.uninstall().await
}
