//! The policies that decisions go by, each with a name.

use crate::api::policy::Policy;
use crate::api::text::hash::text_hash;

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
        let text = serde_json::to_string(&policy).unwrap_or_default();
        let mut hash = text_hash(&text);
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
