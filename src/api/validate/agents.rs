//! The seven kinds of the core group.

pub(super) mod agent;
pub(super) mod agent_provider;
pub(super) mod agent_run;
pub(super) mod implementation_source;
pub(super) mod implementation_spec;
pub(super) mod memory;
pub(super) mod runtime;
pub(super) mod version_control_provider;
