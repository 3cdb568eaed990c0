//! A recording: one AdmissionReview per line, as the API server would send it, without what looks like a secret.

use serde_json::Value;

use crate::api::text::sanitise::{MASK, for_log};

/// One line.
pub(crate) fn line(mut review: Value) -> String {
    redact(&mut review);
    format!("{review}\n")
}

/// Masks each text that holds something that looks like a secret. Other texts stay as they are, so that they are judged
/// as they were.
fn redact(value: &mut Value) {
    match value {
        Value::String(text) => {
            let clean = for_log(text);
            if clean.contains(MASK) {
                *text = clean;
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(redact),
        Value::Object(fields) => fields.values_mut().for_each(redact),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_secret_is_masked_and_nothing_else_changes() {
        let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
        let review = json!({"request": {"object": {"spec": {
            "text": "two\nlines", "env": [{"name": "A", "value": format!("token={token}")}], "retries": 3,
        }}}});
        let line = line(review.clone());
        assert!(!line.contains(&token) && line.contains(MASK), "{line}");
        let read: Value = serde_json::from_str(line.trim_end()).unwrap();
        let spec = |review: &Value| review["request"]["object"]["spec"].clone();
        assert_eq!(spec(&read)["text"], spec(&review)["text"]);
        assert_eq!(spec(&read)["retries"], 3);
    }
}
