//! How often a controller looks at its objects, as its metrics tell, and what it writes meanwhile.

use std::collections::BTreeMap;

use agents::api::contract::metric;
use agents::api::kind::Kind;
use anyhow::{Context, Result, ensure};
use support::gateway::Gateway;
use support::lab;
use support::otlp::Receiver;
use tokio::time::timeout;

use super::{DEADLINE, Scene};
use crate::kit::process::Process;

/// So often an object is looked at until all is said that there was to say about it.
const FEW: u32 = 5;
const MANY: u32 = 100;

/// Receives the metrics of the controllers of one scene, and sees their requests.
pub(in crate::controller) struct Looks {
    receiver: Receiver,
    way: Gateway,
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
        Ok((scene, Looks { receiver, way }))
    }
}

impl Looks {
    /// Starts a controller whose requests are seen.
    pub(in crate::controller) fn controller(&self, scene: &Scene) -> Result<Process> {
        scene.controller_by(self.way.kubeconfig())
    }

    /// Waits until the objects of each kind, so many of it, were looked at about a hundred times more each. No object is
    /// written meanwhile, not even with what it has already. Events of what happened before may still wait for their turn.
    pub(in crate::controller) async fn hundred_looks(
        &mut self,
        objects: &[(Kind, u32)],
    ) -> Result<()> {
        self.looks(objects, FEW).await?;
        let before = self.way.writes();
        self.looks(objects, MANY).await?;
        let after = self.way.writes();
        ensure!(after == before, "{:?}", &after[before.len()..]);
        Ok(())
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
