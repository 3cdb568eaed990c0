//! The objects that decisions look up, kept in memory and followed by watches, so that no review waits for the API
//! server.
//!
//! What is kept is in `known` of the library. What the copy does not know it says nothing about: a reference counts as missing only where its
//! kind and namespace are followed and have been listed. A copy that cannot be brought up to date is still used, and says
//! how old it is; why is told in `health`.

mod follow;
mod health;
mod metrics;
mod settings;
mod start;

use std::ops::Deref;
use std::sync::Arc;

use agents::admission::known::Known;
use agents::kit::readiness::Gate;
use kube::Client;

pub use follow::Follower;
pub use metrics::Metrics;
pub use settings::Settings;

/// What is known about the objects of the cluster. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Lookup {
    known: Arc<Known>,
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
        let known = Arc::clone(&lookup.known);
        let follower = Follower::new(client, settings, known, gate, metrics);
        (lookup, follower)
    }
}

impl Deref for Lookup {
    type Target = Known;

    fn deref(&self) -> &Known {
        &self.known
    }
}
