//! What of an object may leave: no value that can be a secret, and nothing that only the API server needs. Pure.

use kube::api::DynamicObject;
use serde_json::Value;

/// What stands where a value was.
pub(in crate::serve) const WITHHELD: &str = "(withheld)";

/// Annotations that hold a whole object once more, values included.
const COPIES: [&str; 1] = ["kubectl.kubernetes.io/last-applied-configuration"];

/// Fields whose entries are environment variables: a list with names and values, or a map.
const ENVIRONMENTS: [&str; 2] = ["env", "envTemplate"];

/// Ends of names under which a text is a secret, in lower case and without separators.
const SECRET: [&str; 8] = [
    "password",
    "passwd",
    "token",
    "secret",
    "apikey",
    "privatekey",
    "credentials",
    "authorization",
];

/// The object as anyone may see it who may read it.
pub(in crate::serve) fn shown(mut object: DynamicObject) -> Value {
    object.metadata.managed_fields = None;
    if let Some(annotations) = &mut object.metadata.annotations {
        annotations.retain(|name, _| !COPIES.contains(&name.as_str()));
    }
    withhold(&mut object.data);
    // What was read as JSON can be written as JSON.
    serde_json::to_value(object).unwrap_or_default()
}

/// Takes the values out that can be secret, however deep.
fn withhold(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if ENVIRONMENTS.contains(&name.as_str()) {
                    withhold_environment(value);
                } else if value.is_string() && is_secret(name) {
                    *value = WITHHELD.into();
                } else {
                    withhold(value);
                }
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(withhold),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn withhold_environment(value: &mut Value) {
    match value {
        Value::Array(entries) => {
            for entry in entries {
                match entry.get_mut("value") {
                    Some(value) => *value = WITHHELD.into(),
                    None => withhold(entry),
                }
            }
        }
        Value::Object(fields) => {
            for value in fields.values_mut() {
                *value = WITHHELD.into();
            }
        }
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) | Value::String(_) => *value = WITHHELD.into(),
    }
}

fn is_secret(name: &str) -> bool {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let name = name.to_ascii_lowercase();
    SECRET.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn seen(spec: Value) -> Value {
        let object = json!({
            "apiVersion": "v1", "kind": "Any",
            "metadata": {
                "name": "a",
                "managedFields": [{"manager": "x"}],
                "annotations": {
                    "kubectl.kubernetes.io/last-applied-configuration": "{\"hunter2\"}",
                    "mine": "stays",
                },
            },
            "spec": spec,
        });
        shown(serde_json::from_value(object).unwrap())
    }

    #[test]
    fn values_of_environments_and_of_secret_names_are_withheld() {
        let found = seen(json!({
            "env": [{"name": "A", "value": "hunter2"}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
            "steps": [{"envTemplate": {"C": "hunter2"}, "env": "hunter2"}],
            "parameters": {"GITHUB_TOKEN": "hunter2", "branch": "main", "api-key": "hunter2"},
            "secretRef": {"name": "credentials-of-mine", "key": "password"},
            "secrets": ["one"],
        }));
        let text = found.to_string();
        assert!(!text.contains("hunter2"), "{text}");
        assert!(found["metadata"].get("managedFields").is_none());
        assert_eq!(found["metadata"]["annotations"], json!({"mine": "stays"}));
        assert_eq!(
            found["spec"]["env"][0],
            json!({"name": "A", "value": WITHHELD})
        );
        assert_eq!(
            found["spec"]["env"][1]["valueFrom"]["secretKeyRef"]["name"],
            "s"
        );
        assert_eq!(found["spec"]["parameters"]["branch"], "main");
        assert_eq!(found["spec"]["secretRef"]["name"], "credentials-of-mine");
        assert_eq!(found["spec"]["secrets"], json!(["one"]));
    }

    #[test]
    fn what_is_no_secret_stays_as_it_is() {
        let spec = json!({"agentRef": {"name": "coder"}, "implementation": {"inline": {"text": "Do\nit."}}});
        assert_eq!(seen(spec.clone())["spec"], spec);
    }
}
