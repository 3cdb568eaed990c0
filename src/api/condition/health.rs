//! How an object stands, from the facts of one pass: its phase and what was observed now.
//!
//! Conditions that an earlier pass stored are not facts. So nothing latches: what no longer holds is gone with the
//! pass that no longer observes it.

use super::{ConditionStatus, ConditionType, Observation, Reason};

/// How an object stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It does what it is for.
    Ready,
    /// It is on its way.
    Progressing,
    /// It needs someone.
    Degraded,
    /// The facts say nothing.
    Unknown,
}

impl Health {
    /// Concludes from phase and observations; failure counts more than progress, progress more than success.
    pub fn of(phase: Option<&str>, observed: &[Observation]) -> Self {
        use ConditionStatus::{False, True};
        use ConditionType::*;
        let phase = phase.unwrap_or_default().to_ascii_lowercase();
        let phase_in = |words: &[&str]| words.contains(&phase.as_str());
        let any = |types: &[ConditionType], status: ConditionStatus| {
            observed
                .iter()
                .any(|entry| types.contains(&entry.type_) && entry.status == status)
        };
        if phase_in(&["failed", "invalid", "cancelled", "error"])
            || any(&[Failed, InvalidSpec, Unreachable, Cancelled], True)
        {
            Self::Degraded
        } else if phase_in(&["pending", "running", "progressing", "inprogress", "queued"])
            || any(&[Running, InProgress, Progressing], True)
        {
            Self::Progressing
        } else if any(&[Ready], False) {
            Self::Degraded
        } else if phase_in(&[
            "ready",
            "active",
            "succeeded",
            "success",
            "completed",
            "delivered",
        ]) || any(&[Succeeded, Ready], True)
        {
            Self::Ready
        } else {
            Self::Unknown
        }
    }

    /// The conditions that follow. `Reconciling` and `Stalled` are what kstatus reads: without `Stalled` a failed
    /// object would look as if it were still on its way.
    pub fn conditions(self, reason: Reason, message: &str) -> Vec<Observation> {
        use ConditionType::*;
        let is = |wanted: Self| match self {
            Self::Unknown => ConditionStatus::Unknown,
            Self::Ready | Self::Progressing | Self::Degraded if self == wanted => {
                ConditionStatus::True
            }
            Self::Ready | Self::Progressing | Self::Degraded => ConditionStatus::False,
        };
        [
            (Ready, Self::Ready),
            (Progressing, Self::Progressing),
            (Degraded, Self::Degraded),
            (Reconciling, Self::Progressing),
            (Stalled, Self::Degraded),
        ]
        .into_iter()
        .map(|(type_, health)| {
            let status = is(health);
            // The sentence stands once where people look first, and with every condition that holds.
            let told = type_ == Ready || status == ConditionStatus::True;
            Observation::new(type_, status, reason, if told { message } else { "" })
        })
        .collect()
    }
}
