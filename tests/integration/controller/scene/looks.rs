//! How often a controller looks at its objects, as its metrics tell, and what it writes meanwhile.

use std::collections::BTreeMap;

use agents::api::contract::{metric, reporter};
use agents::api::kind::Kind;
use anyhow::{Context, Result, bail, ensure};
use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::ListParams;
use support::gateway::Gateway;
use support::lab;
use support::otlp::{Labels, Receiver};
use tokio::time::timeout;

use super::{DEADLINE, Scene};
use crate::kit::process::Process;

/// So often an object is looked at until all is said that there was to say about it.
const FEW: u32 = 20;
const MANY: u32 = 100;
/// Until then everything is settled.
const ROUNDS: usize = 20;

/// Receives the metrics of the controllers of one scene, and sees their requests.
pub(in crate::controller) struct Looks {
    receiver: Receiver,
    way: Gateway,
    events: Api<Event>,
}

impl Scene {
    /// A namespace whose controllers look at everything again and again, and tell how often.
    pub(in crate::controller) async fn watched() -> Result<(Self, Looks)> {
        let receiver = Receiver::start().await?;
        let scene = Self::new(&[
            ("AGENTS_CONTROLLER_SWEEP_SECONDS", "20ms"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &receiver.endpoint()),
            ("OTEL_METRIC_EXPORT_INTERVAL", "1000"),
        ])
        .await?;
        let way = Gateway::open(lab::shared().await?.kubeconfig(), None).await?;
        let events = scene.here.api();
        let looks = Looks {
            receiver,
            way,
            events,
        };
        Ok((scene, looks))
    }
}

impl Looks {
    /// Starts a controller whose requests are seen.
    pub(in crate::controller) fn controller(&self, scene: &Scene) -> Result<Process> {
        scene.controller_by(self.way.kubeconfig())
    }

    /// Waits until the objects of each kind, so many of it, were looked at about a hundred times more each. Meanwhile no
    /// object is written, not even with what it has already, and nothing happens that would be told. Events of what
    /// happened before may still wait for their turn.
    pub(in crate::controller) async fn hundred_looks(
        &mut self,
        objects: &[(Kind, u32)],
    ) -> Result<()> {
        let untold = self.settle(objects).await?;
        let (before, since) = (self.way.writes(), Timestamp::now());
        self.looks(objects, MANY).await?;
        let after = self.way.writes();
        ensure!(after == before, "{:?}", &after[before.len()..]);
        let told = self.told_since(since).await?;
        ensure!(told.is_empty(), "{told:#?}");
        ensure!(self.untold().await? == untold, "more was not told");
        Ok(())
    }

    /// Waits until some looks find nothing to write or to tell, after everything that was written is answered. Gives what
    /// was not told until then.
    async fn settle(&mut self, objects: &[(Kind, u32)]) -> Result<BTreeMap<Labels, f64>> {
        for _ in 0..ROUNDS {
            let (written, untold) = (self.way.answered(), self.untold().await?);
            self.looks(objects, FEW).await?;
            if written.is_some() && self.way.answered() == written && self.untold().await? == untold
            {
                return Ok(untold);
            }
        }
        bail!("always something to write: {:?}", self.way.writes())
    }

    /// Events about what has happened since.
    async fn told_since(&self, since: Timestamp) -> Result<Vec<Event>> {
        let is_ours = |event: &Event| {
            let reporter = event.reporting_controller.as_deref();
            reporter == Some(reporter::CONTROLLER)
        };
        let is_new = |event: &Event| {
            let series = event.series.as_ref();
            let last = series.map(|series| &series.last_observed_time);
            let last = last.or(event.event_time.as_ref());
            last.is_none_or(|time| time.0 >= since)
        };
        let events = self.events.list(&ListParams::default()).await?;
        let new = events.items.into_iter();
        let new = new.filter(|event| is_ours(event) && is_new(event));
        Ok(new.collect())
    }

    /// What would have been told, but was only counted, held back or dropped, as the next exports say.
    async fn untold(&mut self) -> Result<BTreeMap<Labels, f64>> {
        let mut counts = BTreeMap::new();
        for name in [
            metric::EVENTS_AGGREGATED,
            metric::EVENTS_SUPPRESSED,
            metric::EVENTS_DROPPED,
        ] {
            let series = self.receiver.series(name).await?.into_iter();
            counts.extend(series.map(|(mut labels, count)| {
                labels.push(name.to_owned());
                (labels, count)
            }));
        }
        Ok(counts)
    }

    async fn looks(&mut self, objects: &[(Kind, u32)], times: u32) -> Result<()> {
        let start = self.reconciles().await?;
        let mut seen = start.clone();
        let is_short = |seen: &BTreeMap<String, f64>| {
            let short = objects.iter().filter(|(kind, count)| {
                let looks = |counts: &BTreeMap<String, f64>| {
                    counts.get(kind.as_str()).copied().unwrap_or_default()
                };
                looks(seen) - looks(&start) < f64::from(count * times)
            });
            short.count() > 0
        };
        let looking = async {
            while is_short(&seen) {
                seen = self.reconciles().await?;
            }
            anyhow::Ok(())
        };
        let looked = timeout(DEADLINE, looking).await;
        looked.with_context(|| format!("from {start:?} to {seen:?} for {objects:?}"))?
    }

    /// Reconciles of each kind so far, as the next export says.
    async fn reconciles(&mut self) -> Result<BTreeMap<String, f64>> {
        let counts = self.receiver.series(metric::RECONCILES).await?;
        let mut by_kind = BTreeMap::new();
        for (labels, count) in &counts {
            let kind = labels.iter().find_map(|label| label.strip_prefix("kind="));
            *by_kind
                .entry(kind.unwrap_or_default().to_owned())
                .or_default() += count;
        }
        Ok(by_kind)
    }
}
