//! What the control plane must be able to do in the cluster. The chart grants the same.
//!
//! The two reviews are not here: without them the program answers, and says why nobody gets in.

use crate::api::kind::Kind;
use crate::cluster::{Namespaces, Need, Scope};

const READ: &[&str] = &["get", "list", "watch"];

/// Everything that is needed, for all scopes, in the namespace of the lease and in that of the pods of the controllers.
pub(super) fn all(
    namespaces: &Namespaces,
    (lease, pods): (&str, &str),
    takes_calls: bool,
) -> Vec<Need> {
    let mut needs = Vec::new();
    for scope in namespaces.scopes() {
        for kind in Kind::ALL {
            needs.push(Need::of(kind, "", READ, scope.clone()));
        }
        let of = |kind, part, verbs| Need::of(kind, part, verbs, scope.clone());
        needs.extend([
            of(Kind::AgentRun, "", &["create", "patch"]),
            of(Kind::ApprovalPolicy, "/status", &["patch"]),
            of(Kind::Signal, "", &["create"]),
            of(Kind::SignalDelivery, "", &["create"]),
        ]);
        needs.extend(others(&scope));
        if takes_calls {
            needs.extend(for_calls(&scope));
        }
    }
    // Who leads the controllers, and how their queue stands.
    let scope = Scope::Namespace(lease.to_owned());
    let leases = Need::other("coordination.k8s.io", "leases", READ, &scope);
    let scope = Scope::Namespace(pods.to_owned());
    needs.extend([leases, Need::other("", "pods/proxy", &["get"], &scope)]);
    needs
}

fn others(scope: &Scope) -> [Need; 3] {
    [
        Need::other("", "events", &["list"], scope),
        Need::other("", "pods", &["list"], scope),
        Need::other("", "pods/log", &["get"], scope),
    ]
}

/// Calls of trackers are checked with Secrets and wait in ConfigMaps.
fn for_calls(scope: &Scope) -> [Need; 2] {
    [
        Need::other("", "secrets", &["get"], scope),
        Need::other("", "configmaps", &["list", "create"], scope),
    ]
}
