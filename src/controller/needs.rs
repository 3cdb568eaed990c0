//! What the controllers must be able to do in the cluster. The chart grants the same.
//!
//! Events are not here: without them the work goes on, and every one that could not be written is counted.

use crate::api::contract::VERSION;
use crate::api::kind::Kind;
use crate::cluster::{Namespaces, Need, Scope};

/// Kinds that are read, and of which the status is written.
const KEPT: [Kind; 8] = [
    Kind::Agent,
    Kind::AgentProvider,
    Kind::ImplementationSpec,
    Kind::Tool,
    Kind::Signal,
    Kind::SecretBinding,
    Kind::ApprovalPolicy,
    Kind::Budget,
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
            resource: "leases".to_owned(),
            verbs: &["get", "list", "watch", "create", "update"],
            scope: Scope::Namespace(namespace.to_owned()),
        });
    }
    needs
}

fn in_scope(scope: &Scope) -> Vec<Need> {
    let ours = |kind: Kind, part: &str, verbs| Need {
        group: kind.group(),
        version: VERSION,
        resource: format!("{}{part}", kind.plural()),
        verbs,
        scope: scope.clone(),
    };
    let others = |group, resource: &str, verbs| Need {
        group,
        version: "v1",
        resource: resource.to_owned(),
        verbs,
        scope: scope.clone(),
    };
    const READ: &[&str] = &["get", "list", "watch"];
    const WRITE: &[&str] = &["patch"];
    const ALL: &[&str] = &["get", "list", "watch", "patch", "delete"];
    let mut needs = vec![
        ours(Kind::Memory, "", READ),
        ours(Kind::AgentRun, "", ALL),
        ours(Kind::AgentRun, "/status", WRITE),
    ];
    for kind in KEPT {
        needs.push(ours(kind, "", READ));
        needs.push(ours(kind, "/status", WRITE));
    }
    needs.extend([
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
