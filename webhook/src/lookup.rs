//! The objects that decisions look up, kept in memory and followed by watches, so that no review waits for the API
//! server.
//!
//! Only what decisions need is kept: of an Agent its lists, of an ImplementationSpec the name of its repository host, of
//! a Signal its name. What the copy does not know it says nothing about: a reference counts as missing only where its
//! kind and namespace are followed and have been listed. A copy that cannot be brought up to date is still used, and says
//! how old it is; why is told in `health`.

mod follow;
mod health;
mod index;
mod metrics;
mod settings;
mod shelf;
mod start;

use std::sync::Arc;

use agents::api::kind::Kind;
use agents::api::policy::Surroundings;
use agents::api::references::Reference;
use agents::api::tree::Json;
use agents::kit::readiness::Gate;
use kube::Client;
use serde_json::Value;

pub use follow::Follower;
pub use metrics::Metrics;
pub use settings::Settings;

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

    /// A look-up that follows a cluster, and the task that does the following, which the caller must run. The gate opens
    /// when everything has been listed once.
    pub fn following(
        client: Client,
        settings: &Settings,
        gate: Gate,
        metrics: Metrics,
    ) -> (Self, Follower) {
        let lookup = Self::default();
        let index = Arc::clone(&lookup.index);
        let follower = Follower::new(client, settings, index, gate, metrics);
        (lookup, follower)
    }

    /// The kinds that a look-up lists and watches, for whoever grants the rights.
    pub fn followed() -> impl Iterator<Item = Kind> {
        Index::followed().map(|(kind, _)| kind)
    }

    /// What the policy needs to know about the objects that this one refers to.
    pub fn surroundings(&self, kind: Kind, object: &Value) -> Surroundings {
        self.index.surroundings(kind, object)
    }

    /// The same for an object in parts.
    pub fn surroundings_of(&self, kind: Kind, namespace: &str, spec: &impl Json) -> Surroundings {
        self.index.surroundings_of(kind, namespace, spec)
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
