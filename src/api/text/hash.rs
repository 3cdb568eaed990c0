//! Hashes by which people and programs see whether two runs do the same.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::api::kinds::AgentRunSpec;

/// What counts: what a run does, with whose help, and by which means. Values that only fill it in are not here.
const FIELDS: [&str; 10] = [
    "agentRef",
    "implementation",
    "implementationSpecRef",
    "memoryRef",
    "runtime",
    "secrets",
    "systemPrompt",
    "systemPromptRef",
    "vcsRef",
    "workflow",
];

/// SHA-256 of what a run does, in hex. Neither the order of fields nor that of secrets matters.
pub fn spec_hash(spec: &AgentRunSpec) -> String {
    let mut given = serde_json::to_value(spec).unwrap_or_default();
    let secrets = spec.secrets.iter().flatten().map(|name| name.trim());
    let mut secrets: Vec<&str> = secrets.filter(|name| !name.is_empty()).collect();
    secrets.sort_unstable();
    given["secrets"] = Value::from(secrets);
    let mut text = String::new();
    for field in FIELDS {
        text.push_str(&Value::from(field).to_string());
        text.push(':');
        write(given.get(field).unwrap_or(&Value::Null), &mut text);
        text.push(',');
    }
    text_hash(&format!("{{{}}}", text.trim_end_matches(',')))
}

/// SHA-256 of a text, in hex.
pub fn text_hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// SHA-256 of any JSON, in hex. The order of fields does not matter.
pub fn json_hash(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text_hash(&text)
}

/// JSON without blanks, with the fields of every object in the order of their names.
fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            let parts = fields.into_iter().map(|(name, value)| {
                let mut part = format!("{}:", Value::from(name.as_str()));
                write(value, &mut part);
                part
            });
            out.push_str(&format!("{{{}}}", parts.collect::<Vec<_>>().join(",")));
        }
        Value::Array(list) => {
            let parts = list.iter().map(|value| {
                let mut part = String::new();
                write(value, &mut part);
                part
            });
            out.push_str(&format!("[{}]", parts.collect::<Vec<_>>().join(",")));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hash(more: Value) -> String {
        let mut spec = json!({
            "agentRef": {"name": "coder"}, "runtime": {"type": "job", "config": {"b": 1, "a": 2}}, "secrets": ["x", "y"],
        });
        let more = more.as_object().unwrap().clone();
        spec.as_object_mut().unwrap().extend(more);
        spec_hash(&serde_json::from_value(spec).unwrap())
    }

    #[test]
    fn the_hash_is_that_of_the_sorted_fields() {
        let text = concat!(
            r#"{"agentRef":{"name":"coder"},"implementation":null,"implementationSpecRef":null,"memoryRef":null,"#,
            r#""runtime":{"config":{"a":2,"b":1},"type":"job"},"secrets":["x","y"],"systemPrompt":null,"#,
            r#""systemPromptRef":null,"vcsRef":null,"workflow":null}"#
        );
        assert_eq!(hash(json!({})), text_hash(text));
        assert_eq!(
            text_hash("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn what_a_run_does_counts_and_nothing_else() {
        let plain = hash(json!({}));
        for (row, more, same) in [
            (
                "the order of secrets",
                json!({"secrets": [" y ", "x", ""]}),
                true,
            ),
            ("another secret", json!({"secrets": ["x"]}), false),
            ("parameters", json!({"parameters": {"a": "b"}}), true),
            ("cancel", json!({"cancel": true}), true),
            (
                "another agent",
                json!({"agentRef": {"name": "other"}}),
                false,
            ),
            (
                "another runtime",
                json!({"runtime": {"type": "custom"}}),
                false,
            ),
            (
                "steps",
                json!({"workflow": {"steps": [{"name": "a"}]}}),
                false,
            ),
            ("a prompt", json!({"systemPrompt": "Be kind."}), false),
        ] {
            assert_eq!(hash(more) == plain, same, "{row}");
        }
    }
}
