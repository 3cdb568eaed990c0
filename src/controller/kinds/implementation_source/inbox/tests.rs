use serde_json::{Value, json};

use super::super::plan::plan;
use super::*;
use crate::api::policy::Policy;

const NOW: &str = "2026-01-01T12:00:00Z";

fn source(enabled: bool, last: Value) -> Arc<ImplementationSource> {
    let source = json!({
        "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "ImplementationSource",
        "metadata": {"name": "s", "namespace": "a", "uid": "u", "generation": 1},
        "spec": {"provider": "github", "auth": {"secretRef": {"name": "hook"}}, "scope": {"repository": "o/r"},
            "webhook": {"enabled": enabled}},
        "status": {"lastWebhook": last, "conditions": []},
    });
    Arc::new(serde_json::from_value(source).unwrap())
}

fn entry(key: &str, at: &str) -> Arc<ConfigMap> {
    let name = Delivery::name("u", key);
    let metadata = json!({"name": name, "namespace": "a", "uid": name, "creationTimestamp": at});
    Arc::new(serde_json::from_value(json!({"metadata": metadata})).unwrap())
}

fn last(key: &str, status: &str, attempts: i64) -> Value {
    json!({"idempotencyKey": key, "status": status, "attempts": attempts, "processedAt": NOW})
}

fn worked(key: &str, status: &str, attempts: i64) -> Option<Arc<Worked>> {
    Some(Arc::new(Worked {
        entry: Some(Delivery::name("u", key)),
        last: serde_json::from_value(last(key, status, attempts)).unwrap(),
    }))
}

fn brief(plan: &SourcePlan) -> String {
    let steps = plan.steps.iter().map(|step| match step {
        Step::Do(Action::Sync) => "sync".to_owned(),
        Step::Do(Action::Take(_)) => "take".to_owned(),
        Step::Do(Action::Drop(_)) => "drop".to_owned(),
        Step::Status(next) => {
            let last = next.status.last_webhook.as_ref();
            let word = last.and_then(|last| last.status.as_deref());
            format!("say {}", word.unwrap_or("nothing"))
        }
    });
    let steps: Vec<_> = steps.collect();
    let now: Timestamp = NOW.parse().unwrap();
    let next = match plan.next {
        Next::Wait => "wait".to_owned(),
        Next::At(at) => format!("in {} s", at.duration_since(now).as_secs()),
    };
    format!("{}; {next}", steps.join(", "))
}

#[test]
fn the_oldest_is_taken_told_and_dropped_and_what_fails_is_tried_again() {
    let none = || Value::Null;
    for (row, enabled, told, inbox, worked, expected) in [
        (
            "nothing waits",
            true,
            none(),
            vec![],
            None,
            "say nothing; wait",
        ),
        ("one waits", true, none(), vec!["k"], None, "take; in 5 s"),
        (
            "another was worked on",
            true,
            last("j", SYNCED, 1),
            vec!["k"],
            worked("j", SYNCED, 1),
            "take; in 5 s",
        ),
        (
            "it was taken over",
            true,
            none(),
            vec!["k"],
            worked("k", SYNCED, 1),
            "say synced, drop; wait",
        ),
        (
            "an earlier process told that",
            true,
            last("k", SYNCED, 1),
            vec!["k"],
            None,
            "say synced, drop; wait",
        ),
        (
            "it failed the second time",
            true,
            none(),
            vec!["k"],
            worked("k", RETRYING, 2),
            "say retrying; in 2 s",
        ),
        (
            "an earlier process failed the third time",
            true,
            last("k", RETRYING, 3),
            vec!["k"],
            None,
            "say retrying; in 4 s",
        ),
        (
            "it failed very often",
            true,
            none(),
            vec!["k"],
            worked("k", RETRYING, 40),
            "say retrying; in 60 s",
        ),
        (
            "it was given up",
            true,
            none(),
            vec!["k"],
            worked("k", FAILED, 5),
            "say failed, drop; wait",
        ),
        (
            "nobody wants it",
            false,
            none(),
            vec!["k"],
            None,
            "say nothing, drop; wait",
        ),
    ] {
        let seen = Observed {
            now: NOW.parse().unwrap(),
            source: Some(source(enabled, told)),
            policy: Arc::new(Policy::default()),
            missing: Vec::new(),
            trail: None,
            inbox: inbox.into_iter().map(|key| entry(key, NOW)).collect(),
            worked,
            pace: Settings {
                base: Duration::from_secs(1),
                most: Duration::from_secs(60),
                attempts: 5,
            },
        };
        assert_eq!(brief(&plan(&seen)), expected, "{row}");
    }
}

#[test]
fn what_came_first_is_first() {
    let late = entry("a", "2026-01-01T12:00:02Z");
    let early = entry("b", "2026-01-01T12:00:01Z");
    let order = sorted(vec![Arc::clone(&late), Arc::clone(&early)]);
    assert_eq!(order, [early, late]);
}

#[test]
fn older_news_change_nothing() {
    let there = |version: &str| -> ImplementationSpec {
        serde_json::from_value(json!({
            "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "ImplementationSpec",
            "metadata": {"name": "x", "annotations": {annotation::SOURCE_VERSION: version}},
            "spec": {"text": "t"},
        }))
        .unwrap()
    };
    let issue = Issue {
        version: NOW.to_owned(),
        ..Issue::of_github("o/r", 1)
    };
    for (version, expected) in [
        ("2026-01-01T12:00:01Z", true),
        (NOW, false),
        ("2026-01-01T13:00:00+01:00", false),
        ("2026-01-01T11:59:59Z", false),
        ("no time", false),
    ] {
        assert_eq!(is_newer(&there(version), &issue), expected, "{version}");
    }
}
