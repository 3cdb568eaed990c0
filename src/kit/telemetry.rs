//! Telemetry: logs on standard error, traces and metrics over OTLP, trace context across processes.
//!
//! Spans have ids even if nothing is exported, so that logs can always be joined; requests then have ids and no span, since
//! there are many of them and nobody would see it. Exporting never blocks the program:
//! what does not fit in the queue is dropped, failures are counted and logged now and then. Metrics that Prometheus
//! scrapes are not here but in the registry of the admin endpoint.

mod json;
mod otlp;
mod panics;
pub mod propagation;
mod settings;
mod text;

use std::{error::Error, io, mem, time::Duration};

use opentelemetry::{
    InstrumentationScope,
    metrics::{Meter, MeterProvider},
    trace::TracerProvider,
};
use opentelemetry_sdk::{metrics::SdkMeterProvider, trace::SdkTracerProvider};
use prometheus_client::registry::Registry;
use tokio::time::timeout;
use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, Targets},
    fmt,
    layer::SubscriberExt,
    util::{SubscriberInitExt, TryInitError},
};

pub use json::JsonLayer;
pub use otlp::ExportError;
pub use settings::{
    Endpoint, Headers, LogFilter, LogFormat, LogSettings, OtlpSettings, Requests, Sampling,
};

/// What the spans of requests are known by to those who choose among spans.
pub(super) const REQUEST_SPANS: &str = "agents::kit::http::request";

/// Who speaks.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// Name of the program.
    pub program: &'static str,
    /// Its version.
    pub version: &'static str,
    /// How it keeps secrets out of its log.
    pub clean: Clean,
}

/// Gives a text without what must not be in a log. Doing it twice changes nothing.
pub type Clean = fn(&str) -> String;

/// A text in a log line has at most this many bytes; what is longer is no log line but a dump.
const MAX_TEXT_BYTES: usize = 8 * 1024;

/// A text that was cleaned: what was whole until then may be cut.
fn cut(mut text: String) -> String {
    if text.len() > MAX_TEXT_BYTES {
        let whole = |end: &usize| text.is_char_boundary(*end);
        let end = (0..=MAX_TEXT_BYTES).rev().find(whole);
        text.truncate(end.unwrap_or_default());
        text += " [cut]";
    }
    text
}

/// Why telemetry could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The exporters cannot be built.
    #[error("could not set up the OTLP export")]
    Export(#[from] ExportError),
    /// There is a log already.
    #[error("could not install the log")]
    Log(#[from] TryInitError),
}

/// Running telemetry; [`Telemetry::flush`] it at the end or the last of it is lost.
#[derive(Debug)]
pub struct Telemetry {
    tracers: SdkTracerProvider,
    meters: SdkMeterProvider,
    scope: InstrumentationScope,
    requests: Requests,
}

impl Telemetry {
    /// Installs log and panic hook for the whole process and starts the exporters. Needs a tokio runtime.
    pub fn start(
        identity: Identity,
        log: LogSettings,
        otlp: &OtlpSettings,
        registry: &mut Registry,
    ) -> Result<Self, TelemetryError> {
        let otlp::Providers { tracers, meters } = otlp::providers(identity, otlp, registry)?;
        let scope = InstrumentationScope::builder(identity.program)
            .with_version(identity.version)
            .build();
        let LogSettings { filter, format } = log;
        let lines: Box<dyn Layer<_> + Send + Sync> = match format {
            LogFormat::Json => Box::new(JsonLayer::new(io::stderr, identity.clean)),
            LogFormat::Text => Box::new(
                fmt::layer()
                    .with_writer(move || text::CleanLines::new(io::stderr(), identity.clean))
                    .with_ansi(false),
            ),
        };
        let spans = tracing_opentelemetry::layer()
            .with_tracer(tracers.tracer_with_scope(scope.clone()))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false);
        tracing_subscriber::registry()
            .with(lines.with_filter(filter.0))
            .with(spans.with_filter(traced(otlp.requests())))
            .try_init()?;
        panics::install();
        Ok(Self {
            tracers,
            meters,
            scope,
            requests: otlp.requests(),
        })
    }

    /// Where the program records the metrics that it pushes.
    pub fn meter(&self) -> Meter {
        self.meters.meter_with_scope(self.scope.clone())
    }

    /// What becomes of the requests that the program answers.
    pub fn requests(&self) -> Requests {
        self.requests
    }

    /// Lets go of it without sending what is left: someone is in a hurry, and dropping it would flush and block.
    pub fn abandon(self) {
        mem::forget(self);
    }

    /// Sends what is left, for at most the given time.
    pub async fn flush(self, within: Duration) {
        let Self {
            tracers, meters, ..
        } = self;
        // Both calls block, hence threads of their own; one that hangs is left behind when the process ends.
        let traces = tokio::task::spawn_blocking(move || tracers.shutdown_with_timeout(within));
        let metrics = tokio::task::spawn_blocking(move || meters.shutdown_with_timeout(within));
        for (signal, flushed) in [("traces", traces), ("metrics", metrics)] {
            let problem: Option<Box<dyn Error>> = match timeout(within, flushed).await {
                Ok(Ok(Ok(()))) => None,
                Ok(Ok(Err(error))) => Some(error.into()),
                Ok(Err(error)) => Some(error.into()),
                Err(elapsed) => Some(elapsed.into()),
            };
            if let Some(error) = problem {
                tracing::warn!(signal, %error, "Last telemetry may be lost");
            }
        }
    }
}

/// What becomes part of a trace: the spans of our own packages, all of which are named `agents` or start so. The
/// exporter's client would otherwise trace itself.
fn traced(requests: Requests) -> Targets {
    let requests = match requests {
        Requests::Recorded => LevelFilter::INFO,
        Requests::Named => LevelFilter::OFF,
    };
    Targets::new()
        .with_target("agents", LevelFilter::INFO)
        .with_target(REQUEST_SPANS, requests)
}
