//! Opens the ports for OTLP, and lets what is silent go.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use agents::kit::{
    http::{Limits, Server, Transport},
    program::{Error, Program, listen_on},
};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};
use tokio::time::{MissedTickBehavior, interval};

use super::{Metrics, Receiver, Receiving, Settings};
use crate::{
    forward::Forward,
    memory::{self, Stage, Watch},
    store::{Cause, Patience, Rules, Store},
};

/// Requests whose bytes are in memory at once, if each is as large as it may be.
const AT_ONCE: usize = 8;

/// Senders at once; a pod has few.
const CONNECTIONS: usize = 256;

/// For how many times as long as it is shown what is silent is known.
const KNOWN: u64 = 2;

/// Takes OTLP from now on.
///
/// # Errors
///
/// When a port cannot be opened.
pub async fn start(
    program: &mut Program,
    settings: &Settings,
    memory: Watch,
    forward: Option<Forward>,
) -> Result<Arc<Store>, Error> {
    let rules = Rules {
        limits: memory::within(memory.limit(), settings.rules.limits),
        ..settings.rules
    };
    let store = Arc::new(Store::new(rules, super::pairs));
    let since = Instant::now();
    let receiver = Receiver::new(Receiving {
        store: Arc::clone(&store),
        most: settings.request,
        in_flight: settings.request.saturating_mul(AT_ONCE),
        memory: memory.clone(),
        forward,
        metrics: Metrics::register(program.metrics()),
        since,
    });
    program
        .metrics()
        .register_collector(Box::new(Held(Arc::clone(&store))));
    for (name, address) in [("otlp-grpc", settings.grpc), ("otlp-http", settings.http)] {
        let server = Server {
            listener: listen_on(name, address).await?,
            transport: Transport::Plain,
            limits: Limits {
                connections: CONNECTIONS,
                ..Limits::default()
            },
            metrics: program.http.of(name),
        };
        let receiver = receiver.clone();
        program.tasks.work(name, |shutdown| async move {
            server.serve(receiver, shutdown).await;
            Ok(())
        });
    }
    let swept = Arc::clone(&store);
    let (series, target) = (settings.expiry, settings.target_expiry);
    let patience = Patience {
        series: series.as_secs(),
        target: target.as_secs(),
        known: KNOWN,
    };
    program.tasks.work("expiry", |shutdown| async move {
        tokio::select! {
            _ = shutdown.started() => {}
            () = sweep(&swept, patience, since, &memory) => {}
        }
        Ok(())
    });
    Ok(store)
}

/// Looks ten times in the time that something may be silent. Where memory is short, what is no longer shown is not kept either.
async fn sweep(store: &Store, patience: Patience, since: Instant, memory: &Watch) {
    let shortest = patience.series.min(patience.target);
    let mut ticks = interval(Duration::from_secs(shortest) / 10);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let patience = match memory.stage(store.weight()) {
            Stage::Free => patience,
            Stage::Soft | Stage::Hard => Patience {
                known: 1,
                ..patience
            },
        };
        let expired = store.sweep(since.elapsed().as_secs(), patience);
        if expired.hidden + expired.forgotten > 0 {
            let (hidden, forgotten) = (expired.hidden, expired.forgotten);
            tracing::debug!(hidden, forgotten, "Series expired");
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CauseLabel {
    cause: Cause,
}

/// What the store holds, as it stands at a scrape.
#[derive(Debug)]
struct Held(Arc<Store>);

impl Collector for Held {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let store = &self.0;
        let held = [
            (
                "otlp_series",
                "Series that are known, hidden ones included",
                store.series(),
            ),
            ("otlp_families", "Names of metrics", store.families()),
            (
                "otlp_targets",
                "Targets that were heard of lately",
                store.targets(),
            ),
            (
                "otlp_series_bytes",
                "Memory that series take, about",
                store.weight(),
            ),
        ];
        for (name, help, value) in held {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            let kind = EncodeMetric::metric_type(&gauge);
            gauge.encode(encoder.encode_descriptor(name, help, None, kind)?)?;
        }
        let mut expired = encoder.encode_descriptor(
            "otlp_expired_series",
            "Series that left the page because they or all of their target are no longer sent, by cause",
            None,
            MetricType::Counter,
        )?;
        for (cause, count) in store.expired() {
            let labels = CauseLabel { cause };
            ConstCounter::new(count).encode(expired.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
