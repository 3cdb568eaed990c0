//! How Jobs stand, read from the board when someone asks.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use super::{Resource, ResourceLabels};
use crate::jobs::board::Board;
use crate::jobs::view::State;

/// What is read from the board when someone asks.
#[derive(Debug)]
pub(super) struct Gauges(pub(super) Arc<Board>);

impl Collector for Gauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let figures = self.0.figures();
        let now = Timestamp::now();
        let age = |since: Timestamp| now.duration_since(since).as_secs_f64().max(0.0);
        let mut known = encoder.encode_descriptor(
            "job_known",
            "Jobs that there are, by state; in the cluster, as every replica sees it: take the maximum",
            None,
            MetricType::Gauge,
        )?;
        for (&state, count) in State::ALL.iter().zip(figures.states) {
            let labels = KnownLabels { state };
            let series = known.encode_family(&labels)?;
            ConstGauge::new(number(count)).encode(series)?;
        }
        let mut up = encoder.encode_descriptor(
            "job_watch_up",
            "Whether all watches of a resource have their list and none is broken",
            None,
            MetricType::Gauge,
        )?;
        for &resource in Resource::ALL {
            let labels = ResourceLabels { resource };
            let series = up.encode_family(&labels)?;
            ConstGauge::new(i64::from(self.0.is_up(resource))).encode(series)?;
        }
        let mut gauge = |name, help, unit: Option<&Unit>, value: f64| {
            let metric = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
            ConstGauge::new(value).encode(metric)
        };
        let seconds = Some(&Unit::Seconds);
        gauge(
            "job_unrecorded",
            "Jobs that have ended and whose outcome is not stored; in the cluster, as every replica sees it: take the maximum",
            None,
            number(figures.unrecorded),
        )?;
        gauge(
            "job_oldest_unrecorded",
            "Time since the first of those ended; in the cluster, as every replica sees it: take the maximum",
            seconds,
            figures.oldest.map_or(0.0, age),
        )?;
        gauge(
            "job_orphaned_pods",
            "Pods of ours that no Job looks after any more; in the cluster, as every replica sees it: take the maximum",
            None,
            number(self.0.orphans()),
        )?;
        let headroom = encoder.encode_descriptor(
            "job_ttl_headroom",
            "Time until the first of those is removed by its time to live, negative if only our finalizer holds it; no number if none has one; in the cluster, as every replica sees it: take the minimum",
            seconds,
            MetricType::Gauge,
        )?;
        match figures.due {
            Some(due) => ConstGauge::new(due.duration_since(now).as_secs_f64()).encode(headroom),
            None => Ok(()),
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "every format of Prometheus has doubles only"
)]
fn number(count: u64) -> f64 {
    count as f64
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KnownLabels {
    state: State,
}
