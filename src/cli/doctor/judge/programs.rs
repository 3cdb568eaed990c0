//! The programs that are installed, and who leads.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};

use super::cluster::apart;
use crate::api::contract::env;
use crate::cli::doctor::check::Verdict::{self, Bad, Beside, Good, Unseen, Warning};
use crate::cli::doctor::check::{Check, When, seen, some};
use crate::cli::doctor::facts::{Component, Facts, Program};

const HINT: &str =
    "`kubectl describe` its pods and read their logs; --namespace says where the release is";

/// About the programs.
pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "controllers",
        title: "the controllers are ready",
        hint: HINT,
        link: "docs/runbooks/AgentsControllersNoLeader.md",
        when: When::After,
        judge: |facts| ready(facts, Component::Controllers, true),
    },
    Check {
        id: "webhook",
        title: "the webhook is ready",
        hint: HINT,
        link: "docs/runbooks/AgentsWebhookDown.md",
        when: When::After,
        judge: |facts| ready(facts, Component::Webhook, facts.values.webhook),
    },
    Check {
        id: "control-plane",
        title: "the control plane is ready",
        hint: HINT,
        link: "docs/install.md#first-steps",
        when: When::After,
        judge: |facts| ready(facts, Component::ControlPlane, facts.values.control_plane),
    },
    Check {
        id: "versions",
        title: "the programs are of the version of this one",
        hint: "use the `agents` of the version that is installed, or upgrade the release",
        link: "docs/upgrade.md",
        when: When::After,
        judge: versions,
    },
    Check {
        id: "lease",
        title: "one of the controllers leads, and keeps its lease",
        hint: "look at the pods of the controllers and at who holds the lease; a lease that nobody renews is taken over by the next controller that starts",
        link: "docs/runbooks/AgentsControllersNoLeader.md",
        when: When::After,
        judge: lease,
    },
    Check {
        id: "lease-clock",
        title: "the clock of the controller that leads agrees with the API server's",
        hint: "let the node of that pod synchronise its clock; times in statuses are wrong otherwise",
        link: "docs/doctor.md#clocks",
        when: When::After,
        judge: lease_clock,
    },
];

fn ready(facts: &Facts, component: Component, is_wanted: bool) -> Verdict {
    seen(&facts.programs, |_| {
        let Some(program) = facts.program(component) else {
            let namespace = &facts.namespace;
            let none = format!(
                "there is no {} in namespace {namespace}",
                component.as_str()
            );
            // Without values nobody can say whether what is not there should be.
            return match (component, facts.values.given) {
                (_, true) if !is_wanted => Beside("the values switch it off".to_owned()),
                (Component::Controllers, _) | (_, true) => Bad(none),
                (Component::Webhook | Component::ControlPlane, false) => Beside(none),
            };
        };
        let Program {
            kind,
            name,
            wanted,
            ready,
            ..
        } = program;
        let text = format!("{kind} {name}: {ready} of {wanted} pods are ready");
        match ready {
            0 => Bad(text),
            ready if ready < wanted => Warning(text),
            _ => Good(text),
        }
    })
}

fn versions(facts: &Facts) -> Verdict {
    let own = env!("CARGO_PKG_VERSION");
    seen(&facts.programs, |programs| {
        let other = programs.iter().filter_map(|program| {
            let version = program.version.as_deref().filter(|it| *it != own)?;
            Some(format!("{} is {version}", program.name))
        });
        let other: Vec<String> = other.collect();
        match (other.as_slice(), programs.is_empty()) {
            (_, true) => Beside("nothing is installed here".to_owned()),
            ([], false) => Good(own.to_owned()),
            (other, false) => Warning(format!("this is {own}; {}", some(other))),
        }
    })
}

/// Whether one of several may lead at all.
fn is_elected(facts: &Facts) -> bool {
    let controllers = facts.program(Component::Controllers);
    let enabled = controllers.and_then(|it| it.variables.get(env::LEADER_ELECTION_ENABLED));
    enabled.is_none_or(|enabled| enabled != "false")
}

fn lease(facts: &Facts) -> Verdict {
    if !is_elected(facts) {
        return Beside("leader election is off".to_owned());
    }
    let lease = match &facts.lease {
        Ok(lease) => lease,
        Err(unseen @ crate::cli::doctor::facts::Unseen::Absent(_)) => {
            return Bad(unseen.to_string());
        }
        Err(unseen) => return Unseen(unseen.to_string()),
    };
    let spec = lease.spec.clone().unwrap_or_default();
    let holder = spec.holder_identity.as_deref().unwrap_or_default();
    if holder.is_empty() {
        return Bad("nobody holds the lease".to_owned());
    }
    let Some(renewed) = spec.renew_time.as_ref().map(|at| at.0) else {
        return Bad(format!("{holder} holds the lease and never renewed it"));
    };
    let since = facts.now.duration_since(renewed);
    if since <= patience(&spec) {
        return Good(format!("{holder} leads"));
    }
    let pod = holder.rsplit_once('_').map_or(holder, |(pod, _)| pod);
    let gone = facts.pods.as_ref().is_ok_and(|pods| !pods.contains(pod));
    let gone = match gone {
        true => "; there is no such pod",
        false => "",
    };
    let seconds = since.as_secs();
    Bad(format!(
        "{holder} holds the lease and has not renewed it for {seconds} s{gone}"
    ))
}

/// Twice the time for which a lease is held: the next holder needs a while to notice.
fn patience(spec: &LeaseSpec) -> SignedDuration {
    let held = spec.lease_duration_seconds.unwrap_or(30);
    SignedDuration::from_secs(2 * i64::from(held.max(1)))
}

fn lease_clock(facts: &Facts) -> Verdict {
    if !is_elected(facts) {
        return Beside("leader election is off".to_owned());
    }
    seen(&facts.lease, |lease| match written(lease) {
        Some((by_holder, by_server)) => {
            let ahead = by_holder.duration_since(by_server);
            apart(ahead, "the leader is", "the API server")
        }
        None => Beside("nobody has renewed the lease".to_owned()),
    })
}

/// When the lease was renewed last, by the clock of who did and by that of the API server, which notes each write itself.
fn written(lease: &Lease) -> Option<(Timestamp, Timestamp)> {
    let renewed = lease.spec.as_ref()?.renew_time.as_ref()?.0;
    let entries = lease.metadata.managed_fields.as_deref()?;
    let own = entries.iter().filter(|entry| {
        let fields = entry.fields_v1.as_ref();
        fields.is_some_and(|fields| fields.0.pointer("/f:spec/f:renewTime").is_some())
    });
    let noted = own.filter_map(|entry| Some(entry.time.as_ref()?.0)).max()?;
    Some((renewed, noted))
}
