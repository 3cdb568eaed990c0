//! What the schema cannot say: faults of a spec, each with its place, a stable reason and what would be right.
//!
//! One function for webhook, reconciler and command line. References are checked for form only: an object that is not
//! there yet is a wait, not a fault. What the operator allows is `policy`, what a status may say is `status`.

mod agents;
mod approval_policy;
mod artifact;
mod budget;
mod orchestrations;
mod schedule;
mod secret_binding;
mod shared;
mod signals;
#[cfg(test)]
mod tests;
mod tools;
mod workspace;

pub use agents::version_control_provider::{HostAuth, host_auth, method_word};
pub use orchestrations::graph::StepGraph;
pub use orchestrations::step::StepKind;
pub use schedule::{CronError, Timetable, parse_time_zone, parse_timetable};
pub use shared::{Quantity, QuantityError};

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::kind::Kind;
use super::object::cause::{Cause, Causes, FieldPath, Path, Reason, Segment};
use super::object::tree::Tree;
use super::text::names::Form;

const SPEC: Path<'static> = Path::root("spec");

/// All faults of an object. With `old`, those that the update brings: a fault that the object had before, at the same
/// place with the same value, does not keep anyone from changing something else.
pub fn validate(kind: Kind, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let Some(old) = old else {
        return faults(kind, object).told();
    };
    if old.get("spec") == object.get("spec") {
        return Vec::new();
    }
    let mut causes = faults(kind, object);
    causes.forgive(&faults(kind, old), |field| {
        field.find(object) == field.find(old)
    });
    check_frozen(&mut causes, kind, object, old);
    causes.told()
}

/// What may not change once a run has started.
pub(super) fn check_frozen(causes: &mut Causes, kind: Kind, object: &Value, old: &Value) {
    shared::frozen::check(causes, kind, old, object);
}

fn faults(kind: Kind, object: &Value) -> Causes {
    let no_spec = Value::Object(Map::new());
    match rules(kind, object, spec_of(object).unwrap_or(&no_spec)) {
        Ok(causes) => causes,
        Err(unread) => {
            let mut causes = Causes::default();
            check_name(&mut causes, kind, name_of(object));
            causes.push(unread);
            causes
        }
    }
}

/// The faults of an object whose spec is taken to be `spec`.
///
/// # Errors
///
/// The place where the spec cannot be read.
pub(super) fn rules(kind: Kind, object: &Value, spec: &Value) -> Result<Causes, Cause> {
    let mut causes = Causes::default();
    let name = name_of(object);
    check_name(&mut causes, kind, name);
    check_spec(&mut causes, kind, spec, name)?;
    Ok(causes)
}

/// Whether the rules find nothing wrong with a spec that the API server has held against its schema. Most are like that;
/// who wants to know what is wrong asks for it with the whole object.
pub fn is_clean(kind: Kind, name: Option<&str>, spec: &Tree<'_>) -> bool {
    let mut causes = Causes::default();
    check_name(&mut causes, kind, name);
    check_spec(&mut causes, kind, spec, name).is_ok() && causes.is_empty()
}

/// The spec of an object; null counts as absent.
pub(super) fn spec_of(object: &Value) -> Option<&Value> {
    object.get("spec").filter(|spec| !spec.is_null())
}

fn name_of(object: &Value) -> Option<&str> {
    object.get("metadata")?.get("name")?.as_str()
}

/// The name of these kinds is copied into a label of what they make.
fn check_name(causes: &mut Causes, kind: Kind, name: Option<&str>) {
    let becomes_label = match kind {
        Kind::AgentRun
        | Kind::OrchestrationRun
        | Kind::ToolRun
        | Kind::Schedule
        | Kind::Workspace => true,
        Kind::Agent
        | Kind::AgentProvider
        | Kind::ImplementationSpec
        | Kind::ImplementationSource
        | Kind::VersionControlProvider
        | Kind::Memory
        | Kind::Orchestration
        | Kind::Tool
        | Kind::ApprovalPolicy
        | Kind::Budget
        | Kind::SecretBinding
        | Kind::Signal
        | Kind::SignalDelivery
        | Kind::Artifact => false,
    };
    if let Some(name) = name.filter(|name| becomes_label && !Form::LabelValue.fits(name)) {
        causes.add(
            &Path::root("metadata").field("name"),
            Reason::NameTooLong,
            format!(
                "the name of {kind} objects becomes a label and has {} characters; use at most 63",
                name.len()
            ),
        );
    }
}

fn check_spec<'v>(
    causes: &mut Causes,
    kind: Kind,
    spec: impl Deserializer<'v> + Copy,
    name: Option<&str>,
) -> Result<(), Cause> {
    match kind {
        Kind::Agent => read(causes, spec, agents::agent::check),
        Kind::AgentRun => read(causes, spec, agents::agent_run::check),
        Kind::AgentProvider => read(causes, spec, agents::agent_provider::check),
        Kind::ImplementationSpec => read(causes, spec, agents::implementation_spec::check),
        Kind::ImplementationSource => read(causes, spec, agents::implementation_source::check),
        Kind::VersionControlProvider => read(causes, spec, agents::version_control_provider::check),
        Kind::Memory => read(causes, spec, agents::memory::check),
        Kind::Orchestration => read(causes, spec, |causes, spec| {
            orchestrations::orchestration::check(causes, spec, name);
        }),
        Kind::OrchestrationRun => read(causes, spec, orchestrations::orchestration_run::check),
        Kind::Tool => read(causes, spec, tools::tool::check),
        Kind::ToolRun => read(causes, spec, tools::tool_run::check),
        Kind::ApprovalPolicy => read(causes, spec, approval_policy::check),
        Kind::Budget => read(causes, spec, budget::check),
        Kind::SecretBinding => read(causes, spec, secret_binding::check),
        Kind::Signal => read(causes, spec, signals::signal::check),
        Kind::SignalDelivery => read(causes, spec, signals::signal_delivery::check),
        Kind::Schedule => read(causes, spec, schedule::check),
        Kind::Artifact => read(causes, spec, artifact::check),
        Kind::Workspace => read(causes, spec, workspace::check),
    }
}

/// Reads a spec as its type and checks it.
///
/// # Errors
///
/// The place where reading stopped.
fn read<'v, T: Deserialize<'v>>(
    causes: &mut Causes,
    spec: impl Deserializer<'v> + Copy,
    check: impl FnOnce(&mut Causes, &T),
) -> Result<(), Cause> {
    let spec = read_at(&SPEC, spec)?;
    check(causes, &spec);
    Ok(())
}

/// Reads the value at a place as a type. Keeping track of the place is slow, so it is done only once reading has failed.
fn read_at<'v, T: Deserialize<'v>>(
    at: &Path<'_>,
    value: impl Deserializer<'v> + Copy,
) -> Result<T, Cause> {
    T::deserialize(value).or_else(|_| read_with_path(at, value))
}

fn read_with_path<'v, T: Deserialize<'v>>(
    at: &Path<'_>,
    value: impl Deserializer<'v>,
) -> Result<T, Cause> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        use serde_path_to_error::Segment as Read;
        let inner = error.path().iter().filter_map(|segment| match segment {
            Read::Seq { index } => Some(Segment::Index(*index)),
            Read::Map { key } => Some(Segment::Field(key.clone())),
            Read::Enum { variant } => Some(Segment::Field(variant.clone())),
            Read::Unknown => None,
        });
        let field: FieldPath = FieldPath::from(at).into_iter().chain(inner).collect();
        let problem: String = error.inner().to_string().chars().take(200).collect();
        Cause {
            field,
            reason: Reason::Malformed,
            message: format!("cannot be read: {problem}"),
        }
    })
}
