//! Values that an absent field stands for, so that people see in the stored object what holds.
//!
//! Only what the controllers assume anyway, so storing it changes nothing. A default whose parent is absent is left
//! out: an empty block would say something else than none. Defaults of the CRD schema are the API server's own.

use serde_json::{Value, json};

use crate::api::kind::Kind;
use crate::api::object::cause::{FieldPath, Segment};
use crate::api::object::tree::{Json, Sort, Tree};

/// The fields that are absent and what they stand for, parents before children. Empty once they are filled in.
///
/// Meant for a new object, and for an update that changes the spec anyway: an update of something else must not
/// change the spec of an object that was stored before there were defaults.
pub fn defaults(kind: Kind, object: &Value) -> Vec<(FieldPath, Value)> {
    let Some(spec) = object.get("spec").filter(|spec| spec.is_object()) else {
        return Vec::new();
    };
    table(kind)
        .iter()
        .filter(|(path, _)| is_missing(spec, path))
        .map(|(path, word)| (place(path), word.value()))
        .collect()
}

/// The same of a new spec, which has them afterwards.
pub fn fill(kind: Kind, spec: &mut Tree<'_>) -> Vec<(FieldPath, Value)> {
    let mut filled = Vec::new();
    for (path, word) in table(kind) {
        if is_missing(spec, path) {
            spec.add(path, word.tree());
            filled.push((place(path), word.value()));
        }
    }
    filled
}

/// The spec of an object with what its absent fields stand for.
pub fn settled_spec(kind: Kind, object: &Value) -> Value {
    let mut spec = object.get("spec").cloned().unwrap_or_default();
    for (path, word) in table(kind) {
        let Some((name, parents)) = path.split_last().filter(|_| is_missing(&spec, path)) else {
            continue;
        };
        let parent = parents
            .iter()
            .try_fold(&mut spec, |value, field| value.get_mut(field));
        if let Some(fields) = parent.and_then(Value::as_object_mut) {
            fields.insert((*name).to_owned(), word.value());
        }
    }
    spec
}

/// A value as the table writes it.
#[derive(Clone, Copy)]
enum Word {
    Flag(bool),
    Text(&'static str),
    OneText(&'static str),
}

impl Word {
    fn value(self) -> Value {
        match self {
            Self::Flag(flag) => Value::Bool(flag),
            Self::Text(text) => Value::from(text),
            Self::OneText(text) => json!([text]),
        }
    }

    fn tree(self) -> Tree<'static> {
        match self {
            Self::Flag(flag) => Tree::Bool(flag),
            Self::Text(text) => Tree::Text(text.into()),
            Self::OneText(text) => Tree::List(vec![Tree::Text(text.into())]),
        }
    }
}

/// Path below the spec, and the value that its absence stands for.
type Row = (&'static [&'static str], Word);

const fn table(kind: Kind) -> &'static [Row] {
    match kind {
        Kind::AgentRun => &[
            (&["vcsPolicy", "required"], Word::Flag(false)),
            (&["vcsPolicy", "mode"], Word::Text("read-write")),
        ],
        Kind::ImplementationSource => &[(&["auth", "secretRef", "key"], Word::Text("token"))],
        Kind::VersionControlProvider => &[
            (&["auth", "token", "secretRef", "key"], Word::Text("token")),
            (
                &["auth", "app", "privateKeySecretRef", "key"],
                Word::Text("privateKey"),
            ),
            (
                &["auth", "ssh", "privateKeySecretRef", "key"],
                Word::Text("privateKey"),
            ),
            (
                &["auth", "ssh", "knownHostsConfigMapRef", "key"],
                Word::Text("known_hosts"),
            ),
            (&["capabilities", "read"], Word::Flag(true)),
            (&["capabilities", "write"], Word::Flag(true)),
            (&["capabilities", "pullRequests"], Word::Flag(true)),
            (&["defaults", "pullRequest", "enabled"], Word::Flag(true)),
            (&["defaults", "pullRequest", "draft"], Word::Flag(false)),
        ],
        Kind::Workspace => &[(&["accessModes"], Word::OneText("ReadWriteOnce"))],
        Kind::Agent
        | Kind::AgentProvider
        | Kind::ImplementationSpec
        | Kind::Memory
        | Kind::Orchestration
        | Kind::OrchestrationRun
        | Kind::Tool
        | Kind::ToolRun
        | Kind::ApprovalPolicy
        | Kind::Budget
        | Kind::SecretBinding
        | Kind::Signal
        | Kind::SignalDelivery
        | Kind::Schedule
        | Kind::Artifact => &[],
    }
}

/// Whether the parent is an object without this field. A null is there: the API server decides about it.
fn is_missing(spec: &impl Json, path: &[&str]) -> bool {
    let Some((field, parents)) = path.split_last() else {
        return false;
    };
    let mut parents = parents.iter();
    let parent = parents.try_fold(spec, |value, parent| value.field(parent));
    parent.is_some_and(|parent| {
        matches!(parent.sort(), Sort::Fields) && parent.field(field).is_none()
    })
}

fn place(path: &[&str]) -> FieldPath {
    ["spec"]
        .iter()
        .chain(path)
        .map(|field| Segment::Field((*field).to_owned()))
        .collect()
}

#[cfg(test)]
mod tests;
