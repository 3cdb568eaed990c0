use serde_json::json;

use super::*;

fn event(data: &str) -> (Sort, Option<Message>) {
    let (sort, message) = read(Event {
        name: "message",
        data,
    });
    (sort, message.ok())
}

/// A message about a run of this name, which is in this phase.
fn about(name: &str, action: &str, status: serde_json::Value) -> String {
    json!({
        "type": "resource", "kind": "AgentRun", "namespace": "agents", "action": action, "name": name,
        "resource": {"apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun",
            "metadata": {"name": name, "namespace": "agents", "creationTimestamp": "2026-11-17T01:00:00Z"},
            "spec": {"anything": [1, {"deep": null}]}, "status": status},
    })
    .to_string()
}

fn take(runs: &mut Runs, data: &str) {
    match event(data) {
        (Sort::Resource, Some(Message::Run { key, stands })) => {
            runs.heard();
            runs.put(key, stands);
        }
        other => panic!("{other:?}"),
    }
}

fn stood(runs: &Runs, now: &str) -> Load {
    runs.load(at(now)).expect("something was told")
}

fn depth(runs: &Runs) -> Option<u64> {
    let load = runs.load(Timestamp::UNIX_EPOCH);
    load.map(|load| load.depth)
}

fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

#[test]
fn every_phase_is_in_line_or_running_or_over() {
    for (status, expected) in [
        (json!(null), Some(false)),
        (json!({}), Some(false)),
        (json!({"phase": ""}), Some(false)),
        (json!({"phase": "Pending"}), Some(false)),
        (json!({"phase": "Queued"}), Some(false)),
        (json!({"phase": "Progressing"}), Some(false)),
        (json!({"phase": "InProgress"}), Some(false)),
        (json!({"phase": "Running"}), Some(true)),
        (json!({"phase": "Succeeded"}), None),
        (json!({"phase": "Failed"}), None),
        (json!({"phase": "Cancelled"}), None),
        (json!({"phase": "Something else"}), None),
    ] {
        let text = about("a", "MODIFIED", status.clone());
        let Some(Message::Run { key, stands }) = event(&text).1 else {
            panic!("{text}");
        };
        assert_eq!(&*key, "agents/a");
        assert_eq!(stands.map(|stands| stands.is_running), expected, "{status}");
    }
    let deleted = about("a", "DELETED", json!({"phase": "Running"}));
    assert!(matches!(
        event(&deleted).1,
        Some(Message::Run { stands: None, .. })
    ));
}

#[test]
fn only_a_condition_that_holds_says_why_a_run_is_held_back() {
    let condition =
        |status: &str, reason: &str| json!({"type": "Blocked", "status": status, "reason": reason});
    for (conditions, expected) in [
        (json!([condition("True", "QueueLimit")]), Some("QueueLimit")),
        (json!([condition("False", "QueueLimit")]), None),
        (json!([condition("True", "made-up")]), Some("other")),
        (json!([{"type": "Ready", "status": "True"}]), None),
        (
            json!([{"type": "Blocked", "status": "True"}]),
            Some("other"),
        ),
        (json!([]), None),
        (json!(null), None),
    ] {
        let text = about("a", "ADDED", json!({"conditions": conditions.clone()}));
        let Some(Message::Run {
            stands: Some(stands),
            ..
        }) = event(&text).1
        else {
            panic!("{text}");
        };
        assert_eq!(stands.blocked, expected, "{conditions}");
    }
}

#[test]
fn what_is_no_run_is_nothing_and_what_is_no_message_is_said() {
    let long = "x".repeat(LONGEST);
    let nothing = Some(Message::Nothing);
    for (data, expected) in [
        (
            r#"{"type": "resource", "kind": "Agent", "name": "a"}"#,
            (Sort::Resource, nothing.clone()),
        ),
        (
            r#"{"type": "resource", "kind": "AgentRun"}"#,
            (Sort::Resource, nothing.clone()),
        ),
        (
            &about(&long, "ADDED", json!({})),
            (Sort::Resource, nothing.clone()),
        ),
        (r#"{"type": "resource", "kind": 7}"#, (Sort::Resource, None)),
        (
            r#"{"type": "error", "namespace": "a", "message": "watch"}"#,
            (Sort::Error, nothing.clone()),
        ),
        (
            r#"{"type": "later", "status": 7, "kind": []}"#,
            (Sort::Other, nothing.clone()),
        ),
        (r#"{"types": "resource"}"#, (Sort::Other, nothing.clone())),
        (r#"{"type": "status"}"#, (Sort::Status, None)),
        (r#"{"type": 7}"#, (Sort::Other, None)),
        ("[DONE]", (Sort::Other, None)),
    ] {
        assert_eq!(event(data), expected, "{data}");
    }
    let named = read(Event {
        name: "news",
        data: "anything",
    });
    assert!(matches!(named, (Sort::Other, Ok(Message::Nothing))));
}

#[test]
fn the_state_of_the_control_plane_is_read_as_far_as_it_is_there() {
    for (status, expected) in [
        (json!({}), Status::default()),
        (
            json!({"service": "agents", "generated_at": "2026-11-17T01:00:00Z", "controllers": [],
                "agentrun_ingestion": {"status": "ok", "untouched_run_count": 4, "oldest_untouched_age_seconds": 12.5}}),
            Status {
                at: Some(at("2026-11-17T01:00:00Z")),
                untouched: Some(4),
                oldest_untouched: Some(12.5),
            },
        ),
        (
            json!({"generated_at": "yesterday", "agentrun_ingestion": {"untouched_run_count": null}}),
            Status::default(),
        ),
    ] {
        let text = json!({"type": "status", "namespace": "agents", "status": status}).to_string();
        assert_eq!(
            event(&text),
            (Sort::Status, Some(Message::Status(expected)))
        );
    }
}

#[test]
fn runs_are_counted_until_they_are_over_or_gone() {
    let mut runs = Runs::new(10);
    let blocked = json!({"phase": "Pending",
        "conditions": [{"type": "Blocked", "status": "True", "reason": "RateLimit"}]});
    take(&mut runs, &about("a", "ADDED", json!({})));
    take(&mut runs, &about("b", "ADDED", blocked));
    take(&mut runs, &about("c", "ADDED", json!({"phase": "Running"})));
    let load = stood(&runs, "2026-11-17T01:00:30Z");
    assert_eq!((load.depth, load.running, load.oldest), (2, 1, 30.0));
    assert_eq!(load.blocked.0, [("RateLimit", 1)].into());
    take(
        &mut runs,
        &about("b", "MODIFIED", json!({"phase": "Running"})),
    );
    take(
        &mut runs,
        &about("c", "MODIFIED", json!({"phase": "Failed"})),
    );
    take(&mut runs, &about("a", "DELETED", json!({})));
    let load = stood(&runs, "2026-11-17T01:00:30Z");
    assert_eq!((load.depth, load.running, load.oldest), (0, 1, 0.0));
    assert_eq!(load.blocked.0, [].into());
    // A clock that is behind makes nobody younger than nothing.
    take(&mut runs, &about("d", "ADDED", json!({})));
    assert_eq!(stood(&runs, "2026-11-17T00:59:00Z").oldest, 0.0);
}

#[test]
fn there_is_room_for_so_many_and_the_others_are_counted_as_such() {
    let mut runs = Runs::new(2);
    for name in ["a", "b", "c", "c", "a"] {
        take(&mut runs, &about(name, "ADDED", json!({})));
    }
    assert_eq!((depth(&runs), runs.overflow), (Some(2), 2));
    take(&mut runs, &about("a", "DELETED", json!({})));
    take(&mut runs, &about("c", "MODIFIED", json!({})));
    assert_eq!((depth(&runs), runs.overflow), (Some(2), 2));
}

#[test]
fn what_a_new_connection_does_not_tell_again_goes_after_the_grace() {
    let mut runs = Runs::new(10);
    take(&mut runs, &about("a", "ADDED", json!({})));
    take(&mut runs, &about("b", "ADDED", json!({})));
    runs.reconnected();
    take(&mut runs, &about("b", "ADDED", json!({})));
    assert_eq!(depth(&runs), Some(2));
    runs.settle();
    assert_eq!(depth(&runs), Some(1));
    runs.forget();
    assert_eq!(depth(&runs), None);
}

#[test]
fn a_message_may_be_called_by_its_type_and_anything_else_is_not_read() {
    let data = about("a", "ADDED", json!({}));
    for (name, expected) in [
        ("message", Sort::Resource),
        ("resource", Sort::Resource),
        ("ready", Sort::Other),
        ("dropped", Sort::Other),
    ] {
        let (sort, _) = read(Event { name, data: &data });
        assert_eq!(sort, expected, "{name}");
    }
}
