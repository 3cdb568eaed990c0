//! Tells of changes, several at once if they come fast; and sees to slots that nobody takes.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::message::{Snapshot, State, event};
use crate::api::contract::queue_event;
use crate::controller::agent_run::AgentRuns;

/// Time between two looks where nothing changes: the lease may have, and slots may be over.
const LOOK: Duration = Duration::from_secs(1);

pub(super) struct Publisher {
    pub(super) state: State,
    pub(super) runs: Arc<AgentRuns>,
    pub(super) interval: Duration,
}

impl Publisher {
    /// Tells until it is dropped.
    pub(super) async fn run(self) {
        let mut changes = self.state.book.changes();
        let mut told: Option<Snapshot> = None;
        loop {
            if self.state.leadership.is_open() {
                self.runs.expire();
            }
            changes.mark_unchanged();
            let now = self.state.snapshot();
            if told.as_ref().is_none_or(|told| !now.is_like(told)) {
                let changed = |id: &str| event(queue_event::QUEUE, Some(id), &now.json());
                self.state.hub.publish(changed);
                told = Some(now);
            }
            sleep(self.interval).await;
            tokio::select! {
                // The book lives as long as the runs.
                Ok(()) = changes.changed() => {}
                () = sleep(LOOK) => {}
            }
        }
    }
}
