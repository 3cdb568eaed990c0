//! The metrics sidecar.
