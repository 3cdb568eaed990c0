//! A schema of `crds/` as a list of field paths, in the notation of `upstream-fields.tsv`.

use agents::api::kind::Kind;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use support::fixtures;

/// What a schema says about one field.
#[derive(Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) type_: String,
    pub(crate) format: String,
    pub(crate) required: bool,
    pub(crate) values: BTreeSet<String>,
    pub(crate) limits: BTreeSet<String>,
}

/// The schema of a kind as it is in `crds/`.
pub(super) fn of(kind: Kind) -> Value {
    fixtures::definition(kind).unwrap()["spec"]["versions"][0]["schema"]["openAPIV3Schema"].take()
}

/// Every field that the schema names, by path: `spec.steps[].name`.
pub(super) fn fields(schema: &Value) -> BTreeMap<String, Field> {
    let mut found = BTreeMap::new();
    collect(schema, "", &mut found);
    found
}

fn collect(schema: &Value, path: &str, found: &mut BTreeMap<String, Field>) {
    let required = list(&schema["required"]);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        found.insert(path.clone(), field(property, required.contains(name)));
        collect(property, &path, found);
        let (items, path) = (&property["items"], format!("{path}[]"));
        if items.is_object() {
            found.insert(path.clone(), field(items, false));
            collect(items, &path, found);
        }
    }
}

fn field(schema: &Value, required: bool) -> Field {
    let int_or_string = schema["x-kubernetes-int-or-string"] == Value::Bool(true);
    Field {
        type_: if int_or_string {
            "int-or-string".to_owned()
        } else {
            text(&schema["type"])
        },
        format: text(&schema["format"]),
        required,
        values: list(&schema["enum"]),
        limits: limits(schema),
    }
}

fn limits(schema: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for name in [
        "minLength",
        "maxLength",
        "pattern",
        "minimum",
        "maximum",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "default",
    ] {
        if !schema[name].is_null() {
            found.insert(format!("{name}={}", text(&schema[name])));
        }
    }
    for rule in schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
    {
        found.insert(format!("cel={}", text(&rule["rule"])));
    }
    if schema["x-kubernetes-preserve-unknown-fields"] == Value::Bool(true) {
        found.insert("preserve-unknown".to_owned());
    }
    let values = &schema["additionalProperties"];
    if values.is_object() {
        let type_ = values["type"].as_str().unwrap_or("any");
        found.insert(format!("map-of={type_}"));
    }
    found
}

fn list(value: &Value) -> BTreeSet<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}
