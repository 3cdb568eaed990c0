//! What is shown about the policy.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::Loaded;

/// Metrics of the policy files.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    reloads: Family<ReloadLabels, Counter>,
    info: Family<InfoLabels, Gauge>,
}

/// Which policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Active,
    Candidate,
}

impl Which {
    const ALL: [Self; 2] = [Self::Active, Self::Candidate];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Candidate => "candidate",
        }
    }
}

/// What became of a changed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Ok,
    Refused,
    Absent,
}

impl Outcome {
    const ALL: [Self; 3] = [Self::Ok, Self::Refused, Self::Absent];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Refused => "refused",
            Self::Absent => "absent",
        }
    }
}

impl Metrics {
    /// Registers them; the caller chooses the prefix. Every counter is there from the start, so that a first failure is
    /// an increase.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let Self { reloads, info } = &metrics; // a metric left out here does not compile
        registry.register(
            "policy_reloads",
            "Changed policy files, by whether they could be used",
            reloads.clone(),
        );
        registry.register(
            "policy_info",
            "The policies in use, by the start of their SHA-256",
            info.clone(),
        );
        for policy in Which::ALL {
            for result in Outcome::ALL {
                drop(reloads.get_or_create(&ReloadLabels::new(policy, result)));
            }
        }
        metrics
    }

    pub(super) fn reloaded(&self, policy: Which, result: Outcome) {
        self.reloads
            .get_or_create(&ReloadLabels::new(policy, result))
            .inc();
    }

    /// Says which policy is in use now, in place of the one before.
    pub(super) fn loaded(&self, policy: Which, before: Option<&Loaded>, now: Option<&Loaded>) {
        let labels = |loaded: &Loaded| InfoLabels {
            policy: policy.as_str(),
            hash: loaded.hash.clone(),
        };
        if let Some(before) = before {
            self.info.remove(&labels(before));
        }
        if let Some(now) = now {
            self.info.get_or_create(&labels(now)).set(1);
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReloadLabels {
    policy: &'static str,
    result: &'static str,
}

impl ReloadLabels {
    fn new(policy: Which, result: Outcome) -> Self {
        Self {
            policy: policy.as_str(),
            result: result.as_str(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InfoLabels {
    policy: &'static str,
    hash: String,
}
