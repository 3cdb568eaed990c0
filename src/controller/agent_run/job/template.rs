//! `{{ a.b.c }}` in arguments and environment: a path through objects. What is not there is empty, what is no text is JSON.

use serde_json::Value;

/// The template with its places filled.
pub(in crate::controller) fn render(template: &str, scope: &Value) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((path, tail)) = after.split_once("}}") else {
            break;
        };
        out.push_str(before);
        out.push_str(&value(path.trim(), scope));
        rest = tail;
    }
    out.push_str(rest);
    out
}

fn value(path: &str, scope: &Value) -> String {
    let found = path
        .split('.')
        .try_fold(scope, |value, part| value.as_object()?.get(part));
    match found {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_filled_and_what_is_not_there_is_empty() {
        let scope =
            json!({"a": {"b": "text", "n": 7, "list": ["x"], "none": null}, "c": {"{{ a.b }}": 1}});
        for (template, expected) in [
            ("plain", "plain"),
            ("{{a.b}}", "text"),
            ("<{{ a.b }}> and {{ a.n }}", "<text> and 7"),
            ("{{ a }}", r#"{"b":"text","list":["x"],"n":7,"none":null}"#),
            ("{{ a.list }}{{ a.list.0 }}", r#"["x"]"#),
            ("{{ a.none }}{{ a.nothing }}{{ }}{{ a.b.c }}", ""),
            ("{{ open", "{{ open"),
            ("}} {{ a.b }} }}", "}} text }}"),
        ] {
            assert_eq!(render(template, &scope), expected, "{template}");
        }
    }
}
