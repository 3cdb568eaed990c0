//! Warning Events about refusals: one per refused request, about the object by its name, never on a dry run.
//!
//! Handed to the emitter, which limits, sanitises and writes them in its own time.

use agents::api::object::cause;
use agents::api::policy::Mode;
use agents::events::{Effect, Emitter, Note, Occurrence, Reason, Regarding};
use sha2::{Digest, Sha256};

use crate::decision::{Decision, Finding, Rule, note};
use crate::subject::{Subject, Target};

/// Tells people in the cluster what was refused.
#[derive(Clone, Debug, Default)]
pub struct Notices {
    /// None where there is no cluster.
    emitter: Option<Emitter>,
}

impl Notices {
    /// Notices that go out by this emitter.
    pub fn new(emitter: Emitter) -> Self {
        Self {
            emitter: Some(emitter),
        }
    }

    /// Tells of a decision, if it is a refusal.
    pub fn tell(&self, subject: &Subject<'_>, decision: &Decision) {
        let Some(emitter) = self.emitter.as_ref().filter(|_| decision.is_refusal()) else {
            return;
        };
        let note = Note::new(note(decision.refusing()));
        // What is refused has no generation of its own; which faults it has takes that place.
        let regarding = regarding(subject).at_generation(edition(decision));
        let occurrence = Occurrence::new(regarding, reason(decision), note);
        emitter.emit(Effect::of_request(subject.dry_run()), occurrence);
    }
}

/// Tells one set of faults from another. An Event keeps the words of its first time, so only refusals for the same faults
/// may be counted in it; the same number on every replica.
fn edition(decision: &Decision) -> i64 {
    let mut hash = Sha256::new();
    for cause in decision.refusing() {
        hash.update(format!("{} {}\n", cause.field, cause.reason));
    }
    let first = hash.finalize().first_chunk().copied();
    i64::from_be_bytes(first.unwrap_or_default())
}

/// The object as far as it exists: a refused one may not.
fn regarding(subject: &Subject<'_>) -> Regarding {
    let (namespace, name) = (subject.namespace(), subject.name());
    let regarding = match subject.target {
        Target::Spec(kind) | Target::Status(kind) => Regarding::named(kind, namespace, name),
        Target::Job => Regarding::job(namespace, name),
    };
    match subject.uid() {
        Some(uid) => regarding.with_uid(uid),
        None => regarding,
    }
}

/// The reason of the Event: that of the gravest rule, or the word of the only fault if it has one of its own.
fn reason(decision: &Decision) -> Reason {
    let refuses = |finding: &&Finding| finding.mode == Mode::Enforce;
    let broken = |wanted: fn(&Rule) -> bool| {
        let mut findings = decision.findings.iter().filter(refuses);
        findings.any(|finding| wanted(&finding.rule))
    };
    if broken(|rule| matches!(rule, Rule::JobDelete)) {
        return Reason::JobDeleteRefused;
    }
    if broken(|rule| matches!(rule, Rule::Status(_))) {
        return Reason::StatusContractViolated;
    }
    if !broken(|rule| matches!(rule, Rule::Spec | Rule::Subject)) {
        return Reason::PolicyDenied;
    }
    let all = |reason: cause::Reason| decision.refusing().all(|cause| cause.reason == reason);
    if all(cause::Reason::SpecImmutableViolation) {
        Reason::SpecImmutableViolation
    } else if all(cause::Reason::UnsupportedRuntime) {
        Reason::UnsupportedRuntime
    } else {
        Reason::InvalidSpec
    }
}

#[cfg(test)]
mod tests {
    use agents::api::object::cause::{Cause, Path};
    use agents::api::policy;
    use agents::api::status::StatusRule;

    use super::*;

    #[test]
    fn the_reason_of_an_event_is_that_of_the_gravest_rule() {
        use cause::Reason as Fault;
        let denied = Rule::Policy(policy::Rule::DeniedImages);
        let status = Rule::Status(StatusRule::StartedAt);
        for (findings, expected) in [
            (
                vec![(Rule::Spec, Mode::Enforce, Fault::Required)],
                Reason::InvalidSpec,
            ),
            (
                vec![(denied, Mode::Enforce, Fault::ImageBlocked)],
                Reason::PolicyDenied,
            ),
            (
                vec![
                    (denied, Mode::Enforce, Fault::ImageBlocked),
                    (Rule::Spec, Mode::Enforce, Fault::Required),
                ],
                Reason::InvalidSpec,
            ),
            (
                vec![
                    (Rule::Spec, Mode::Audit, Fault::Required),
                    (denied, Mode::Enforce, Fault::ImageBlocked),
                ],
                Reason::PolicyDenied,
            ),
            (
                vec![(Rule::Spec, Mode::Enforce, Fault::SpecImmutableViolation)],
                Reason::SpecImmutableViolation,
            ),
            (
                vec![(Rule::Spec, Mode::Enforce, Fault::UnsupportedRuntime)],
                Reason::UnsupportedRuntime,
            ),
            (
                vec![
                    (Rule::Spec, Mode::Enforce, Fault::UnsupportedRuntime),
                    (Rule::Spec, Mode::Enforce, Fault::Required),
                ],
                Reason::InvalidSpec,
            ),
            (
                vec![(status, Mode::Enforce, Fault::StartedAtChanged)],
                Reason::StatusContractViolated,
            ),
            (
                vec![(Rule::JobDelete, Mode::Enforce, Fault::OutcomeNotRecorded)],
                Reason::JobDeleteRefused,
            ),
        ] {
            let mut decision = Decision::default();
            for (rule, mode, fault) in findings {
                let cause = Cause::new(&Path::root("spec"), fault, "x");
                decision.find(rule, mode, Some(cause));
            }
            assert_eq!(reason(&decision), expected);
        }
    }

    #[test]
    fn other_faults_are_another_event_and_the_same_ones_are_not() {
        let refusal = |field: &'static str, reason, message: &str| {
            let mut decision = Decision::default();
            let cause = Cause::new(&Path::root(field), reason, message);
            decision.find(Rule::Spec, Mode::Enforce, Some(cause));
            edition(&decision)
        };
        let first = refusal("spec", cause::Reason::Required, "is missing");
        assert_eq!(
            first,
            refusal("spec", cause::Reason::Required, "in other words")
        );
        assert_ne!(
            first,
            refusal("status", cause::Reason::Required, "is missing")
        );
        assert_ne!(first, refusal("spec", cause::Reason::TooLong, "is missing"));
    }
}
