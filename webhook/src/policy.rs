//! The policy in force: what the operator set by flag, variable and file, followed while the program runs.
//!
//! A flag or variable that is set replaces that one field of the file; lists are not joined. A file that cannot be used
//! as a whole changes nothing: the last good one stays, and a metric and an Event say so. Beside the policy in force
//! there may be a candidate, which is evaluated on the same objects and decides nothing.

mod herald;
mod metrics;
mod source;

use std::sync::Arc;

use agents::api::policy::Policy;
pub use agents::cluster::policy::{Modes, Overrides, Refused, Settings};
use arc_swap::ArcSwap;
use sha2::{Digest, Sha256};

pub use herald::Herald;
pub use metrics::Metrics;
pub use source::Source;

/// Hexadecimal digits of a hash; enough to tell policies apart, short enough for an annotation.
const HASH_DIGITS: usize = 12;

/// A policy and how to name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The policy.
    pub policy: Policy,
    /// The start of the SHA-256 over its JSON, the same on every replica and after every restart.
    pub hash: String,
}

impl From<Policy> for Loaded {
    fn from(policy: Policy) -> Self {
        // Fields keep their order and maps are sorted, so equal policies give equal text. There is nothing in a policy
        // that cannot be written as JSON.
        let text = serde_json::to_vec(&policy).unwrap_or_default();
        let mut hash: String = Sha256::digest(text)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        hash.truncate(HASH_DIGITS);
        Self { policy, hash }
    }
}

/// What reviews are judged by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InForce {
    /// The policy that decides.
    pub active: Loaded,
    /// The policy that is tried beside it.
    pub candidate: Option<Loaded>,
}

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
