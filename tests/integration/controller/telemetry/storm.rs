//! A storm of failures through a controller: calls about Events stay within what the operator set, and whatever is not told
//! is counted by its cause.

mod alone;

use std::collections::BTreeMap;

use agents::api::contract::{env, metric};
use agents::api::kind::Kind;
use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;
use kube::api::{ListParams, WatchEvent, WatchParams};
use nix::sys::signal::Signal;
use serde_json::json;
use support::otlp::{self, Labels, Received, Receiver};
use support::{gateway::Gateway, lab};
use tokio::time::{Instant, timeout};

use crate::controller::scene::{ALONE, DEADLINE, Scene};
use crate::events::within_the_hour;
use crate::kit::process::Process;

/// What the operator allows about one object in a minute; ten times that of one reason in one namespace.
const PER_MINUTE: usize = 2;

/// A controller whose calls are seen and whose counts are kept.
struct Storm {
    scene: Scene,
    controller: Process,
    receiver: Receiver,
    way: Gateway,
    started: Instant,
}

impl Storm {
    async fn begin() -> Result<Self> {
        let receiver = Receiver::start().await?;
        let scene = Scene::new(&[
            ALONE,
            (env::EVENTS_RATE_LIMIT_PER_MIN, &PER_MINUTE.to_string()),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &receiver.endpoint()),
            ("OTEL_METRIC_EXPORT_INTERVAL", "1000"),
        ])
        .await?;
        let way = Gateway::open(lab::shared().await?.kubeconfig(), None).await?;
        Ok(Self {
            controller: scene.controller_by(way.kubeconfig())?,
            scene,
            receiver,
            way,
            started: Instant::now(),
        })
    }

    /// Waits until so many of something were counted, all labels together.
    async fn until(&mut self, name: &str, count: usize) -> Result<()> {
        let all = |series: &BTreeMap<Labels, f64>| series.values().sum::<f64>() as usize >= count;
        self.receiver.until(name, all).await.map(drop)
    }

    /// Stops the controller, which then writes what is left and exports once more.
    async fn end(self) -> Result<Calm> {
        let Self {
            scene,
            controller,
            receiver,
            way,
            started,
        } = self;
        controller.signal(Signal::SIGTERM);
        let ended = controller.end().await;
        assert_eq!(ended.code, Some(0), "{}", ended.log.join("\n"));
        let mut counts = BTreeMap::new();
        for received in receiver.end().await? {
            if let Received::Metric(metric) = received {
                counts.insert(metric.name.clone(), otlp::read(&metric));
            }
        }
        let asides = way.asides();
        let about_events = asides.iter().filter(|call| call.contains("/events"));
        Ok(Calm {
            calls: about_events.count(),
            events: scene.here.api().list(&ListParams::default()).await?.items,
            minutes: usize::try_from(started.elapsed().as_secs() / 60 + 1)?,
            counts,
        })
    }
}

/// What a storm has left.
struct Calm {
    /// Calls about Events.
    calls: usize,
    events: Vec<Event>,
    /// Minutes that have begun since the start.
    minutes: usize,
    counts: BTreeMap<String, BTreeMap<Labels, f64>>,
}

impl Calm {
    /// What was counted last, all labels together.
    fn counted(&self, name: &str) -> Result<usize> {
        let series = self.counts.get(name);
        let series = series.with_context(|| format!("{name} was not exported"))?;
        Ok(series.values().sum::<f64>() as usize)
    }
}

#[tokio::test]
async fn a_thousand_failures_of_one_object_are_one_event() -> Result<()> {
    support::kinds!();
    within_the_hour(thousand_failures).await
}

async fn thousand_failures() -> Result<()> {
    const FAILURES: usize = 1_000;
    let mut storm = Storm::begin().await?;
    let (kind, name) = (Kind::AgentProvider, "wrong");
    let wrong = storm.scene.make(kind, name, json!({"binary": " "})).await?;
    let objects = storm.scene.any(kind);
    let versions = WatchParams::default().fields(&format!("metadata.name={name}"));
    let from = wrong.resource_version().context("a version")?;
    let mut versions = objects.watch(&versions, &from).await?.boxed();
    for failure in 1..=FAILURES {
        // One more write, and the same thing is wrong.
        if failure > 1 {
            let binary = " ".repeat(1 + (failure + 1) % 2);
            let spec = json!({"spec": {"binary": binary}});
            storm.scene.merge(kind, name, spec).await?;
        }
        let judged = async {
            while let Some(version) = versions.try_next().await? {
                let (WatchEvent::Added(object) | WatchEvent::Modified(object)) = version else {
                    continue;
                };
                if object.data["status"]["observedGeneration"] == failure {
                    return anyhow::Ok(());
                }
            }
            anyhow::bail!("the watch ended")
        };
        timeout(DEADLINE, judged).await??;
    }
    storm.until(metric::EVENTS_AGGREGATED, FAILURES - 1).await?;
    let calm = storm.end().await?;
    assert_eq!(calm.events.len(), 1, "{:?}", calm.events);
    let emitted = calm.counted(metric::EVENTS_EMITTED)?;
    let updated = calm.counted(metric::EVENTS_UPDATED)?;
    assert_eq!((emitted, calm.calls), (1, 1 + updated));
    let bound = 2 * calm.minutes;
    assert!(updated <= bound, "{updated} updates, {bound} at most");
    let series = calm.events[0].series.as_ref().map(|series| series.count);
    assert_eq!(series, Some(i32::try_from(FAILURES)?));
    Ok(())
}
