//! Tools and their runs.

pub(super) mod tool;
pub(super) mod tool_run;
