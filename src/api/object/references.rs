//! Every reference that an object makes to another object of ours: where it stands, and whom it means.
//!
//! Reads the object as it was sent, faulty or not; a reference that cannot be read is the business of `validate`.
//! References to Secrets and ConfigMaps are not here, because nobody may look those up.

mod steps;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::api::kind::Kind;
use crate::api::object::cause::{FieldPath, Path};
use crate::api::object::tree::Json;

/// One object that another one refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Where the reference stands.
    pub at: FieldPath,
    /// Kind of the object that is meant.
    pub kind: Kind,
    /// Its namespace, where the reference names one; else that of the object that refers.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

const SPEC: Path<'static> = Path::root("spec");

/// All references of an object, in the order of its fields as the reference of the API lists them.
pub fn references(kind: Kind, object: &Value) -> Vec<Reference> {
    let spec = object.get("spec");
    spec.map(|spec| references_of(kind, spec))
        .unwrap_or_default()
}

/// All references of a spec.
pub fn references_of(kind: Kind, spec: &impl Json) -> Vec<Reference> {
    let mut found = Found(Vec::new());
    match kind {
        Kind::Agent => found.of_agent(spec),
        Kind::AgentRun => found.of_agent_run(spec),
        Kind::ImplementationSpec => {
            found.named(&SPEC, spec, "vcsRef", Kind::VersionControlProvider);
        }
        Kind::Orchestration => found.of_steps(&SPEC, spec),
        Kind::OrchestrationRun => {
            found.named(&SPEC, spec, "orchestrationRef", Kind::Orchestration);
        }
        Kind::ToolRun => found.named(&SPEC, spec, "toolRef", Kind::Tool),
        Kind::SignalDelivery => found.named(&SPEC, spec, "signalRef", Kind::Signal),
        Kind::Schedule => {
            if let Some(target) = spec.field("targetRef") {
                found.subject(&SPEC.field("targetRef"), target);
            }
        }
        Kind::ApprovalPolicy | Kind::SecretBinding => found.of_subjects(spec),
        Kind::AgentProvider
        | Kind::ImplementationSource
        | Kind::VersionControlProvider
        | Kind::Memory
        | Kind::Tool
        | Kind::Budget
        | Kind::Signal
        | Kind::Artifact
        | Kind::Workspace => {}
    }
    found.0
}

/// References as they are found.
struct Found(Vec<Reference>);

impl Found {
    fn of_agent(&mut self, spec: &impl Json) {
        self.named(&SPEC, spec, "providerRef", Kind::AgentProvider);
        self.named(&SPEC, spec, "memoryRef", Kind::Memory);
        self.named(&SPEC, spec, "vcsRef", Kind::VersionControlProvider);
    }

    fn of_agent_run(&mut self, spec: &impl Json) {
        self.named(&SPEC, spec, "agentRef", Kind::Agent);
        self.work(&SPEC, spec);
        self.workflow(&SPEC, spec);
        self.named(&SPEC, spec, "memoryRef", Kind::Memory);
        self.named(&SPEC, spec, "vcsRef", Kind::VersionControlProvider);
    }

    fn of_subjects(&mut self, spec: &impl Json) {
        let subjects = SPEC.field("subjects");
        for (index, subject) in list(spec, "subjects").iter().enumerate() {
            self.subject(&subjects.index(index), subject);
        }
    }

    /// Something that names its own kind, and perhaps a namespace. Kinds of others are not looked up.
    fn subject(&mut self, at: &Path<'_>, subject: &impl Json) {
        let kind = text(subject, "kind").and_then(|kind| {
            Kind::ALL
                .into_iter()
                .find(|known| known.as_str() == kind.trim())
        });
        if let (Some(kind), Some(name)) = (kind, text(subject, "name")) {
            let namespace = text(subject, "namespace").map(str::to_owned);
            self.add(&at.field("name"), kind, namespace, name);
        }
    }

    /// What a run or a step is to do: by reference, or written out with a repository host of its own.
    fn work(&mut self, at: &Path<'_>, owner: &impl Json) {
        self.named(at, owner, "implementationSpecRef", Kind::ImplementationSpec);
        let inline = owner
            .field("implementation")
            .and_then(|implementation| implementation.field("inline"));
        if let Some(inline) = inline {
            let implementation = at.field("implementation");
            let at = implementation.field("inline");
            self.named(&at, inline, "vcsRef", Kind::VersionControlProvider);
        }
    }

    fn workflow(&mut self, at: &Path<'_>, owner: &impl Json) {
        let Some(workflow) = owner.field("workflow") else {
            return;
        };
        let workflow_at = at.field("workflow");
        let steps = workflow_at.field("steps");
        for (index, step) in list(workflow, "steps").iter().enumerate() {
            self.work(&steps.index(index), step);
        }
    }

    /// A field that holds an object with a name.
    fn named(&mut self, at: &Path<'_>, owner: &impl Json, field: &str, kind: Kind) {
        if let Some(name) = owner.field(field).and_then(|given| text(given, "name")) {
            self.add(&at.field(field).field("name"), kind, None, name);
        }
    }

    fn add(&mut self, at: &Path<'_>, kind: Kind, namespace: Option<String>, name: &str) {
        self.0.push(Reference {
            at: at.into(),
            kind,
            namespace,
            name: name.to_owned(),
        });
    }
}

/// A field that is a text and not blank, without the blanks around it.
fn text<'v, J: Json>(owner: &'v J, field: &str) -> Option<&'v str> {
    filled(owner.field(field)?.text()?)
}

fn filled(text: &str) -> Option<&str> {
    Some(text.trim()).filter(|text| !text.is_empty())
}

/// The entries of a field that is a list; none of anything else.
fn list<'v, J: Json>(owner: &'v J, field: &str) -> &'v [J] {
    owner.field(field).map_or(&[], Json::entries)
}
