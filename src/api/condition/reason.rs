//! The closed list of reasons in conditions: what happened to an object, or the rule it breaks, or why its Job is gone.
//!
//! A word is in one list only, so that it means one thing.

use crate::api::custody;
use crate::api::object::cause;
use crate::api::text::names::closed_words;

/// Why a condition holds or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Something happened in the life of the object.
    Lifecycle(Lifecycle),
    /// The object breaks a rule.
    Refused(cause::Reason),
    /// The Job is missing.
    JobMissing(custody::Class),
}

impl Reason {
    /// The word in the condition.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lifecycle(word) => word.as_str(),
            Self::Refused(word) => word.as_str(),
            Self::JobMissing(word) => word.as_str(),
        }
    }
}

impl From<Lifecycle> for Reason {
    fn from(word: Lifecycle) -> Self {
        Self::Lifecycle(word)
    }
}

impl From<cause::Reason> for Reason {
    fn from(word: cause::Reason) -> Self {
        Self::Refused(word)
    }
}

impl From<custody::Class> for Reason {
    fn from(word: custody::Class) -> Self {
        Self::JobMissing(word)
    }
}

closed_words! {
    /// What happened in the life of an object.
    pub enum Lifecycle {
        /// The object is as its spec asks, or a condition no longer holds.
        Reconciled,
        /// Bringing the object to its spec failed for a cause that may pass.
        ReconcileFailed,
        /// The API server does not allow what is needed.
        Forbidden,
        /// The operator's configuration cannot be used for this object.
        InvalidConfig,
        /// Another object has the name that one needs which is to be made.
        NameConflict,
        /// Handed to the runtime.
        Submitted,
        /// Not started yet.
        Pending,
        /// Being worked on.
        Running,
        /// Ended well.
        Completed,
        /// The Job failed.
        JobFailed,
        /// The Job could not be made.
        SubmitFailed,
        /// Another object has the name that the Job needs, or a pod says that it is of that Job, which is not there.
        JobNameConflict,
        /// A pod of an earlier try does not end, so that the next one cannot begin.
        PodNotEnding,
        /// Someone else put a time to live on the Job.
        JobTtlInjected,
        /// Job and runner report different outcomes.
        OutcomeConflict,
        /// The endpoint that carries out the run says that it failed, or does not know it any more.
        EndpointFailed,
        /// An address in the object may not be called.
        EgressDenied,
        /// What the object names outside does not answer.
        ConnectionFailed,
        /// What the object names outside does not let the user in.
        AuthFailed,
        /// The connection string of the object cannot be used.
        InvalidConnection,
        /// What the object names outside lacks what the object says that it has.
        CapabilityMissing,
        /// Ended because someone asked for it.
        Cancelled,
        /// The runtime stopped the work.
        Terminated,
        /// The work took too long.
        TimedOut,

        /// A step of the workflow failed.
        WorkflowStepFailed,
        /// A step of the workflow has no try left.
        WorkflowStepRetriesExhausted,
        /// A step of the workflow took too long.
        WorkflowStepTimedOut,
        /// The Job of a step of the workflow is missing.
        WorkflowJobMissing,

        /// Too many runs at a time.
        ConcurrencyLimit,
        /// Too many runs are waiting.
        QueueLimit,
        /// Too many runs in a short time.
        RateLimit,
        /// A run with this idempotency key is under way.
        IdempotencyKeyInUse,
        /// A run with this idempotency key has ended.
        IdempotencyKeyCompleted,

        /// The Agent does not exist.
        MissingAgent,
        /// The AgentProvider does not exist.
        MissingProvider,
        /// There is nothing to do: no implementation was found.
        MissingImplementation,
        /// No image is given, by the run or by the operator.
        MissingWorkloadImage,
        /// The Memory does not exist.
        MissingMemory,
        /// The Tool does not exist.
        MissingTool,
        /// The Orchestration does not exist.
        MissingOrchestration,
        /// The target of the schedule does not exist.
        MissingTarget,
        /// The implementation asks for parameters that the run does not give.
        MissingRequiredMetadata,
        /// The system prompt that is referred to does not exist.
        MissingSystemPromptRef,
        /// The Secret does not exist.
        SecretNotFound,
        /// The Secret lacks the key.
        SecretKeyMissing,
        /// The ConfigMap does not exist.
        ConfigMapNotFound,
        /// The ConfigMap lacks the key.
        ConfigMapKeyMissing,
        /// The PersistentVolumeClaim does not exist.
        ClaimNotFound,
        /// The Budget does not exist.
        MissingBudget,
        /// The Signal does not exist.
        SignalMissing,

        /// Version control is switched off.
        VcsProvidersDisabled,
        /// The VersionControlProvider is not named or does not exist.
        MissingVcsProvider,
        /// No repository is given.
        MissingRepository,
        /// The repository is not allowed.
        VcsPolicyDenied,
        /// The run asks for no version control.
        VcsDisabled,
        /// The provider allows less than the run needs.
        VcsCapabilityDenied,
        /// The provider does not support this way of authentication.
        UnsupportedVcsAuth,
        /// The authentication is incomplete.
        MissingVcsAuth,
        /// The credentials cannot be had.
        VcsAuthUnavailable,
        /// The token type is out of date.
        DeprecatedAuth,
        /// There is nothing to warn of.
        None,

        /// Artifacts were dropped because there are too many.
        TooManyArtifacts,
        /// The URL of an artifact is too long.
        UrlTooLong,
        /// The URL of an artifact holds its content.
        InlineUrlDisallowed,
        /// An artifact has no name.
        MissingName,
        /// Artifacts were limited for several reasons.
        Limited,
        /// All artifacts were kept.
        WithinLimits,
        /// Artifacts broke the limits.
        LimitExceeded,

        /// A step failed.
        StepFailed,
        /// A step took too long.
        StepTimedOut,
        /// A step could not be handled.
        StepError,
        /// A step has no try left.
        RetriesExhausted,
        /// An approval was refused.
        ApprovalDenied,
        /// The AgentRun of a step is missing, or its outcome is.
        AgentRunMissing,
        /// The AgentRun of a step failed.
        AgentRunFailed,
        /// The ToolRun of a step is missing, or its outcome is.
        ToolRunMissing,
        /// The ToolRun of a step failed.
        ToolRunFailed,
        /// The run of a step's orchestration is missing, or its outcome is.
        SubOrchestrationMissing,
        /// The run of a step's orchestration failed.
        SubOrchestrationFailed,

        /// The spec is in order.
        ValidSpec,
        /// The object is in use.
        Active,
        /// Nothing is made until someone takes the suspension back.
        Suspended,
        /// The signal was delivered.
        Delivered,
        /// The claim has its volume.
        Bound,
        /// The claim lost its volume.
        Lost,
        /// Someone else has a claim of the name that is needed.
        ClaimNameConflict,
        /// The time of the object is over.
        Expired,
        /// A budget is used up.
        Exceeded,
        /// The secret was found.
        SecretResolved,
        /// The store lets the user in and answers.
        Connected,
        /// The credentials were found.
        AuthReady,
        /// No credentials are needed.
        NoAuth,
        /// Calls from the source are accepted.
        WebhookReady,
        /// Calls from the source are switched off.
        WebhookDisabled,
        /// A call from the source could not be handled.
        WebhookFailed,
        /// A call from the source could not be read.
        InvalidPayload,
        /// The content of the source was taken over.
        Synced,
        /// The source could not be read.
        SyncFailed,
    }
}
