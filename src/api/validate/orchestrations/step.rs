//! One step of an Orchestration: what each kind of step works on. What it hands to its run as it is, `examine` holds
//! against the schema and the rules of runs.

use serde_json::Value;

use crate::api::kinds::orchestrations::orchestration::Step;
use crate::api::kinds::shared::OptionalRef;
use crate::api::object::cause::{Causes, Path, Reason, not_one_of, quoted};
use crate::api::text::names::{Form, closed_words};
use crate::api::validate::shared::{check_name, check_parameters, check_tries};

closed_words! {
    /// What a step does.
    pub enum StepKind {
        /// Makes an AgentRun and waits for it.
        AgentRun,
        /// Makes a ToolRun and waits for it.
        ToolRun,
        /// Makes an OrchestrationRun and waits for it.
        SubOrchestration,
        /// Waits for an approval.
        ApprovalGate,
        /// Waits for a signal.
        SignalWait,
        /// Marks a point.
        Checkpoint,
        /// Marks an operation on a Memory.
        MemoryOp,
    }
}

pub(super) fn check_step(
    causes: &mut Causes,
    at: &Path<'_>,
    step: &Step,
    orchestration: Option<&str>,
) {
    if step.name.trim().is_empty() {
        causes.add(
            &at.field("name"),
            Reason::StepMissingName,
            "is blank; give each step a name",
        );
    } else {
        check_name(causes, &at.field("name"), &step.name, Form::LabelValue);
    }
    check_tries(
        causes,
        at,
        step.retries,
        step.retry_backoff_seconds,
        step.timeout_seconds,
    );
    check_parameters(causes, &at.field("with"), step.with.as_ref());
    match StepKind::parse(step.kind.trim()) {
        Some(kind) => check_kind(causes, at, step, kind, orchestration),
        None if step.kind.trim().is_empty() => {
            let message = "is blank; say what the step does, e.g. AgentRun";
            causes.add(&at.field("kind"), Reason::StepMissingKind, message);
        }
        None => causes.add_thought(&at.field("kind"), Reason::UnsupportedStep, || {
            let known: Vec<&str> = StepKind::ALL.iter().map(|kind| kind.as_str()).collect();
            not_one_of(&step.kind, &known)
        }),
    }
}

fn check_kind(
    causes: &mut Causes,
    at: &Path<'_>,
    step: &Step,
    kind: StepKind,
    orchestration: Option<&str>,
) {
    let named =
        |reference: Option<&OptionalRef>| reference.and_then(|reference| reference.name.clone());
    match kind {
        StepKind::AgentRun => {
            let agent = named(step.agent_ref.as_ref());
            check_reference(causes, at, step, ("agentRef", agent));
            check_work(causes, at, step);
        }
        StepKind::ToolRun => {
            check_reference(causes, at, step, ("toolRef", named(step.tool_ref.as_ref())));
        }
        StepKind::SubOrchestration => {
            let inner = named(step.orchestration_ref.as_ref());
            if inner.is_some() && inner.as_deref() == orchestration {
                let message = format!(
                    "{} would start itself for ever; refer to another one",
                    quoted(&inner.clone().unwrap_or_default())
                );
                causes.add(
                    &at.field("orchestrationRef"),
                    Reason::OrchestrationRecursion,
                    message,
                );
            }
            check_reference(causes, at, step, ("orchestrationRef", inner));
        }
        StepKind::ApprovalGate => {
            check_reference(causes, at, step, ("policyRef", step.policy_ref.clone()));
        }
        StepKind::SignalWait => {
            let delivery = field_or_with(step, "deliveryId");
            if delivery.is_none() {
                check_reference(causes, at, step, ("signalRef", None));
            }
        }
        StepKind::Checkpoint | StepKind::MemoryOp => {}
    }
}

/// What the step works on, given as a field of its own or among the values of the step.
fn check_reference(
    causes: &mut Causes,
    at: &Path<'_>,
    step: &Step,
    (field, given): (&str, Option<String>),
) {
    let name = given
        .filter(|name| !name.trim().is_empty())
        .or_else(|| field_or_with(step, field));
    match name {
        Some(name) => check_name(causes, &at.field(field), &name, Form::DnsSubdomain),
        None => {
            let message = format!(
                "a step of kind {} needs {field}; name the object",
                step.kind.trim()
            );
            causes.add(&at.field(field), Reason::StepMissingReference, message);
        }
    }
}

/// A run needs something to do.
fn check_work(causes: &mut Causes, at: &Path<'_>, step: &Step) {
    let inline = step
        .extra
        .get("implementation")
        .is_some_and(Value::is_object);
    let given = ["implementationSpecRef", "implementation"]
        .iter()
        .any(|field| field_or_with(step, field).is_some());
    if !inline && !given {
        let message = "a step of kind AgentRun needs something to do; set implementationSpecRef or implementation";
        causes.add(
            &at.field("implementationSpecRef"),
            Reason::StepMissingReference,
            message,
        );
    }
}

/// A name in a field that the schema does not know, as text or as an object with a name, or among the step's values.
fn field_or_with(step: &Step, field: &str) -> Option<String> {
    let extra = step
        .extra
        .get(field)
        .and_then(|value| value.as_str().or_else(|| value.get("name")?.as_str()));
    let with = step
        .with
        .as_ref()
        .and_then(|with| with.get(field).map(String::as_str));
    extra
        .or(with)
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
}
