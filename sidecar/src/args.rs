//! What operators can set.

use agents::{
    api::contract::port,
    kit::{
        args::{Common, Defaults},
        config::{Flags, Invalid, Reader, Settings},
    },
};

use crate::sse;

/// The variables that only this program reads.
pub mod variable {
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
}

/// Flags of the program.
pub type Args = Flags<Config>;

/// Settings of the sidecar.
#[derive(Debug)]
pub struct Config {
    /// What all programs have.
    pub common: Common,
    /// Streams that are followed.
    pub streams: sse::Settings,
}

impl Settings for Config {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let streams = sse::Settings::read(reader);
        let common = Common::read(
            reader,
            Defaults {
                admin_port: port::SIDECAR_ADMIN,
                linger: "0s",
            },
        );
        Ok(Self {
            common: common?,
            streams: streams?,
        })
    }
}
