//! The object that carries out a step, as it is made and as it is found. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource, ResourceExt};
use serde_json::{Map, Value, json};

use crate::api::condition::{ConditionType, Lifecycle, Reason};
use crate::api::contract::{annotation, label};
use crate::api::kind::Kind;
use crate::api::kinds::orchestrations::orchestration::Step;
use crate::api::kinds::{AgentRun, OrchestrationRun, ToolRun};
use crate::api::phase::Phase;
use crate::api::text::names::ChildName;
use crate::api::validate::StepKind;
use crate::controller::runs::{self, condition, read_reason};

/// Orchestrations that may start one another in a row; more than anyone needs who does not go round in circles.
const DEEPEST: u32 = 16;

/// Fields that a step hands to its AgentRun as they are.
const HANDED_ON: [&str; 5] = [
    "implementation",
    "runtime",
    "workload",
    "workflow",
    "secrets",
];

/// Why a workflow or an orchestration failed of which nobody knows how a part has ended.
const LOST: [Lifecycle; 4] = [
    Lifecycle::WorkflowJobMissing,
    Lifecycle::AgentRunMissing,
    Lifecycle::ToolRunMissing,
    Lifecycle::SubOrchestrationMissing,
];

/// The object that carries out a step.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::controller) enum Child {
    Agent(Arc<AgentRun>),
    Tool(Arc<ToolRun>),
    Orchestration(Arc<OrchestrationRun>),
}

impl Child {
    pub(super) fn name(&self) -> String {
        match self {
            Self::Agent(run) => run.name_any(),
            Self::Tool(run) => run.name_any(),
            Self::Orchestration(run) => run.name_any(),
        }
    }

    pub(super) fn uid(&self) -> Option<String> {
        match self {
            Self::Agent(run) => run.uid(),
            Self::Tool(run) => run.uid(),
            Self::Orchestration(run) => run.uid(),
        }
    }

    /// Whether it was made for the run with this uid.
    pub(super) fn belongs_to(&self, owner: Option<&str>) -> bool {
        let meta = match self {
            Self::Agent(run) => run.meta(),
            Self::Tool(run) => run.meta(),
            Self::Orchestration(run) => run.meta(),
        };
        let mut owners = meta.owner_references.iter().flatten();
        owner.is_some() && owners.any(|given| Some(&*given.uid) == owner)
    }

    /// How it ended; none if it has not.
    pub(super) fn end(&self) -> Option<Phase> {
        let phase = match self {
            Self::Agent(run) => runs::phase(&**run),
            Self::Tool(run) => runs::phase(&**run),
            Self::Orchestration(run) => runs::phase(&**run),
        };
        phase.is_terminal().then_some(phase)
    }

    /// Whether it failed because nobody knows how what it ran has ended.
    pub(super) fn is_lost(&self) -> bool {
        let failed = ConditionType::Failed;
        let failed = match self {
            Self::Agent(run) => condition(&**run, failed),
            Self::Tool(run) => condition(&**run, failed),
            Self::Orchestration(run) => condition(&**run, failed),
        };
        let failed = failed.filter(|failed| failed.status == "True");
        let reason = failed.and_then(|failed| read_reason(failed.reason.as_deref()?));
        match reason {
            Some(Reason::JobMissing(_)) => true,
            Some(Reason::Lifecycle(word)) => LOST.contains(&word),
            Some(Reason::Refused(_)) | None => false,
        }
    }

    /// Whether someone has asked it to stop.
    pub(super) fn is_stopped(&self) -> bool {
        let cancel = match self {
            Self::Agent(run) => run.spec.cancel,
            Self::Tool(run) => run.spec.cancel,
            Self::Orchestration(run) => run.spec.cancel,
        };
        cancel == Some(true)
    }
}

/// The kind of object that a kind of step makes, if it makes one.
pub(super) const fn kind(step: StepKind) -> Option<Kind> {
    match step {
        StepKind::AgentRun => Some(Kind::AgentRun),
        StepKind::ToolRun => Some(Kind::ToolRun),
        StepKind::SubOrchestration => Some(Kind::OrchestrationRun),
        StepKind::ApprovalGate
        | StepKind::SignalWait
        | StepKind::Checkpoint
        | StepKind::MemoryOp => None,
    }
}

/// Name of the object for a try of a step. The position tells steps apart whose names differ only in what names drop.
pub(super) fn name(run: &OrchestrationRun, index: usize, step: &str, attempt: i64) -> String {
    let part = format!("{index}-{step}-{attempt}");
    ChildName::derive(&run.name_any(), &part)
        .as_str()
        .to_owned()
}

/// The object under this name that carries out a step.
///
/// # Errors
///
/// A sentence for people, when the step cannot be carried out.
pub(super) fn make(
    run: &OrchestrationRun,
    step: &Step,
    kind: StepKind,
    name: &str,
) -> Result<Option<Child>, String> {
    let unread = |error: serde_json::Error| format!("the step cannot be read: {error}");
    let parameters = parameters(run, step);
    let child = match kind {
        StepKind::AgentRun => {
            let spec = agent_run(step, &parameters);
            let spec = serde_json::from_value(spec).map_err(unread)?;
            let mut made = AgentRun::new(name, spec);
            made.metadata = metadata(run, step, name, None);
            Child::Agent(Arc::new(made))
        }
        StepKind::ToolRun => {
            let tool = json!({"name": reference(step, "toolRef")});
            let spec = json!({"toolRef": tool, "parameters": parameters});
            let spec = serde_json::from_value(spec).map_err(unread)?;
            let mut made = ToolRun::new(name, spec);
            made.metadata = metadata(run, step, name, None);
            Child::Tool(Arc::new(made))
        }
        StepKind::SubOrchestration => {
            let depth = depth(run) + 1;
            if depth > DEEPEST {
                let deep = format!(
                    "{DEEPEST} orchestrations have started one another; they seem to go round in circles"
                );
                return Err(deep);
            }
            let orchestration = json!({"name": reference(step, "orchestrationRef")});
            let spec = json!({"orchestrationRef": orchestration, "parameters": parameters});
            let spec = serde_json::from_value(spec).map_err(unread)?;
            let mut made = OrchestrationRun::new(name, spec);
            made.metadata = metadata(run, step, name, Some(depth));
            Child::Orchestration(Arc::new(made))
        }
        StepKind::ApprovalGate
        | StepKind::SignalWait
        | StepKind::Checkpoint
        | StepKind::MemoryOp => return Ok(None),
    };
    Ok(Some(child))
}

fn agent_run(step: &Step, parameters: &BTreeMap<String, String>) -> Value {
    let mut spec = Map::new();
    for field in HANDED_ON {
        if let Some(given) = step.extra.get(field).filter(|given| !given.is_null()) {
            spec.insert(field.to_owned(), given.clone());
        }
    }
    for field in ["agentRef", "implementationSpecRef", "memoryRef"] {
        if let Some(name) = reference(step, field) {
            spec.insert(field.to_owned(), json!({ "name": name }));
        }
    }
    spec.insert("parameters".to_owned(), json!(parameters));
    let runtime = spec
        .entry("runtime")
        .or_insert_with(|| json!({"type": "job"}));
    if runtime["type"] == "workflow" && !spec.contains_key("workflow") {
        spec.insert("workflow".to_owned(), json!({"steps": [{"name": "main"}]}));
    }
    Value::Object(spec)
}

/// What a step refers to: a field of its own, one that the schema does not know, or a value of the step.
pub(super) fn reference(step: &Step, field: &str) -> Option<String> {
    let own = match field {
        "agentRef" => step
            .agent_ref
            .as_ref()
            .and_then(|given| given.name.as_deref()),
        "toolRef" => step
            .tool_ref
            .as_ref()
            .and_then(|given| given.name.as_deref()),
        "orchestrationRef" => {
            let given = step.orchestration_ref.as_ref();
            given.and_then(|given| given.name.as_deref())
        }
        "policyRef" => step.policy_ref.as_deref(),
        _ => None,
    };
    let extra = step.extra.get(field);
    let extra = extra.and_then(|given| given.as_str().or_else(|| given.get("name")?.as_str()));
    let with = step.with.as_ref().and_then(|with| with.get(field));
    let filled = |name: &&str| !name.trim().is_empty();
    let name = own.filter(filled).or(extra.filter(filled));
    let name = name.or(with.map(String::as_str).filter(filled))?;
    Some(name.trim().to_owned())
}

/// The parameters of the run, with the values of the step over them.
fn parameters(run: &OrchestrationRun, step: &Step) -> BTreeMap<String, String> {
    let mut parameters = run.spec.parameters.clone().unwrap_or_default();
    parameters.extend(step.with.clone().unwrap_or_default());
    parameters
}

/// How many orchestrations have started one another up to this run.
fn depth(run: &OrchestrationRun) -> u32 {
    let depth = run.annotations().get(annotation::ORCHESTRATION_DEPTH);
    depth.and_then(|depth| depth.parse().ok()).unwrap_or(0)
}

fn metadata(run: &OrchestrationRun, step: &Step, name: &str, depth: Option<u32>) -> ObjectMeta {
    // Policies may ask for labels, and who made the run has given them. Those that say where the run itself came from
    // are not for its children.
    let mut labels = run.labels().clone();
    labels.remove(label::SCHEDULE);
    labels.remove(label::DELIVERY_ID);
    labels.insert(label::ORCHESTRATION_RUN.to_owned(), run.name_any());
    labels.insert(label::ORCHESTRATION_STEP.to_owned(), step.name.clone());
    let annotations = depth.map(|depth| {
        let key = annotation::ORCHESTRATION_DEPTH.to_owned();
        BTreeMap::from([(key, depth.to_string())])
    });
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: run.namespace(),
        labels: Some(labels),
        annotations,
        owner_references: Some(vec![OwnerReference {
            api_version: OrchestrationRun::api_version(&()).into_owned(),
            kind: OrchestrationRun::kind(&()).into_owned(),
            name: run.name_any(),
            uid: run.uid().unwrap_or_default(),
            controller: Some(true),
            block_owner_deletion: None,
        }]),
        ..ObjectMeta::default()
    }
}
