//! What operators can set about it.

use std::net::SocketAddr;
use std::time::Duration;

use crate::api::contract::{env, port};
use crate::kit::config::{self, Invalid, Reader, Setting};

/// What operators can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(super) listen: SocketAddr,
    pub(super) relay: Option<SocketAddr>,
    pub(super) interval: Duration,
}

impl config::Settings for Settings {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("Queue stream");
        let listen = reader.value(
            Setting::new(
                env::QUEUE_LISTEN,
                "Where is told how the queue stands; anyone who gets there can read it, so it is on loopback",
            )
            .or(format!("127.0.0.1:{}", port::QUEUE)),
        );
        let relay = reader.optional(Setting::new(
            env::QUEUE_RELAY_LISTEN,
            "Where the same is told to a control plane, which must show the key that is on the lease; nowhere if not set",
        ));
        let interval = reader.value(
            Setting::<Duration>::new(
                env::QUEUE_STREAM_INTERVAL,
                "Shortest time between two events of the stream; changes within it are told together",
            )
            .or("250ms")
            .within("10ms", "1m"),
        );
        Ok(Self {
            listen: listen?,
            relay: relay?,
            interval: interval?,
        })
    }
}
