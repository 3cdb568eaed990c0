//! What went wrong in a reconcile, classified once: everything that follows from a fault follows from its class.

use std::time::Duration;

use crate::api::condition::{Lifecycle, Reason as ConditionReason};
use crate::api::text::sanitise::{NOTE_LIMIT, Secrets, sanitise};
use crate::closed_labels;
use crate::events::Reason as EventReason;

closed_labels! {
    /// What sort of thing went wrong.
    pub(crate) enum Class {
        /// It may pass: the API server is busy, away or slow.
        Retryable = "retryable",
        /// The API server finds what the spec asks for wrong.
        Spec = "spec",
        /// The operator's configuration does not work here.
        Config = "config",
        /// A role lacks a rule, or a quota is used up.
        Forbidden = "forbidden",
        /// Another object has the name that one of ours needs.
        NameTaken = "name_taken",
        /// A defect of ours: the reconcile panicked.
        Panic = "panic",
        /// Someone else wrote first.
        Conflict = "conflict",
        /// This process no longer holds the lease; it must not write.
        Fenced = "fenced",
    }
}

/// Conflicts in a row that people should know of: by then it has been tried for some ten seconds.
const CONFLICTS: u32 = 10;

/// A step of a reconcile that failed.
#[derive(Debug)]
pub(crate) struct Fault {
    /// What was tried, as in "could not create the Job".
    pub(crate) what: &'static str,
    pub(crate) class: Class,
    /// Why, fit to be shown.
    pub(crate) why: String,
    /// What the API server answered, if it did.
    code: Option<u16>,
}

impl Fault {
    pub(crate) fn new(what: &'static str, class: Class, why: &str) -> Self {
        Self {
            what,
            class,
            why: sanitise(why, &Secrets::NONE, NOTE_LIMIT / 2),
            code: None,
        }
    }

    /// From what the API server said, or did not say.
    pub(crate) fn of(what: &'static str, error: &kube::Error) -> Self {
        let class = classify(error);
        let kube::Error::Api(status) = error else {
            return Self::new(what, class, &error.to_string());
        };
        Self {
            code: Some(status.code),
            ..Self::new(what, class, &status.message)
        }
    }

    /// Whether the object that the step is about is not there.
    pub(crate) fn is_not_found(&self) -> bool {
        self.code == Some(404)
    }

    /// A sentence for people. The same fault gives the same sentence, so that it is written once.
    pub(crate) fn sentence(&self) -> String {
        format!("could not {}: {}", self.what, self.why)
    }
}

fn classify(error: &kube::Error) -> Class {
    let kube::Error::Api(status) = error else {
        return Class::Retryable;
    };
    match status.code {
        400 | 413 | 422 => Class::Spec,
        401 | 403 => Class::Forbidden,
        409 => Class::Conflict,
        _ => Class::Retryable,
    }
}

impl Class {
    /// The Event that tells of so many failures in a row, when this was the last. One conflict is everyday; so many of them
    /// mean that someone writes all the time.
    pub(crate) const fn persists(self, failures: u32) -> Option<EventReason> {
        match self {
            Self::Conflict if failures > 0 && failures.is_multiple_of(CONFLICTS) => {
                Some(EventReason::Conflict)
            }
            Self::Conflict
            | Self::Retryable
            | Self::Spec
            | Self::Config
            | Self::Forbidden
            | Self::NameTaken
            | Self::Panic
            | Self::Fenced => None,
        }
    }

    /// The Event that tells of it; a conflict is everyday, and who is fenced says nothing any more.
    pub(crate) const fn event(self) -> Option<EventReason> {
        match self {
            Self::Retryable | Self::Panic => Some(EventReason::ReconcileFailed),
            Self::Spec => Some(EventReason::SubmitFailed),
            Self::Config => Some(EventReason::InvalidConfig),
            Self::Forbidden => Some(EventReason::Forbidden),
            Self::NameTaken => Some(EventReason::NameConflict),
            Self::Conflict | Self::Fenced => None,
        }
    }

    /// The reason in the condition that shows it.
    pub(crate) fn condition(self) -> Option<ConditionReason> {
        let reason = match self {
            Self::Retryable | Self::Panic => Lifecycle::ReconcileFailed,
            Self::Spec => Lifecycle::SubmitFailed,
            Self::Config => Lifecycle::InvalidConfig,
            Self::Forbidden => Lifecycle::Forbidden,
            Self::NameTaken => Lifecycle::NameConflict,
            Self::Conflict | Self::Fenced => return None,
        };
        Some(reason.into())
    }

    /// How long to wait after so many failures in a row, before chance spreads it.
    pub(crate) fn delay(self, failures: u32) -> Duration {
        let (first, longest) = match self {
            Self::Conflict => (Duration::from_millis(20), Duration::from_secs(5)),
            Self::Retryable => (Duration::from_millis(250), Duration::from_secs(60)),
            Self::Spec
            | Self::Config
            | Self::Forbidden
            | Self::NameTaken
            | Self::Panic
            | Self::Fenced => (Duration::from_secs(5), Duration::from_secs(300)),
        };
        let doublings = failures.saturating_sub(1).min(16);
        first.saturating_mul(1 << doublings).min(longest)
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn each_answer_of_the_api_server_has_its_class() {
        for (code, class) in [
            (400, Class::Spec),
            (401, Class::Forbidden),
            (403, Class::Forbidden),
            (404, Class::Retryable),
            (409, Class::Conflict),
            (413, Class::Spec),
            (422, Class::Spec),
            (429, Class::Retryable),
            (500, Class::Retryable),
            (503, Class::Retryable),
        ] {
            let status = Status::failure("it says why", "Reason").with_code(code);
            let fault = Fault::of("create the Job", &kube::Error::Api(status.boxed()));
            assert_eq!(fault.class, class, "{code}");
            assert_eq!(fault.sentence(), "could not create the Job: it says why");
        }
        let broken = kube::Error::ReadEvents(std::io::ErrorKind::BrokenPipe.into());
        assert_eq!(Fault::of("x", &broken).class, Class::Retryable);
    }

    #[test]
    fn what_an_error_says_is_fit_to_be_shown() {
        let fault = Fault::new("x", Class::Retryable, "https://me:secret@host/path refused");
        assert!(!fault.sentence().contains("secret"), "{}", fault.sentence());
    }

    #[test]
    fn only_conflicts_without_end_are_told_and_not_each_of_them() {
        for class in Class::ALL {
            let told = (0..=30).filter(|failures| class.persists(*failures).is_some());
            let expected: &[u32] = if *class == Class::Conflict {
                &[10, 20, 30]
            } else {
                &[]
            };
            assert_eq!(told.collect::<Vec<_>>(), expected, "{class:?}");
        }
    }

    #[test]
    fn waits_grow_to_a_bound() {
        for class in Class::ALL {
            let delays: Vec<_> = (1..40).map(|failures| class.delay(failures)).collect();
            assert!(
                delays.is_sorted() && delays[0] > Duration::ZERO,
                "{class:?}"
            );
            assert!(delays[38] <= Duration::from_secs(300), "{class:?}");
        }
    }
}
