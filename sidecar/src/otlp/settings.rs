//! What operators can set about what comes in by OTLP.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use agents::{
    api::contract::port,
    kit::config::{self, Invalid, Reader, Setting, Value, one_of},
};

use crate::{
    args::variable,
    names::{LabelOptions, Strategy},
    store::{Limits, Rules, Targets},
};

/// What operators can set.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where gRPC comes in.
    pub grpc: SocketAddr,
    /// Where HTTP comes in.
    pub http: SocketAddr,
    /// Bytes of one request, packed and unpacked.
    pub request: usize,
    /// What is made of what comes.
    pub rules: Rules,
    /// How long a series is shown that its target no longer sends; it is known for twice as long.
    pub expiry: Duration,
    /// The same of all series of a target that sends nothing.
    pub target_expiry: Duration,
    /// Whether OpenMetrics 1.0 has a further line for when each series began.
    pub created: bool,
}

impl Value for Strategy {
    const EXPECTED: &'static str = "UnderscoreEscapingWithSuffixes, UnderscoreEscapingWithoutSuffixes, NoUTF8EscapingWithSuffixes or \
         NoTranslation";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Value for Targets {
    const EXPECTED: &'static str = "auto, single or federated";

    fn parse(text: &str) -> Option<Self> {
        let words = [
            ("auto", Self::Auto),
            ("single", Self::Single),
            ("federated", Self::Federated),
        ];
        one_of(&words, text)
    }
}

impl config::Settings for Settings {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("OTLP");
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)).to_string();
        let grpc = reader.value(
            Setting::<SocketAddr>::new(
                variable::OTLP_GRPC_LISTEN,
                "Where OTLP comes in over gRPC; nothing checks who sends, so keep it within the pod",
            )
            .or(local(port::OTLP_GRPC)),
        );
        let http = reader.value(
            Setting::<SocketAddr>::new(
                variable::OTLP_HTTP_LISTEN,
                "Where OTLP comes in over HTTP, at /v1/metrics; the same holds",
            )
            .or(local(port::OTLP_HTTP)),
        );
        let request = reader.value(
            Setting::<usize>::new(
                variable::OTLP_REQUEST_BYTES,
                "Bytes of one request, packed and unpacked",
            )
            .or("4194304")
            .within("1024", "67108864"),
        );
        let rules = read_rules(reader);
        let expiry = reader.value(
            Setting::<Duration>::new(
                variable::EXPIRY,
                "How long a series is shown that its target no longer sends while it sends others; it goes on where it was if it comes back in twice that time",
            )
            .or("5m")
            .within("10s", "24h"),
        );
        let target_expiry = reader.optional(
            Setting::<Duration>::new(
                variable::TARGET_EXPIRY,
                "How long all series of a target are shown that sends nothing, and what it says of itself; unset: as a series",
            )
            .within("10s", "24h"),
        );
        let created = reader.value(
            Setting::<bool>::new(
                variable::CREATED_LINES,
                "Whether a page of OpenMetrics 1.0 has a line for when each series began; a Prometheus that does not read it stores it as a series",
            )
            .or("false"),
        );
        let expiry = expiry?;
        Ok(Self {
            grpc: grpc?,
            http: http?,
            request: request?,
            rules: rules?,
            expiry,
            target_expiry: target_expiry?.unwrap_or(expiry),
            created: created?,
        })
    }
}

fn read_rules(reader: &mut Reader<'_>) -> Result<Rules, Invalid> {
    let strategy = reader.value(
        Setting::<Strategy>::new(
            variable::TRANSLATION,
            "How names of OTLP become names of Prometheus",
        )
        .or("UnderscoreEscapingWithSuffixes"),
    );
    let keep = reader.value(
        Setting::<bool>::new(
            variable::KEEP_UNDERSCORES,
            "Whether several underscores in a label name stay",
        )
        .or("false"),
    );
    let sanitise = reader.value(
        Setting::<bool>::new(
            variable::UNDERSCORE_SANITIZATION,
            "Whether a label name with a leading underscore gets `key` before it",
        )
        .or("false"),
    );
    let scopes = reader.value(
        Setting::<bool>::new(
            variable::SCOPE_LABELS,
            "Whether series carry the scope that they come from",
        )
        .or("true"),
    );
    let targets = reader.value(
        Setting::<Targets>::new(
            variable::TARGETS,
            "Whether series carry job and instance: as soon as two targets send, never, or always",
        )
        .or("auto"),
    );
    let limits = read_limits(reader);
    Ok(Rules {
        names: LabelOptions {
            strategy: strategy?,
            preserve_multiple_underscores: keep?,
            underscore_sanitization: sanitise?,
        },
        has_scope_labels: scopes?,
        targets: targets?,
        limits: limits?,
    })
}

fn read_limits(reader: &mut Reader<'_>) -> Result<Limits, Invalid> {
    let metric = reader.value(
        Setting::<usize>::new(
            variable::METRIC_SERIES,
            "Series of one metric; more are refused, or flow into one if they are deltas",
        )
        .or("10000")
        .within("1", "10000000"),
    );
    let all = reader.value(
        Setting::<usize>::new(variable::SERIES, "Series in all; more are refused")
            .or("100000")
            .within("1", "10000000"),
    );
    let (metric, all) = (metric?, all?);
    let default = Limits::default();
    Ok(Limits {
        series_per_metric: metric,
        series: all,
        bytes: default.bytes.max(all.saturating_mul(1_024)),
        ..default
    })
}
