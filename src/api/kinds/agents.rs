//! The seven core kinds: what an agent is, what it works on, and one run of it.

pub mod agent;
pub mod agent_provider;
pub mod agent_run;
pub mod implementation_source;
pub mod implementation_spec;
pub mod memory;
pub mod version_control_provider;
