//! What the programs of a release asked of the API server, as it wrote that down, against the rights that the chart grants.

use std::{collections::BTreeSet, fs};

use agents::api::kind::Kind;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use support::wait;

use super::stage::{DEADLINE, Stage};
use crate::chart::rights::{Right, granted};

/// Whoever has an account may ask these about themselves, and whoever is bound to `system:auth-delegator` about others.
const OF_THE_CLUSTER: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];

/// What one account asked for, and what of it was refused.
#[derive(Default)]
struct Asked {
    allowed: BTreeSet<Right>,
    refused: BTreeSet<Right>,
}

impl Asked {
    /// By the audit log, in which each line is one answer.
    fn read(log: &str, user: &str) -> Self {
        let mut asked = Self::default();
        let entries = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        for entry in entries.filter(|entry| entry["user"]["username"] == user) {
            let Some(right) = right_of(&entry) else {
                continue;
            };
            // What was turned away before it was judged has no decision.
            match entry["annotations"]["authorization.k8s.io/decision"].as_str() {
                Some("allow") => asked.allowed.insert(right),
                Some("forbid") => asked.refused.insert(right),
                _ => false,
            };
        }
        asked
    }
}

/// The right that a request needs, if it is one of ours to grant.
fn right_of(entry: &Value) -> Option<Right> {
    let about = entry.get("objectRef")?;
    let text = |of: &Value| of.as_str().unwrap_or_default().to_owned();
    let group = text(&about["apiGroup"]);
    if OF_THE_CLUSTER.contains(&&*group) {
        return None;
    }
    let resource = match about["subresource"].as_str() {
        Some(part) => format!("{}/{part}", text(&about["resource"])),
        None => text(&about["resource"]),
    };
    Some((
        text(&about["namespace"]),
        group,
        resource,
        text(&entry["verb"]),
    ))
}

/// Why a right may not have been used by then: of a component, on a resource, `*` being any of our kinds.
const NOT_YET: [(&str, &str, &str, &str); 32] = [
    ("control-plane", "*", "get", BY_NAME),
    ("control-plane", "leases", "get", BY_NAME),
    (
        "control-plane",
        "events",
        "list",
        "no request asked for Events",
    ),
    (
        "control-plane",
        "pods",
        "list",
        "no request asked for a log",
    ),
    (
        "control-plane",
        "pods/log",
        "get",
        "no request asked for a log",
    ),
    (
        "control-plane",
        "agentruns",
        "create",
        "no request made a run",
    ),
    (
        "control-plane",
        "agentruns",
        "patch",
        "no request ended a run",
    ),
    (
        "control-plane",
        "approvalpolicies/status",
        "patch",
        "no request decided",
    ),
    (
        "control-plane",
        "signals",
        "create",
        "no request made a signal",
    ),
    (
        "control-plane",
        "signaldeliveries",
        "create",
        "no request sent a signal",
    ),
    ("controllers", "*", "get", BY_NAME),
    ("controllers", "leases", "get", "no other holds the lease"),
    ("controllers", "jobs", "get", BY_NAME),
    ("controllers", "pods", "get", BY_NAME),
    ("controllers", "namespaces", "get", "no Job is missing"),
    (
        "controllers",
        "configmaps",
        "delete",
        "no tracker delivered",
    ),
    (
        "controllers",
        "implementationspecs",
        "create",
        "no tracker delivered",
    ),
    (
        "controllers",
        "implementationspecs",
        "patch",
        "no tracker delivered",
    ),
    ("controllers", "events", "create", OLDER),
    ("controllers", "events", "patch", "nothing happened twice"),
    (
        "controllers",
        "persistentvolumeclaims",
        "patch",
        "no Workspace was changed",
    ),
    (
        "controllers",
        "persistentvolumeclaims",
        "delete",
        "no Workspace is over",
    ),
    ("controllers", "jobs", "delete", "no run was stopped"),
    ("controllers", "pods", "delete", "no run was stopped"),
    (
        "controllers",
        "agentruns",
        "delete",
        "the time of no run is over",
    ),
    (
        "controllers",
        "orchestrationruns",
        "create",
        "no Schedule was due",
    ),
    (
        "controllers",
        "orchestrationruns",
        "patch",
        "no Schedule was due",
    ),
    ("controllers", "toolruns", "create", "no step called a tool"),
    ("webhook", "events", "create", "only a dry run was refused"),
    ("webhook", "events", "patch", "only a dry run was refused"),
    ("webhook", "agentruns", "patch", "nobody deleted a Job"),
    ("webhook", "toolruns", "patch", "nobody deleted a Job"),
];
const BY_NAME: &str = "one object is read where a request names it, a list lacks it or no watch confirms it; who may list sees the same";
const OLDER: &str = "the group without a name is for clusters that have no other for Events";

fn is_explained(component: &str, (_, _, resource, verb): &Right) -> bool {
    let is_ours = Kind::ALL.iter().any(|kind| kind.plural() == resource);
    NOT_YET.iter().any(|(of, on, what, _)| {
        *of == component && *what == verb && (on == resource || *on == "*" && is_ours)
    })
}

/// Every program asked for what it may do and for nothing else, and it is known why it has not done the rest.
pub(super) async fn as_granted(stage: &Stage) -> Result<()> {
    let log = stage.lab.audit_log().context("an audit log")?;
    let rendered = stage.rendered(&json!({})).await?;
    for (deployment, component) in [
        ("agents", "control-plane"),
        ("agents-controllers", "controllers"),
        ("agents-webhook", "webhook"),
    ] {
        let pods = rendered.get(&format!("Deployment/{deployment}"))?;
        let account = pods.pointer("/spec/template/spec/serviceAccountName");
        let account = account.and_then(Value::as_str).context("an account")?;
        let user = format!("system:serviceaccount:{}:{account}", stage.here.name);
        let granted = granted(&rendered, component);
        // Not all that was made is looked after yet.
        wait::retry("rights that are used", DEADLINE, || async {
            let asked = Asked::read(&fs::read_to_string(&log)?, &user);
            let beyond: Vec<_> = asked.allowed.difference(&granted).collect();
            ensure!(
                beyond.is_empty(),
                "{component} has other rights: {beyond:?}"
            );
            let refused = &asked.refused;
            ensure!(refused.is_empty(), "{component} may not: {refused:?}");
            let unused = granted.difference(&asked.allowed);
            let unused: Vec<_> = unused
                .filter(|right| !is_explained(component, right))
                .collect();
            ensure!(unused.is_empty(), "{component} did not: {unused:?}");
            Ok(())
        })
        .await?;
    }
    Ok(())
}
