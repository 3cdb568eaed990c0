//! What the controllers must be able to do in the cluster. The chart grants the same.
//!
//! Events are not here: without them the work goes on, and every one that could not be written is counted.

use super::groups::{Group, Groups, group};
use crate::api::contract::VERSION;
use crate::api::kind::Kind;
use crate::cluster::{Need, Scope};

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["patch"];

/// Everything that is needed, for all scopes.
pub(super) fn all(groups: &Groups, lease: Option<&str>) -> Vec<Need> {
    let mut needs = Vec::new();
    for kind in Kind::ALL {
        for scope in groups.followed(kind) {
            needs.push(of(kind, "", READ, scope));
        }
        // A kind that nobody follows is not worked on either.
        if groups.followed(kind).is_empty() {
            continue;
        }
        for scope in groups.scopes(group(kind)) {
            needs.push(of(kind, "/status", WRITE, scope.clone()));
            if let Some(verbs) = changes(kind) {
                needs.push(of(kind, "", verbs, scope));
            }
        }
    }
    for scope in groups.scopes(Group::Agents) {
        needs.extend(for_runs(&scope));
    }
    if let Some(namespace) = lease {
        let verbs = &["get", "list", "watch", "create", "update"];
        let scope = Scope::Namespace(namespace.to_owned());
        needs.push(other("coordination.k8s.io", "leases", verbs, &scope));
    }
    needs
}

/// What is done with objects of ours besides writing their status.
const fn changes(kind: Kind) -> Option<&'static [&'static str]> {
    match kind {
        Kind::AgentRun => Some(&["patch", "delete"]),
        Kind::Agent
        | Kind::AgentProvider
        | Kind::ImplementationSpec
        | Kind::ImplementationSource
        | Kind::VersionControlProvider
        | Kind::Memory
        | Kind::Orchestration
        | Kind::OrchestrationRun
        | Kind::Tool
        | Kind::ToolRun
        | Kind::ApprovalPolicy
        | Kind::Budget
        | Kind::SecretBinding
        | Kind::Signal
        | Kind::SignalDelivery
        | Kind::Schedule
        | Kind::Artifact
        | Kind::Workspace => None,
    }
}

/// What runs are made of.
fn for_runs(scope: &Scope) -> [Need; 4] {
    let jobs = &["get", "list", "watch", "create", "patch", "delete"];
    let pods = &["get", "list", "watch", "patch", "delete"];
    [
        other("batch", "jobs", jobs, scope),
        other("", "pods", pods, scope),
        other("", "configmaps", &["get", "create"], scope),
        other("", "secrets", &["get"], scope),
    ]
}

fn of(kind: Kind, part: &str, verbs: &'static [&'static str], scope: Scope) -> Need {
    Need {
        group: kind.group(),
        version: VERSION,
        resource: format!("{}{part}", kind.plural()),
        verbs,
        scope,
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
