//! Named signals that steps wait for, and one delivery of such a signal.

pub mod signal;
pub mod signal_delivery;
