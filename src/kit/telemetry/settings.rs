//! Settings of logs and of the OTLP export. The latter keep the names that OpenTelemetry gave them.

use std::{fmt, str::FromStr};

use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use tracing_subscriber::filter::Targets;

use crate::kit::config::{Invalid, Millis, Ratio, Reader, Setting, Settings, Value, one_of};

/// How the program logs.
#[derive(Debug)]
pub struct LogSettings {
    /// Which events are logged.
    pub filter: LogFilter,
    /// How a line looks.
    pub format: LogFormat,
}

impl Settings for LogSettings {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("Logs");
        let filter =
            reader.value(Setting::new("AGENTS_LOG_FILTER", "Which events are logged").or("info"));
        let format = reader.value(
            Setting::new("AGENTS_LOG_FORMAT", "JSON for machines or text for people").or("json"),
        );
        Ok(Self {
            filter: filter?,
            format: format?,
        })
    }
}

/// Which events are logged, by level and target.
#[derive(Debug)]
pub struct LogFilter(pub Targets);

impl Value for LogFilter {
    const EXPECTED: &'static str =
        "error, warn, info, debug, trace, or those by target as in info,agents=debug";

    fn parse(text: &str) -> Option<Self> {
        let parts: Vec<_> = text.split(',').map(str::trim).collect();
        // A part that says nothing would stand for all that there is, and spans cannot be chosen.
        let is_odd = |part: &&str| part.is_empty() || part.starts_with('=') || part.contains('[');
        match parts.iter().any(is_odd) {
            true => None,
            false => parts.join(",").parse().ok().map(Self),
        }
    }
}

/// How a log line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object.
    Json,
    /// Words.
    Text,
}

impl Value for LogFormat {
    const EXPECTED: &'static str = "json or text";

    fn parse(text: &str) -> Option<Self> {
        one_of(&[("json", Self::Json), ("text", Self::Text)], text)
    }
}

/// Where traces and metrics go, and how.
#[derive(Debug)]
pub struct OtlpSettings {
    /// Name of the service in all that is exported, if not the program's.
    pub service_name: Option<String>,
    /// What the service belongs to.
    pub service_namespace: Option<String>,
    /// Name of this instance of it.
    pub instance: Option<String>,
    /// Where traces go; none are exported if there is no such place.
    pub traces: Option<Endpoint>,
    /// Where metrics go; none are exported if there is no such place.
    pub metrics: Option<Endpoint>,
    /// What goes along with every export of traces.
    pub headers: Option<Headers>,
    /// The same for metrics.
    pub metrics_headers: Option<Headers>,
    /// Time for one export of traces.
    pub timeout: Millis,
    /// The same for metrics.
    pub metrics_timeout: Millis,
    /// Time between two exports of metrics.
    pub interval: Millis,
    /// Which traces are recorded.
    pub sampling: Sampling,
    /// How many of them, for those ways of sampling that ask.
    pub ratio: Ratio,
}

/// What becomes of the requests that a program answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requests {
    /// Each is a span, which may be exported.
    Recorded,
    /// Each has ids, by which logs and objects can be joined, and that is all.
    Named,
}

impl OtlpSettings {
    /// What becomes of requests. Where nobody exports them, they are recorded only if the choice of what others record is
    /// not the usual one: only then does it take a span to make it.
    pub fn requests(&self) -> Requests {
        match (&self.traces, self.sampling) {
            (None, Sampling::ParentOrAlways) => Requests::Named,
            _ => Requests::Recorded,
        }
    }
}

impl Settings for OtlpSettings {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("OpenTelemetry export");
        let places = Places::read(reader);
        let protocol = reader.value(
            Setting::<Protocol>::new("OTEL_EXPORTER_OTLP_PROTOCOL", "Protocol of the export")
                .or("grpc"),
        );
        let metrics_protocol = reader.optional(Setting::<Protocol>::new(
            "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
            "Protocol of the export of metrics",
        ));
        let headers = reader.optional(
            Setting::<Headers>::new(
                "OTEL_EXPORTER_OTLP_HEADERS",
                "Headers of every export, e.g. for a token",
            )
            .secret(),
        );
        let metrics_headers = reader.optional(
            Setting::<Headers>::new(
                "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
                "Headers of every export of metrics, if others",
            )
            .secret(),
        );
        let timeout = reader.value(
            Setting::<Millis>::new("OTEL_EXPORTER_OTLP_TIMEOUT", "Time for one export")
                .or("10000")
                .within("100", "60000"),
        );
        let metrics_timeout = reader.optional(
            Setting::<Millis>::new(
                "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT",
                "Time for one export of metrics, if another",
            )
            .within("100", "60000"),
        );
        let interval = reader.value(
            Setting::new(
                "OTEL_METRIC_EXPORT_INTERVAL",
                "Time between two exports of metrics",
            )
            .or("15000")
            .within("1000", "3600000"),
        );
        let sampling = reader.value(
            Setting::new("OTEL_TRACES_SAMPLER", "Which traces are recorded")
                .or("parentbased_always_on"),
        );
        let ratio = reader.value(
            Setting::new(
                "OTEL_TRACES_SAMPLER_ARG",
                "Share of traces that a traceidratio sampler records",
            )
            .or("1"),
        );
        let service = Service::read(reader);
        let (Places { traces, metrics }, Protocol::Grpc) = (places?, protocol?);
        let (None | Some(Protocol::Grpc)) = metrics_protocol?;
        let (headers, timeout) = (headers?, timeout?);
        let Service {
            name,
            namespace,
            instance,
        } = service?;
        Ok(Self {
            traces,
            metrics,
            service_name: name,
            service_namespace: namespace,
            instance,
            metrics_headers: metrics_headers?.or_else(|| headers.clone()),
            metrics_timeout: metrics_timeout?.unwrap_or(timeout),
            headers,
            timeout,
            interval: interval?,
            sampling: sampling?,
            ratio: ratio?,
        })
    }
}

/// What the service is called.
struct Service {
    name: Option<String>,
    namespace: Option<String>,
    instance: Option<String>,
}

impl Settings for Service {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let name = reader.optional(Setting::new(
            "OTEL_SERVICE_NAME",
            "Name of the service in what is exported; the program's name if not set",
        ));
        let namespace = reader.optional(Setting::new(
            "OTEL_SERVICE_NAMESPACE",
            "What the service belongs to, in what is exported",
        ));
        let instance = reader.optional(Setting::new(
            "OTEL_SERVICE_INSTANCE_ID",
            "Name of this instance in what is exported; the host's if not set",
        ));
        let hostname = reader.optional(Setting::new(
            "HOSTNAME",
            "Name of the host, which Kubernetes sets to that of the pod",
        ));
        Ok(Self {
            name: name?,
            namespace: namespace?,
            instance: instance?.or(hostname?),
        })
    }
}

/// Where each signal goes, after all settings that have a say in it.
struct Places {
    traces: Option<Endpoint>,
    metrics: Option<Endpoint>,
}

impl Settings for Places {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let endpoint = reader.optional(Setting::<Endpoint>::new(
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "Where traces and metrics go over gRPC; without it nothing is exported",
        ));
        let traces = reader.optional(Setting::<Endpoint>::new(
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "Where traces go, if elsewhere",
        ));
        let metrics = reader.optional(Setting::<Endpoint>::new(
            "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
            "Where metrics go, if elsewhere",
        ));
        let traced = reader.value(
            Setting::<Exporter>::new("OTEL_TRACES_EXPORTER", "Whether traces are exported")
                .or("otlp"),
        );
        let measured = reader.value(
            Setting::<Exporter>::new("OTEL_METRICS_EXPORTER", "Whether metrics are exported")
                .or("otlp"),
        );
        let disabled = reader.value(
            Setting::<bool>::new(
                "OTEL_SDK_DISABLED",
                "Exports nothing, whatever the endpoints say",
            )
            .or("false"),
        );
        let (endpoint, disabled) = (endpoint?, disabled?);
        let place = |own: Option<Endpoint>, exporter| match exporter {
            Exporter::Otlp if !disabled => own.or_else(|| endpoint.clone()),
            Exporter::Otlp | Exporter::None => None,
        };
        Ok(Self {
            traces: place(traces?, traced?),
            metrics: place(metrics?, measured?),
        })
    }
}

/// The address of an OTLP receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint(pub String);

impl Value for Endpoint {
    const EXPECTED: &'static str = "a URL such as http://127.0.0.1:4317 or https://collector:4317";

    fn parse(text: &str) -> Option<Self> {
        let uri = Uri::from_str(text).ok()?;
        let known = matches!(uri.scheme_str(), Some("http" | "https"));
        (known && uri.host().is_some()).then(|| Self(uri.to_string()))
    }
}

#[derive(Clone, Copy)]
enum Exporter {
    Otlp,
    None,
}

impl Value for Exporter {
    const EXPECTED: &'static str = "otlp or none";

    fn parse(text: &str) -> Option<Self> {
        one_of(&[("otlp", Self::Otlp), ("none", Self::None)], text)
    }
}

#[derive(Clone, Copy)]
enum Protocol {
    Grpc,
}

impl Value for Protocol {
    const EXPECTED: &'static str = "grpc, the one protocol that this program exports with";

    fn parse(text: &str) -> Option<Self> {
        one_of(&[("grpc", Self::Grpc)], text)
    }
}

/// Which traces are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// All.
    Always,
    /// None.
    Never,
    /// A share of all.
    Ratio,
    /// As the caller decided; all of those that begin here.
    ParentOrAlways,
    /// As the caller decided; none of those that begin here.
    ParentOrNever,
    /// As the caller decided; a share of those that begin here.
    ParentOrRatio,
}

impl Value for Sampling {
    const EXPECTED: &'static str = "always_on, always_off, traceidratio, parentbased_always_on, \
         parentbased_always_off or parentbased_traceidratio";

    fn parse(text: &str) -> Option<Self> {
        let words = [
            ("always_on", Self::Always),
            ("always_off", Self::Never),
            ("traceidratio", Self::Ratio),
            ("parentbased_always_on", Self::ParentOrAlways),
            ("parentbased_always_off", Self::ParentOrNever),
            ("parentbased_traceidratio", Self::ParentOrRatio),
        ];
        one_of(&words, text)
    }
}

/// Headers that may carry a secret, so they are not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Headers(pub HeaderMap);

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

impl Value for Headers {
    const EXPECTED: &'static str = "a list of headers such as name=value,other=value";

    fn parse(text: &str) -> Option<Self> {
        let header = |pair: &str| {
            let (name, value) = pair.split_once('=')?;
            let name = HeaderName::from_str(name.trim()).ok()?;
            Some((name, HeaderValue::from_str(value.trim()).ok()?))
        };
        text.split(',').map(header).collect::<Option<_>>().map(Self)
    }
}

#[cfg(test)]
mod tests;
