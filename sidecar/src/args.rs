//! What operators can set.

use agents::{
    api::contract::port,
    events,
    kit::{
        args::{Common, Defaults},
        config::{Flags, Invalid, Reader, Settings},
    },
};

use crate::{forward, jobs, memory, otlp, sse};

/// The variables that only this program reads.
pub mod variable {
    /// Where OTLP comes in over gRPC.
    pub const OTLP_GRPC_LISTEN: &str = "AGENTS_SIDECAR_OTLP_GRPC_LISTEN";
    /// Where OTLP comes in over HTTP.
    pub const OTLP_HTTP_LISTEN: &str = "AGENTS_SIDECAR_OTLP_HTTP_LISTEN";
    /// Bytes of one request.
    pub const OTLP_REQUEST_BYTES: &str = "AGENTS_SIDECAR_OTLP_REQUEST_BYTES";
    /// How names are made.
    pub const TRANSLATION: &str = "AGENTS_SIDECAR_TRANSLATION_STRATEGY";
    /// Whether several underscores stay.
    pub const KEEP_UNDERSCORES: &str = "AGENTS_SIDECAR_LABEL_NAME_PRESERVE_MULTIPLE_UNDERSCORES";
    /// Whether a leading underscore gets a word before it.
    pub const UNDERSCORE_SANITIZATION: &str = "AGENTS_SIDECAR_LABEL_NAME_UNDERSCORE_SANITIZATION";
    /// Whether series carry their scope.
    pub const SCOPE_LABELS: &str = "AGENTS_SIDECAR_SCOPE_LABELS";
    /// Whether OpenMetrics 1.0 has lines for starts.
    pub const CREATED_LINES: &str = "AGENTS_SIDECAR_CREATED_LINES";
    /// Whether series carry their target.
    pub const TARGETS: &str = "AGENTS_SIDECAR_TARGETS";
    /// Series of one metric.
    pub const METRIC_SERIES: &str = "AGENTS_SIDECAR_SERIES_PER_METRIC";
    /// Series in all.
    pub const SERIES: &str = "AGENTS_SIDECAR_SERIES";
    /// How long a silent series is shown.
    pub const EXPIRY: &str = "AGENTS_SIDECAR_EXPIRY";
    /// How long series of a silent target are shown.
    pub const TARGET_EXPIRY: &str = "AGENTS_SIDECAR_TARGET_EXPIRY";
    /// Where what is received goes on to.
    pub const FORWARD_ENDPOINT: &str = "AGENTS_SIDECAR_FORWARD_ENDPOINT";
    /// How that is spoken to.
    pub const FORWARD_PROTOCOL: &str = "AGENTS_SIDECAR_FORWARD_PROTOCOL";
    /// Headers for it.
    pub const FORWARD_HEADERS: &str = "AGENTS_SIDECAR_FORWARD_HEADERS";
    /// Further authorities that it is trusted by.
    pub const FORWARD_CA_FILE: &str = "AGENTS_SIDECAR_FORWARD_CA_FILE";
    /// Time for one try.
    pub const FORWARD_TIMEOUT: &str = "AGENTS_SIDECAR_FORWARD_TIMEOUT";
    /// Bytes that may wait.
    pub const FORWARD_QUEUE_BYTES: &str = "AGENTS_SIDECAR_FORWARD_QUEUE_BYTES";
    /// Memory to stay within.
    pub const MEMORY_LIMIT: &str = "AGENTS_SIDECAR_MEMORY_LIMIT_BYTES";
    /// Streams of the queue of controllers.
    pub const QUEUE_STREAMS: &str = "AGENTS_SIDECAR_QUEUE_STREAMS";
    /// Streams of control planes.
    pub const CONTROL_PLANE_STREAMS: &str = "AGENTS_SIDECAR_CONTROL_PLANE_STREAMS";
    /// The token for those.
    pub const CONTROL_PLANE_TOKEN_FILE: &str = "AGENTS_SIDECAR_CONTROL_PLANE_TOKEN_FILE";
    /// Runs of one control plane that are counted.
    pub const CONTROL_PLANE_RUNS: &str = "AGENTS_SIDECAR_CONTROL_PLANE_RUNS";
    /// Further authorities that streams are trusted by.
    pub const STREAM_CA_FILE: &str = "AGENTS_SIDECAR_STREAM_CA_FILE";
    /// How long a stream may say nothing.
    pub const STREAM_SILENCE: &str = "AGENTS_SIDECAR_STREAM_SILENCE";
    /// How long what a stream told is shown after it is gone.
    pub const STREAM_GRACE: &str = "AGENTS_SIDECAR_STREAM_GRACE";
    /// Bytes of one event of a stream.
    pub const STREAM_EVENT_BYTES: &str = "AGENTS_SIDECAR_STREAM_EVENT_BYTES";
    /// Whether Jobs are watched.
    pub const JOBS: &str = "AGENTS_SIDECAR_JOBS";
}

/// Flags of the program.
pub type Args = Flags<Config>;

/// Settings of the sidecar.
#[derive(Debug)]
pub struct Config {
    /// What all programs have.
    pub common: Common,
    /// What comes in by OTLP.
    pub otlp: otlp::Settings,
    /// Streams that are followed.
    pub streams: sse::Settings,
    /// Where Jobs are watched.
    pub jobs: jobs::Settings,
    /// How Events are emitted.
    pub events: events::Settings,
    /// How much memory there is.
    pub memory: memory::Settings,
    /// Where what is received goes on to.
    pub forward: forward::Settings,
}

impl Settings for Config {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let otlp = otlp::Settings::read(reader);
        let forward = forward::Settings::read(reader);
        let memory = memory::Settings::read(reader);
        let streams = sse::Settings::read(reader);
        let jobs = jobs::Settings::read(reader);
        let events = events::Settings::read(reader);
        let common = Common::read(
            reader,
            Defaults {
                admin_port: port::SIDECAR_ADMIN,
                linger: "0s",
            },
        );
        Ok(Self {
            common: common?,
            otlp: otlp?,
            streams: streams?,
            jobs: jobs?,
            events: events?,
            memory: memory?,
            forward: forward?,
        })
    }
}
