//! Every kind but AgentRun, which has a folder of its own: [`plain`] are those that only say whether they can be used.

pub(super) mod implementation_source;
pub(super) mod orchestration_run;
pub(super) mod plain;
pub(super) mod schedule;
pub(super) mod tool_run;
pub(super) mod workspace;
