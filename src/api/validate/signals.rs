//! Signals and their deliveries.

pub(super) mod signal;
pub(super) mod signal_delivery;
