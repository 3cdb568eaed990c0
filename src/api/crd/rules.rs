//! The rules that the API server enforces itself, in CEL.
//!
//! Those on a status stand at the root of the schema, not under `status`, because a rule under `status` is skipped when
//! a patch removes the whole status. Each compares with the stored object and lets pass what was already stored, so an
//! old object that breaks a rule can still be changed elsewhere. Upper bounds that need `metadata.generation`, which CEL
//! does not see, are the webhook's. `conform` has each rule again in Rust.

use crate::api::crd::schema;
use crate::api::kind::Kind;
use crate::api::phase::{self, Phase};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::ValidationRule;

/// One rule in CEL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::api) enum Rule {
    /// A run has something to do.
    SomeWork,
    /// A system prompt is text or a reference.
    OneSystemPrompt,
    /// `observedGeneration` never falls.
    GenerationNeverFalls,
    /// `startedAt` is written once.
    StartedOnce,
    /// `finishedAt` is written once.
    FinishedOnce,
    /// A run does not end before it starts.
    EndsAfterStart,
    /// A final phase stays.
    FinalPhase,
}

impl Rule {
    /// Every rule.
    pub(in crate::api) const ALL: [Self; 7] = [
        Self::SomeWork,
        Self::OneSystemPrompt,
        Self::GenerationNeverFalls,
        Self::StartedOnce,
        Self::FinishedOnce,
        Self::EndsAfterStart,
        Self::FinalPhase,
    ];

    /// The rule as a definition writes it.
    pub(in crate::api) fn cel(self) -> String {
        match self {
            Self::SomeWork => schema::SOME_WORK.to_owned(),
            Self::OneSystemPrompt => schema::ONE_SYSTEM_PROMPT.to_owned(),
            Self::GenerationNeverFalls => never_falls().rule,
            Self::StartedOnce => written_once("startedAt").rule,
            Self::FinishedOnce => written_once("finishedAt").rule,
            Self::EndsAfterStart => ends_after_start().rule,
            Self::FinalPhase => final_phase().rule,
        }
    }
}

/// The rules on the status of a kind.
pub(super) fn of(kind: Kind) -> Vec<ValidationRule> {
    let mut rules = vec![never_falls()];
    if phase::is_run(kind) {
        rules.extend([
            written_once("startedAt"),
            written_once("finishedAt"),
            ends_after_start(),
            final_phase(),
        ]);
    }
    rules
}

fn never_falls() -> ValidationRule {
    rule(
        "observedGeneration",
        "!has(oldSelf.status) || !has(oldSelf.status.observedGeneration)
|| (has(self.status) && has(self.status.observedGeneration)
  && self.status.observedGeneration >= oldSelf.status.observedGeneration)",
        "observedGeneration never falls and is never removed",
    )
}

fn written_once(field: &str) -> ValidationRule {
    rule(
        field,
        &format!(
            "!has(oldSelf.status) || !has(oldSelf.status.{field})
|| (has(self.status) && has(self.status.{field}) && self.status.{field} == oldSelf.status.{field})"
        ),
        &format!("{field} is written once: it is never changed and never removed"),
    )
}

fn ends_after_start() -> ValidationRule {
    rule(
        "finishedAt",
        "!has(self.status) || !has(self.status.startedAt) || !has(self.status.finishedAt)
|| self.status.finishedAt >= self.status.startedAt
|| (has(oldSelf.status) && has(oldSelf.status.startedAt) && has(oldSelf.status.finishedAt)
  && self.status.startedAt == oldSelf.status.startedAt && self.status.finishedAt == oldSelf.status.finishedAt)",
        "finishedAt is not before startedAt",
    )
}

fn final_phase() -> ValidationRule {
    let ends = Phase::ALL.iter().filter(|phase| phase.is_terminal());
    let ends: Vec<&str> = ends.map(|phase| phase.as_str()).collect();
    rule(
        "phase",
        &format!(
            "!has(oldSelf.status) || !has(oldSelf.status.phase)
|| !(oldSelf.status.phase in ['{}'])
|| (has(self.status) && has(self.status.phase) && self.status.phase == oldSelf.status.phase)",
            ends.join("', '")
        ),
        "Succeeded, Failed and Cancelled are final: the phase is never changed and never removed",
    )
}

fn rule(field: &str, rule: &str, message: &str) -> ValidationRule {
    ValidationRule {
        rule: rule.to_owned(),
        message: Some(message.to_owned()),
        field_path: Some(format!(".status.{field}")),
        ..ValidationRule::default()
    }
}

#[cfg(test)]
mod tests;
