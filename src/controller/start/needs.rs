//! What the controllers must be able to do in the cluster. The chart grants the same.
//!
//! Events are not here: without them the work goes on, and every one that could not be written is counted.

use crate::api::kind::Kind;
use crate::cluster::{Need, Scope};
use crate::controller::args::groups::{Group, Groups};

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["patch"];

/// Everything that is needed, for all scopes.
pub(in crate::controller) fn all(groups: &Groups, lease: Option<&str>) -> Vec<Need> {
    let mut needs = Vec::new();
    for kind in Kind::ALL {
        for scope in groups.followed(kind) {
            needs.push(Need::of(kind, "", READ, scope));
        }
        for (group, verbs) in changes(kind) {
            let scopes = groups.scopes(*group).into_iter();
            needs.extend(scopes.map(|scope| Need::of(kind, "", verbs, scope)));
        }
        let scopes = groups.worked_on(kind).into_iter();
        needs.extend(scopes.map(|scope| Need::of(kind, "/status", WRITE, scope)));
    }
    for scope in groups.scopes(Group::Agents) {
        needs.extend(for_runs(&scope));
        // What trackers delivered waits in them.
        let verbs = &["list", "watch", "delete"];
        needs.push(Need::other("", "configmaps", verbs, &scope));
    }
    for scope in groups.scopes(Group::Supporting) {
        needs.extend(for_tools(&scope));
    }
    if let Some(namespace) = lease {
        let verbs = &["get", "list", "watch", "create", "update"];
        let scope = Scope::Namespace(namespace.to_owned());
        needs.push(Need::other("coordination.k8s.io", "leases", verbs, &scope));
    }
    needs
}

/// What is done with objects of ours besides writing their status: in which group, and what.
const fn changes(kind: Kind) -> &'static [(Group, &'static [&'static str])] {
    match kind {
        Kind::AgentRun => &[
            (Group::Agents, &["patch", "delete"]),
            (Group::Orchestrations, &["create", "patch"]),
            (Group::Supporting, &["create", "patch"]),
        ],
        Kind::OrchestrationRun => &[
            (Group::Orchestrations, &["create", "patch"]),
            (Group::Supporting, &["create", "patch"]),
        ],
        Kind::ToolRun => &[
            (Group::Orchestrations, &["create", "patch"]),
            (Group::Supporting, &["patch"]),
        ],
        // Issues become ImplementationSpecs.
        Kind::ImplementationSpec => &[(Group::Agents, &["create", "patch"])],
        Kind::Agent
        | Kind::AgentProvider
        | Kind::ImplementationSource
        | Kind::VersionControlProvider
        | Kind::Memory
        | Kind::Orchestration
        | Kind::Tool
        | Kind::ApprovalPolicy
        | Kind::Budget
        | Kind::SecretBinding
        | Kind::Signal
        | Kind::SignalDelivery
        | Kind::Schedule
        | Kind::Artifact
        | Kind::Workspace => &[],
    }
}

/// What runs are made of.
fn for_runs(scope: &Scope) -> [Need; 5] {
    let jobs = &["get", "list", "watch", "create", "patch", "delete"];
    let pods = &["get", "list", "watch", "patch", "delete"];
    [
        Need::other("batch", "jobs", jobs, scope),
        Need::other("", "pods", pods, scope),
        Need::other("", "configmaps", &["get", "create"], scope),
        Need::other("", "secrets", &["get"], scope),
        Need::other("", "persistentvolumeclaims", &["get"], scope),
    ]
}

/// What calls of tools and workspaces are made of.
fn for_tools(scope: &Scope) -> [Need; 5] {
    let claims = &["get", "list", "watch", "create", "patch", "delete"];
    let [jobs, pods, config_maps, secrets, _] = for_runs(scope);
    let claims = Need::other("", "persistentvolumeclaims", claims, scope);
    [jobs, pods, config_maps, secrets, claims]
}
