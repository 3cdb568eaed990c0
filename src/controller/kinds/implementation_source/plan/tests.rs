use serde_json::{Value, json};

use super::*;
use crate::api::condition::{ConditionStatus, Observation};

const NOW: &str = "2026-01-01T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn source(more: Value) -> Arc<ImplementationSource> {
    let mut source = json!({
        "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "ImplementationSource",
        "metadata": {"name": "s", "namespace": "a", "uid": "u", "generation": 1},
        "spec": {"provider": "github", "auth": {"secretRef": {"name": "hook"}}, "scope": {"repository": "o/r"}},
    });
    let spec = source["spec"].as_object_mut().unwrap();
    spec.extend(more.as_object().unwrap().clone());
    Arc::new(serde_json::from_value(source).unwrap())
}

fn trail(generation: i64, due: &str, result: Result<Tally, Trouble>) -> Option<Arc<Trail>> {
    Some(Arc::new(Trail {
        at: now(),
        generation: Some(generation),
        due: due.parse().unwrap(),
        mark: None,
        result,
    }))
}

fn brief(plan: &SourcePlan) -> String {
    let steps = plan.steps.iter().map(|step| match step {
        Step::Do(Action::Sync) => "sync".to_owned(),
        Step::Do(Action::Take(_) | Action::Drop(_)) => "a delivery".to_owned(),
        Step::Status(next) => {
            let holds = |entry: &&Observation| entry.status == ConditionStatus::True;
            let observed = next.observed.iter().filter(holds);
            let observed: Vec<_> = observed.map(|entry| entry.type_.as_str()).collect();
            format!("{} {}", next.reason.as_str(), observed.join(" "))
        }
    });
    let steps: Vec<_> = steps.collect();
    let next = match plan.next {
        Next::Wait => "wait".to_owned(),
        Next::At(at) => format!("in {} s", at.duration_since(now()).as_secs()),
    };
    format!("{}; {next}", steps.join(", "))
}

#[test]
fn a_source_is_judged_then_read_then_told() {
    let webhook = |enabled: bool| json!({"webhook": {"enabled": enabled}});
    let sync = || json!({"sync": {"enabled": true}});
    let later = "2026-01-01T12:05:00Z";
    let tally = Tally {
        issues: 2,
        ..Tally::default()
    };
    let taken = Tally { taken: 1, ..tally };
    let away = || Trouble::Unreachable("it answered 500".to_owned());
    let denied = || Trouble::Denied("no".to_owned());
    let secret = || vec![Lack::secret("hook")];
    let entry = || vec![Lack::secret_key("hook", "token")];
    for (row, more, missing, trail, expected) in [
        (
            "no repository",
            json!({"scope": {}}),
            vec![],
            None,
            "MissingScope InvalidSpec; wait",
        ),
        (
            "a base that is no address",
            json!({"sync": {"apiBaseUrl": "x"}}),
            vec![],
            None,
            "InvalidUrl InvalidSpec; wait",
        ),
        (
            "no Secret",
            webhook(true),
            secret(),
            None,
            "SecretNotFound Blocked Progressing; in 5 s",
        ),
        (
            "no entry",
            webhook(true),
            entry(),
            None,
            "SecretKeyMissing Blocked Progressing; in 5 s",
        ),
        (
            "calls",
            webhook(true),
            vec![],
            None,
            "WebhookReady Ready; wait",
        ),
        (
            "nothing",
            webhook(false),
            vec![],
            None,
            "WebhookDisabled ; wait",
        ),
        ("never read", sync(), vec![], None, "sync; in 5 s"),
        (
            "another spec was read",
            sync(),
            vec![],
            trail(0, later, Ok(tally)),
            "sync; in 5 s",
        ),
        (
            "due",
            sync(),
            vec![],
            trail(1, NOW, Ok(tally)),
            "sync; in 5 s",
        ),
        (
            "read",
            sync(),
            vec![],
            trail(1, later, Ok(tally)),
            "Synced Ready; in 300 s",
        ),
        (
            "names of others",
            sync(),
            vec![],
            trail(1, later, Ok(taken)),
            "Synced Ready Warning; in 300 s",
        ),
        (
            "away",
            sync(),
            vec![],
            trail(1, later, Err(away())),
            "SyncFailed Unreachable; in 300 s",
        ),
        (
            "denied",
            sync(),
            vec![],
            trail(1, later, Err(denied())),
            "EgressDenied Unreachable; in 300 s",
        ),
    ] {
        let seen = Observed {
            now: now(),
            source: Some(source(more)),
            policy: Arc::default(),
            missing,
            trail,
            inbox: vec![],
            worked: None,
            pace: Settings::default(),
        };
        assert_eq!(brief(&plan(&seen)), expected, "{row}");
    }
}

#[test]
fn a_tracker_is_not_read_with_a_secret_that_the_policy_blocks() {
    let policy = json!({"blockedSecrets": ["root"]});
    let policy: Arc<Policy> = Arc::new(serde_json::from_value(policy).unwrap());
    for (row, secret, expected) in [
        ("blocked", "root", "SecretBlocked InvalidSpec; in 60 s"),
        ("another", "token", "sync; in 5 s"),
    ] {
        let sync = json!({"sync": {"enabled": true, "secretRef": {"name": secret}}});
        let seen = Observed {
            now: now(),
            source: Some(source(sync)),
            policy: Arc::clone(&policy),
            missing: vec![],
            trail: None,
            inbox: vec![],
            worked: None,
            pace: Settings::default(),
        };
        assert_eq!(brief(&plan(&seen)), expected, "{row}");
    }
}

#[test]
fn the_time_of_taking_over_moves_only_when_something_was() {
    let synced_at = |written: usize| {
        let tally = Tally {
            issues: 1,
            written,
            ..Tally::default()
        };
        let source = source(json!({}));
        synced(&source, now(), &tally, now()).status.last_synced_at
    };
    assert_eq!(synced_at(0), None);
    assert_eq!(synced_at(1), Some(now()));
}
