//! What the watch of Jobs must be able to do in the cluster. The chart grants the same.
//!
//! Events are not here, nor is reading namespaces: without them the work goes on.

use agents::api::contract::VERSION;
use agents::api::kind::Kind;
use agents::cluster::{Need, Scope};

/// Everything that is needed, for all scopes.
pub(super) fn all(scopes: &[Scope]) -> Vec<Need> {
    let each = scopes.iter().flat_map(|scope| {
        [
            other("batch", "jobs", &["get", "list", "watch"], scope),
            other("", "pods", &["list", "watch"], scope),
            of(Kind::AgentRun, scope),
            of(Kind::ToolRun, scope),
        ]
    });
    each.collect()
}

/// A run is read only when something seems wrong with its Job.
fn of(kind: Kind, scope: &Scope) -> Need {
    Need {
        group: kind.group(),
        version: VERSION,
        resource: kind.plural().to_owned(),
        verbs: &["get"],
        scope: scope.clone(),
    }
}

fn other(
    group: &'static str,
    resource: &str,
    verbs: &'static [&'static str],
    scope: &Scope,
) -> Need {
    Need {
        group,
        version: "v1",
        resource: resource.to_owned(),
        verbs,
        scope: scope.clone(),
    }
}
