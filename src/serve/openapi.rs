//! The description of the API, from the table of operations and the types of their bodies. Pure.

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::operation::{ALL, Access, Gives, Operation, PROBLEM, Parameter, Sort};

/// The document.
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    let problem = PROBLEM(&mut generator).to_value();
    for operation in ALL {
        let mut told = told(operation);
        told["parameters"] = json!(parameters(operation));
        if let Some(shape) = operation.takes {
            let schema = shape(&mut generator).to_value();
            told["requestBody"] = json!({
                "required": true, "content": {"application/json": {"schema": schema}},
            });
        }
        let content = match operation.gives {
            Gives::Json(shape) => json!({"application/json": {"schema": shape(&mut generator)}}),
            Gives::Any => json!({"application/json": {"schema": {"type": "object"}}}),
            Gives::Events => json!({"text/event-stream": {"schema": {"type": "string"}}}),
            Gives::Text => json!({"text/plain": {"schema": {"type": "string"}}}),
        };
        told["responses"] = responses(operation, &content, &problem);
        let path = paths.entry(operation.path).or_default();
        path.insert(operation.method.word().to_owned(), told);
    }
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "agents",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The API of the control plane. Tokens are those of the cluster; each operation needs the right that it names, in the namespace that it is about.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn told(operation: &Operation) -> Value {
    let (security, right) = match operation.access {
        Access::Open => (json!([]), "Open to anyone.".to_owned()),
        Access::Signed => {
            let right = "Needs no token but the signature of a source.";
            (json!([]), right.to_owned())
        }
        Access::Known => (json!([{"token": []}]), "Needs a token.".to_owned()),
        Access::There(right) => {
            let right = format!("Needs the right to {} {}.", right.verb, right.what());
            (json!([{"token": []}]), right)
        }
        Access::Everywhere(right) => {
            let right = format!(
                "Needs the right to {} {} wherever the control plane works.",
                right.verb,
                right.what()
            );
            (json!([{"token": []}]), right)
        }
        Access::AnyKind => {
            let right = "Needs the right to watch at least one kind; others are left out.";
            (json!([{"token": []}]), right.to_owned())
        }
    };
    json!({
        "operationId": operation.id.as_str(),
        "summary": operation.about,
        "description": right,
        "security": security,
    })
}

fn parameters(operation: &Operation) -> Vec<Value> {
    let in_path = operation.path.split('/').filter_map(|part| {
        let name = part.strip_prefix('{')?.strip_suffix('}')?;
        Some(json!({
            "name": name, "in": "path", "required": true,
            "schema": {"type": "string", "minLength": 1, "maxLength": if name == "name" { 253 } else { 63 }},
        }))
    });
    let mut all: Vec<_> = in_path.collect();
    all.extend(operation.query.iter().map(in_query));
    if operation.id == super::operation::Id::SubmitRun {
        all.push(json!({
            "name": "Idempotency-Key", "in": "header", "required": false,
            "description": "The same request with the same key is carried out once.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 256},
        }));
    }
    all
}

fn in_query(parameter: &Parameter) -> Value {
    let schema = match parameter.sort {
        Sort::Text | Sort::Namespace { .. } => json!({"type": "string"}),
        Sort::Number(most) => json!({"type": "integer", "minimum": 1, "maximum": most}),
        Sort::Switch => json!({"type": "boolean"}),
        Sort::Time(most) => {
            json!({"type": "string", "pattern": "^[0-9]+(ms|s|m|h)?$", "description": format!("at most {most}s")})
        }
    };
    json!({
        "name": parameter.name, "in": "query", "required": false,
        "description": parameter.about, "schema": schema,
    })
}

fn responses(operation: &Operation, content: &Value, problem: &Value) -> Value {
    let mut all = Map::new();
    let done = operation.status.to_string();
    all.insert(
        done,
        json!({"description": "It was done.", "content": content}),
    );
    let refused = json!({
        "description": "It was not done; the body says why, and what to do.",
        "content": {"application/json": {"schema": problem}},
    });
    match operation.access {
        Access::Open => {
            all.insert(
                "503".to_owned(),
                json!({"description": "Not ready.", "content": content}),
            );
        }
        Access::Signed
        | Access::Known
        | Access::There(_)
        | Access::Everywhere(_)
        | Access::AnyKind => {
            if operation.access == Access::Signed {
                let nothing =
                    json!({"description": "There was nothing to do.", "content": content});
                all.insert("200".to_owned(), nothing);
            }
            all.insert("4XX".to_owned(), refused.clone());
            all.insert("5XX".to_owned(), refused);
        }
    }
    all.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_leads_somewhere_and_every_error_is_described() {
        let document = document();
        let text = document.to_string();
        let mut found = 0;
        for part in text.split("\"$ref\":\"#").skip(1) {
            let place = part.split('"').next().unwrap();
            assert!(document.pointer(place).is_some(), "{place}");
            found += 1;
        }
        assert!(found > 10, "{found} references");
        for (path, operations) in document["paths"].as_object().unwrap() {
            for (method, operation) in operations.as_object().unwrap() {
                let is_health = ["/livez", "/readyz"].contains(&path.as_str());
                assert_ne!(
                    operation["responses"].get("4XX").is_some(),
                    is_health,
                    "{method} {path}"
                );
            }
        }
    }
}
