//! The exporters: what sends traces and metrics, and what watches it doing so.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use opentelemetry::KeyValue;
use opentelemetry_otlp::{
    ExporterBuildError, MetricExporter, SpanExporter, WithExportConfig, WithTonicConfig,
    tonic_types::{metadata::MetadataMap, transport::ClientTlsConfig},
};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    metrics::{
        PeriodicReader, SdkMeterProvider, Temporality, data::ResourceMetrics,
        exporter::PushMetricExporter,
    },
    trace::{self, Sampler, SdkTracerProvider, SpanData},
};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use super::{Endpoint, Headers, Identity, OtlpSettings, Sampling};
use crate::kit::config::{Millis, Ratio};

/// Time between two log lines about exports that fail.
const QUIET: Duration = Duration::from_secs(60);

/// An exporter that cannot be built.
#[derive(Debug, thiserror::Error)]
#[error("the exporter for {signal} cannot be built")]
pub struct ExportError {
    signal: &'static str,
    source: ExporterBuildError,
}

/// What makes spans and what makes metrics.
pub(super) struct Providers {
    pub(super) tracers: SdkTracerProvider,
    pub(super) meters: SdkMeterProvider,
}

/// Providers with an exporter each where there is a place to export to, and without one elsewhere.
pub(super) fn providers(
    identity: Identity,
    settings: &OtlpSettings,
    registry: &mut Registry,
) -> Result<Providers, ExportError> {
    let OtlpSettings {
        service_name,
        service_namespace,
        instance,
        traces,
        metrics,
        headers,
        metrics_headers,
        timeout: Millis(timeout),
        metrics_timeout: Millis(metrics_timeout),
        interval: Millis(interval),
        sampling,
        ratio,
    } = settings;
    let exports = Exports::register(registry);
    let target = Target {
        headers: headers.as_ref(),
        timeout: *timeout,
    };
    let measured = Target {
        headers: metrics_headers.as_ref(),
        timeout: *metrics_timeout,
    };
    let name = service_name.clone();
    let name = name.unwrap_or_else(|| identity.program.to_owned());
    let more = [
        ("service.namespace", service_namespace),
        ("service.instance.id", instance),
    ];
    let more = more.map(|(key, value)| Some(KeyValue::new(key, value.clone()?)));
    let resource = Resource::builder()
        .with_service_name(name)
        .with_attribute(KeyValue::new("service.version", identity.version))
        .with_attributes(more.into_iter().flatten())
        .build();

    let mut tracers = SdkTracerProvider::builder()
        .with_resource(resource.clone())
        .with_sampler(sampler(*sampling, *ratio));
    if let Some(endpoint) = traces {
        let exporter = target.aim(SpanExporter::builder().with_tonic(), endpoint);
        tracers = tracers.with_batch_exporter(exports.watched("traces", exporter.build())?);
    }
    let mut meters = SdkMeterProvider::builder().with_resource(resource);
    if let Some(endpoint) = metrics {
        let exporter = measured.aim(MetricExporter::builder().with_tonic(), endpoint);
        let reader = PeriodicReader::builder(exports.watched("metrics", exporter.build())?);
        meters = meters.with_reader(reader.with_interval(*interval).build());
    }
    Ok(Providers {
        tracers: tracers.build(),
        meters: meters.build(),
    })
}

/// What the exporters of all signals have in common.
struct Target<'a> {
    headers: Option<&'a Headers>,
    timeout: Duration,
}

impl Target<'_> {
    fn aim<B>(&self, builder: B, Endpoint(endpoint): &Endpoint) -> B
    where
        B: WithExportConfig + WithTonicConfig,
    {
        let mut builder = builder.with_endpoint(endpoint).with_timeout(self.timeout);
        if let Some(Headers(headers)) = self.headers {
            builder = builder.with_metadata(MetadataMap::from_headers(headers.clone()));
        }
        // The exporter would trust nobody by itself, and a host without HTTPS may have nobody to trust.
        if endpoint.starts_with("https:") {
            builder = builder.with_tls_config(ClientTlsConfig::new().with_enabled_roots());
        }
        builder
    }
}

fn sampler(sampling: Sampling, Ratio(ratio): Ratio) -> Sampler {
    let share = Sampler::TraceIdRatioBased(ratio);
    match sampling {
        Sampling::Always => Sampler::AlwaysOn,
        Sampling::Never => Sampler::AlwaysOff,
        Sampling::Ratio => share,
        Sampling::ParentOrAlways => Sampler::ParentBased(Box::new(Sampler::AlwaysOn)),
        Sampling::ParentOrNever => Sampler::ParentBased(Box::new(Sampler::AlwaysOff)),
        Sampling::ParentOrRatio => Sampler::ParentBased(Box::new(share)),
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ExportLabels {
    signal: &'static str,
    result: &'static str,
}

/// Counts exports of all signals.
struct Exports {
    exports: Family<ExportLabels, Counter>,
}

impl Exports {
    fn register(registry: &mut Registry) -> Self {
        let exports = Family::default();
        registry.register(
            "telemetry_exports",
            "Batches of telemetry sent over OTLP, by signal and result",
            exports.clone(),
        );
        Self { exports }
    }

    fn watched<E>(
        &self,
        signal: &'static str,
        exporter: Result<E, ExporterBuildError>,
    ) -> Result<Watched<E>, ExportError> {
        let handle = |result| {
            let labels = ExportLabels { signal, result };
            self.exports.get_or_create_owned(&labels)
        };
        Ok(Watched {
            exporter: exporter.map_err(|source| ExportError { signal, source })?,
            signal,
            succeeded: handle("ok"),
            failed: handle("failed"),
            said: Mutex::new(None),
        })
    }
}

/// An exporter whose results are counted, and whose failures are logged now and then.
struct Watched<E> {
    exporter: E,
    signal: &'static str,
    succeeded: Counter,
    failed: Counter,
    said: Mutex<Option<Instant>>,
}

impl<E> fmt::Debug for Watched<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exporter of {}", self.signal)
    }
}

impl<E> Watched<E> {
    fn note(&self, result: OTelSdkResult) -> OTelSdkResult {
        match &result {
            Ok(()) => {
                self.succeeded.inc();
            }
            Err(error) => {
                self.failed.inc();
                if self.is_worth_a_word(Instant::now()) {
                    let failures = self.failed.get();
                    let signal = self.signal;
                    tracing::warn!(signal, %error, failures, "Telemetry cannot be exported");
                }
            }
        }
        result
    }

    fn is_worth_a_word(&self, now: Instant) -> bool {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let worth = said.is_none_or(|said| now.duration_since(said) >= QUIET);
        if worth {
            *said = Some(now);
        }
        worth
    }
}

impl<E: trace::SpanExporter> trace::SpanExporter for Watched<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.note(self.exporter.export(batch).await)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn shutdown(&self) -> OTelSdkResult {
        self.exporter.shutdown()
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl<E: PushMetricExporter> PushMetricExporter for Watched<E> {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        self.note(self.exporter.export(metrics).await)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.exporter.temporality()
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_sdk::error::OTelSdkError;

    use super::*;

    #[test]
    fn failures_are_all_counted_and_rarely_logged() {
        let exports = Exports::register(&mut Registry::default());
        let watched = exports.watched("traces", Ok(())).expect("an exporter");
        let failure = || Err(OTelSdkError::InternalFailure("refused".to_owned()));
        for result in [Ok(()), failure(), failure(), failure()] {
            drop(watched.note(result));
        }
        assert_eq!((watched.succeeded.get(), watched.failed.get()), (1, 3));
        let said = (*watched.said.lock().expect("a lock")).expect("a first word");
        assert!(!watched.is_worth_a_word(said + QUIET / 2));
        assert!(watched.is_worth_a_word(said + QUIET));
        assert!(!watched.is_worth_a_word(said + QUIET));
    }
}
