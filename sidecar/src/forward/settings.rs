//! What operators can set about forwarding.

use std::{path::PathBuf, time::Duration};

use agents::kit::{
    config::{self, Invalid, Reader, Setting, Value, one_of},
    egress::Target,
    telemetry::Headers,
};

use crate::args::variable;

/// How the target is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// gRPC.
    Grpc,
    /// HTTP/1.1; each signal has a path below that of the target.
    Http,
}

impl Value for Protocol {
    const EXPECTED: &'static str = "grpc or http/protobuf";

    fn parse(text: &str) -> Option<Self> {
        one_of(&[("grpc", Self::Grpc), ("http/protobuf", Self::Http)], text)
    }
}

/// An address that can be called.
struct Address(Target);

impl Value for Address {
    const EXPECTED: &'static str =
        "a URL such as http://collector:4317 or https://collector.example:4318";

    fn parse(text: &str) -> Option<Self> {
        Target::parse(text).ok().map(Self)
    }
}

/// Where to, and how.
#[derive(Clone, Debug)]
pub struct To {
    /// Where.
    pub target: Target,
    /// How it is spoken to.
    pub protocol: Protocol,
    /// Sent with every request.
    pub headers: Option<Headers>,
    /// Further authorities that it is trusted by.
    pub authorities: Option<PathBuf>,
    /// Time for one try.
    pub timeout: Duration,
}

/// What operators can set.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to; nothing is forwarded without.
    pub to: Option<To>,
    /// Bytes that may wait.
    pub queue: usize,
}

impl config::Settings for Settings {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("Forwarding");
        let target = reader.optional(Setting::<Address>::new(
            variable::FORWARD_ENDPOINT,
            "Collector to which everything that comes by OTLP is forwarded unchanged; without it nothing is, and traces and logs are refused",
        ));
        let protocol = reader.value(
            Setting::<Protocol>::new(
                variable::FORWARD_PROTOCOL,
                "How it is spoken to; by HTTP, /v1/metrics and so on are added to the path",
            )
            .or("grpc"),
        );
        let headers = reader.optional(
            Setting::<Headers>::new(
                variable::FORWARD_HEADERS,
                "Headers of every request to it, e.g. for a token",
            )
            .secret(),
        );
        let authorities = reader.optional(Setting::<PathBuf>::new(
            variable::FORWARD_CA_FILE,
            "Certificates of authorities that it is trusted by besides those of the system, in PEM",
        ));
        let timeout = reader.value(
            Setting::<Duration>::new(variable::FORWARD_TIMEOUT, "Time for one try")
                .or("10s")
                .within("100ms", "60s"),
        );
        let queue = reader.value(
            Setting::<usize>::new(
                variable::FORWARD_QUEUE_BYTES,
                "Bytes that may wait to be forwarded; more are dropped and counted",
            )
            .or("8388608")
            .within("1024", "1073741824"),
        );
        let (target, protocol, headers) = (target?, protocol?, headers?);
        let (authorities, timeout) = (authorities?, timeout?);
        Ok(Self {
            to: target.map(|Address(target)| To {
                target,
                protocol,
                headers,
                authorities,
                timeout,
            }),
            queue: queue?,
        })
    }
}
