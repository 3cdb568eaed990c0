//! What no webhook of ours may match, because a cluster that asks about it may not come up again.

use super::rule::{Request, matches, shown, some};
use super::{Check, Say};
use crate::api::registration::door::Operation;
use crate::api::registration::hook::Hook;

/// Group, version and resource of everything perilous, by the check that names it.
const PERILS: [(Check, &str, &str, &[&str]); 9] = [
    (
        Check::Pods,
        "",
        "v1",
        &["pods", "pods/binding", "pods/eviction", "pods/status"],
    ),
    (Check::Leases, "coordination.k8s.io", "v1", &["leases"]),
    (Check::Nodes, "", "v1", &["nodes", "nodes/status"]),
    (
        Check::CertificateRequests,
        "certificates.k8s.io",
        "v1",
        &[
            "certificatesigningrequests",
            "certificatesigningrequests/approval",
            "certificatesigningrequests/status",
        ],
    ),
    (
        Check::OwnWorkloads,
        "apps",
        "v1",
        &["daemonsets", "deployments", "replicasets", "statefulsets"],
    ),
    (
        Check::OwnWorkloads,
        "",
        "v1",
        &[
            "configmaps",
            "endpoints",
            "namespaces",
            "secrets",
            "serviceaccounts",
            "services",
        ],
    ),
    (
        Check::OwnWorkloads,
        "discovery.k8s.io",
        "v1",
        &["endpointslices"],
    ),
    (
        Check::OwnWorkloads,
        "cert-manager.io",
        "v1",
        &["certificates", "certificaterequests"],
    ),
    (
        Check::OwnWorkloads,
        "rbac.authorization.k8s.io",
        "v1",
        &[
            "clusterrolebindings",
            "clusterroles",
            "rolebindings",
            "roles",
        ],
    ),
];

/// Says each peril once.
pub(super) fn look(hook: &Hook, say: Say<'_>) {
    for check in Check::ALL {
        let matched: Vec<String> = PERILS
            .iter()
            .filter(|(belongs, ..)| *belongs == check)
            .flat_map(|(_, group, version, resources)| {
                let resources = resources.iter();
                resources
                    .filter(move |resource| is_matched(hook, group, version, resource))
                    .map(move |resource| format!("{resource} in {}", shown(group)))
            })
            .collect();
        if !matched.is_empty() {
            say(check, format!("{} must not be matched", some(&matched)));
        }
    }
}

fn is_matched(hook: &Hook, group: &str, version: &str, resource: &str) -> bool {
    Operation::ALL.iter().any(|operation| {
        matches(
            hook,
            Request {
                group,
                version,
                resource,
                operation: operation.as_str(),
            },
        )
    })
}
