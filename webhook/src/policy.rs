//! The policy in force: what the operator set by flag, variable and file, followed while the program runs.
//!
//! A flag or variable that is set replaces that one field of the file; lists are not joined. A file that cannot be used
//! as a whole changes nothing: the last good one stays, and a metric and an Event say so. Beside the policy in force
//! there may be a candidate, which is evaluated on the same objects and decides nothing.

mod herald;
mod metrics;
mod source;

use std::sync::Arc;

pub use agents::admission::in_force::{InForce, Loaded};
use agents::api::policy::Policy;
pub use agents::cluster::policy::{Modes, Overrides, Refused, Settings};
use arc_swap::ArcSwap;

pub use herald::Herald;
pub use metrics::Metrics;
pub use source::Source;

/// The policies as they are now. Cheap to clone; all clones see a reload at the same time.
#[derive(Clone, Debug)]
pub struct Policies {
    current: Arc<ArcSwap<InForce>>,
}

impl Policies {
    /// A policy that nobody changes.
    pub fn fixed(active: Policy, candidate: Option<Policy>) -> Self {
        Self::new(InForce {
            active: active.into(),
            candidate: candidate.map(Loaded::from),
        })
    }

    fn new(first: InForce) -> Self {
        Self {
            current: Arc::new(ArcSwap::from_pointee(first)),
        }
    }

    /// Puts other policies in force, for all reviews that start from now on.
    fn replace(&self, next: InForce) {
        self.current.store(Arc::new(next));
    }

    /// What is in force now. Take it once per review, so that one review is judged by one policy.
    pub fn current(&self) -> Arc<InForce> {
        self.current.load_full()
    }
}
