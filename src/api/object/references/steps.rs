//! References in the steps of an Orchestration. Some stand in fields that the schema does not know, as an object with a
//! name or as the bare name, and some may stand among the values of the step instead.

use super::{Found, filled, list, text};
use crate::api::kind::Kind;
use crate::api::object::cause::Path;
use crate::api::object::tree::Json;

/// The fields of a step that refer to something, and to what.
const FIELDS: [(&str, Kind); 7] = [
    ("agentRef", Kind::Agent),
    ("toolRef", Kind::Tool),
    ("orchestrationRef", Kind::Orchestration),
    ("policyRef", Kind::ApprovalPolicy),
    ("signalRef", Kind::Signal),
    ("implementationSpecRef", Kind::ImplementationSpec),
    ("memoryRef", Kind::Memory),
];

impl Found {
    pub(super) fn of_steps(&mut self, at: &Path<'_>, spec: &impl Json) {
        let steps = at.field("steps");
        for (index, step) in list(spec, "steps").iter().enumerate() {
            self.of_step(&steps.index(index), step);
        }
    }

    fn of_step(&mut self, at: &Path<'_>, step: &impl Json) {
        for (field, kind) in FIELDS {
            self.of_field(at, step, field, kind);
        }
        let inline = step
            .field("implementation")
            .and_then(|implementation| implementation.field("inline"));
        if let Some(inline) = inline {
            let implementation = at.field("implementation");
            let inline_at = implementation.field("inline");
            self.named(&inline_at, inline, "vcsRef", Kind::VersionControlProvider);
        }
        self.workflow(at, step);
    }

    /// The field itself comes first; the values of the step only count without it.
    fn of_field(&mut self, at: &Path<'_>, step: &impl Json, field: &str, kind: Kind) {
        let field_at = at.field(field);
        if let Some(given) = step.field(field) {
            if let Some(name) = text(given, "name") {
                return self.add(&field_at.field("name"), kind, None, name);
            }
            if let Some(name) = given.text().and_then(filled) {
                return self.add(&field_at, kind, None, name);
            }
        }
        if let Some(name) = step.field("with").and_then(|with| text(with, field)) {
            self.add(&at.field("with").key(field), kind, None, name);
        }
    }
}
