//! What was decided about a review, as a value: which rules it breaks and what that means, what is changed, what is said.
//!
//! `words` puts it into sentences. Nothing here judges.

mod shadow;
#[cfg(test)]
mod tests;
mod words;

pub use shadow::{Difference, Direction, differences};
pub use words::{awaited, message, note, warnings};

use crate::api::object::cause::Cause;
use crate::api::object::references::Reference;
use crate::api::policy::{self, Mode};
use crate::api::status::StatusRule;
use json_patch::PatchOperation;

use super::subject::Door;

/// A rule that a review can break; each has a mode of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// The object is what its request says.
    Subject,
    /// The spec fits its kind.
    Spec,
    /// The operator's policy.
    Policy(policy::Rule),
    /// The status contract.
    Status(StatusRule),
    /// A Job stays until its outcome is stored.
    JobDelete,
}

impl Rule {
    /// All rules.
    pub fn all() -> impl Iterator<Item = Self> {
        let own = [Self::Subject, Self::Spec, Self::JobDelete];
        let policy = policy::Rule::ALL.iter().copied().map(Self::Policy);
        let status = StatusRule::ALL.iter().copied().map(Self::Status);
        own.into_iter().chain(policy).chain(status)
    }

    /// The rules that a policy has a say in, so that a candidate may decide otherwise.
    pub fn governed() -> impl Iterator<Item = Self> {
        Self::all().filter(|rule| match rule {
            Self::Policy(_) | Self::Status(_) | Self::JobDelete => true,
            Self::Subject | Self::Spec => false,
        })
    }

    /// The word in metrics, audit annotations and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Subject => "Subject",
            Self::Spec => "Spec",
            Self::Policy(rule) => rule.as_str(),
            Self::Status(rule) => rule.as_str(),
            Self::JobDelete => "JobDelete",
        }
    }
}

/// A rule that the review breaks, and what that means here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// What happens.
    pub mode: Mode,
    /// Where and why.
    pub cause: Cause,
}

/// What was decided.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// Every rule that is broken, refusing or not.
    pub findings: Vec<Finding>,
    /// References to what is not there yet.
    pub missing: Vec<Reference>,
    /// What else the user should know.
    pub notes: Vec<String>,
    /// What is changed in the object.
    pub patch: Vec<PatchOperation>,
    /// What the candidate policy would decide otherwise.
    pub differences: Vec<Difference>,
}

impl Decision {
    /// A decision that lets through and says nothing but this.
    pub fn noting(note: impl Into<String>) -> Self {
        Self {
            notes: vec![note.into()],
            ..Self::default()
        }
    }

    /// Whether the request is refused.
    pub fn is_refusal(&self) -> bool {
        let mut findings = self.findings.iter();
        findings.any(|finding| finding.mode == Mode::Enforce)
    }

    /// Whether this is the last word on the request: it is refused here, or no door is behind this one. What passes a door
    /// that mutates is judged once more at the door behind it, so what counts once per request counts there.
    pub fn is_last_word(&self, door: Door) -> bool {
        !door.mutates() || self.is_refusal()
    }

    /// Why it is refused.
    pub fn refusing(&self) -> impl Iterator<Item = &Cause> {
        self.with_mode(Mode::Enforce)
    }

    /// Causes of one mode.
    fn with_mode(&self, mode: Mode) -> impl Iterator<Item = &Cause> {
        let findings = self.findings.iter();
        findings
            .filter(move |finding| finding.mode == mode)
            .map(|finding| &finding.cause)
    }

    /// Notes broken rules.
    pub fn find(&mut self, rule: Rule, mode: Mode, causes: impl IntoIterator<Item = Cause>) {
        let findings = causes.into_iter();
        self.findings
            .extend(findings.map(|cause| Finding { rule, mode, cause }));
    }
}
