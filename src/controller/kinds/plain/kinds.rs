//! What is particular about each of the kinds.

mod hosts;
mod stores;
#[cfg(test)]
mod tests;

use kube::ResourceExt;

use super::look::Outside;
use super::plan::Around;
use crate::api::condition::{ConditionType, Lifecycle};
use crate::api::contract::annotation;
use crate::api::kind::Kind;
use crate::api::kinds::budget::Amounts;
use crate::api::kinds::{
    Agent, AgentProvider, AgentProviderStatus, AgentStatus, ApprovalPolicy, ApprovalPolicyStatus,
    Artifact, ArtifactStatus, Budget, BudgetStatus, ImplementationSpec, ImplementationSpecStatus,
    Orchestration, OrchestrationStatus, SecretBinding, SecretBindingStatus, Signal, SignalDelivery,
    SignalDeliveryStatus, SignalStatus, Tool, ToolStatus,
};
use crate::api::validate::Quantity;
use crate::controller::driver::stand::{Stand, Statused, condition, due, stored};

/// A kind that stands until someone deletes it.
pub(in crate::controller) trait Plain: Statused {
    /// Kinds without whose objects it cannot be used.
    fn needs(&self) -> &'static [Kind] {
        &[]
    }

    /// Names of Secrets without which it cannot be used.
    fn secrets(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Secrets and their entries without which it cannot be used.
    fn secret_entries(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// ConfigMaps and their entries without which it cannot be used.
    fn config_map_entries(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// What it names outside, if anything.
    fn outside(&self) -> Option<Outside> {
        None
    }

    /// How an object stands that is right and has all that it needs.
    fn stand(&self, around: &Around) -> Stand<Self::Status>;

    /// How an object stands of which there is no more to say.
    fn valid(&self) -> Stand<Self::Status> {
        Stand::ready(stored(self), "Ready", Lifecycle::ValidSpec)
    }

    /// How an object stands that is in use.
    fn active(&self) -> Stand<Self::Status> {
        Stand::ready(stored(self), "Active", Lifecycle::Active)
    }
}

impl Plain for Agent {
    fn needs(&self) -> &'static [Kind] {
        &[
            Kind::AgentProvider,
            Kind::Memory,
            Kind::VersionControlProvider,
        ]
    }

    fn stand(&self, _: &Around) -> Stand<AgentStatus> {
        self.valid()
    }
}

impl Plain for AgentProvider {
    fn stand(&self, _: &Around) -> Stand<AgentProviderStatus> {
        self.valid()
    }
}

impl Plain for ImplementationSpec {
    fn needs(&self) -> &'static [Kind] {
        &[Kind::VersionControlProvider]
    }

    /// One that was taken over from an issue says which version of it.
    fn stand(&self, around: &Around) -> Stand<ImplementationSpecStatus> {
        let mut stand = self.valid();
        let version = self.annotations().get(annotation::SOURCE_VERSION);
        if let Some(version) = version {
            if stand.status.source_version.as_ref() != Some(version) {
                stand.status.source_version = Some(version.clone());
                stand.status.synced_at = Some(around.now);
            }
            stand.reason = Lifecycle::Synced.into();
        }
        stand
    }
}

impl Plain for Tool {
    fn stand(&self, _: &Around) -> Stand<ToolStatus> {
        self.valid()
    }
}

impl Plain for Orchestration {
    fn stand(&self, _: &Around) -> Stand<OrchestrationStatus> {
        self.valid()
    }
}

impl Plain for SecretBinding {
    fn stand(&self, _: &Around) -> Stand<SecretBindingStatus> {
        self.valid()
    }
}

impl Plain for Signal {
    /// A delivery that is gone was a delivery all the same.
    fn stand(&self, around: &Around) -> Stand<SignalStatus> {
        let mut stand = self.active();
        let known = stand.status.last_delivery_at;
        stand.status.last_delivery_at = known.max(around.last_delivery);
        stand
    }
}

impl Plain for SignalDelivery {
    /// What was delivered stays so when the Signal goes.
    fn needs(&self) -> &'static [Kind] {
        let status = self.status.as_ref();
        match status.and_then(|status| status.delivered_at) {
            Some(_) => &[],
            None => &[Kind::Signal],
        }
    }

    fn stand(&self, around: &Around) -> Stand<SignalDeliveryStatus> {
        let mut status = self.status.clone().unwrap_or_default();
        status.delivered_at.get_or_insert(around.now);
        Stand::ready(status, "Delivered", Lifecycle::Delivered)
    }
}

impl Plain for Artifact {
    /// Nobody but the store can remove it from there; the status says from when on it may.
    fn stand(&self, around: &Around) -> Stand<ArtifactStatus> {
        let mut status = self.status.clone().unwrap_or_default();
        let store = self.spec.storage_ref.as_ref();
        let store = store.and_then(|store| store.name.as_deref());
        let store = store.filter(|store| !store.trim().is_empty());
        status.uri = Some(match store {
            Some(store) => format!("storage://{store}"),
            None => {
                let namespace = self.namespace().unwrap_or_default();
                format!("artifact://{namespace}/{}", self.name_any())
            }
        });
        let days = self.spec.lifecycle.as_ref().and_then(|life| life.ttl_days);
        let due = due(self, days.map(|days| days.saturating_mul(24 * 3600)));
        if due.is_some_and(|due| due <= around.now) {
            let message = "the days that it is kept are over".to_owned();
            return Stand::unready(status, "Expired", Lifecycle::Expired, message);
        }
        Stand {
            due,
            ..Stand::ready(status, "Ready", Lifecycle::ValidSpec)
        }
    }
}

/// Words by which someone decided about an approval, which stay as they are.
pub(in crate::controller) const DECISIONS: [(&str, bool); 8] = [
    ("approved", true),
    ("allowed", true),
    ("succeeded", true),
    ("ready", true),
    ("denied", false),
    ("rejected", false),
    ("blocked", false),
    ("failed", false),
];

/// Words for the decision that holds when nobody decides.
const DEFAULTS: [(&str, bool); 6] = [
    ("allow", true),
    ("approve", true),
    ("approved", true),
    ("deny", false),
    ("reject", false),
    ("denied", false),
];

/// Modes in which nobody is asked, so that the default decides at once.
const UNASKED: [&str; 2] = ["auto", "automatic"];

/// Whether an approval was given or refused; none while someone still has to decide. What someone decided counts more
/// than the default.
pub(crate) fn decision(policy: &ApprovalPolicy) -> Option<bool> {
    let phase = policy
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    decided(phase).or_else(|| {
        let mode = policy.spec.mode.as_deref()?.trim();
        let is_unasked = UNASKED.iter().any(|word| word.eq_ignore_ascii_case(mode));
        let default = policy.spec.default_decision.as_deref();
        meaning(&DEFAULTS, default.filter(|_| is_unasked)?)
    })
}

/// What someone wrote into the phase, if it is a decision.
fn decided(phase: Option<&str>) -> Option<bool> {
    meaning(&DECISIONS, phase?)
}

fn meaning(words: &[(&str, bool)], given: &str) -> Option<bool> {
    let mut words = words.iter();
    let found = words.find(|(word, _)| word.eq_ignore_ascii_case(given.trim()));
    found.map(|(_, is_given)| *is_given)
}

impl Plain for ApprovalPolicy {
    /// A decision is written into the phase by someone else, and is not ours to undo.
    fn stand(&self, around: &Around) -> Stand<ApprovalPolicyStatus> {
        let mut stand = self.active();
        if decided(stand.status.phase.as_deref()).is_none() {
            return stand;
        }
        stand.phase = None;
        stand.message = format!(
            "decided: {}",
            stand.status.phase.as_deref().unwrap_or_default()
        );
        let conditions = Self::conditions(&stand.status);
        let told = condition(conditions, ConditionType::Ready);
        let told = told.and_then(|ready| ready.message.as_deref());
        if told != Some(&stand.message) {
            stand.status.last_decision_at = Some(around.now);
        }
        stand
    }
}

impl Plain for Budget {
    /// A budget is used up when more was used of anything than its limit.
    fn stand(&self, _: &Around) -> Stand<BudgetStatus> {
        let mut stand = self.active();
        let used = stand.status.used.get_or_insert_with(nothing).clone();
        let over = self.spec.limits.as_ref().map(|limits| over(limits, &used));
        let over = over.unwrap_or_default();
        if over.is_empty() {
            return stand;
        }
        let message = format!("more was used than allowed of: {}", over.join(", "));
        Stand::unready(stand.status, "Exceeded", Lifecycle::Exceeded, message)
    }
}

/// Words in the phase of a budget by which nothing begins that is held to it.
const SPENT: [&str; 4] = ["exceeded", "blocked", "failed", "denied"];

/// Why nothing begins that is held to this budget; none while there is something left.
pub(crate) fn spent(budget: &Budget) -> Option<String> {
    let name = budget.name_any();
    let status = budget.status.as_ref();
    let used = status.and_then(|status| status.used.as_ref());
    let limits = budget.spec.limits.as_ref();
    let over = limits.zip(used).map(|(limits, used)| over(limits, used));
    let over = over.unwrap_or_default();
    if !over.is_empty() {
        let over = over.join(", ");
        return Some(format!(
            "more was used of Budget {name} than allowed: {over}"
        ));
    }
    let phase = status.and_then(|status| status.phase.as_deref())?;
    let is_spent = SPENT.iter().any(|word| word.eq_ignore_ascii_case(phase));
    is_spent.then(|| format!("Budget {name} is {phase}"))
}

fn nothing() -> Amounts {
    let zero = || Some("0".to_owned());
    Amounts {
        tokens: zero(),
        dollars: zero(),
        cpu: zero(),
        memory: zero(),
        gpu: zero(),
        extra: Default::default(),
    }
}

/// Of what more was used than its limit; what cannot be read as an amount is not counted.
fn over(limits: &Amounts, used: &Amounts) -> Vec<&'static str> {
    let pairs = amounts(limits).into_iter().zip(amounts(used));
    let over = pairs.filter_map(|((name, limit), (_, used))| {
        let limit: Quantity = limit?.trim().parse().ok()?;
        let used: Quantity = used?.trim().parse().ok()?;
        (used > limit).then_some(name)
    });
    over.collect()
}

fn amounts(of: &Amounts) -> [(&'static str, Option<&str>); 5] {
    let Amounts {
        tokens,
        dollars,
        cpu,
        memory,
        gpu,
        extra: _,
    } = of;
    [
        ("tokens", tokens.as_deref()),
        ("dollars", dollars.as_deref()),
        ("cpu", cpu.as_deref()),
        ("memory", memory.as_deref()),
        ("gpu", gpu.as_deref()),
    ]
}
