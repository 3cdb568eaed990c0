//! The closed list of reasons for refusing an object. Programs and dashboards match on them, so a word that was
//! published stays.
//!
//! Words of the existing controllers are kept where they said the same. No rule lives here.

use crate::api::text::names::closed_words;

closed_words! {
    /// The rule that an object breaks.
    pub enum Reason {
        /// The object cannot be read as its kind.
        Malformed,
        /// There are more faults than are told at once.
        TooManyFaults,
        /// A field that is needed is absent or blank.
        Required,
        /// A value has another type than its field.
        TypeMismatch,
        /// A word is not one of those that the field knows.
        NotSupported,
        /// A text does not have the form that the field asks for.
        PatternMismatch,
        /// A text that must be a time is none.
        InvalidTime,
        /// A text is shorter than allowed.
        TooShort,
        /// A text is longer than allowed.
        TooLong,
        /// A list or map has more entries than allowed.
        TooMany,
        /// A number lies outside its range.
        OutOfRange,
        /// A name does not have the form that Kubernetes asks for.
        InvalidName,
        /// A name becomes a label value and is longer than one may be.
        NameTooLong,
        /// A text that must be a quantity is none.
        InvalidQuantity,
        /// A text that must be a URL is none, or has another scheme than allowed.
        InvalidUrl,
        /// The same entry is given twice where each must be unique.
        Duplicate,
        /// A spec that is fixed once the run has started was changed.
        SpecImmutableViolation,
        /// The object contradicts what its request says that it is.
        ObjectMismatch,
        /// The annotation with the trace context holds none.
        InvalidTraceparent,
        /// A Job is deleted before its outcome is stored.
        OutcomeNotRecorded,

        /// The runtime type is not built.
        UnsupportedRuntime,
        /// A custom runtime has no endpoint to call.
        MissingEndpoint,
        /// A setting of the runtime has the wrong type.
        InvalidRuntimeConfig,
        /// There are more parameters than allowed.
        ParametersTooLarge,
        /// A parameter value is longer than allowed.
        ParameterValueTooLarge,
        /// A parameter key cannot be used in a template.
        ParameterKeyInvalid,
        /// A workflow has no step.
        MissingWorkflowSteps,
        /// A workflow step has no name.
        WorkflowStepMissingName,
        /// Two workflow steps have the same name.
        WorkflowStepDuplicate,
        /// An implementation contract has blank keys or half a mapping.
        InvalidContract,
        /// A run has nothing to do.
        NothingToDo,
        /// An implementation has no text.
        MissingText,
        /// A system prompt is given both inline and by reference.
        SystemPromptConflict,
        /// A reference to a system prompt is incomplete.
        InvalidSystemPromptRef,
        /// A volume lacks the source that its type needs.
        VolumeSourceMissing,
        /// A volume has a setting that belongs to another type.
        VolumeSourceConflict,
        /// A path inside the container is not absolute.
        InvalidPath,
        /// A resource name is neither standard nor qualified.
        InvalidResourceName,
        /// A resource request is above its limit.
        RequestAboveLimit,
        /// An image reference cannot be one.
        InvalidImage,
        /// The name of an environment variable cannot be one.
        InvalidEnvName,
        /// An agent provider has no binary to run.
        MissingBinary,
        /// The input files do not fit into one ConfigMap.
        InputFilesTooLarge,
        /// An implementation source lacks the scope that its provider needs.
        MissingScope,
        /// An implementation source has a scope of another provider.
        ScopeConflict,

        /// The provider does not support the way of authentication or the token type.
        UnsupportedAuth,
        /// The chosen way of authentication lacks its secret.
        MissingSecretRef,
        /// The app authentication is incomplete.
        MissingAppAuth,
        /// The authentication blocks contradict the method or each other.
        AuthConflict,

        /// An orchestration has no step.
        MissingSteps,
        /// An orchestration step has no name.
        StepMissingName,
        /// An orchestration step has no kind.
        StepMissingKind,
        /// Two orchestration steps have the same name.
        DuplicateStep,
        /// The kind of an orchestration step is not known.
        UnsupportedStep,
        /// An orchestration step lacks what its kind works on.
        StepMissingReference,
        /// The entrypoint is not one of the steps.
        EntrypointMissing,
        /// A step depends on itself.
        InvalidDependency,
        /// A step depends on one that does not exist.
        MissingDependency,
        /// Steps depend on each other in a circle.
        DependencyCycle,
        /// An orchestration starts itself.
        OrchestrationRecursion,

        /// A schedule cannot be read or never fires.
        InvalidCron,
        /// A time zone is not known.
        InvalidTimeZone,
        /// A schedule points at a kind that it cannot start.
        UnsupportedTarget,
        /// A tool has no image.
        MissingImage,
        /// A tool has neither command nor arguments.
        MissingCommand,
        /// A workspace has no size.
        MissingSize,
        /// An access mode is not known or excludes another one.
        InvalidAccessMode,
        /// A secret binding names no subject.
        MissingSubjects,
        /// A secret binding allows no secret.
        MissingSecrets,

        /// Labels that the operator requires are absent.
        MissingRequiredLabels,
        /// A label is on the operator's deny list.
        LabelBlocked,
        /// A label is not on the operator's allow list.
        LabelNotAllowed,
        /// An image is on the operator's deny list.
        ImageBlocked,
        /// An image is not on the operator's allow list.
        ImageNotAllowed,
        /// A secret is on the operator's deny list.
        SecretBlocked,
        /// A secret is not on the list that the agent, the run or a binding gives.
        SecretNotAllowed,
        /// Secrets are used, but no binding names the agent.
        SecretBindingMissing,
        /// A service account is not on the agent's list.
        ServiceAccountNotAllowed,

        /// S1: `observedGeneration` is above the object's generation.
        ObservedGenerationAhead,
        /// S1: `observedGeneration` went back or was taken away.
        ObservedGenerationWentBack,
        /// S3: `startedAt` was changed or taken away.
        StartedAtChanged,
        /// S3: `startedAt` was set on a run that has not started.
        StartedAtTooEarly,
        /// S3: a run that has started has no `startedAt`.
        StartedAtMissing,
        /// S4: `finishedAt` was changed or taken away.
        FinishedAtChanged,
        /// S4: `finishedAt` was set on a run that has not ended.
        FinishedAtTooEarly,
        /// S4: a run has ended, but there is no `finishedAt`.
        FinishedAtMissing,
        /// S4: `finishedAt` lies before `startedAt`.
        FinishedBeforeStarted,
        /// S5: a run left its terminal phase.
        TerminalPhaseLeft,
        /// S6: two conditions have the same type.
        ConditionDuplicate,
        /// S6: not exactly the one terminal condition that fits the phase is True.
        TerminalConditionConflict,
        /// S6: `lastTransitionTime` moved although the status did not flip.
        TransitionTimeMoved,
        /// A time lies in the future by more than clocks may differ.
        TimeInFuture,
    }
}
