//! Everything that is wrong with an object: the schema of its CRD and the rules beyond it, each fault once.
//!
//! The API server stops at the schema; people then mend faults in several rounds. Here they see all at once. What the
//! operator allows is `policy`, what a status may say is `status`.

use serde_json::Value;

use super::cause::Cause;
use super::kind::Kind;
use super::validate::validate;

/// All faults of an object. With `old`, those that the update brings.
pub fn examine(kind: Kind, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    validate(kind, object, old)
}
