//! What the controllers must be able to do in the cluster. The chart grants the same.
//!
//! Events are not here: without them the work goes on, and every one that could not be written is counted.

use crate::api::contract::VERSION;
use crate::api::kind::Kind;
use crate::cluster::{Namespaces, Need, Scope};

/// Kinds that are read.
const READ: [Kind; 4] = [
    Kind::Agent,
    Kind::AgentProvider,
    Kind::ImplementationSpec,
    Kind::Memory,
];

/// Everything that is needed, for all scopes.
pub(super) fn all(namespaces: &Namespaces, lease: Option<&str>) -> Vec<Need> {
    let mut needs = Vec::new();
    for scope in namespaces.scopes() {
        needs.extend(in_scope(&scope));
    }
    if let Some(namespace) = lease {
        needs.push(Need {
            group: "coordination.k8s.io",
            version: "v1",
            resource: "leases",
            verbs: &["get", "list", "watch", "create", "update"],
            scope: Scope::Namespace(namespace.to_owned()),
        });
    }
    needs
}

fn in_scope(scope: &Scope) -> Vec<Need> {
    let ours = |kind: Kind, resource, verbs| Need {
        group: kind.group(),
        version: VERSION,
        resource,
        verbs,
        scope: scope.clone(),
    };
    let others = |group, resource, verbs| Need {
        group,
        version: "v1",
        resource,
        verbs,
        scope: scope.clone(),
    };
    let mut needs: Vec<Need> = READ
        .into_iter()
        .map(|kind| ours(kind, kind.plural(), &["get", "list", "watch"]))
        .collect();
    needs.extend([
        ours(
            Kind::AgentRun,
            "agentruns",
            &["get", "list", "watch", "patch", "delete"],
        ),
        ours(Kind::AgentRun, "agentruns/status", &["patch"]),
        others(
            "batch",
            "jobs",
            &["get", "list", "watch", "create", "patch", "delete"],
        ),
        others("", "pods", &["get", "list", "watch", "patch", "delete"]),
        others("", "configmaps", &["get", "create"]),
        others("", "secrets", &["get"]),
    ]);
    needs
}
