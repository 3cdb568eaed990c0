//! The right to answer one review, where two could: who judges it, and who gives it up when its time is over.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whoever takes it first counts the review and tells of it; the other keeps quiet.
#[derive(Debug, Default)]
pub(super) struct Claim(AtomicBool);

impl Claim {
    /// Whether it is ours.
    pub(super) fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}
