//! A storm of failures through a controller: calls about Events stay within what the operator set, and whatever is not told
//! is counted by its cause. `layers::told` sees to it that nothing but the emitter writes Events.

mod alone;

use std::collections::BTreeMap;
use std::pin::pin;

use agents::api::contract::{env, metric, reporter};
use agents::api::kind::Kind;
use anyhow::{Context, Result, bail};
use futures::{TryStreamExt, future, stream};
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use kube::core::DynamicObject;
use kube::runtime::{WatchStreamExt, watcher};
use nix::sys::signal::Signal;
use serde_json::json;
use support::otlp::{self, Labels, Received, Receiver};
use support::{gateway::Gateway, lab};
use tokio::time::{Instant, timeout};

use crate::controller::scene::{ALONE, DEADLINE, Scene};
use crate::kit::process::Process;

/// What the operator allows about one object in a minute; ten times that of one reason in one namespace.
const PER_MINUTE: usize = 2;

/// The smallest object that fails by itself.
const KIND: Kind = Kind::Signal;
/// No channel is called so.
const WRONG: &str = " ";

/// Objects that are made at the same time.
const AT_ONCE: usize = 32;

/// A controller whose calls are seen and whose counts are kept.
struct Storm {
    scene: Scene,
    controller: Process,
    receiver: Receiver,
    way: Gateway,
    started: Instant,
}

impl Storm {
    /// So many objects are there that fail, then the controller comes.
    async fn begin(objects: usize) -> Result<Self> {
        let receiver = Receiver::start().await?;
        let scene = Scene::with_agent(&[
            ALONE,
            (env::EVENTS_RATE_LIMIT_PER_MIN, &PER_MINUTE.to_string()),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &receiver.endpoint()),
            ("OTEL_METRIC_EXPORT_INTERVAL", "1000"),
            ("OTEL_TRACES_EXPORTER", "none"),
        ])
        .await?;
        let names = (0..objects).map(|number| format!("signal-{number}"));
        let names = stream::iter(names.map(Ok::<_, anyhow::Error>));
        names
            .try_for_each_concurrent(AT_ONCE, |name| {
                let scene = &scene;
                async move {
                    let wrong = json!({"channel": WRONG});
                    scene.make(KIND, &name, wrong).await.map(drop)
                }
            })
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
        let minutes = usize::try_from(started.elapsed().as_secs() / 60 + 1)?;
        let mut counts = BTreeMap::new();
        for received in receiver.end().await? {
            if let Received::Metric(metric) = received {
                counts.insert(metric.name.clone(), otlp::read(&metric));
            }
        }
        let asides = way.asides();
        let about_events = asides.iter().filter(|call| call.contains("/events"));
        let events = scene.here.api::<Event>();
        let events = events.list(&ListParams::default()).await?.items.into_iter();
        let is_ours = |event: &Event| {
            let reporter = event.reporting_controller.as_deref();
            reporter == Some(reporter::CONTROLLER)
        };
        Ok(Calm {
            calls: about_events.count(),
            events: events.filter(is_ours).collect(),
            minutes,
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

    /// What was counted last under one label.
    fn counted_as(&self, name: &str, label: &str) -> Result<usize> {
        let series = self.counts.get(name);
        let count = series.and_then(|series| series.get(&vec![label.to_owned()]));
        let count = count.with_context(|| format!("{name} has no {label}"))?;
        Ok(*count as usize)
    }

    /// Events about specs that are wrong, of objects whose names begin so.
    fn about_specs(&self, start: &str) -> Vec<&Event> {
        let is_about = |event: &&Event| {
            let regarding = event.regarding.as_ref();
            let name = regarding.and_then(|regarding| regarding.name.as_deref());
            let is_told = event.reason.as_deref() == Some("InvalidSpec");
            is_told && name.is_some_and(|name| name.starts_with(start))
        };
        self.events.iter().filter(is_about).collect()
    }

    /// Every call is one that stored an Event or the count of one; nothing was lost on the way.
    fn is_accounted_for(&self) -> Result<()> {
        let (emitted, updated) = (
            self.counted(metric::EVENTS_EMITTED)?,
            self.counted(metric::EVENTS_UPDATED)?,
        );
        assert_eq!(self.calls, emitted + updated, "calls");
        assert_eq!(self.events.len(), emitted, "{:#?}", self.events);
        let lost = (
            self.counted(metric::EVENTS_DROPPED)?,
            self.counted(metric::EVENTS_ERRORS)?,
        );
        assert_eq!(lost, (0, 0), "{:?}", self.counts[metric::EVENTS_DROPPED]);
        Ok(())
    }
}

/// Whether an object says that its spec is wrong, and nothing else. One that others change all the time says now and then
/// that the controller cannot keep up, which is no failure of the spec.
fn is_judged(object: &DynamicObject) -> bool {
    let status = &object.data["status"];
    let is_new = status["observedGeneration"].as_i64() == object.metadata.generation;
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    let keeps_up = !conditions.any(|entry| entry["reason"] == "ReconcileFailed");
    is_new && keeps_up && status["phase"] == "Invalid"
}

/// Has an object fail so often, each time after a change. Each failure is seen before the next, or several would be one.
async fn fail(
    scene: &Scene,
    name: &str,
    failures: usize,
    change: impl AsyncFn(usize) -> Result<()>,
) -> Result<()> {
    let states = watcher::watch_object(scene.any(KIND), name).default_backoff();
    let mut states = pin!(states.try_filter_map(|object| future::ready(Ok(object))));
    for failure in 1..=failures {
        let failed = async {
            while let Some(object) = states.try_next().await? {
                if is_judged(&object) {
                    return Ok(());
                }
            }
            bail!("the watch ended")
        };
        let failed = timeout(DEADLINE, failed).await;
        failed.with_context(|| format!("failure {failure}"))??;
        if failure < failures {
            change(failure).await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_thousand_failures_of_one_object_are_one_event_and_new_specs_are_held_back() -> Result<()>
{
    const FAILURES: usize = 1_000;
    const SPECS: usize = 100;
    support::kinds!();
    let storm = Storm::begin(2).await?;
    let (scene, same, other) = (&storm.scene, "signal-0", "signal-1");
    // Someone else writes what is not so, and it fails again as it did before.
    let again = fail(scene, same, FAILURES, async |_| {
        let phase = json!({"phase": "Active"});
        scene.merge_status(KIND, same, phase).await
    });
    let anew = fail(scene, other, SPECS, async |failure| {
        let spec = json!({"description": failure.to_string()});
        scene.merge(KIND, other, json!({ "spec": spec })).await
    });
    future::try_join(again, anew).await?;
    let calm = storm.end().await?;
    calm.is_accounted_for()?;
    let [event] = calm.about_specs(same)[..] else {
        bail!("{:#?}", calm.events)
    };
    let series = event.series.as_ref().context("a series")?;
    let (count, repeats) = (series.count, calm.counted(metric::EVENTS_AGGREGATED)?);
    assert!(usize::try_from(count)? >= FAILURES, "only {count} counted");
    assert!(repeats + 1 >= FAILURES, "only {repeats} repeats");
    let told = calm.about_specs(other).len();
    assert!((1..=PER_MINUTE * calm.minutes).contains(&told), "{told}");
    let held_back = calm.counted_as(metric::EVENTS_SUPPRESSED, "limit=object")?;
    assert!(told + held_back >= SPECS, "{told}, {held_back} held back");
    // What is allowed about two objects, and at the end what was not written of each Event.
    let bound = 2 * PER_MINUTE * calm.minutes + calm.events.len();
    assert!(calm.calls <= bound, "{} calls, {bound} at most", calm.calls);
    Ok(())
}
