//! What is particular about each of the kinds.

use serde::Serialize;

use super::plan::Stand;
use crate::api::condition::Lifecycle;
use crate::api::kind::Kind;
use crate::api::kinds::budget::Amounts;
use crate::api::kinds::{
    Agent, AgentProvider, AgentProviderStatus, AgentStatus, ApprovalPolicy, ApprovalPolicyStatus,
    Budget, BudgetStatus, ImplementationSpec, ImplementationSpecStatus, SecretBinding,
    SecretBindingStatus, Signal, SignalStatus, Tool, ToolStatus,
};
use crate::api::validate::Quantity;
use crate::controller::context::Thing;

/// A kind that stands until someone deletes it.
pub(in crate::controller) trait Plain: Thing + Send + Sync + 'static {
    /// The kind.
    const KIND: Kind;
    /// Kinds without whose objects it cannot be used.
    const NEEDS: &'static [Kind];
    /// The type of its status.
    type Status: Clone + Default + Serialize + PartialEq + Send + Sync + 'static;

    /// Its status as it is stored.
    fn stored(&self) -> Option<&Self::Status>;

    /// Writes a phase, where the kind has one.
    fn mark(status: &mut Self::Status, phase: &'static str);

    /// How an object stands whose spec is right.
    fn stand(&self) -> Stand;
}

macro_rules! plain {
    ($($kind:ident, $status:ident, $phase:ident, needs $needs:expr, $stand:expr;)+) => {$(
        impl Plain for $kind {
            const KIND: Kind = Kind::$kind;
            const NEEDS: &'static [Kind] = &$needs;
            type Status = $status;

            fn stored(&self) -> Option<&$status> {
                self.status.as_ref()
            }

            fn mark(status: &mut $status, phase: &'static str) {
                $phase!(status, phase);
            }

            fn stand(&self) -> Stand {
                $stand(self)
            }
        }
    )+};
}

macro_rules! phase {
    ($status:ident, $phase:ident) => {
        $status.phase = Some($phase.to_owned())
    };
}

macro_rules! no_phase {
    ($status:ident, $phase:ident) => {{
        let _ = ($status, $phase);
    }};
}

plain! {
    Agent, AgentStatus, no_phase, needs [Kind::AgentProvider, Kind::Memory], |_: &Agent| VALID;
    AgentProvider, AgentProviderStatus, no_phase, needs [], |_: &AgentProvider| VALID;
    ImplementationSpec, ImplementationSpecStatus, no_phase, needs [], |_: &ImplementationSpec| VALID;
    Tool, ToolStatus, phase, needs [], |_: &Tool| VALID;
    SecretBinding, SecretBindingStatus, phase, needs [], |_: &SecretBinding| VALID;
    Signal, SignalStatus, phase, needs [], |_: &Signal| ACTIVE;
    ApprovalPolicy, ApprovalPolicyStatus, phase, needs [], decided;
    Budget, BudgetStatus, phase, needs [], spent;
}

const VALID: Stand = Stand::Ready {
    phase: "Ready",
    reason: Lifecycle::ValidSpec,
};
const ACTIVE: Stand = Stand::Ready {
    phase: "Active",
    reason: Lifecycle::Active,
};

/// Words by which someone decided about an approval, which stay as they are.
const DECISIONS: [&str; 8] = [
    "Approved", "Allowed", "Succeeded", "Ready", "Denied", "Rejected", "Blocked", "Failed",
];

/// A decision is written into the phase by someone else, and is not ours to undo.
fn decided(policy: &ApprovalPolicy) -> Stand {
    let phase = policy.status.as_ref().and_then(|status| status.phase.as_deref());
    let decision = DECISIONS
        .into_iter()
        .find(|word| phase.is_some_and(|phase| phase.eq_ignore_ascii_case(word)));
    match decision {
        Some(_) => Stand::Kept {
            reason: Lifecycle::Active,
        },
        None => ACTIVE,
    }
}

/// A budget is used up when more was used of anything than its limit.
fn spent(budget: &Budget) -> Stand {
    let used = budget.status.as_ref().and_then(|status| status.used.as_ref());
    let (Some(limits), Some(used)) = (budget.spec.limits.as_ref(), used) else {
        return ACTIVE;
    };
    let over: Vec<&str> = amounts(limits)
        .into_iter()
        .zip(amounts(used))
        .filter_map(|((name, limit), (_, used))| {
            let limit: Quantity = limit.as_deref()?.trim().parse().ok()?;
            let used: Quantity = used.as_deref()?.trim().parse().ok()?;
            (used > limit).then_some(name)
        })
        .collect();
    if over.is_empty() {
        return ACTIVE;
    }
    Stand::Degraded {
        phase: "Exceeded",
        reason: Lifecycle::Exceeded,
        message: format!("more was used than allowed of: {}", over.join(", ")),
    }
}

fn amounts(of: &Amounts) -> [(&'static str, &Option<String>); 5] {
    let Amounts {
        tokens,
        dollars,
        cpu,
        memory,
        gpu,
        extra: _,
    } = of;
    [
        ("tokens", tokens),
        ("dollars", dollars),
        ("cpu", cpu),
        ("memory", memory),
        ("gpu", gpu),
    ]
}
