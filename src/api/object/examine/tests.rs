//! Schema and rules together: each fault once, none that is only guessed, none that was there before.

use serde_json::{Value, json};

use super::*;

fn brief(kind: Kind, object: &Value, old: Option<&Value>) -> Vec<String> {
    let line = |cause: Cause| format!("{} {}", cause.field, cause.reason);
    examine(kind, object, old).into_iter().map(line).collect()
}

fn with_spec(spec: Value) -> Value {
    json!({"metadata": {"name": "x"}, "spec": spec})
}

fn run(more: Value) -> Value {
    let mut spec = json!({
        "agentRef": {"name": "a"}, "implementationSpecRef": {"name": "i"}, "runtime": {"type": "job"},
    });
    for (name, value) in more.as_object().unwrap() {
        spec[name] = value.clone();
    }
    with_spec(spec)
}

#[test]
fn one_fault_of_the_schema_and_two_of_the_rules_are_three() {
    for (row, more, expected) in [
        (
            "an unknown word",
            json!({
                "vcsPolicy": {"mode": "write-only"}, "secrets": ["A B"],
                "workload": {"volumes": [{"type": "pvc", "name": "v", "mountPath": "/v"}]},
            }),
            [
                "spec.vcsPolicy.mode NotSupported",
                "spec.workload.volumes[0].claimName VolumeSourceMissing",
                "spec.secrets[0] InvalidName",
            ],
        ),
        (
            "a wrong type where a value must be",
            json!({"agentRef": {"name": 7}, "parameters": {"a b": ""}, "memoryRef": {"name": ""}}),
            [
                "spec.agentRef.name TypeMismatch",
                "spec.memoryRef.name Required",
                "spec.parameters[a b] ParameterKeyInvalid",
            ],
        ),
        (
            "an unknown runtime, whose settings nobody can judge",
            json!({
                "runtime": {"type": "jbo", "config": {"backoffLimit": "x"}},
                "ttlSecondsAfterFinished": -1, "memoryRef": {"name": ""},
            }),
            [
                "spec.runtime.type NotSupported",
                "spec.memoryRef.name Required",
                "spec.ttlSecondsAfterFinished OutOfRange",
            ],
        ),
    ] {
        assert_eq!(brief(Kind::AgentRun, &run(more), None), expected, "{row}");
    }
}

#[test]
fn what_both_find_is_told_once_in_the_words_of_the_rule() {
    let both = json!({"systemPrompt": "a", "systemPromptRef": {"kind": "Secret", "name": "n", "key": "k"}});
    let many: Map<String, Value> = (0..101).map(|n| (format!("k{n}"), json!(""))).collect();
    for (more, expected) in [
        (both, "spec.systemPromptRef SystemPromptConflict"),
        (
            json!({"ttlSecondsAfterFinished": -1}),
            "spec.ttlSecondsAfterFinished OutOfRange",
        ),
        (
            json!({ "parameters": many }),
            "spec.parameters ParametersTooLarge",
        ),
    ] {
        assert_eq!(brief(Kind::AgentRun, &run(more), None), [expected]);
    }
    let address = with_spec(json!({"provider": "github", "apiBaseUrl": "no address"}));
    assert_eq!(
        brief(Kind::VersionControlProvider, &address, None),
        ["spec.apiBaseUrl InvalidUrl"]
    );
}

#[test]
fn what_follows_only_from_a_guess_is_not_told() {
    for (row, kind, spec, expected) in [
        (
            "args cannot be read, so nobody knows whether there is a command",
            Kind::Tool,
            json!({"image": "i", "args": "x"}),
            vec!["spec.args TypeMismatch"],
        ),
        (
            "the name of a step cannot be read, so it may be the one that is waited for",
            Kind::Orchestration,
            json!({"entrypoint": "plan", "steps": [
                {"name": 1, "kind": "Checkpoint"}, {"name": "b", "kind": "Checkpont", "dependsOn": ["plan"]},
            ]}),
            vec![
                "spec.steps[0].name TypeMismatch",
                "spec.steps[1].kind UnsupportedStep",
            ],
        ),
        (
            "the names of the steps can be read, so a missing one is missing",
            Kind::Orchestration,
            json!({"steps": [{"name": "a", "kind": "Checkpoint", "retries": "x", "dependsOn": ["plan"]}]}),
            vec![
                "spec.steps[0].retries TypeMismatch",
                "spec.steps[0].dependsOn[0] MissingDependency",
            ],
        ),
        (
            "an unknown volume type needs nobody knows what",
            Kind::AgentRun,
            run(
                json!({"workload": {"volumes": [{"type": "nfs", "name": "V", "mountPath": "/v"}]}}),
            )["spec"]
                .clone(),
            vec![
                "spec.workload.volumes[0].type NotSupported",
                "spec.workload.volumes[0].name InvalidName",
            ],
        ),
        (
            "an unknown host signs in nobody knows how",
            Kind::VersionControlProvider,
            json!({"provider": "svn", "auth": {"method": "app"}, "webBaseUrl": "ftp://host"}),
            vec!["spec.provider NotSupported", "spec.webBaseUrl InvalidUrl"],
        ),
        (
            "a list entry of the wrong type keeps the others in their places",
            Kind::AgentRun,
            run(json!({"secrets": [7, "A B"]}))["spec"].clone(),
            vec![
                "spec.secrets[0] TypeMismatch",
                "spec.secrets[1] InvalidName",
            ],
        ),
        (
            "no spec that could be read",
            Kind::Budget,
            json!("much"),
            vec!["spec TypeMismatch"],
        ),
    ] {
        assert_eq!(brief(kind, &with_spec(spec), None), expected, "{row}");
    }
}

#[test]
fn a_missing_spec_is_one_fault() {
    let bare = json!({"metadata": {"name": "x"}});
    assert_eq!(brief(Kind::Agent, &bare, None), ["spec Required"]);
    assert_eq!(brief(Kind::Signal, &bare, None), Vec::<String>::new());
    assert_eq!(
        brief(Kind::Workspace, &bare, None),
        ["spec.size MissingSize"]
    );
}

#[test]
fn an_update_is_judged_by_what_it_brings() {
    let old = run(json!({
        "runtime": {"type": "argo"}, "parameters": {"a b": "1"}, "ttlSecondsAfterFinished": -1,
    }));
    assert_eq!(brief(Kind::AgentRun, &old, None).len(), 3);
    let update = |more: Value| {
        let mut new = old.clone();
        for (name, value) in more.as_object().unwrap() {
            new["spec"][name] = value.clone();
        }
        brief(Kind::AgentRun, &new, Some(&old))
    };
    for (row, more, expected) in [
        ("nothing", json!({}), vec![]),
        ("elsewhere", json!({"cancel": true}), vec![]),
        (
            "a new fault of the schema",
            json!({"cancel": 1}),
            vec!["spec.cancel TypeMismatch"],
        ),
        (
            "a new fault of the rules",
            json!({"secrets": [""]}),
            vec!["spec.secrets[0] Required"],
        ),
        (
            "the old fault itself",
            json!({"runtime": {"type": "argo2"}, "ttlSecondsAfterFinished": -2}),
            vec![
                "spec.runtime.type NotSupported",
                "spec.ttlSecondsAfterFinished OutOfRange",
            ],
        ),
    ] {
        assert_eq!(update(more), expected, "{row}");
    }
}

#[test]
fn a_run_that_has_started_keeps_its_spec() {
    let mut old = run(json!({}));
    old["status"] = json!({"phase": "Running"});
    let mut new = old.clone();
    new["spec"]["agentRef"] = json!({"name": "other"});
    new["spec"]["cancel"] = json!("yes");
    assert_eq!(
        brief(Kind::AgentRun, &new, Some(&old)),
        [
            "spec.cancel TypeMismatch",
            "spec.agentRef SpecImmutableViolation"
        ]
    );
}

#[test]
fn many_faults_of_the_schema_are_told_in_short_and_soon() {
    let spec = run(json!({"secrets": vec![json!(1); 50_000]}));
    let causes = examine(Kind::AgentRun, &spec, None);
    assert_eq!(causes.len(), 101);
    assert_eq!(
        causes.last().map(|cause| cause.reason),
        Some(Reason::TooManyFaults)
    );
}

#[test]
fn a_fault_of_a_status_is_told_once_and_by_the_rule_that_says_more() {
    let at = Moment {
        now: "2026-01-01T00:01:00Z".parse().unwrap(),
        generation: 1,
    };
    let condition = |reason: &str| {
        json!({
            "type": "Ready", "status": "True", "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    for (row, status, expected) in [
        (
            "a condition given twice",
            json!({"conditions": [condition("A"), condition("A")]}),
            "status.conditions[1].type ConditionDuplicate",
        ),
        (
            "a blank reason",
            json!({"conditions": [condition("")]}),
            "status.conditions[0].reason TooShort",
        ),
        (
            "a start that is no time",
            json!({"phase": "Running", "startedAt": "soon"}),
            "status.startedAt InvalidTime",
        ),
    ] {
        let (old, object) = (json!({}), json!({"status": status}));
        let causes = examine_status(Kind::AgentRun, &object, &old, at);
        let told: Vec<String> = causes
            .iter()
            .map(|cause| format!("{} {}", cause.field, cause.reason))
            .collect();
        assert_eq!(told, [expected], "{row}");
    }
}

#[test]
fn what_a_step_hands_to_its_run_is_held_against_schema_and_rules_of_runs() {
    let orchestration = |more: Value| {
        let mut step = json!({
            "name": "s", "kind": "AgentRun", "agentRef": {"name": "c"}, "implementationSpecRef": "t",
        });
        for (name, value) in more.as_object().unwrap() {
            step[name] = value.clone();
        }
        with_spec(json!({"steps": [step]}))
    };
    for (row, more, expected) in [
        (
            "right",
            json!({"runtime": {"type": "job"}, "workload": {"image": "a"}, "secrets": ["s"], "workflow": null}),
            vec![],
        ),
        (
            "rules",
            json!({
                "runtime": {"type": "temporal"}, "secrets": ["A"],
                "workload": {"volumes": [{"type": "pvc", "name": "v", "mountPath": "/v"}]},
            }),
            vec![
                "runtime.type UnsupportedRuntime",
                "workload.volumes[0].claimName VolumeSourceMissing",
                "secrets[0] InvalidName",
            ],
        ),
        (
            "a workflow",
            json!({"runtime": {"type": "workflow"}, "workflow": {"steps": [{"name": ""}]}}),
            vec!["workflow.steps[0].name WorkflowStepMissingName"],
        ),
        (
            "schema and rules at once, each with what was meant",
            json!({
                "runtime": {"type": "jbo"},
                "workload": {"image": 7, "volumes": [
                    {"type": "disk", "name": "v", "mountPath": "/v"},
                    {"type": "pvc", "name": "w", "mountPath": "/w"},
                ]},
            }),
            vec![
                "runtime.type NotSupported",
                "workload.image TypeMismatch",
                "workload.volumes[0].type NotSupported",
                "workload.volumes[1].claimName VolumeSourceMissing",
            ],
        ),
    ] {
        let mut found = brief(Kind::Orchestration, &orchestration(more.clone()), None);
        found.sort_unstable();
        let mut expected: Vec<String> = expected
            .into_iter()
            .map(|line| format!("spec.steps[0].{line}"))
            .collect();
        expected.sort_unstable();
        assert_eq!(found, expected, "{row}");
    }
    let wrong = orchestration(json!({"runtime": {"type": "jbo"}}));
    let mut moved = wrong.clone();
    moved["spec"]["policies"] = json!({});
    assert_eq!(
        brief(Kind::Orchestration, &moved, Some(&wrong)),
        Vec::<String>::new(),
        "a fault that was there before"
    );
}
