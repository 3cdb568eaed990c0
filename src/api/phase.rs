//! Phases: which kinds have one, what the phases of a run and of its steps are, and which may follow which.
//!
//! Phases are stored as text, since writers of other versions may know more of them; a word that is not listed here
//! is never terminal.

use super::condition::ConditionType;
use super::kind::Kind;
use super::text::names::closed_words;

closed_words! {
    /// Where a run stands. A run without a phase is pending.
    pub enum Phase {
        /// Accepted, or held back, and not started.
        Pending,
        /// Something works on it.
        Running,
        /// Ended well.
        Succeeded,
        /// Ended badly.
        Failed,
        /// Ended because someone asked for it.
        Cancelled,
    }
}

impl Phase {
    /// Whether the run has ended.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Pending | Self::Running => false,
            Self::Succeeded | Self::Failed | Self::Cancelled => true,
        }
    }

    /// The condition that is True when a run has ended in this phase.
    pub const fn terminal_condition(self) -> Option<ConditionType> {
        match self {
            Self::Pending | Self::Running => None,
            Self::Succeeded => Some(ConditionType::Succeeded),
            Self::Failed => Some(ConditionType::Failed),
            Self::Cancelled => Some(ConditionType::Cancelled),
        }
    }

    /// Whether the next status may show `next`: what has ended stays, what waits may start, what runs may wait again.
    pub fn may_become(self, next: Self) -> bool {
        self == next || !self.is_terminal()
    }
}

closed_words! {
    /// Where a step of a workflow or an orchestration stands.
    pub enum StepPhase {
        /// Not started.
        Pending,
        /// Something works on it.
        Running,
        /// The last try failed; another one follows.
        Retrying,
        /// Ended well.
        Succeeded,
        /// Ended badly, with no try left.
        Failed,
        /// Ended because the run was cancelled.
        Cancelled,
        /// Never started, because a step that it depends on did not succeed.
        Skipped,
    }
}

impl StepPhase {
    /// Whether the step has ended.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Pending | Self::Running | Self::Retrying => false,
            Self::Succeeded | Self::Failed | Self::Cancelled | Self::Skipped => true,
        }
    }

    /// Whether the next status may show `next`.
    pub fn may_become(self, next: Self) -> bool {
        if self == next {
            return true;
        }
        match self {
            Self::Pending => next != Self::Retrying,
            Self::Running | Self::Retrying => !matches!(next, Self::Pending | Self::Skipped),
            Self::Succeeded | Self::Failed | Self::Cancelled | Self::Skipped => false,
        }
    }
}

/// What the phase of a kind means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseModel {
    /// Work that starts and ends: [`Phase`], with `startedAt` and `finishedAt`.
    Run,
    /// An object that is there until someone deletes it; its phase says whether it can be used.
    Standing,
    /// The kind has no phase; its conditions say everything.
    None,
}

/// What the phase of this kind means.
pub const fn model(kind: Kind) -> PhaseModel {
    match kind {
        Kind::AgentRun | Kind::OrchestrationRun | Kind::ToolRun => PhaseModel::Run,
        Kind::Orchestration
        | Kind::Tool
        | Kind::ApprovalPolicy
        | Kind::Budget
        | Kind::SecretBinding
        | Kind::Signal
        | Kind::SignalDelivery
        | Kind::Schedule
        | Kind::Artifact
        | Kind::Workspace => PhaseModel::Standing,
        Kind::Agent
        | Kind::AgentProvider
        | Kind::ImplementationSpec
        | Kind::ImplementationSource
        | Kind::VersionControlProvider
        | Kind::Memory => PhaseModel::None,
    }
}

/// Whether objects of this kind start and end.
pub const fn is_run(kind: Kind) -> bool {
    matches!(model(kind), PhaseModel::Run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_ended_stays_as_it_ended() {
        for from in Phase::ALL {
            for to in Phase::ALL {
                assert_eq!(
                    from.may_become(*to),
                    from == to || !from.is_terminal(),
                    "{from} -> {to}"
                );
            }
        }
    }

    #[test]
    fn each_end_has_a_condition_of_its_own_name() {
        for phase in Phase::ALL {
            let condition = phase.terminal_condition().map(ConditionType::as_str);
            let expected = phase.is_terminal().then_some(phase.as_str());
            assert_eq!(condition, expected);
        }
    }

    #[test]
    fn steps_go_forward() {
        use StepPhase::*;
        let allowed = [
            (
                Pending,
                vec![Running, Succeeded, Failed, Cancelled, Skipped],
            ),
            (Running, vec![Retrying, Succeeded, Failed, Cancelled]),
            (Retrying, vec![Running, Succeeded, Failed, Cancelled]),
            (Succeeded, vec![]),
            (Failed, vec![]),
            (Cancelled, vec![]),
            (Skipped, vec![]),
        ];
        for (from, followers) in allowed {
            for to in StepPhase::ALL {
                assert_eq!(
                    from.may_become(*to),
                    from == *to || followers.contains(to),
                    "{from} -> {to}"
                );
            }
        }
    }

    #[test]
    fn words_are_read_as_they_are_written() {
        assert_eq!(Phase::parse("Running"), Some(Phase::Running));
        assert_eq!(Phase::parse("running"), None);
    }
}
