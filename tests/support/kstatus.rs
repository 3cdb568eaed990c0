//! How an object stands in the eyes of kstatus, which GitOps tools ask: its rules for kinds that it does not know.

use kube::core::DynamicObject;

/// What kstatus says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stand {
    /// It is as its spec asks.
    Current,
    /// It is on its way.
    InProgress,
    /// It cannot go on by itself.
    Failed,
    /// It is being deleted.
    Terminating,
}

/// How an object stands. The first rule that applies decides.
pub fn of(object: &DynamicObject) -> Stand {
    if object.metadata.deletion_timestamp.is_some() {
        return Stand::Terminating;
    }
    let status = &object.data["status"];
    let observed = status["observedGeneration"].as_i64();
    if observed.is_some() && observed != object.metadata.generation {
        return Stand::InProgress;
    }
    let condition = |type_: &str| {
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let mut found = conditions.filter(|condition| condition["type"] == type_);
        found
            .next()
            .and_then(|condition| condition["status"].as_str())
    };
    if condition("Reconciling") == Some("True") {
        return Stand::InProgress;
    }
    if condition("Stalled") == Some("True") {
        return Stand::Failed;
    }
    match condition("Ready") {
        Some("True") | None => Stand::Current,
        Some(_) => Stand::InProgress,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_first_rule_that_applies_decides() {
        let conditions = |list: &[(&str, &str)]| -> Value {
            let entry = |(type_, status): &(&str, &str)| json!({"type": type_, "status": status});
            list.iter().map(entry).collect()
        };
        for (row, observed, list, expected) in [
            ("ready", 2, vec![("Ready", "True")], Stand::Current),
            (
                "of an older spec",
                1,
                vec![("Ready", "True")],
                Stand::InProgress,
            ),
            (
                "on its way",
                2,
                vec![("Ready", "False"), ("Reconciling", "True")],
                Stand::InProgress,
            ),
            (
                "stuck",
                2,
                vec![("Ready", "False"), ("Stalled", "True")],
                Stand::Failed,
            ),
            ("not ready", 2, vec![("Ready", "False")], Stand::InProgress),
            ("unknown", 2, vec![("Ready", "Unknown")], Stand::InProgress),
            ("nothing said", 2, vec![], Stand::Current),
        ] {
            let object: DynamicObject = serde_json::from_value(json!({
                "apiVersion": "v1", "kind": "X", "metadata": {"name": "x", "generation": 2},
                "status": {"observedGeneration": observed, "conditions": conditions(&list)},
            }))
            .unwrap();
            assert_eq!(of(&object), expected, "{row}");
        }
    }
}
