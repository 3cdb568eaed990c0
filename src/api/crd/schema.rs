//! Schemas that a derive cannot give: free objects, numbers or text, and the two shapes of a condition.
//!
//! Only what one field looks like is here; what holds for a whole CRD is in `crd`.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;

/// An object whose fields nobody declares; kept as it came.
pub type FreeObject = serde_json::Map<String, Value>;

/// A number or a text, as YAML writers treat identifiers that consist of digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum IntOrString {
    /// Written without quotes.
    Int(i64),
    /// Written with quotes.
    String(String),
}

impl JsonSchema for IntOrString {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "IntOrString".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "x-kubernetes-int-or-string": true })
    }
}

/// An object with fields that the schema does not know.
pub fn free_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// A map from names to values of any type.
pub fn any_map(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": { "x-kubernetes-preserve-unknown-fields": true },
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// There is something to do, in CEL.
pub(in crate::api) const SOME_WORK: &str =
    "has(self.implementationSpecRef) || has(self.implementation)";

/// The system prompt is given once, in CEL.
pub(in crate::api) const ONE_SYSTEM_PROMPT: &str =
    "!(has(self.systemPrompt) && has(self.systemPromptRef))";

/// Rule of a spec: there is something to do.
pub fn some_work() -> Value {
    json!({
        "rule": SOME_WORK,
        "message": "set implementationSpecRef or implementation: a run needs something to do",
    })
}

/// Rule of a spec: the system prompt is text or a reference, never both.
pub fn one_system_prompt() -> Value {
    json!({
        "rule": ONE_SYSTEM_PROMPT,
        "message": "set systemPrompt or systemPromptRef, not both",
    })
}

/// Conditions of the seven core kinds: the constraints of the Kubernetes condition type.
pub fn strict_conditions(_: &mut SchemaGenerator) -> Schema {
    condition_list(json_schema!({
        "type": "object",
        "description": "One observation about the object.",
        "required": ["lastTransitionTime", "message", "reason", "status", "type"],
        "properties": {
            "type": {
                "type": "string",
                "description": "What is observed, for example Ready.",
                "maxLength": 316,
                "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
            },
            "status": {
                "type": "string",
                "description": "Whether it holds.",
                "enum": ["True", "False", "Unknown"],
            },
            "reason": {
                "type": "string",
                "description": "One CamelCase word that a program can match on.",
                "minLength": 1,
                "maxLength": 1024,
                "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            },
            "message": {
                "type": "string",
                "description": "A sentence for people; may be empty.",
                "maxLength": 32768,
            },
            "lastTransitionTime": {
                "type": "string",
                "description": "When the status last flipped.",
                "format": "date-time",
            },
            "observedGeneration": {
                "type": "integer",
                "description": "Generation of the spec that the observation is about.",
                "format": "int64",
                "minimum": 0,
            },
        },
    }))
}

/// Conditions of the twelve other kinds: only type and status are required, texts are free.
pub fn loose_conditions(_: &mut SchemaGenerator) -> Schema {
    condition_list(json_schema!({
        "type": "object",
        "description": "One observation about the object.",
        "required": ["status", "type"],
        "properties": {
            "type": { "type": "string", "description": "What is observed, for example Ready." },
            "status": { "type": "string", "description": "True, False or Unknown." },
            "reason": { "type": "string", "description": "One CamelCase word that a program can match on." },
            "message": { "type": "string", "description": "A sentence for people." },
            "lastTransitionTime": { "type": "string", "description": "When the status last flipped." },
            "observedGeneration": {
                "type": "integer",
                "description": "Generation of the spec that the observation is about. Addition of this project.",
                "format": "int64",
            },
        },
    }))
}

/// One condition per type, so that two writers can each apply their own.
fn condition_list(item: Schema) -> Schema {
    json_schema!({
        "type": "array",
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}
