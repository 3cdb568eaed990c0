//! What an operator can set about Events, and the limits that follow from it.

use std::time::Duration;

use crate::api::contract::env;
use crate::kit::config::{self, Invalid, Reader, Setting};

/// What an operator can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether Events are emitted at all.
    pub enabled: bool,
    /// Most writes about one object in any minute, for Warnings and for Normal Events each.
    pub per_minute: usize,
}

impl config::Settings for Settings {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("Events");
        let enabled =
            reader.value(Setting::new(env::EVENTS_ENABLED, "Emit Kubernetes Events").or("true"));
        let per_minute = reader.value(
            Setting::new(
                env::EVENTS_RATE_LIMIT_PER_MIN,
                "Most Event writes about one object in a minute, for Warnings and Normal Events each",
            )
            .or("10")
            .within("1", "600"),
        );
        Ok(Self {
            enabled: enabled?,
            per_minute: per_minute?,
        })
    }
}

/// Bounds of what the emitter does, keeps and waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Writes about one object in any minute, for each severity.
    pub per_object: usize,
    /// New Events with one reason in one namespace in any minute, so that ever new objects do not get round the
    /// limit per object.
    pub per_topic: usize,
    /// Writes of the whole program in any second. More than that waits; nothing is lost by it.
    pub per_second: usize,
    /// How long repeats are only counted before the count is written.
    pub heartbeat: Duration,
    /// A series ends, and its last count is written, when nothing was added for so long.
    pub quiet: Duration,
    /// Series remembered at a time; the least recently used one goes first.
    pub tracked: usize,
    /// Occurrences that wait to be taken up.
    pub queue: usize,
    /// Time for one call to the API server.
    pub deadline: Duration,
    /// Tries for one write, when the API server cannot take it.
    pub attempts: u32,
}

impl Limits {
    /// Heartbeat and quiet time are those of Kubernetes' own recorder.
    pub fn new(per_minute: usize) -> Self {
        Self {
            per_object: per_minute,
            per_topic: 10 * per_minute,
            per_second: 20,
            heartbeat: Duration::from_secs(30 * 60),
            quiet: Duration::from_secs(6 * 60),
            tracked: 2048,
            queue: 1024,
            deadline: Duration::from_secs(5),
            attempts: 12,
        }
    }
}
