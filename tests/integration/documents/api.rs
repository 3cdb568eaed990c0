//! The description of the API that is kept beside the words about it, and the table of operations in these.

use agents::serve::{grpc::schema, openapi};
use serde_json::Value;

use super::{bind, bind_parts};

#[test]
fn the_kept_description_of_the_api_is_that_of_the_sources() {
    let document = openapi::document();
    let text = serde_json::to_string_pretty(&document).unwrap();
    bind("docs/openapi.json", &format!("{text}\n"));
    bind("docs/agents.proto", &schema::text());
    bind_parts("docs/api.md", &[("operations", operations(&document))]);
}

/// One line for each operation.
fn operations(document: &Value) -> String {
    let mut text = "| Request | Answer | Right | What it does |\n|---|---|---|---|\n".to_owned();
    for (path, methods) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            let word = |name: &str| operation[name].as_str().unwrap_or_default();
            let right = word("description")
                .trim_start_matches("Needs the right to ")
                .trim_start_matches("Needs a ")
                .trim_start_matches("Needs no token but the ")
                .trim_end_matches('.');
            text += &format!(
                "| `{} {path}` | {} | {right} | {} |\n",
                method.to_uppercase(),
                answer(operation),
                word("summary"),
            );
        }
    }
    text
}

/// The name of what is answered.
fn answer(operation: &Value) -> String {
    let done = ["201", "202", "200"].into_iter().find_map(|code| {
        let content = operation["responses"].get(code)?["content"].as_object()?;
        let (kind, content) = content.iter().next()?;
        let name = content["schema"]["$ref"].as_str();
        let name = name.and_then(|name| name.rsplit('/').next());
        Some(match name {
            Some(name) => format!("{code} {name}"),
            None => format!("{code} {kind}"),
        })
    });
    done.unwrap_or_default()
}
