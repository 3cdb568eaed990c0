//! The status contract as a closed list of rules, each of which the operator can give a mode of its own.

use serde::{Deserialize, Serialize};

use crate::api::object::cause::Reason;
use crate::api::text::names::closed_words;

closed_words! {
    /// A rule of the status contract.
    #[derive(Serialize, Deserialize)]
    pub enum StatusRule {
        /// S1: `observedGeneration` is never ahead and never goes back.
        ObservedGeneration,
        /// S2: `updatedAt` is stamped where a writer left it behind.
        UpdatedAt,
        /// S3: `startedAt` is written once, when the run starts.
        StartedAt,
        /// S4: `finishedAt` is written once, when the run ends.
        FinishedAt,
        /// S5: a terminal phase is final.
        TerminalPhase,
        /// S6: conditions fit the phase, each other and those before.
        Conditions,
        /// S7: what a writer leaves out is filled in again.
        Omission,
        /// No time lies in the future.
        FutureTime,
        /// The status fits its kind.
        StatusSchema,
    }
}

/// The reasons that the judge of the contract gives, and the rule that each is about.
const REASONS: [(Reason, StatusRule); 14] = [
    (
        Reason::ObservedGenerationAhead,
        StatusRule::ObservedGeneration,
    ),
    (
        Reason::ObservedGenerationWentBack,
        StatusRule::ObservedGeneration,
    ),
    (Reason::StartedAtChanged, StatusRule::StartedAt),
    (Reason::StartedAtTooEarly, StatusRule::StartedAt),
    (Reason::StartedAtMissing, StatusRule::StartedAt),
    (Reason::FinishedAtChanged, StatusRule::FinishedAt),
    (Reason::FinishedAtTooEarly, StatusRule::FinishedAt),
    (Reason::FinishedAtMissing, StatusRule::FinishedAt),
    (Reason::FinishedBeforeStarted, StatusRule::FinishedAt),
    (Reason::TerminalPhaseLeft, StatusRule::TerminalPhase),
    (Reason::ConditionDuplicate, StatusRule::Conditions),
    (Reason::TerminalConditionConflict, StatusRule::Conditions),
    (Reason::TransitionTimeMoved, StatusRule::Conditions),
    (Reason::TimeInFuture, StatusRule::FutureTime),
];

impl StatusRule {
    /// The rule that is broken where a status is faulted for this reason. What is not in the contract is the schema.
    pub fn of(reason: Reason) -> Self {
        let known = REASONS.iter().find(|(known, _)| *known == reason);
        known.map_or(Self::StatusSchema, |(_, rule)| *rule)
    }
}
