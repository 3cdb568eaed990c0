use super::*;
use crate::api::policy::{
    BindingFacts, MemoryFacts, Policy, ToolFacts, VcsFacts, WorkFacts, evaluate,
};
use serde_json::json;

fn judge(kind: Kind, object: &Value, around: &Surroundings, policy: &Policy) -> Vec<String> {
    let intake = Intake::of(kind, object, around, &policy.defaults);
    evaluate(policy, &intake)
        .iter()
        .map(|finding| format!("{} {}", finding.rule, finding.cause.field))
        .collect()
}

fn strict() -> Policy {
    Policy::parse("{images: {denied: [bad/*]}, blockedSecrets: [root]}").unwrap()
}

#[test]
fn a_tool_run_is_judged_by_its_tool_and_its_own_settings() {
    let run = json!({"spec": {"toolRef": {"name": "t"}, "runtime": {"config": {
        "imagePullSecrets": ["root"], "serviceAccount": "a",
    }}}});
    let around = Surroundings {
        tool: Some(ToolFacts::of(&json!({"spec": {"image": "bad/tool"}})).into()),
        ..Surroundings::default()
    };
    assert_eq!(
        judge(Kind::ToolRun, &run, &around, &strict()),
        [
            "DeniedImages spec.toolRef",
            "BlockedSecrets spec.runtime.config.imagePullSecrets[0]",
        ]
    );
    assert_eq!(
        judge(Kind::ToolRun, &json!({"spec": {}}), &around, &strict()),
        ["DeniedImages spec.toolRef"]
    );
}

#[test]
fn a_binding_may_not_give_what_is_blocked() {
    let binding = json!({"spec": {"allowedSecrets": ["fine", "root"]}});
    assert_eq!(
        judge(
            Kind::SecretBinding,
            &binding,
            &Surroundings::default(),
            &strict()
        ),
        ["BlockedSecrets spec.allowedSecrets[1]"]
    );
}

#[test]
fn one_wrong_field_does_not_hide_the_others() {
    let run = json!({"metadata": {"labels": "none"}, "spec": {
        "agentRef": "not an object", "runtime": {"type": "jobb", "config": 1}, "secrets": [1, "root", " "],
        "workload": {"image": "bad/image", "volumes": [{"secretName": 7}, {"secretName": "root"}]},
        "systemPromptRef": [], "vcsPolicy": "x", "workflow": {"steps": 3},
    }});
    assert_eq!(
        judge(Kind::AgentRun, &run, &Surroundings::default(), &strict()),
        [
            "DeniedImages spec.workload.image",
            "BlockedSecrets spec.workload.volumes[1].secretName",
            "BlockedSecrets spec.secrets[1]",
        ]
    );
}

#[test]
fn no_object_is_too_odd_to_be_judged() {
    let around = Surroundings::default();
    for kind in Kind::ALL {
        for object in [
            json!(null),
            json!([]),
            json!({"spec": null}),
            json!({"spec": "x"}),
            json!({"spec": {"steps": [null, 1], "auth": [], "connection": "x", "defaults": 1}}),
        ] {
            assert_eq!(
                judge(kind, &object, &around, &strict()),
                Vec::<String>::new(),
                "{kind} {object}"
            );
        }
    }
}

#[test]
fn the_steps_of_an_orchestration_may_name_a_prompt() {
    let object = json!({"spec": {"steps": [{"name": "a", "systemPromptRef": {
        "kind": "secret", "name": "root", "key": "k",
    }}]}});
    let around = Surroundings::default();
    assert_eq!(
        judge(Kind::Orchestration, &object, &around, &strict()),
        ["BlockedSecrets spec.steps[0].systemPromptRef.name"]
    );
}

#[test]
fn facts_are_what_the_objects_say() {
    let object = |spec: Value| json!({"metadata": {"name": "x"}, "spec": spec});
    let prompt = json!({"kind": "Secret", "name": "p", "key": "k"});
    assert_eq!(
        AgentFacts::of(&object(json!({
            "providerRef": {"name": "x"}, "memoryRef": {"name": "m"}, "vcsRef": {"name": "v"},
            "security": {"allowedSecrets": ["a", "b"], "allowedServiceAccounts": ["c"]},
            "defaults": {"systemPromptRef": prompt},
        }))),
        AgentFacts {
            secrets: vec!["a".to_owned(), "b".to_owned()],
            service_accounts: vec!["c".to_owned()],
            prompt_secret: Some("p".to_owned()),
            memory: Some("m".to_owned()),
            vcs: Some("v".to_owned()),
        }
    );
    assert_eq!(
        MemoryFacts::of(&object(
            json!({"default": true, "connection": {"secretRef": {"name": "s"}}})
        )),
        MemoryFacts {
            secret: Some("s".to_owned()),
            is_default: true,
        }
    );
    assert_eq!(
        VcsFacts::of(&object(json!({"auth": {
            "method": "none", "token": {"secretRef": {"name": "t"}}, "ssh": {"privateKeySecretRef": {"name": "k"}},
        }}))),
        VcsFacts {
            secrets: vec!["t".to_owned(), "k".to_owned()],
        }
    );
    assert_eq!(
        WorkFacts::of(&object(json!({"vcsRef": {"name": "v"}})))
            .vcs
            .as_deref(),
        Some("v")
    );
    assert_eq!(
        BindingFacts::of(&object(json!({"subjects": [
            {"kind": "User", "name": "u"}, {"kind": "Agent", "name": "a"},
            {"kind": "Agent", "name": "b", "namespace": "n"},
        ], "allowedSecrets": ["s"]}))),
        BindingFacts {
            agents: vec![
                ("a".to_owned(), None),
                ("b".to_owned(), Some("n".to_owned())),
            ],
            secrets: vec!["s".to_owned()],
        }
    );
    for odd in [
        json!(1),
        object(json!([])),
        object(json!({"security": [], "auth": 1})),
    ] {
        assert_eq!(AgentFacts::of(&odd), AgentFacts::default());
        assert_eq!(MemoryFacts::of(&odd), MemoryFacts::default());
        assert_eq!(VcsFacts::of(&odd), VcsFacts::default());
        assert_eq!(BindingFacts::of(&odd), BindingFacts::default());
    }
}
