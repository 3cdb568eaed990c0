//! The objects that decisions look up, kept in memory and followed by watches, so that no review waits for the API
//! server.

mod index;
mod shelf;

use std::sync::Arc;

use agents::api::kind::Kind;
use agents::api::policy::Surroundings;
use agents::api::references::Reference;
use serde_json::Value;

use index::Index;

/// What is known about the objects of the cluster. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Lookup {
    index: Arc<Index>,
}

impl Lookup {
    /// A look-up that knows nothing and therefore misses nothing.
    pub fn empty() -> Self {
        Self::default()
    }

    /// What the policy needs to know about the objects that this one refers to.
    pub fn surroundings(&self, kind: Kind, object: &Value) -> Surroundings {
        self.index.surroundings(kind, object)
    }

    /// The references, of an object in this namespace, that lead nowhere. Of a kind or a namespace that is not followed,
    /// or not yet listed, nothing is said.
    pub fn missing(&self, namespace: &str, references: &[Reference]) -> Vec<Reference> {
        references
            .iter()
            .filter(|reference| self.index.is_missing(namespace, reference))
            .cloned()
            .collect()
    }
}
