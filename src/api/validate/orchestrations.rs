//! Orchestration and OrchestrationRun.

pub(super) mod graph;
pub(super) mod orchestration;
pub(super) mod orchestration_run;
pub(super) mod step;
