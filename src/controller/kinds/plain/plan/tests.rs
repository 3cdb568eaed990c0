//! How objects stand, as tables: a line is an object with what was found, and how it then stands in words.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::api::condition::Moment;
use crate::api::kind::Kind;
use crate::api::kinds::{Agent, Budget, Memory, SignalDelivery, VersionControlProvider};
use crate::api::status::{Advance, Wanted, advance};
use crate::controller::driver::fault::{Class, Fault};
use crate::controller::driver::stand::failed;
use crate::controller::kinds::plain::look::Wrong;
use crate::events;

const NOW: &str = "2026-01-01T00:00:10Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn object<K: DeserializeOwned>(given: Value) -> K {
    let mut object = json!({
        "metadata": {"name": "x", "namespace": "here", "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z"},
    });
    let fields = object.as_object_mut().unwrap();
    fields.extend(given.as_object().unwrap().clone());
    serde_json::from_value(object).unwrap()
}

fn seen<K: Plain>(object: K, missing: Vec<Lack>) -> Observed<K> {
    Observed {
        object: Some(Arc::new(object)),
        missing,
        wants_look: false,
        look: None,
        around: Around {
            now: now(),
            last_delivery: None,
            deprecated: Default::default(),
            is_reached: false,
        },
    }
}

/// The status that would be stored.
fn written<K: Plain>(object: &K, standing: &Standing<K::Status>) -> Value {
    let wanted = Wanted {
        status: &standing.status,
        observed: &standing.observed,
        reason: standing.reason,
        message: &standing.message,
    };
    let at = Moment {
        generation: 2,
        now: now(),
    };
    match advance(K::KIND, object.stored(), &wanted, at).unwrap() {
        Advance::Write(status) => status,
        Advance::Unchanged => Value::Null,
    }
}

fn standing_of<K: Plain>(plan: Plan<Action, K::Status>) -> Standing<K::Status> {
    let Some(Step::Status(standing)) = plan.steps.into_iter().next() else {
        panic!("nothing is said");
    };
    *standing
}

/// All conditions that hold, with the reason of `Ready`.
fn words(status: &Value) -> String {
    let conditions = status["conditions"].as_array().unwrap();
    let mut hold: Vec<_> = conditions
        .iter()
        .filter(|entry| entry["status"] == "True")
        .map(|entry| entry["type"].as_str().unwrap())
        .collect();
    hold.sort_unstable();
    let ready = conditions.iter().find(|entry| entry["type"] == "Ready");
    let reason = ready.unwrap()["reason"].as_str().unwrap();
    let phase = status["phase"].as_str().unwrap_or("-");
    format!("{phase} {reason}: {}", hold.join(" "))
}

#[test]
fn each_way_to_stand_has_its_conditions() {
    let right = json!({"spec": {"providerRef": {"name": "p"}}});
    let wrong = json!({"spec": {"providerRef": {"name": ""}}});
    let provider = Lack::object(Kind::AgentProvider, "p");
    for (row, given, missing, expected) in [
        ("right", &right, vec![], "- ValidSpec: Ready"),
        (
            "incomplete",
            &right,
            vec![provider.clone()],
            "- MissingProvider: Blocked Progressing Reconciling",
        ),
        (
            "wrong, which goes before incomplete",
            &wrong,
            vec![provider],
            "- Required: Degraded InvalidSpec Stalled",
        ),
    ] {
        let agent: Agent = object(given.clone());
        let seen = seen(agent.clone(), missing);
        let status = written(&agent, &standing_of::<Agent>(plan(&seen)));
        assert_eq!(words(&status), expected, "{row}");
        assert_eq!(status["observedGeneration"], json!(2), "{row}");
    }
}

#[test]
fn what_is_missing_is_told_all_at_once_and_only_what_is_not_watched_is_polled() {
    let host: VersionControlProvider = object(json!({"spec": {
        "provider": "generic",
        "auth": {"method": "ssh", "ssh": {"privateKeySecretRef": {"name": "key"}}},
    }}));
    let both = vec![Lack::secret("key"), Lack::config_map("hosts")];
    let plan = plan(&seen(host, both));
    assert_eq!(plan.next, Next::At(now() + POLL));
    let standing = standing_of::<VersionControlProvider>(plan);
    assert_eq!(standing.notices.len(), 1);
    let told = &standing.notices[0];
    assert_eq!(told.reason, events::Reason::MissingSecret);
    assert_eq!(told.note, "Secret key, ConfigMap hosts do not exist yet");

    let delivery: SignalDelivery = object(json!({"spec": {"signalRef": {"name": "go"}}}));
    let missing = vec![Lack::object(Kind::Signal, "go")];
    let plan = super::plan(&seen(delivery, missing));
    assert_eq!(plan.next, Next::Wait, "the watch tells");
}

#[test]
fn an_object_that_stands_as_it_stood_is_not_written() {
    let host: VersionControlProvider = object(json!({"spec": {"provider": "github"}}));
    let first = written(
        &host,
        &standing_of::<VersionControlProvider>(plan(&seen(host.clone(), vec![]))),
    );
    assert_eq!(first["lastValidatedAt"], json!(NOW));
    let settled: VersionControlProvider =
        object(json!({"spec": {"provider": "github"}, "status": first}));
    let mut later = seen(settled.clone(), vec![]);
    later.around.now = now() + Duration::from_secs(3600);
    let again = standing_of::<VersionControlProvider>(plan(&later));
    assert_eq!(written(&settled, &again), Value::Null);

    later.missing.push(Lack::secret("s"));
    let lost = standing_of::<VersionControlProvider>(plan(&later));
    let found = lost.status.last_validated_at.map(|at| at.to_string());
    assert_eq!(
        found.as_deref(),
        Some("2026-01-01T01:00:10Z"),
        "something new was found"
    );
}

#[test]
fn a_fault_is_shown_until_the_next_pass_without_one() {
    let budget: Budget = object(json!({"status": {"phase": "Active"}}));
    let fault = Fault::new("look it up", Class::Retryable, "nobody answers");
    let shown = failed(&budget, &fault).unwrap();
    let status = written(&budget, &shown);
    assert_eq!(
        words(&status),
        "Active ReconcileFailed: Progressing Reconciling Warning"
    );
    let troubled: Budget = object(json!({ "status": status }));
    let next = standing_of::<Budget>(plan(&seen(troubled.clone(), vec![])));
    assert_eq!(words(&written(&troubled, &next)), "Active Active: Ready");
    let conflict = Fault::new("write", Class::Conflict, "someone was faster");
    assert!(failed(&budget, &conflict).is_none());
}

#[test]
fn what_is_going_or_gone_is_left_alone() {
    let going: Memory = object(json!({
        "metadata": {"name": "x", "deletionTimestamp": NOW},
        "spec": {"type": "redis", "connection": {"secretRef": {"name": "s"}}},
    }));
    assert_eq!(plan(&seen(going, vec![])), Plan::idle(Next::Wait));
    let gone = Observed::<Memory> {
        object: None,
        ..seen(
            object(json!({"spec": {"type": "redis", "connection": {"secretRef": {"name": "s"}}}})),
            vec![],
        )
    };
    assert_eq!(plan(&gone), Plan::idle(Next::Wait));
}

#[test]
fn what_lies_outside_is_looked_at_and_then_told() {
    let store = json!({"spec": {"type": "postgres", "connection": {"secretRef": {"name": "s"}}}});
    let memory: Memory = object(store);
    let due = now() + Duration::from_secs(60);
    let look = |generation: i64, due: Timestamp, found: Found| {
        let generation = Some(generation);
        Some(Arc::new(Look {
            generation,
            due,
            found,
        }))
    };
    let wrong = || Found::Wrong(Wrong::SignIn, "no".to_owned());
    let poll = Next::At(now() + POLL);
    for (row, wants_look, missing, look, expected, next) in [
        (
            "unwanted",
            false,
            vec![],
            None,
            "- SecretResolved: Ready",
            Next::Wait,
        ),
        ("never looked at", true, vec![], None, "look", poll),
        (
            "another spec",
            true,
            vec![],
            look(1, due, Found::Reached),
            "look",
            poll,
        ),
        (
            "long ago",
            true,
            vec![],
            look(2, now(), Found::Reached),
            "look",
            poll,
        ),
        (
            "there",
            true,
            vec![],
            look(2, due, Found::Reached),
            "- Connected: Ready",
            Next::At(due),
        ),
        (
            "not one that is looked at",
            true,
            vec![],
            look(2, due, Found::Untried),
            "- SecretResolved: Ready",
            Next::At(due),
        ),
        (
            "of no use",
            true,
            vec![],
            look(2, due, wrong()),
            "- AuthFailed: Degraded Stalled Unreachable",
            Next::At(due),
        ),
        (
            "without a Secret, which goes before",
            true,
            vec![Lack::secret("s")],
            look(2, due, wrong()),
            "- SecretNotFound: Blocked Progressing Reconciling",
            poll,
        ),
    ] {
        let seen = Observed {
            wants_look,
            look,
            ..seen(memory.clone(), missing)
        };
        let plan = plan(&seen);
        assert_eq!(plan.next, next, "{row}");
        let said = match &plan.steps[..] {
            [Step::Do(Action::Look)] => "look".to_owned(),
            _ => words(&written(&memory, &standing_of::<Memory>(plan))),
        };
        assert_eq!(said, expected, "{row}");
    }
}
