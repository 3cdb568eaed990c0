//! Which build this is.

use prometheus_client::{metrics::info::Info, registry::Registry};

use crate::kit::telemetry::Identity;

/// Adds `agents_build_info`, the same in all programs so that one query shows what runs where.
pub(super) fn register(identity: Identity, registry: &mut Registry) {
    let Identity {
        program,
        version,
        clean: _,
    } = identity;
    registry.register(
        "agents_build",
        "Which program and version this is",
        Info::new([("program", program), ("version", version)]),
    );
}
