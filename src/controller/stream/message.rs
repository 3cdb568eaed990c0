//! What is told, and how it is written.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use serde::Serialize;

use super::Hub;
use crate::controller::agent_run::RunBook;
use crate::controller::context::Clock;
use crate::controller::load::Figures;
use crate::kit::fence::Fence;
use crate::kit::http::events::{self, lines};

/// Namespaces, agents and repositories that are told one by one, of each.
const TOP: usize = 20;

/// Where it comes from.
#[derive(Clone)]
pub(super) struct State {
    pub(super) book: Arc<RunBook>,
    pub(super) leadership: Fence,
    pub(super) clock: Clock,
    pub(super) hub: Arc<Hub>,
}

/// Everything as it is at a time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Snapshot {
    pub(super) at: Timestamp,
    /// Only who holds the lease has numbers that count.
    pub(super) leader: bool,
    pub(super) queue: Option<Figures>,
    /// So that nobody has to compare clocks.
    pub(super) oldest_waiting_seconds: Option<f64>,
    pub(super) stream: events::Figures,
    /// Set where a reader named an event that is not kept any more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) gap: bool,
}

impl State {
    pub(super) fn snapshot(&self) -> Snapshot {
        let at = self.clock.now();
        let leader = self.leadership.is_open();
        let queue = leader.then(|| self.book.figures(TOP));
        let oldest = queue
            .as_ref()
            .and_then(|queue| queue.cluster.oldest_waiting_since);
        Snapshot {
            at,
            leader,
            oldest_waiting_seconds: oldest
                .map(|oldest| at.duration_since(oldest).as_secs_f64().max(0.0)),
            queue,
            stream: self.hub.figures(),
            gap: false,
        }
    }
}

impl Snapshot {
    /// Whether it says the same as another, whatever the time and whoever reads.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.leader == other.leader && self.queue == other.queue
    }

    pub(super) fn json(&self) -> Vec<u8> {
        // Numbers and texts only, so it cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// One event as it is sent.
pub(super) fn event(name: &str, id: Option<&str>, data: &[u8]) -> Bytes {
    let name = format!("event: {name}\n");
    [name.as_bytes(), &lines(id, data)].concat().into()
}
