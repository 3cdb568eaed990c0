//! How often a controller looks at its objects, as its metrics tell.

use agents::api::contract::metric;
use anyhow::Result;
use support::otlp::Receiver;
use tokio::time::timeout;

use super::{DEADLINE, Scene};

/// Receives the metrics of the controllers of one scene.
pub(in crate::controller) struct Looks(Receiver);

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
        Ok((scene, Looks(receiver)))
    }
}

impl Looks {
    /// Waits until each of so many objects was looked at about a hundred times more.
    pub(in crate::controller) async fn hundred_looks(&mut self, objects: u32) {
        let start = self.reconciles().await;
        let (wanted, mut seen) = (start + f64::from(100 * objects), start);
        let looking = async {
            while seen < wanted {
                seen = self.reconciles().await;
            }
        };
        let in_time = timeout(DEADLINE, looking).await.is_ok();
        assert!(in_time, "{seen} reconciles instead of {wanted}");
    }

    /// Reconciles of all kinds so far, as the next export says.
    async fn reconciles(&mut self) -> f64 {
        let counts = self.0.series(metric::RECONCILES).await;
        counts.expect("an export").values().sum()
    }
}
