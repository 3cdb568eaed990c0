//! The schema of a kind's CRD, held against an object as the API server does it.
//!
//! The API server asks the mutating webhook before it looks at the schema, so a webhook that knows the schema can tell
//! all faults at once. Nothing is refused here that the API server takes: fields that the schema does not know are no
//! fault, a field that is null is absent (the API server drops it), and what an update leaves as it was is forgiven.
//! `metadata` is the API server's own. The schema is the generated one; rules beyond it are in `validate`.

mod format;
mod mend;
mod node;
mod rules;
#[cfg(test)]
mod tests;
mod walk;

pub(in crate::api) use mend::{Mended, mend};
pub(in crate::api) use walk::is_whole;

use std::sync::OnceLock;

use serde_json::Value;

use crate::api::crd;
use crate::api::kind::Kind;
use crate::api::object::cause::{Causes, Path};
use crate::api::object::tree::Json;
use node::Tree;

const SPEC: Path<'static> = Path::root("spec");
const STATUS: Path<'static> = Path::root("status");

/// What the schema finds wrong with the spec of an object. With `old`, what the update brings.
pub fn conform_spec(kind: Kind, object: &Value, old: Option<&Value>) -> Causes {
    let mut causes = Causes::default();
    let tree = tree(kind);
    match part(object, "spec") {
        Some(spec) => {
            let old = old.and_then(|old| part(old, "spec"));
            tree.spec.check(&mut causes, &SPEC, spec, old);
        }
        None if tree.needs_spec => tree.spec.check_missing(&mut causes, &SPEC),
        None => {}
    }
    causes
}

/// Whether the schema finds nothing wrong with a new spec.
pub fn conforms(kind: Kind, spec: &impl Json) -> bool {
    let mut causes = Causes::default();
    tree(kind).spec.check(&mut causes, &SPEC, spec, None);
    causes.is_empty()
}

/// What the schema and its rules find wrong with the status of an object, and with how it changed from `old`.
///
/// The reasons are those of `status::check`, which says more; a fault that both find is one fault.
pub fn conform_status(kind: Kind, object: &Value, old: Option<&Value>) -> Causes {
    let mut causes = Causes::default();
    let tree = tree(kind);
    let before = old.and_then(|old| part(old, "status"));
    if let Some(status) = part(object, "status") {
        tree.status.check(&mut causes, &STATUS, status, before);
    }
    if old.is_some() {
        let now = part(object, "status");
        for rule in &tree.rules {
            rules::check_change(*rule, &mut causes, &STATUS, before, now);
        }
    }
    causes
}

/// A part of an object; null counts as absent.
fn part<'v>(object: &'v Value, name: &str) -> Option<&'v Value> {
    object.get(name).filter(|part| !part.is_null())
}

/// The schema of a kind, read once.
fn tree(kind: Kind) -> &'static Tree {
    static TREES: [OnceLock<Tree>; Kind::ALL.len()] = [const { OnceLock::new() }; Kind::ALL.len()];
    TREES[kind as usize].get_or_init(|| Tree::of(crd::definition(kind)))
}
