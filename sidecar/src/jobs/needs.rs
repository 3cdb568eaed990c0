//! What the watch of Jobs must be able to do in the cluster. The chart grants the same.
//!
//! Events are not here, nor is reading namespaces: without them the work goes on.

use agents::api::kind::Kind;
use agents::cluster::{Need, Scope};

/// Everything that is needed, for all scopes.
pub fn all(scopes: &[Scope]) -> Vec<Need> {
    let each = scopes.iter().flat_map(|scope| {
        [
            Need::other("batch", "jobs", &["get", "list", "watch"], scope),
            Need::other("", "pods", &["list", "watch"], scope),
            // A run is read only when something seems wrong with its Job.
            Need::of(Kind::AgentRun, "", &["get"], scope.clone()),
            Need::of(Kind::ToolRun, "", &["get"], scope.clone()),
        ]
    });
    each.collect()
}
