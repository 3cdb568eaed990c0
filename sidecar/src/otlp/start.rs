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
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::gauge::ConstGauge,
};
use tokio::time::{MissedTickBehavior, interval};

use super::{Metrics, Receiver, Receiving, Settings};
use crate::{
    forward::Forward,
    memory::{self, Stage, Watch},
    store::{Rules, Store},
};

/// Requests whose bytes are in memory at once, if each is as large as it may be.
const AT_ONCE: usize = 8;

/// Senders at once; a pod has few.
const CONNECTIONS: usize = 256;

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
    let expiry = settings.expiry;
    program.tasks.work("expiry", |shutdown| async move {
        tokio::select! {
            _ = shutdown.started() => {}
            () = sweep(&swept, expiry, since, &memory) => {}
        }
        Ok(())
    });
    Ok(store)
}

/// Looks ten times in the time that a series may be silent. Where memory is short, what is no longer shown is not kept either.
async fn sweep(store: &Store, expiry: Duration, since: Instant, memory: &Watch) {
    let mut ticks = interval(expiry / 10);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let now = since.elapsed();
        let seconds = |ago: Duration| now.saturating_sub(ago).as_secs();
        let kept = match memory.stage(store.weight()) {
            Stage::Free => expiry * 2,
            Stage::Soft | Stage::Hard => expiry,
        };
        let expired = store.sweep(seconds(expiry), seconds(kept));
        if expired.hidden + expired.forgotten > 0 {
            let (hidden, forgotten) = (expired.hidden, expired.forgotten);
            tracing::debug!(hidden, forgotten, "Series expired");
        }
    }
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
        Ok(())
    }
}
