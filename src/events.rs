//! The one emitter of Kubernetes Events.
