//! The cluster itself, and the kinds that it has.

use jiff::SignedDuration;

use crate::cli::doctor::check::Verdict::{self, Bad, Beside, Good, Warning};
use crate::cli::doctor::check::{Check, When, none_of, seen, some};
use crate::cli::doctor::facts::{Component, Facts};
use crate::cluster::Standing;

/// The oldest Kubernetes that this program is made for.
const OLDEST: (u32, u32) = (1, 33);

/// Clocks that are further apart are worth a word.
const APART: SignedDuration = SignedDuration::from_secs(5);

/// Clocks that are further apart make times meaningless, and certificates fail.
const FAR_APART: SignedDuration = SignedDuration::from_secs(60);

/// About the cluster.
pub(crate) const CLUSTER: &[Check] = &[
    Check {
        id: "api-server",
        title: "the API server answers, and is new enough",
        hint: "see that the cluster is up and that --kubeconfig and --context name the right one; Kubernetes 1.33 or newer is needed",
        link: "docs/install.md",
        when: When::Always,
        judge: api_server,
    },
    Check {
        id: "clock",
        title: "the clocks of this machine and of the API server agree",
        hint: "let both synchronise their clocks; certificates and times in statuses are wrong otherwise",
        link: "docs/doctor.md#clocks",
        when: When::Always,
        judge: clock,
    },
    Check {
        id: "cert-manager",
        title: "cert-manager is there to make the certificate of the webhook",
        hint: "install cert-manager, or let the webhook make its certificate with webhook.tls.source: rotator",
        link: "docs/install.md",
        when: When::Always,
        judge: cert_manager,
    },
    Check {
        id: "rollouts",
        title: "Argo Rollouts is there if it is used",
        hint: "install Argo Rollouts with its CRDs, or set progressiveDelivery.enabled: false",
        link: "docs/runbooks/rollouts.md",
        when: When::Always,
        judge: rollouts,
    },
    Check {
        id: "monitoring",
        title: "Prometheus Operator is there if it is asked for",
        hint: "install the CRDs of Prometheus Operator, or set metrics.serviceMonitor.renderMode: auto",
        link: "docs/install.md#metrics",
        when: When::Always,
        judge: monitoring,
    },
];

/// About our kinds.
pub(crate) const KINDS: &[Check] = &[
    Check {
        id: "kinds-served",
        title: "all 19 kinds are served",
        hint: "`agents crds apply` installs them",
        link: "docs/operating.md#definitions",
        when: When::After,
        judge: kinds_served,
    },
    Check {
        id: "kinds-current",
        title: "the definitions are not older than this program",
        hint: "`agents crds diff` shows what differs, `agents crds apply` brings them up to date",
        link: "docs/upgrade.md",
        when: When::Always,
        judge: kinds_current,
    },
];

fn api_server(facts: &Facts) -> Verdict {
    let version = match &facts.version {
        Ok(version) => version,
        Err(unseen) => return Bad(unseen.to_string()),
    };
    match numbers(version) {
        Some(numbers) if numbers < OLDEST => {
            let (major, minor) = OLDEST;
            Bad(format!("{version} is older than v{major}.{minor}"))
        }
        Some(_) | None => Good(version.clone()),
    }
}

/// Major and minor of a text such as `v1.35.1`.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.trim_start_matches('v').split(['.', '-', '+']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn clock(facts: &Facts) -> Verdict {
    seen(&facts.ahead, |ahead| {
        apart(*ahead, "the API server is", "this machine")
    })
}

/// What to say of two clocks.
pub(super) fn apart(ahead: SignedDuration, who: &str, whom: &str) -> Verdict {
    let how = match ahead.is_negative() {
        true => "behind",
        false => "ahead of",
    };
    let text = format!("{who} {} s {how} {whom}", ahead.abs().as_secs());
    match ahead.abs() {
        apart if apart > FAR_APART => Bad(text),
        apart if apart > APART => Warning(text),
        _ => Good(format!("within {} s", APART.as_secs())),
    }
}

/// Whether a group is there, if it is needed.
fn needed(facts: &Facts, group: &str, is_needed: bool, otherwise: &str) -> Verdict {
    seen(&facts.groups, |groups| {
        match (groups.contains(group), is_needed) {
            (true, _) => Good(group.to_owned()),
            (false, true) => Bad(format!("the cluster does not have {group}")),
            (false, false) => Beside(otherwise.to_owned()),
        }
    })
}

fn cert_manager(facts: &Facts) -> Verdict {
    let registered = facts.registered.as_ref().ok();
    let injected = registered.and_then(|registered| {
        let validating = registered.validating.as_ref()?;
        let annotations = validating.metadata.annotations.as_ref()?;
        Some(annotations.contains_key("cert-manager.io/inject-ca-from"))
    });
    // What is installed says more than what would be by default.
    let is_needed = match facts.values.given {
        true => facts.values.cert_manager,
        false => injected.unwrap_or(facts.values.cert_manager),
    };
    let otherwise = "the certificate comes from elsewhere";
    needed(facts, "cert-manager.io/v1", is_needed, otherwise)
}

fn rollouts(facts: &Facts) -> Verdict {
    let installed = facts.programs.as_ref().is_ok_and(|all| !all.is_empty());
    // Who is carried by a Rollout has no Deployment, and where the kind is gone, so is the Rollout.
    let vanished = installed && facts.program(Component::Controllers).is_none();
    let is_needed = facts.values.rollouts || vanished;
    needed(
        facts,
        "argoproj.io/v1alpha1",
        is_needed,
        "Deployments are used",
    )
}

fn monitoring(facts: &Facts) -> Verdict {
    let otherwise = "there is none, so no ServiceMonitor is made";
    needed(
        facts,
        "monitoring.coreos.com/v1",
        facts.values.monitor,
        otherwise,
    )
}

fn kinds_served(facts: &Facts) -> Verdict {
    seen(&facts.kinds, |kinds| {
        let missing = kinds.iter().filter(|(_, it)| *it == Standing::Missing);
        let missing: Vec<String> = missing
            .map(|(kind, _)| format!("{}.{} is missing", kind.plural(), kind.group()))
            .collect();
        none_of(&missing, format!("{} kinds", kinds.len()))
    })
}

fn kinds_current(facts: &Facts) -> Verdict {
    seen(&facts.kinds, |kinds| {
        if kinds.iter().all(|(_, it)| *it == Standing::Missing) {
            return Beside("there is none yet".to_owned());
        }
        let lacking = kinds.iter().filter_map(|(_, it)| match it {
            Standing::Lacking(text) => Some(text.clone()),
            Standing::Current | Standing::Missing => None,
        });
        let lacking: Vec<String> = lacking.collect();
        match lacking.as_slice() {
            [] => Good("every field is known".to_owned()),
            lacking => Bad(some(lacking)),
        }
    })
}
