use agents::api::kind::Kind;
use agents::api::registration::rung::Rung;
use serde_json::{Value, json};

use crate::fixtures::{
    TRACEPARENT, ask, ask_of, faults, now, object, patch_of, patched, review, stored, webhook,
};
use crate::subject::Door;

const KEY: &str = "agents.proompteng.ai/traceparent";
const STAMPED: &str = "agents.proompteng.ai/traceparent-stamped";
const OTHER: &str = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01";

fn workspace(size: &str) -> Value {
    object(Kind::Workspace, json!({"size": size}))
}

fn stored_workspace(size: &str) -> Value {
    let spec = json!({"size": size, "accessModes": ["ReadWriteOnce"]});
    let mut object = stored(Kind::Workspace, spec);
    object["metadata"]["annotations"] = json!({KEY: OTHER, STAMPED: OTHER, "other": "x"});
    object
}

fn pair(fields: &[(&str, &str)]) -> Vec<(String, String)> {
    let own = |(field, reason): &(&str, &str)| ((*field).to_owned(), (*reason).to_owned());
    fields.iter().map(own).collect()
}

#[test]
fn a_good_object_is_let_through_and_gets_defaults_and_a_trace() {
    let review = review("CREATE", Some(&workspace("1Gi")), None);
    let response = ask(Door::Mutate, &review);
    assert_eq!(response["allowed"], true);
    assert_eq!(
        patch_of(&response),
        json!([
            {"op": "add", "path": "/spec/accessModes", "value": ["ReadWriteOnce"]},
            {"op": "add", "path": "/metadata/annotations", "value": {KEY: TRACEPARENT, STAMPED: TRACEPARENT}},
        ])
    );
    assert_eq!(response["auditAnnotations"]["rule"], "none");
    assert_eq!(response["auditAnnotations"]["mode"], "none");
    let hash = response["auditAnnotations"]["policy"].as_str();
    assert!(hash.is_some_and(|hash| !hash.is_empty()));
    let response = ask(Door::Validate, &review);
    assert_eq!(response["allowed"], true);
    assert_eq!(patch_of(&response), json!([]));
}

#[test]
fn fields_that_nobody_knows_survive() {
    let mut strange = workspace("1Gi");
    strange["spec"]["mystery"] = json!({"a": [7]});
    strange["metadata"]["mystery"] = json!(7);
    let response = ask(Door::Mutate, &review("CREATE", Some(&strange), None));
    let result = patched(&strange, &response);
    assert_eq!(result["spec"]["accessModes"], json!(["ReadWriteOnce"]));
    assert_eq!(result["spec"]["mystery"], json!({"a": [7]}));
    assert_eq!(result["metadata"]["mystery"], 7);
}

#[test]
fn a_second_pass_over_its_own_result_changes_nothing() {
    for (operation, new, old) in [
        ("CREATE", workspace("1Gi"), None),
        ("UPDATE", workspace("2Gi"), Some(stored_workspace("1Gi"))),
        (
            "UPDATE",
            stored_workspace("2Gi"),
            Some(stored_workspace("1Gi")),
        ),
    ] {
        let first = ask(Door::Mutate, &review(operation, Some(&new), old.as_ref()));
        assert_ne!(patch_of(&first), json!([]), "{operation}");
        let result = patched(&new, &first);
        let second = ask(
            Door::Mutate,
            &review(operation, Some(&result), old.as_ref()),
        );
        assert_eq!(patch_of(&second), json!([]), "{operation}");
    }
}

#[test]
fn an_update_that_leaves_the_spec_alone_changes_nothing() {
    let old = stored_workspace("1Gi");
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({"team": "a"});
    let mut bare = new.clone();
    bare["spec"] = json!({"size": "1Gi"});
    let mut before_defaults = old.clone();
    before_defaults["spec"] = json!({"size": "1Gi"});
    let filled = json!([{"op": "add", "path": "/spec/accessModes", "value": ["ReadWriteOnce"]}]);
    for (row, new, old, expected) in [
        ("the same", &old, &old, json!([])),
        ("another label", &new, &old, json!([])),
        (
            "from before the defaults",
            &bare,
            &before_defaults,
            json!([]),
        ),
        ("a default that a replace left out", &bare, &old, filled),
    ] {
        let response = ask(Door::Mutate, &review("UPDATE", Some(new), Some(old)));
        assert_eq!(response["allowed"], true, "{row}");
        assert_eq!(patch_of(&response), expected, "{row}");
    }
}

#[test]
fn a_changed_spec_gets_the_trace_that_changed_it() {
    let (new, old) = (stored_workspace("2Gi"), stored_workspace("1Gi"));
    let response = ask(Door::Mutate, &review("UPDATE", Some(&new), Some(&old)));
    let path = "/metadata/annotations/agents.proompteng.ai~1traceparent";
    let stamp = json!([
        {"op": "replace", "path": path, "value": TRACEPARENT},
        {"op": "replace", "path": format!("{path}-stamped"), "value": TRACEPARENT},
    ]);
    assert_eq!(patch_of(&response), stamp);
    let again = patched(&new, &response);
    let response = ask(Door::Mutate, &review("UPDATE", Some(&again), Some(&old)));
    assert_eq!(patch_of(&response), json!([]), "asked again");
}

#[test]
fn a_trace_that_a_manifest_pins_stays_however_often_the_spec_changes() {
    let pinned = |size: &str, stamped: Option<&str>| {
        let mut object = stored_workspace(size);
        object["metadata"]["annotations"] = json!({KEY: OTHER, STAMPED: stamped});
        if stamped.is_none() {
            object["metadata"]["annotations"] = json!({KEY: OTHER});
        }
        object
    };
    for stamped in [None, Some(TRACEPARENT)] {
        let (new, old) = (pinned("2Gi", stamped), pinned("1Gi", stamped));
        let response = ask(Door::Mutate, &review("UPDATE", Some(&new), Some(&old)));
        assert_eq!(patch_of(&response), json!([]), "{stamped:?}");
    }
    // Taken out of the manifest again, it is ours to write.
    let mut new = pinned("2Gi", Some(OTHER));
    new["metadata"]["annotations"] = json!({STAMPED: OTHER});
    let old = pinned("1Gi", Some(OTHER));
    let response = ask(Door::Mutate, &review("UPDATE", Some(&new), Some(&old)));
    let written = json!({KEY: TRACEPARENT, STAMPED: TRACEPARENT});
    assert_eq!(patched(&new, &response)["metadata"]["annotations"], written);
}

#[test]
fn a_trace_of_the_users_own_is_kept_if_it_is_one() {
    let mut object = stored_workspace("1Gi");
    let response = ask(Door::Mutate, &review("CREATE", Some(&object), None));
    assert_eq!(patch_of(&response), json!([]));
    object["metadata"]["annotations"][KEY] = json!("mine");
    for door in [Door::Mutate, Door::Validate] {
        let response = ask(door, &review("CREATE", Some(&object), None));
        let place = format!("metadata.annotations[{KEY}]");
        assert_eq!(faults(&response), pair(&[(&place, "InvalidTraceparent")]));
    }
    let same = review("UPDATE", Some(&object), Some(&object));
    assert_eq!(ask(Door::Validate, &same)["allowed"], true, "not set now");
}

#[test]
fn all_faults_are_told_at_once_in_causes_and_message() {
    let spec = json!({"size": "much", "accessModes": ["ReadWriteOne"], "ttlSeconds": -1});
    let object = object(Kind::Workspace, spec);
    for door in [Door::Mutate, Door::Validate] {
        let response = ask(door, &review("CREATE", Some(&object), None));
        assert_eq!(response["allowed"], false);
        assert_eq!(patch_of(&response), json!([]));
        let status = &response["status"];
        assert_eq!(status["code"], 422);
        assert_eq!(status["reason"], "Invalid");
        assert_eq!(status["details"]["name"], "demo");
        assert_eq!(status["details"]["kind"], "Workspace");
        assert_eq!(status["details"]["group"], "workspaces.proompteng.ai");
        let causes = status["details"]["causes"].as_array().unwrap();
        assert_eq!(causes.len(), 3, "{causes:?}");
        let message = status["message"].as_str().unwrap();
        assert!(message.starts_with("3 faults:\n* spec."), "{message}");
        for cause in causes {
            let (field, text) = (cause["field"].as_str(), cause["message"].as_str());
            let line = format!("\n* {}: {}", field.unwrap(), text.unwrap());
            assert!(message.contains(&line), "{message}");
        }
        assert_eq!(response["auditAnnotations"]["rule"], "Spec");
        assert_eq!(response["auditAnnotations"]["mode"], "enforce");
    }
}

#[test]
fn the_lower_rungs_refuse_nothing_and_fill_in_all_the_same() {
    let broken = review("CREATE", Some(&workspace("much")), None);
    for (rung, allowed, warnings, patches, mode) in [
        (Rung::Audit, true, 0, true, "audit"),
        (Rung::Warn, true, 1, true, "warn"),
        (Rung::Deny, false, 0, false, "enforce"),
        (Rung::FailLabelled, false, 0, false, "enforce"),
        (Rung::Fail, false, 0, false, "enforce"),
    ] {
        let admission = webhook(rung, json!({}));
        for door in [Door::Mutate, Door::Validate] {
            let response = ask_of(&admission, door, &broken);
            assert_eq!(response["allowed"], allowed, "{rung} {door:?}");
            let told = response["warnings"].as_array().map_or(0, Vec::len);
            assert_eq!(told, warnings, "{rung} {door:?}");
            let patches = patches && door == Door::Mutate;
            assert_eq!(patch_of(&response) != json!([]), patches, "{rung} {door:?}");
            assert_eq!(response["auditAnnotations"]["mode"], mode, "{rung}");
        }
    }
}

#[test]
fn a_fault_that_was_there_before_keeps_nobody_from_changing_something_else() {
    let old = stored(Kind::Workspace, json!({"size": "much"}));
    let new = stored(Kind::Workspace, json!({"size": "much", "ttlSeconds": 5}));
    let response = ask(Door::Validate, &review("UPDATE", Some(&new), Some(&old)));
    assert_eq!(response["allowed"], true, "{response}");
}

#[test]
fn a_run_that_has_started_keeps_its_spec() {
    let run = |tool: &str, phase: &str| {
        let mut run = stored(Kind::ToolRun, json!({"toolRef": {"name": tool}}));
        run["status"] = json!({"phase": phase});
        run
    };
    let change = |phase| {
        let (new, old) = (run("b", phase), run("a", phase));
        let response = ask(Door::Validate, &review("UPDATE", Some(&new), Some(&old)));
        faults(&response)
    };
    assert_eq!(change("Pending"), []);
    assert_eq!(
        change("Running"),
        pair(&[("spec.toolRef", "SpecImmutableViolation")])
    );
}

#[test]
fn the_policy_refuses_warns_or_records_by_its_own_mode() {
    let tool = object(Kind::Tool, json!({"image": "evil/x:1", "command": ["x"]}));
    let review = review("CREATE", Some(&tool), None);
    for (mode, allowed, warnings) in [("enforce", false, 0), ("warn", true, 1), ("audit", true, 0)]
    {
        let policy = json!({"images": {"denied": ["evil/*"]}, "modes": {"DeniedImages": mode}});
        let admission = webhook(Rung::Fail, policy);
        for door in [Door::Mutate, Door::Validate] {
            let response = ask_of(&admission, door, &review);
            assert_eq!(response["allowed"], allowed, "{mode}");
            let told = response["warnings"].as_array().map_or(0, Vec::len);
            assert_eq!(told, warnings, "{mode}");
            assert_eq!(response["auditAnnotations"]["rule"], "DeniedImages");
            assert_eq!(response["auditAnnotations"]["mode"], mode);
        }
    }
}

#[test]
fn an_image_that_the_policy_came_to_deny_later_can_stay() {
    let admission = webhook(Rung::Fail, json!({"images": {"denied": ["evil/*"]}}));
    let old = stored(Kind::Tool, json!({"image": "evil/x:1", "command": ["x"]}));
    let mut new = old.clone();
    new["spec"]["args"] = json!(["y"]);
    let update = |new: &Value| {
        let review = review("UPDATE", Some(new), Some(&old));
        ask_of(&admission, Door::Validate, &review)["allowed"].clone()
    };
    assert_eq!(update(&new), true);
    new["spec"]["image"] = json!("evil/x:2");
    assert_eq!(update(&new), false);
}

#[test]
fn a_spec_that_cannot_be_read_is_a_fault_of_the_spec() {
    let whole = serde_json::to_string(&review("CREATE", Some(&workspace("1Gi")), None)).unwrap();
    let size = r#""size":"1Gi""#;
    let twice = whole.replace(size, r#""size":"1Gi","size":"2Gi""#);
    let nested = format!(r#""size":{}1{}"#, "[".repeat(300), "]".repeat(300));
    let deep = whole.replace(size, &nested);
    let admission = webhook(Rung::Deny, json!({}));
    for body in [twice, deep] {
        let answer = admission.answer_at(Door::Mutate, body.as_bytes(), now(), None);
        assert_eq!(answer.status, 200);
        let answer: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(faults(&answer["response"]), pair(&[("spec", "Malformed")]));
    }
}

#[test]
fn what_no_rule_is_about_is_let_through_with_a_word() {
    let metadata = json!({"name": "x", "namespace": "y"});
    let pod = json!({"apiVersion": "apps/v1", "kind": "Pod", "metadata": metadata});
    let response = ask(Door::Validate, &review("CREATE", Some(&pod), None));
    assert_eq!(response["allowed"], true);
    assert_eq!(response["warnings"].as_array().map(Vec::len), Some(1));
}

#[test]
fn an_object_that_is_not_what_its_request_says_is_refused() {
    let mut review = review("CREATE", Some(&workspace("1Gi")), None);
    review["request"]["object"]["kind"] = json!("Tool");
    let response = ask(Door::Mutate, &review);
    assert_eq!(faults(&response), pair(&[("kind", "ObjectMismatch")]));
    assert_eq!(response["auditAnnotations"]["rule"], "Subject");
}
