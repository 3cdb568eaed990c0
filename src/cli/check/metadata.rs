//! Metadata that the API server would not even read, so that the webhook never sees it.

use super::document::Node;
use super::report::{Finding, Level};
use crate::api::object::cause::{FieldPath, Path, Reason};

/// Texts of the metadata that rules look at.
const TEXTS: [&str; 3] = ["name", "generateName", "namespace"];
/// Maps of texts.
const MAPS: [&str; 2] = ["labels", "annotations"];

/// What is no text and must be one.
pub(crate) fn faults(object: &Node) -> Vec<Finding> {
    let Some(metadata) = object.field("metadata") else {
        return Vec::new();
    };
    let root = Path::root("metadata");
    let mut found = Vec::new();
    let mut judge = |at: &Path<'_>, value: &Node| {
        if value.text().is_none() && !value.value().is_null() {
            let message = format!("{} is no text; put it in quotes", value.value());
            found.push(finding(object, at.into(), Reason::TypeMismatch, message));
        }
    };
    for name in TEXTS {
        if let Some(value) = metadata.field(name) {
            judge(&root.field(name), value);
        }
    }
    for map in MAPS {
        let at = root.field(map);
        for (key, value) in metadata.field(map).into_iter().flat_map(Node::fields) {
            judge(&at.key(key), value);
        }
    }
    found
}

/// Anything else that cannot be read.
pub(crate) fn malformed(object: &Node, why: &str) -> Finding {
    // The place is one of the review, which nobody has seen.
    let why = why.split(" at line ").next().unwrap_or_default();
    let at = FieldPath::from(&Path::root("metadata"));
    finding(object, at, Reason::Malformed, why.to_owned())
}

fn finding(object: &Node, field: FieldPath, reason: Reason, message: String) -> Finding {
    Finding {
        level: Level::Error,
        rule: "Subject",
        reason: reason.as_str(),
        place: object.find(&field),
        field: field.to_string(),
        message,
    }
}
