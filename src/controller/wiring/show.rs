//! What others are shown of the work: the stream of the queue, and the metrics that are computed.

use std::sync::Arc;

use super::Wiring;
use crate::controller::agent_run::AgentRuns;
use crate::controller::cache::shelves::Shelves;
use crate::controller::metrics::gauges::{self, Sources};
use crate::controller::stream;

impl Wiring<'_> {
    /// Starts the stream, and reads what it is about with every export.
    pub(super) fn show(
        &mut self,
        shelves: &Arc<Shelves>,
        runs: &Arc<AgentRuns>,
        show: stream::Show,
    ) {
        let hub = stream::start(self.program, &self.context, runs, show);
        let sources = Sources {
            book: Arc::clone(runs.book()),
            shelves: Arc::clone(shelves),
            works: self.works.as_slice().into(),
            leadership: self.context.leadership.clone(),
            hub,
            events: self.context.emitter.metrics().clone(),
            clock: self.context.clock,
        };
        gauges::register(&self.program.telemetry().meter(), &sources);
        self.context.metrics.expect_runs();
    }
}
