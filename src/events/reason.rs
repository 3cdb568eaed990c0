//! The catalogue of Event reasons: each word, how grave it is, what was being done, and what it means.
//!
//! People and programs match on these words, so a word that was published stays. Which condition a reason goes with is
//! decided where the Event is emitted.

use crate::api::custody::Class;
use crate::api::text::names::closed_words;

closed_words! {
    /// How grave an Event is: the `type` of the API.
    pub enum Severity {
        /// Things go as they should.
        Normal,
        /// Someone should look.
        Warning,
    }
}

closed_words! {
    /// What was being done when the Event happened: the `action` of the API.
    pub enum Action {
        /// A request was judged before it was stored.
        Admit,
        /// An object was brought to what its spec asks for.
        Reconcile,
        /// A reference was followed.
        Resolve,
        /// Work was handed to the runtime.
        Submit,
        /// Work was followed to its end.
        Run,
        /// The outcome of a Job was secured.
        KeepOutcome,
        /// Work was stopped on request.
        Cancel,
        /// What is no longer needed was removed.
        CleanUp,
        /// A run was started at its time.
        Schedule,
        /// Changed files were taken over.
        Reload,
        /// What the cluster was told about a program was looked at.
        Inspect,
        /// The lease was kept or handed over.
        Lead,
    }
}

macro_rules! catalogue {
    ($(#[doc = $meaning:literal] $word:ident: $severity:ident, $action:ident;)+) => {
        closed_words! {
            /// Why an Event was emitted: the `reason` of the API.
            pub enum Reason {
                $(#[doc = $meaning] $word,)+
            }
        }

        impl Reason {
            /// How grave it is.
            pub const fn severity(self) -> Severity {
                match self {
                    $(Self::$word => Severity::$severity,)+
                }
            }

            /// What was being done.
            pub const fn action(self) -> Action {
                match self {
                    $(Self::$word => Action::$action,)+
                }
            }
        }
    };
}

catalogue! {
    /// The object breaks rules of its kind; the note names each field and what would be right.
    InvalidSpec: Warning, Admit;
    /// The operator's policy does not allow a label, an image, a secret or a service account of the object.
    PolicyDenied: Warning, Admit;
    /// A status write contradicts the status contract.
    StatusContractViolated: Warning, Admit;
    /// A spec that is fixed once the run has started was changed.
    SpecImmutableViolation: Warning, Admit;
    /// The runtime type is not built.
    UnsupportedRuntime: Warning, Admit;
    /// A Job was not allowed to be deleted because its outcome is not stored yet.
    JobDeleteRefused: Warning, Admit;

    /// Bringing the object to its spec failed for a cause that may pass; it is tried again.
    ReconcileFailed: Warning, Reconcile;
    /// Another writer changed the same object again and again; it is tried again.
    Conflict: Warning, Reconcile;
    /// The API server does not allow what is needed; a role lacks a rule.
    Forbidden: Warning, Reconcile;
    /// The operator's configuration cannot be used for this object.
    InvalidConfig: Warning, Reconcile;
    /// Another object has the name that one needs which is to be made; it is tried again.
    NameConflict: Warning, Reconcile;
    /// A Secret or one of its keys does not exist.
    MissingSecret: Warning, Resolve;
    /// An object that is referred to does not exist yet; it is waited for.
    ReferenceMissing: Warning, Resolve;
    /// The host of the repository advises against the sort of token in use.
    DeprecatedAuth: Warning, Resolve;
    /// An address in the object is one that may not be called.
    EgressDenied: Warning, Resolve;
    /// A service that the object names does not answer.
    Unreachable: Warning, Resolve;
    /// A service that the object names does not let the user in.
    AuthFailed: Warning, Resolve;
    /// The connection string of the object cannot be used.
    InvalidConnection: Warning, Resolve;
    /// A service that the object names lacks what the object says that it has.
    CapabilityMissing: Warning, Resolve;

    /// The run was handed to its runtime.
    Submitted: Normal, Submit;
    /// The run could not be handed to its runtime.
    SubmitFailed: Warning, Submit;
    /// The run is held back by a concurrency, queue or rate limit.
    Blocked: Normal, Submit;
    /// Another run has the same idempotency key.
    Duplicate: Warning, Submit;
    /// Another object has the name that the Job needs, or a pod says that it is of that Job, which is not there.
    JobNameConflict: Warning, Submit;

    /// The run has started.
    Started: Normal, Run;
    /// The run ended well.
    Succeeded: Normal, Run;
    /// The run ended badly.
    Failed: Warning, Run;
    /// The run or a step took longer than allowed.
    TimedOut: Warning, Run;
    /// A step failed.
    StepFailed: Warning, Run;
    /// A step failed and is tried again.
    StepRetrying: Warning, Run;
    /// The run was stopped because someone asked for it.
    Cancelled: Normal, Cancel;
    /// What the run left behind could not be removed; it is tried again.
    CleanupFailed: Warning, CleanUp;
    /// The object was removed because its time was over.
    Expired: Normal, CleanUp;

    /// The Job of a workflow step is missing.
    WorkflowJobMissing: Warning, KeepOutcome;
    /// Another Job has taken the name of the run's Job.
    JobReplaced: Warning, KeepOutcome;
    /// The Job is gone because its namespace is being deleted.
    NamespaceTerminating: Warning, KeepOutcome;
    /// The Job is gone because the object it belongs to is gone.
    OwnerDeleted: Warning, KeepOutcome;
    /// The Job was planned, but the API server never took it.
    JobNeverCreated: Warning, KeepOutcome;
    /// The Job is gone because its time to live was over before its outcome was stored.
    JobTtlExpired: Warning, KeepOutcome;
    /// The Job was deleted before it had ended.
    JobDeletedWhileRunning: Warning, KeepOutcome;
    /// The Job was deleted and its pods were left to themselves.
    JobDeletedOrphaned: Warning, KeepOutcome;
    /// The Job was deleted by someone whose name is known.
    JobDeletedByActor: Warning, KeepOutcome;
    /// The Job is gone and nothing says why.
    JobDeletedUnknown: Warning, KeepOutcome;
    /// The outcome of a missing Job was still found, in the Job's last state, its pods or the runner's report.
    OutcomeRecovered: Normal, KeepOutcome;
    /// Job and runner report different outcomes.
    OutcomeConflict: Warning, KeepOutcome;
    /// Someone else put a time to live on a Job whose outcome is not stored yet.
    JobTtlInjected: Warning, KeepOutcome;
    /// Someone took away the finalizer that holds a Job until its outcome is stored.
    JobFinalizerRemoved: Warning, KeepOutcome;

    /// A schedule made a run at its time.
    Scheduled: Normal, Schedule;
    /// A schedule could not start a run at its time.
    ScheduleMissed: Warning, Schedule;

    /// A changed certificate could not be used; the old one stays.
    CertificateRejected: Warning, Reload;
    /// The certificate in use ends soon and no new one has come.
    CertificateExpiring: Warning, Reload;
    /// The webhook could not make, store or announce a certificate of its own; it is tried again, and the old one stays.
    CertificateRotationFailed: Warning, Reload;
    /// A changed policy file is in force.
    PolicyChanged: Normal, Reload;
    /// A changed policy file could not be used; the old policy stays.
    PolicyRejected: Warning, Reload;
    /// A candidate policy could not be used; nothing is compared with it.
    CandidatePolicyRejected: Warning, Reload;

    /// The webhook configurations in the cluster could lock it, or are not what the rung means.
    RegistrationAtFault: Warning, Inspect;

    /// The holder of the lease was asked to hand it to someone who cannot have it, and goes on leading.
    YieldRefused: Warning, Lead;
}

impl From<Class> for Reason {
    fn from(class: Class) -> Self {
        match class {
            Class::JobReplaced => Self::JobReplaced,
            Class::NamespaceTerminating => Self::NamespaceTerminating,
            Class::OwnerDeleted => Self::OwnerDeleted,
            Class::JobNeverCreated => Self::JobNeverCreated,
            Class::JobTtlExpired => Self::JobTtlExpired,
            Class::JobDeletedWhileRunning => Self::JobDeletedWhileRunning,
            Class::JobDeletedOrphaned => Self::JobDeletedOrphaned,
            Class::JobDeletedByActor => Self::JobDeletedByActor,
            Class::JobDeletedUnknown => Self::JobDeletedUnknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_reason_has_its_own_sentence() {
        let meanings: BTreeSet<_> = Reason::ALL.iter().map(|reason| reason.meaning()).collect();
        assert_eq!(meanings.len(), Reason::ALL.len());
        for meaning in meanings {
            assert!(
                meaning.ends_with('.') && !meaning.starts_with(' '),
                "{meaning}"
            );
        }
    }

    #[test]
    fn reasons_and_actions_are_camel_case_and_within_the_limit_of_the_api() {
        let reasons = Reason::ALL.iter().map(|word| word.as_str());
        for word in reasons.chain(Action::ALL.iter().map(|word| word.as_str())) {
            assert!(word.len() <= 128, "{word}");
            assert!(word.starts_with(|c: char| c.is_ascii_uppercase()), "{word}");
            assert!(word.bytes().all(|b| b.is_ascii_alphanumeric()), "{word}");
        }
    }

    #[test]
    fn a_class_of_missing_job_keeps_its_word() {
        for class in Class::ALL {
            assert_eq!(Reason::from(*class).as_str(), class.as_str());
        }
    }
}
