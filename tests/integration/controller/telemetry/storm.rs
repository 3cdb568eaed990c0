//! A storm of failures through a controller: calls about Events stay within what the operator set, and whatever is not told
//! is counted by its cause.
//!
//! Ten thousand objects would take minutes to be stored and failed, so 300 go through the controller here; `events::volume`
//! has the same emitter tell the same API server of ten thousand, and `layers::told` sees to it that nothing else writes Events.

use std::collections::BTreeMap;

use agents::api::contract::{env, metric};
use agents::api::kinds::AgentRun;
use anyhow::{Context, Result};
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use nix::sys::signal::Signal;
use serde_json::json;
use support::otlp::{self, Labels, Received, Receiver};
use support::{gateway::Gateway, lab, wait};
use tokio::time::Instant;

use crate::controller::scene::{ALONE, DEADLINE, Scene, phase_of};
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
async fn three_hundred_failing_objects_are_told_of_within_the_limit() -> Result<()> {
    const OBJECTS: usize = 300;
    support::kinds!();
    let storm = Storm::begin().await?;
    for number in 0..OBJECTS {
        let wrong = json!({"runtime": {"type": "temporal"}});
        storm.scene.run(&format!("run-{number}"), wrong).await?;
    }
    let runs = storm.scene.here.api::<AgentRun>();
    let all_failed = |runs: &[AgentRun]| {
        let failed = runs.iter().filter(|run| phase_of(run) == "Failed");
        failed.count() == OBJECTS
    };
    wait::until_listed(&runs, "", DEADLINE, all_failed).await?;
    let calm = storm.end().await?;
    let emitted = calm.counted(metric::EVENTS_EMITTED)?;
    let bound = 10 * PER_MINUTE * calm.minutes;
    assert!(
        (1..=bound).contains(&emitted),
        "{emitted} Events, {bound} at most"
    );
    assert_eq!(calm.events.len(), emitted);
    let updated = calm.counted(metric::EVENTS_UPDATED)?;
    assert_eq!((calm.calls, updated), (emitted, 0), "calls and repeats");
    let held_back = calm.counts[metric::EVENTS_SUPPRESSED].clone();
    let topic = vec!["limit=topic".to_owned()];
    assert_eq!(
        held_back.get(&topic).map(|count| format!("{count}")),
        Some((OBJECTS - emitted).to_string()),
        "{held_back:?}"
    );
    let lost = (
        calm.counted(metric::EVENTS_DROPPED)?,
        calm.counted(metric::EVENTS_ERRORS)?,
    );
    assert_eq!(lost, (0, 0), "{:?}", calm.counts[metric::EVENTS_DROPPED]);
    Ok(())
}
