//! What is particular about each kind, as tables.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::api::kinds::{Memory, VersionControlProvider};

const NOW: &str = "2026-01-03T00:00:00Z";

fn around() -> Around {
    Around {
        now: NOW.parse().unwrap(),
        last_delivery: None,
        deprecated: Default::default(),
        is_reached: false,
    }
}

fn object<K: DeserializeOwned>(spec: Value, status: Value) -> K {
    serde_json::from_value(json!({
        "metadata": {"name": "x", "namespace": "here", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": spec,
        "status": status,
    }))
    .unwrap()
}

/// Phase and reason, and whether it can be used.
fn words<S>(stand: &Stand<S>) -> String {
    let ready = if stand.is_ready { "ready" } else { "not ready" };
    let phase = stand.phase.unwrap_or("kept");
    format!("{phase} {} {ready}", stand.reason.as_str())
}

#[test]
fn a_decision_about_an_approval_is_kept_and_dated_once() {
    for (phase, given, expected) in [
        (json!(null), None, "Active Active ready"),
        (json!("Active"), None, "Active Active ready"),
        (json!("Pondering"), None, "Active Active ready"),
        (json!("Approved"), Some(true), "kept Active ready"),
        (json!("denied"), Some(false), "kept Active ready"),
    ] {
        let policy: ApprovalPolicy = object(json!({}), json!({ "phase": phase }));
        assert_eq!(decision(&policy), given, "{phase}");
        let stand = policy.stand(&around());
        assert_eq!(words(&stand), expected, "{phase}");
        let dated = stand.status.last_decision_at.is_some();
        assert_eq!(dated, given.is_some(), "{phase}");
    }
    let told = json!({"phase": "Denied", "lastDecisionAt": "2026-01-01T00:00:00Z", "conditions": [
        {"type": "Ready", "status": "True", "message": "decided: Denied"},
    ]});
    let policy: ApprovalPolicy = object(json!({}), told.clone());
    let stand = policy.stand(&around());
    assert_eq!(json!(stand.status.last_decision_at), told["lastDecisionAt"]);
}

#[test]
fn a_budget_is_used_up_when_anything_is() {
    let limits = json!({"limits": {"tokens": "10", "cpu": "1500m", "dollars": "2.50"}});
    for (row, used, expected) in [
        ("nothing", json!(null), ""),
        ("within", json!({"tokens": "10", "cpu": "1.5"}), ""),
        (
            "beyond",
            json!({"tokens": "11", "cpu": "1501m"}),
            "tokens, cpu",
        ),
        ("without a limit", json!({"gpu": "100"}), ""),
        ("unreadable", json!({"tokens": "many"}), ""),
    ] {
        let budget: Budget = object(limits.clone(), json!({ "used": used }));
        let stand = budget.stand(&around());
        let (stands, message) = match expected {
            "" => ("Active Active ready", String::new()),
            over => (
                "Exceeded Exceeded not ready",
                format!("more was used than allowed of: {over}"),
            ),
        };
        assert_eq!(words(&stand), stands, "{row}");
        assert_eq!(stand.message, message, "{row}");
        let tokens = stand.status.used.and_then(|used| used.tokens);
        assert_eq!(tokens.is_none(), row == "without a limit", "{row}");
    }
}

#[test]
fn a_delivery_is_dated_once_and_outlives_its_signal() {
    let spec = json!({"signalRef": {"name": "go"}});
    let new: SignalDelivery = object(spec.clone(), json!(null));
    assert_eq!(new.needs(), [Kind::Signal]);
    let stand = new.stand(&around());
    assert_eq!(words(&stand), "Delivered Delivered ready");
    assert_eq!(json!(stand.status.delivered_at), json!(NOW));
    let first = json!("2026-01-02T00:00:00Z");
    let old: SignalDelivery = object(spec, json!({ "deliveredAt": first }));
    assert_eq!(old.needs(), []);
    assert_eq!(json!(old.stand(&around()).status.delivered_at), first);
}

#[test]
fn a_signal_knows_its_last_delivery() {
    let earlier = "2026-01-01T00:00:00Z";
    for (row, known, seen, expected) in [
        ("never", None, None, None),
        ("the first", None, Some(NOW), Some(NOW)),
        ("a later one", Some(earlier), Some(NOW), Some(NOW)),
        ("the last is gone", Some(NOW), Some(earlier), Some(NOW)),
    ] {
        let signal: Signal = object(json!({}), json!({ "lastDeliveryAt": known }));
        let around = Around {
            last_delivery: seen.map(|time| time.parse().unwrap()),
            ..around()
        };
        let stand = signal.stand(&around);
        assert_eq!(
            json!(stand.status.last_delivery_at),
            json!(expected),
            "{row}"
        );
    }
}

#[test]
fn an_artifact_is_somewhere_and_its_days_are_counted() {
    for (row, spec, uri, expected, due) in [
        (
            "nowhere in particular",
            json!({}),
            "artifact://here/x",
            "Ready ValidSpec ready",
            None,
        ),
        (
            "in a store",
            json!({"storageRef": {"name": "s3"}, "lifecycle": {"ttlDays": 3}}),
            "storage://s3",
            "Ready ValidSpec ready",
            Some("2026-01-04T00:00:00Z"),
        ),
        (
            "kept for ever",
            json!({"lifecycle": {"ttlDays": 0}}),
            "artifact://here/x",
            "Ready ValidSpec ready",
            None,
        ),
        (
            "over",
            json!({"lifecycle": {"ttlDays": 2}}),
            "artifact://here/x",
            "Expired Expired not ready",
            None,
        ),
    ] {
        let artifact: Artifact = object(spec, json!({"checksum": "sha256:1"}));
        let stand = artifact.stand(&around());
        assert_eq!(words(&stand), expected, "{row}");
        assert_eq!(stand.status.uri.as_deref(), Some(uri), "{row}");
        assert_eq!(
            stand.due.map(|due| due.to_string()).as_deref(),
            due,
            "{row}"
        );
        assert_eq!(stand.status.checksum.as_deref(), Some("sha256:1"), "{row}");
    }
}

#[test]
fn a_host_needs_what_its_way_to_sign_in_needs() {
    let token = json!({"secretRef": {"name": "t"}});
    let old = json!({"secretRef": {"name": "t"}, "type": "pat"});
    let ssh =
        json!({"privateKeySecretRef": {"name": "k"}, "knownHostsConfigMapRef": {"name": "h"}});
    for (row, auth, secrets, config_maps, reason, warns) in [
        ("none", json!(null), vec![], vec![], "NoAuth", false),
        (
            "method none",
            json!({"method": "none"}),
            vec![],
            vec![],
            "NoAuth",
            false,
        ),
        (
            "token",
            json!({ "token": token }),
            vec![("t", "token")],
            vec![],
            "AuthReady",
            false,
        ),
        (
            "old token",
            json!({"method": "token", "token": old}),
            vec![("t", "token")],
            vec![],
            "AuthReady",
            true,
        ),
        (
            "ssh",
            json!({ "ssh": ssh }),
            vec![("k", "privateKey")],
            vec![("h", "known_hosts")],
            "AuthReady",
            false,
        ),
        (
            "app",
            json!({"method": "app", "token": old, "app": {
                "privateKeySecretRef": {"name": "a", "key": "pem"}, "appId": 1, "installationId": "2"}}),
            vec![("a", "pem")],
            vec![],
            "AuthReady",
            false,
        ),
    ] {
        let host: VersionControlProvider =
            object(json!({"provider": "github", "auth": auth}), json!(null));
        let owned = |entries: Vec<(&str, &str)>| -> Vec<(String, String)> {
            let entries = entries.into_iter();
            entries
                .map(|(name, key)| (name.to_owned(), key.to_owned()))
                .collect()
        };
        assert_eq!(host.secret_entries(), owned(secrets), "{row}");
        assert_eq!(host.config_map_entries(), owned(config_maps), "{row}");
        let stand = host.stand(&around());
        assert_eq!(stand.reason.as_str(), reason, "{row}");
        assert_eq!(stand.warning.is_some(), warns, "{row}");
    }
}

#[test]
fn the_rest_is_ready_when_it_is_right() {
    let memory: Memory = object(
        json!({"type": "redis", "connection": {"secretRef": {"name": "s"}}}),
        json!(null),
    );
    assert_eq!(memory.secrets(), ["s"]);
    assert_eq!(
        words(&memory.stand(&around())),
        "Ready SecretResolved ready"
    );
    let binding: SecretBinding = object(json!({}), json!(null));
    assert_eq!(words(&binding.stand(&around())), "Ready ValidSpec ready");
}

#[test]
fn an_approval_is_decided_by_someone_or_by_a_default_that_asks_nobody() {
    for (spec, phase, expected) in [
        (json!({}), "", None),
        (
            json!({"mode": "manual", "defaultDecision": "allow"}),
            "",
            None,
        ),
        (json!({"defaultDecision": "deny"}), "", None),
        (json!({"mode": "auto"}), "", None),
        (
            json!({"mode": "auto", "defaultDecision": "perhaps"}),
            "",
            None,
        ),
        (
            json!({"mode": "Automatic", "defaultDecision": "Allow"}),
            "Active",
            Some(true),
        ),
        (
            json!({"mode": "auto", "defaultDecision": "deny"}),
            "Active",
            Some(false),
        ),
        (
            json!({"mode": "auto", "defaultDecision": "deny"}),
            "Approved",
            Some(true),
        ),
        (json!({"mode": "manual"}), "Rejected", Some(false)),
    ] {
        let policy: ApprovalPolicy = serde_json::from_value(json!({
            "metadata": {"name": "x"}, "spec": spec, "status": {"phase": phase},
        }))
        .unwrap();
        assert_eq!(decision(&policy), expected, "{spec} {phase}");
    }
}

#[test]
fn a_budget_is_spent_by_its_phase_or_by_what_was_used() {
    for (limits, used, phase, expected) in [
        (json!({"tokens": "10"}), json!({}), "Active", None),
        (
            json!({"tokens": "10"}),
            json!({"tokens": "10"}),
            "Active",
            None,
        ),
        (
            json!({"tokens": "10", "cpu": "1"}),
            json!({"tokens": "11", "cpu": "1100m"}),
            "Active",
            Some("more was used of Budget x than allowed: tokens, cpu"),
        ),
        (json!({}), json!({}), "denied", Some("Budget x is denied")),
        (json!({}), json!({}), "", None),
    ] {
        let budget: Budget = serde_json::from_value(json!({
            "metadata": {"name": "x"}, "spec": {"limits": limits}, "status": {"phase": phase, "used": used},
        }))
        .unwrap();
        assert_eq!(
            spent(&budget).as_deref(),
            expected,
            "{limits} {used} {phase}"
        );
    }
}

#[test]
fn only_what_an_object_names_outside_is_looked_at() {
    let store = |type_: &str, entry: Value, able: Value| {
        let connection = json!({"secretRef": {"name": "s", "key": entry}});
        let spec = json!({"type": type_, "connection": connection, "capabilities": able});
        object::<Memory>(spec, json!(null))
    };
    let outside = |entry: Option<&str>, extension| {
        Some(Outside::Store {
            secret: "s".to_owned(),
            entry: entry.map(str::to_owned),
            extension,
        })
    };
    for (row, memory, expected) in [
        (
            "a PostgreSQL",
            store("postgres", json!(null), json!(["kv"])),
            outside(None, None),
        ),
        (
            "one with vectors",
            store("postgres", json!("url"), json!(["kv", "vector"])),
            outside(Some("url"), Some("vector")),
        ),
        (
            "another store",
            store("redis", json!("url"), json!([])),
            None,
        ),
    ] {
        assert_eq!(memory.outside(), expected, "{row}");
        let needs = (memory.secrets().len(), memory.secret_entries().len());
        let names_entry = memory.spec.connection.secret_ref.key.is_some();
        assert_eq!(needs, if names_entry { (0, 1) } else { (1, 0) }, "{row}");
    }
    let host = |spec: Value| object::<VersionControlProvider>(spec, json!(null)).outside();
    assert_eq!(host(json!({"provider": "github"})), None);
    let url = "https://git.example.com/api";
    let named = host(json!({"provider": "gitea", "apiBaseUrl": url}));
    let url = url.to_owned();
    assert_eq!(named, Some(Outside::Api { url }));
}
