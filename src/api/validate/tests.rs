//! The entry point: reading, change-gating, what is fixed after the start. Rules of a kind are tested beside them.

use serde_json::{Value, json};

use super::shared::testing::{agent_run, faults, faults_of_update, with_spec};
use super::*;
use crate::api::kinds::tests::fixtures::{self, Fixture};

#[test]
fn what_cannot_be_read_is_named_with_its_place() {
    for (row, kind, spec, expected) in [
        (
            "wrong type, deep",
            Kind::AgentRun,
            json!({"agentRef": {"name": "a"}, "runtime": {"type": "workflow"}, "workflow": {"steps": [{"name": 3}]}}),
            "spec.workflow.steps[0].name Malformed: cannot be read: invalid type: integer `3`, expected a string",
        ),
        (
            "missing field",
            Kind::AgentRun,
            json!({"agentRef": {}}),
            "spec.agentRef Malformed: cannot be read: missing field `name`",
        ),
        (
            "unknown word",
            Kind::Memory,
            json!({"type": "postgrs", "connection": {"secretRef": {"name": "a"}}}),
            "spec.type Malformed: cannot be read: unknown variant `postgrs`, expected one of `postgres`, `redis`, `weaviate`, `pinecone`, `custom`",
        ),
        (
            "no object",
            Kind::Tool,
            json!("tool"),
            "spec Malformed: cannot be read: invalid type: string \"tool\", expected struct ToolSpec",
        ),
    ] {
        assert_eq!(faults(kind, &with_spec(spec)), [expected], "{row}");
    }
}

#[test]
fn a_spec_that_is_not_there_is_an_empty_one() {
    let object = json!({"metadata": {"name": "x"}});
    assert_eq!(faults(Kind::Signal, &object), Vec::<String>::new());
    assert_eq!(
        faults(Kind::Workspace, &object),
        ["spec.size MissingSize: there is no size; write one, e.g. 10Gi"]
    );
}

#[test]
fn names_that_become_labels_must_fit() {
    let named = |name: &str| {
        let mut run = agent_run(json!({}));
        run["metadata"]["name"] = json!(name);
        run
    };
    assert_eq!(
        faults(Kind::AgentRun, &named(&"a".repeat(63))),
        Vec::<String>::new()
    );
    assert_eq!(
        faults(Kind::AgentRun, &named(&"a".repeat(64))),
        [
            "metadata.name NameTooLong: the name of AgentRun objects becomes a label and has 64 characters; use at most 63"
        ]
    );
    let generated =
        json!({"metadata": {"generateName": "x-"}, "spec": agent_run(json!({}))["spec"]});
    assert_eq!(faults(Kind::AgentRun, &generated), Vec::<String>::new());
}

#[test]
fn an_update_is_judged_by_what_it_brings() {
    let old = agent_run(json!({"runtime": {"type": "temporal"}, "parameters": {"a b": "1"}}));
    let update = |more: Value| {
        let mut new = old.clone();
        for (name, value) in more.as_object().unwrap() {
            new["spec"][name] = value.clone();
        }
        faults_of_update(Kind::AgentRun, &new, Some(&old))
    };
    assert_eq!(
        faults(Kind::AgentRun, &old).len(),
        2,
        "the old object is full of faults"
    );
    assert_eq!(update(json!({})), Vec::<String>::new(), "nothing changed");
    assert_eq!(
        update(json!({"ttlSecondsAfterFinished": 5})),
        Vec::<String>::new(),
        "changed elsewhere"
    );
    assert_eq!(
        update(json!({"ttlSecondsAfterFinished": -5})).len(),
        1,
        "a new fault"
    );
    assert_eq!(
        update(json!({"parameters": {"a b": "2"}})).len(),
        1,
        "the faulty value itself changed"
    );
    assert_eq!(
        update(json!({"runtime": {"type": "custom"}})).len(),
        1,
        "a fault of another sort at another place"
    );
}

#[test]
fn an_object_that_could_never_be_read_can_lose_its_finalizer() {
    let old = json!({"metadata": {"name": "x", "finalizers": ["f"]}, "spec": {"agentRef": 1}});
    let new = json!({"metadata": {"name": "x"}, "spec": {"agentRef": 1}});
    assert_eq!(
        faults_of_update(Kind::AgentRun, &new, Some(&old)),
        Vec::<String>::new()
    );
}

#[test]
fn a_run_that_has_started_keeps_its_spec() {
    let frozen = |field: &str| {
        format!(
            "spec.{field} SpecImmutableViolation: the run has started, so this cannot change any more; create a new run instead"
        )
    };
    let base = json!({"secrets": ["a", "b"], "parameters": {"p": "1"}, "systemPrompt": null});
    let mut running = agent_run(base);
    running["status"] = json!({"phase": "Running"});
    let mut with_policy = running.clone();
    with_policy["spec"]["vcsPolicy"] = json!({});
    let mut accepted = running.clone();
    accepted["status"] =
        json!({"phase": "Pending", "conditions": [{"type": "Accepted", "status": "True"}]});
    let mut pending = running.clone();
    pending["status"] = json!({"phase": "Pending"});
    let change = |old: &Value, more: Value| {
        let mut new = old.clone();
        for (name, value) in more.as_object().unwrap() {
            new["spec"][name] = value.clone();
        }
        faults_of_update(Kind::AgentRun, &new, Some(old))
    };
    for (row, old, more, expected) in [
        (
            "another agent",
            &running,
            json!({"agentRef": {"name": "other"}}),
            vec![frozen("agentRef")],
        ),
        (
            "another runtime and prompt",
            &accepted,
            json!({"runtime": {"type": "job", "config": {}}, "systemPrompt": "x"}),
            vec![frozen("runtime"), frozen("systemPrompt")],
        ),
        (
            "secrets in another order",
            &running,
            json!({"secrets": ["b", " a", ""]}),
            vec![
                "spec.secrets[1] InvalidName".to_owned(),
                "spec.secrets[2] Required".to_owned(),
            ],
        ),
        (
            "more secrets",
            &running,
            json!({"secrets": ["a", "b", "c"]}),
            vec![frozen("secrets")],
        ),
        (
            "other parameters, images and rights",
            &running,
            json!({
                "parameters": {"p": "2"}, "workload": {"image": "other"}, "idempotencyKey": "k",
                "vcsPolicy": {"mode": "read-only"},
            }),
            ["idempotencyKey", "parameters", "vcsPolicy", "workload"]
                .map(frozen)
                .to_vec(),
        ),
        (
            "that it shall end, and how long it is kept",
            &running,
            json!({"cancel": true, "ttlSecondsAfterFinished": 1}),
            vec![],
        ),
        (
            "a default that is written out",
            &with_policy,
            json!({"vcsPolicy": {"mode": "read-write", "required": false}}),
            vec![],
        ),
        (
            "before the start",
            &pending,
            json!({"agentRef": {"name": "other"}}),
            vec![],
        ),
    ] {
        let found: Vec<String> = change(old, more)
            .into_iter()
            .map(|line| {
                if line.contains("Immutable") {
                    line
                } else {
                    line.split(':').next().unwrap_or_default().to_owned()
                }
            })
            .collect();
        assert_eq!(found, expected, "{row}");
    }
}

#[test]
fn other_runs_keep_what_they_run() {
    let status = json!({"phase": "Running"});
    for (kind, field) in [
        (Kind::ToolRun, "toolRef"),
        (Kind::OrchestrationRun, "orchestrationRef"),
    ] {
        let object = |name: &str| json!({"spec": {field: {"name": name}}, "status": status});
        assert_eq!(
            faults_of_update(kind, &object("b"), Some(&object("a"))),
            [format!(
                "spec.{field} SpecImmutableViolation: the run has started, so this cannot change any more; create a new run instead"
            )]
        );
    }
}

#[test]
fn a_huge_object_of_tiny_faults_is_told_in_short() {
    let step = json!({"name": "some-step", "kind": "AgnetRun", "dependsOn": ["some-stpe"]});
    let steps = vec![step; 20_000];
    let causes = validate(
        Kind::Orchestration,
        &with_spec(json!({ "steps": steps })),
        None,
    );
    assert_eq!(causes.len(), 101);
    assert_eq!(
        causes.last().map(|cause| cause.reason),
        Some(Reason::TooManyFaults)
    );
}

#[test]
fn every_example_is_without_fault() {
    let examples = fixtures::objects("examples");
    assert!(examples.len() >= Kind::ALL.len());
    for Fixture { kind, object, .. } in examples {
        let name = &object["metadata"]["name"];
        assert_eq!(faults(kind, &object), Vec::<String>::new(), "{kind} {name}");
    }
}
