//! What is shown of the memory.

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::gauge::ConstGauge,
    registry::Unit,
};

use super::{Watch, cgroup};

/// How it stands at a scrape.
#[derive(Debug)]
pub(super) struct Shown(pub(super) Watch);

impl Collector for Shown {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let bytes =
            |bytes: Option<usize>| i64::try_from(bytes.unwrap_or_default()).unwrap_or(i64::MAX);
        let stage = i64::from(self.0.last());
        let shown = [
            (
                "memory_limit",
                "Memory to stay within; 0 if there is no bound",
                Some(&Unit::Bytes),
                bytes(self.0.limit()),
            ),
            (
                "memory_resident",
                "Memory that the process takes",
                Some(&Unit::Bytes),
                bytes(cgroup::resident()),
            ),
            (
                "memory_stage",
                "How close the limit is: 0 far off, 1 senders are told to come back, 2 so are those that were let in already",
                None,
                stage,
            ),
        ];
        for (name, help, unit, value) in shown {
            let gauge = ConstGauge::new(value);
            let kind = EncodeMetric::metric_type(&gauge);
            gauge.encode(encoder.encode_descriptor(name, help, unit, kind)?)?;
        }
        Ok(())
    }
}
