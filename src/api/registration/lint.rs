//! Judges a live configuration: what in it could lock a cluster, and where it is not what the rung means.
//!
//! Everything is decided by what the API server would do with the configuration, never by the names in it.

mod exempt;
mod peril;
mod rule;
mod whole;

use std::fmt;

use super::door::{Door, Operation};
use super::hook::{Configuration, Hook};
use super::{EXEMPT_NAMESPACES, selector};
use crate::api::contract::user;
use crate::api::registration::rung::{FailurePolicy, Rung, Territory};

/// Longest time that a call may hold up a request.
const MAX_TIMEOUT_SECONDS: i32 = 10;

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    /// `*` in groups, resources or operations.
    Wildcard,
    /// Pods, those of the webhook included.
    Pods,
    /// Leases, by which nodes and leaders say that they live.
    Leases,
    /// Nodes.
    Nodes,
    /// Requests for certificates.
    CertificateRequests,
    /// What the webhook itself runs from: workloads, Services, endpoints, Secrets.
    OwnWorkloads,
    /// Other requests that the door does not answer.
    Foreign,
    /// Namespaces in which the cluster lives.
    SystemNamespaces,
    /// Garbage collector and namespace controller.
    Exemptions,
    /// How long a request may be held up.
    Timeout,
    /// `Fail` on status writes.
    StatusHeldUp,
    /// `Fail` on the deletion of Jobs.
    DeletionHeldUp,
    /// `Fail` or `Ignore` where the rung means the other.
    Rung,
    /// The certificate authority.
    Authority,
    /// Requests that no door is asked about.
    Coverage,
    /// Paths that the webhook does not know.
    Door,
    /// Dry runs, and calls after a change by others.
    Calls,
}

impl Check {
    /// All checks.
    pub const ALL: [Self; 17] = [
        Self::Wildcard,
        Self::Pods,
        Self::Leases,
        Self::Nodes,
        Self::CertificateRequests,
        Self::OwnWorkloads,
        Self::Foreign,
        Self::SystemNamespaces,
        Self::Exemptions,
        Self::Timeout,
        Self::StatusHeldUp,
        Self::DeletionHeldUp,
        Self::Rung,
        Self::Authority,
        Self::Coverage,
        Self::Door,
        Self::Calls,
    ];

    /// The word in metrics, logs and documentation.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Wildcard => "wildcard",
            Self::Pods => "pods",
            Self::Leases => "leases",
            Self::Nodes => "nodes",
            Self::CertificateRequests => "certificate_requests",
            Self::OwnWorkloads => "own_workloads",
            Self::Foreign => "foreign",
            Self::SystemNamespaces => "system_namespaces",
            Self::Exemptions => "exemptions",
            Self::Timeout => "timeout",
            Self::StatusHeldUp => "status_held_up",
            Self::DeletionHeldUp => "deletion_held_up",
            Self::Rung => "rung",
            Self::Authority => "authority",
            Self::Coverage => "coverage",
            Self::Door => "door",
            Self::Calls => "calls",
        }
    }

    /// What a finding means, in a sentence for the documentation.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Wildcard => "A rule has `*`, so it matches kinds that nobody thought of.",
            Self::Pods => "Pods are matched: if the webhook is down, its own pods may not start.",
            Self::Leases => {
                "Leases are matched: nodes may count as dead and leaders may lose their seat."
            }
            Self::Nodes => "Nodes are matched: no node may join or report.",
            Self::CertificateRequests => {
                "Certificate requests are matched: kubelets may not renew theirs."
            }
            Self::OwnWorkloads => {
                "What the webhook runs from is matched: it may not be repaired while it is down."
            }
            Self::Foreign => "A door is asked about requests that are none of its business.",
            Self::SystemNamespaces => "A namespace in which the cluster lives is not left out.",
            Self::Exemptions => {
                "Garbage collector or namespace controller is not left out; deleting a namespace may hang."
            }
            Self::Timeout => "Requests may be held up for too long.",
            Self::StatusHeldUp => "Status writes fail while the webhook does not answer.",
            Self::DeletionHeldUp => "Jobs cannot be deleted while the webhook does not answer.",
            Self::Rung => "The failure policy is not that of the rung the webhook runs on.",
            Self::Authority => {
                "There is no CA bundle, so the API server may not trust the webhook."
            }
            Self::Coverage => "Requests pass by that the webhook should be asked about.",
            Self::Door => "The configuration calls a path that the webhook does not know.",
            Self::Calls => {
                "Dry runs are refused, or changes by later webhooks are not looked at again."
            }
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something about a configuration that someone should change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// What was looked at.
    pub check: Check,
    /// In which hook.
    pub hook: String,
    /// What is wrong and what would be right.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { check, hook, text } = self;
        write!(f, "{check}: {hook}: {text}")
    }
}

/// Everything that is wrong with a configuration of ours, given the rung on which the webhook runs.
pub fn lint(configuration: &Configuration, rung: Rung) -> Vec<Finding> {
    let mut findings = Vec::new();
    for hook in &configuration.hooks {
        let mut say = |check, text: String| {
            findings.push(Finding {
                check,
                hook: hook.name.clone(),
                text,
            });
        };
        let door = Door::ALL
            .into_iter()
            .find(|door| door.path() == hook.path() && door.mutates() == configuration.mutates);
        if door.is_none() {
            let path = hook.path();
            say(
                Check::Door,
                format!("{path} is no path of this webhook here"),
            );
        }
        peril::look(hook, &mut say);
        rule::look(hook, door, &mut say);
        namespaces(hook, &mut say);
        exemptions(hook, &mut say);
        manners(hook, configuration.mutates, &mut say);
        held_up(hook, &mut say);
    }
    whole::look(configuration, rung, &mut findings);
    findings
}

/// Whether a hook, of whomever, is asked about a request: its group, version, resource and operation.
pub fn asks_about(hook: &Hook, request: (&str, &str, &str, Operation)) -> bool {
    let (group, version, resource, operation) = request;
    let operation = operation.as_str();
    let request = rule::Request {
        group,
        version,
        resource,
        operation,
    };
    rule::matches(hook, request)
}

/// Where a look says what it found.
type Say<'a> = &'a mut dyn FnMut(Check, String);

fn namespaces(hook: &Hook, say: Say<'_>) {
    let selected = |namespace: &&str| {
        [Territory::Plain, Territory::Labelled]
            .into_iter()
            .any(|territory| {
                let labels = selector::labels_of(namespace, territory);
                selector::selects(hook.namespaces.as_ref(), &labels)
            })
    };
    let reached: Vec<_> = EXEMPT_NAMESPACES.into_iter().filter(selected).collect();
    if !reached.is_empty() {
        let reached = reached.join(", ");
        say(
            Check::SystemNamespaces,
            format!("namespaceSelector does not leave out {reached}"),
        );
    }
}

fn exemptions(hook: &Hook, say: Say<'_>) {
    for user in [user::GARBAGE_COLLECTOR, user::NAMESPACE_CONTROLLER] {
        let left_out = hook
            .conditions
            .iter()
            .any(|condition| exempt::leaves_out(&condition.expression, user));
        if !left_out {
            say(
                Check::Exemptions,
                format!("no matchCondition is seen to leave out the user {user}"),
            );
        }
    }
}

fn manners(hook: &Hook, mutates: bool, say: Say<'_>) {
    match hook.timeout_seconds {
        None => say(Check::Timeout, "timeoutSeconds is not set".to_owned()),
        Some(seconds) if seconds > MAX_TIMEOUT_SECONDS => say(
            Check::Timeout,
            format!("timeoutSeconds is {seconds}; {MAX_TIMEOUT_SECONDS} at most"),
        ),
        Some(_) => {}
    }
    if hook
        .client
        .ca_bundle
        .as_ref()
        .is_none_or(|ca| ca.0.is_empty())
    {
        say(
            Check::Authority,
            "clientConfig.caBundle is empty; the API server would trust public authorities only"
                .to_owned(),
        );
    }
    if hook.side_effects != "NoneOnDryRun" {
        let given = &hook.side_effects;
        say(
            Check::Calls,
            format!("sideEffects is {given}; it should be NoneOnDryRun"),
        );
    }
    if mutates && hook.reinvocation_policy.as_deref() != Some("IfNeeded") {
        say(
            Check::Calls,
            "reinvocationPolicy should be IfNeeded".to_owned(),
        );
    }
}

/// Judged by what is matched, whatever the door: a status or a deletion may never wait for a webhook.
fn held_up(hook: &Hook, say: Say<'_>) {
    if policy(hook) == FailurePolicy::Ignore {
        return;
    }
    let held = "is held up while the webhook does not answer; failurePolicy should be Ignore";
    for (door, check, what) in [
        (Door::ValidateStatus, Check::StatusHeldUp, "a status write"),
        (
            Door::ValidateDelete,
            Check::DeletionHeldUp,
            "the deletion of a Job",
        ),
    ] {
        if rule::reaches(hook, door) {
            say(check, format!("{what} {held}"));
        }
    }
}

/// What the API server does while the hook does not answer. It takes `Fail` if nothing is said.
fn policy(hook: &Hook) -> FailurePolicy {
    match hook.failure_policy.as_deref() {
        Some("Ignore") => FailurePolicy::Ignore,
        _ => FailurePolicy::Fail,
    }
}
