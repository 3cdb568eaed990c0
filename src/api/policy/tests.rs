use super::*;
use crate::api::kind::Kind;
use crate::api::object::cause::{Path, Reason};
use serde_json::{Value, json};

fn object(kind: Kind, spec: Value) -> Value {
    json!({
        "apiVersion": format!("{}/v1alpha1", kind.group()), "kind": kind.as_str(),
        "metadata": {"name": "x", "namespace": "team"}, "spec": spec,
    })
}

fn run(more: Value) -> Value {
    let mut spec = json!({"agentRef": {"name": "coder"}, "runtime": {"type": "job"}});
    for (name, value) in more.as_object().unwrap() {
        spec[name] = value.clone();
    }
    object(Kind::AgentRun, spec)
}

fn policy(value: Value) -> Policy {
    serde_json::from_value(value).unwrap()
}

/// Rule, mode, place and reason of each finding.
fn brief(findings: &[Finding]) -> Vec<String> {
    findings
        .iter()
        .map(|finding| {
            let Cause { field, reason, .. } = &finding.cause;
            format!("{} {} {field} {reason}", finding.rule, finding.mode)
        })
        .collect()
}

#[track_caller]
fn judge_run(policy: &Policy, run: &Value, around: &Surroundings, expected: &[&str]) {
    let intake = Intake::of(Kind::AgentRun, run, around, &policy.defaults);
    assert_eq!(brief(&evaluate(policy, &intake)), expected);
}

#[test]
fn the_default_policy_lets_everything_through() {
    let run = run(json!({"secrets": ["a"], "workload": {"image": "x"}}));
    judge_run(&Policy::default(), &run, &Surroundings::default(), &[]);
}

#[test]
fn labels_are_required_denied_and_allowed_by_key() {
    let policy = policy(json!({"labels": {
        "required": ["team", "cost"], "denied": ["internal/*"], "allowed": ["team", "internal/*"],
    }}));
    let mut run = run(json!({}));
    let labels = [
        ("team", "red"),
        ("cost", " "),
        ("internal/x", "1"),
        ("free", "1"),
    ];
    for (key, value) in labels {
        run["metadata"]["labels"][key] = json!(value);
    }
    judge_run(
        &policy,
        &run,
        &Surroundings::default(),
        &[
            "RequiredLabels enforce metadata.labels MissingRequiredLabels",
            "AllowedLabels enforce metadata.labels[free] LabelNotAllowed",
            "DeniedLabels enforce metadata.labels[internal/x] LabelBlocked",
        ],
    );
    run["metadata"]["labels"] = json!(null);
    judge_run(
        &policy,
        &run,
        &Surroundings::default(),
        &["RequiredLabels enforce metadata.labels MissingRequiredLabels"],
    );
}

#[test]
fn labels_of_other_kinds_are_nobodys_business() {
    let policy = policy(json!({"labels": {
        "required": ["team"], "denied": ["internal/*"], "allowed": ["team"],
    }}));
    let labels = json!({"internal/x": "1", "free": "1"});
    let (nowhere, object) = (
        Surroundings::default(),
        json!({"metadata": {"labels": labels}, "spec": {}}),
    );
    for kind in Kind::ALL {
        let intake = Intake::of(kind, &object, &nowhere, &policy.defaults);
        let is_judged = !evaluate(&policy, &intake).is_empty();
        assert_eq!(is_judged, kind == Kind::AgentRun, "{kind}");
    }
}

#[test]
fn images_are_judged_wherever_a_run_takes_them_from() {
    let policy = policy(json!({
        "images": {"allowed": ["good/*"], "denied": ["*:latest"]}, "defaults": {"image": "operator/runner:1"},
    }));
    let nowhere = Surroundings::default();
    let not_allowed = |at: &str| format!("AllowedImages enforce {at} ImageNotAllowed");
    let at_run = not_allowed("spec.workload.image");
    judge_run(
        &policy,
        &run(json!({"workload": {"image": "good/a:1"}})),
        &nowhere,
        &[],
    );
    judge_run(
        &policy,
        &run(json!({"workload": {"image": "bad/a:latest"}})),
        &nowhere,
        &[
            "DeniedImages enforce spec.workload.image ImageBlocked",
            &at_run,
        ],
    );
    judge_run(&policy, &run(json!({})), &nowhere, &[&at_run]);
    let steps =
        |steps: Value| run(json!({"runtime": {"type": "workflow"}, "workflow": {"steps": steps}}));
    judge_run(
        &policy,
        &steps(json!([
            {"name": "a", "workload": {"image": "bad/a"}}, {"name": "b", "workload": {"image": "good/b"}},
            {"name": "c", "workload": {}},
        ])),
        &nowhere,
        &[
            &not_allowed("spec.workflow.steps[0].workload.image"),
            &not_allowed("spec.workflow.steps[2].workload.image"),
        ],
    );
    judge_run(
        &policy,
        &steps(json!([{"name": "a"}])),
        &nowhere,
        &[&at_run],
    );
    let custom = json!({"runtime": {"type": "custom"}});
    judge_run(&policy, &run(custom), &nowhere, &[]);
}

/// A run that uses a secret in every way there is.
fn run_with_every_secret() -> Value {
    run(json!({
        "runtime": {"type": "workflow", "config": {"imagePullSecrets": ["pull-a", {"name": "pull-b"}]}},
        "secrets": ["env"],
        "workload": {"volumes": [{"type": "secret", "name": "v", "mountPath": "/v", "secretName": "vol"}]},
        "workflow": {"steps": [{"name": "a", "workload": {"volumes": [
            {"type": "emptyDir", "name": "e", "mountPath": "/e"},
            {"type": "secret", "name": "v", "mountPath": "/v", "secretName": "step-vol"},
        ]}}]},
        "systemPromptRef": {"kind": "Secret", "name": "prompt", "key": "text"},
        "memoryRef": {"name": "mem"},
        "vcsRef": {"name": "hub"},
        "vcsPolicy": {"required": true},
    }))
}

fn memory() -> Value {
    object(
        Kind::Memory,
        json!({"type": "postgres", "connection": {"secretRef": {"name": "mem-secret"}}}),
    )
}

fn vcs() -> Value {
    object(
        Kind::VersionControlProvider,
        json!({"provider": "github", "auth": {
            "method": "token", "token": {"secretRef": {"name": "vcs-token"}},
            "app": {"privateKeySecretRef": {"name": "vcs-app"}},
            "ssh": {"privateKeySecretRef": {"name": "vcs-ssh"}},
        }}),
    )
}

/// Every place by which a secret enters [`run_with_every_secret`], with its name.
const EVERY_WAY: [(&str, &str); 11] = [
    (
        "spec.workflow.steps[0].workload.volumes[1].secretName",
        "step-vol",
    ),
    ("spec.workload.volumes[0].secretName", "vol"),
    ("spec.secrets[0]", "env"),
    ("spec.systemPromptRef.name", "prompt"),
    ("spec.memoryRef", "mem-secret"),
    ("spec.vcsRef", "vcs-token"),
    ("spec.vcsRef", "vcs-app"),
    ("spec.vcsRef", "vcs-ssh"),
    ("spec.runtime.config.imagePullSecrets[0]", "pull-a"),
    ("spec.runtime.config.imagePullSecrets[1].name", "pull-b"),
    ("spec.agentRef", "operator-auth"),
];

#[test]
fn every_way_a_secret_enters_a_run_is_seen() {
    let (run, memory, vcs) = (run_with_every_secret(), memory(), vcs());
    let around = Surroundings {
        memory: Some(MemoryFacts::of(&memory).into()),
        vcs: vec![(
            (&Path::root("spec").field("vcsRef")).into(),
            VcsFacts::of(&vcs).into(),
        )],
        ..Surroundings::default()
    };
    let defaults = Defaults {
        auth_secret: Some("operator-auth".to_owned()),
        ..Defaults::default()
    };
    let intake = Intake::of(Kind::AgentRun, &run, &around, &defaults);
    let seen: Vec<(String, &str)> = intake
        .secrets
        .iter()
        .map(|entry| (entry.at.to_string(), entry.name.as_str()))
        .collect();
    assert_eq!(seen, EVERY_WAY.map(|(at, name)| (at.to_owned(), name)));
}

#[test]
fn what_the_operator_pulls_images_with_counts_for_runs_that_do_not_say() {
    let policy = policy(json!({
        "blockedSecrets": ["pull"], "defaults": {"imagePullSecrets": ["fine", "pull"]},
    }));
    let judged = |run: Value| {
        let around = Surroundings::default();
        let intake = Intake::of(Kind::AgentRun, &run, &around, &policy.defaults);
        brief(&evaluate(&policy, &intake))
    };
    let blocked = "BlockedSecrets enforce spec.runtime.config.imagePullSecrets SecretBlocked";
    for runtime in [
        json!(null),
        json!({"type": "job"}),
        json!({"type": "workflow", "config": {}}),
    ] {
        let run = json!({"spec": {"runtime": runtime}});
        assert_eq!(judged(run), [blocked], "{runtime}");
    }
    for runtime in [
        json!({"type": "custom"}),
        json!({"type": "job", "config": {"imagePullSecrets": []}}),
        json!({"type": "job", "config": {"imagePullSecrets": ["own"]}}),
    ] {
        let run = json!({"spec": {"runtime": runtime}});
        assert_eq!(judged(run), Vec::<String>::new(), "{runtime}");
    }
}

#[test]
fn a_blocked_secret_is_refused_on_every_way() {
    let (run, memory, vcs) = (run_with_every_secret(), memory(), vcs());
    let around = Surroundings {
        memory: Some(MemoryFacts::of(&memory).into()),
        vcs: vec![(
            (&Path::root("spec").field("vcsRef")).into(),
            VcsFacts::of(&vcs).into(),
        )],
        ..Surroundings::default()
    };
    for (at, name) in EVERY_WAY {
        let policy = policy(json!({
            "blockedSecrets": [name], "defaults": {"authSecret": "operator-auth"},
            "modes": {"DeclaredSecrets": "audit"},
        }));
        let intake = Intake::of(Kind::AgentRun, &run, &around, &policy.defaults);
        let blocked: Vec<String> = brief(&evaluate(&policy, &intake))
            .into_iter()
            .filter(|line| line.starts_with("BlockedSecrets"))
            .collect();
        assert_eq!(
            blocked,
            [format!("BlockedSecrets enforce {at} SecretBlocked")]
        );
    }
}

#[test]
fn an_agent_that_lists_secrets_refuses_all_others() {
    let agent = object(
        Kind::Agent,
        json!({
            "providerRef": {"name": "p"}, "security": {"allowedSecrets": ["env", "mem-secret"]},
        }),
    );
    let (memory, vcs) = (memory(), vcs());
    let around = Surroundings {
        agent: Some(AgentFacts::of(&agent).into()),
        memory: Some(MemoryFacts::of(&memory).into()),
        vcs: vec![(
            (&Path::root("spec").field("vcsRef")).into(),
            VcsFacts::of(&vcs).into(),
        )],
        ..Surroundings::default()
    };
    let policy = policy(json!({"defaults": {"authSecret": "auth"}}));
    let run = run(json!({
        "secrets": ["env", "other", "mem-secret"], "memoryRef": {"name": "m"}, "vcsRef": {"name": "v"},
    }));
    judge_run(
        &policy,
        &run,
        &around,
        &[
            "AgentSecrets enforce spec.secrets[1] SecretNotAllowed",
            "AgentSecrets warn spec.vcsRef SecretNotAllowed",
            "AgentSecrets warn spec.vcsRef SecretNotAllowed",
            "AgentSecrets warn spec.vcsRef SecretNotAllowed",
            "AgentSecrets enforce spec.agentRef SecretNotAllowed",
        ],
    );
}

#[test]
fn credentials_of_version_control_count_only_as_far_as_it_is_used() {
    let vcs = vcs();
    let around = Surroundings {
        vcs: vec![(
            (&Path::root("spec").field("vcsRef")).into(),
            VcsFacts::of(&vcs).into(),
        )],
        ..Surroundings::default()
    };
    let policy = policy(json!({"blockedSecrets": ["vcs-token"]}));
    for (vcs_policy, expected) in [
        (
            json!({}),
            vec!["BlockedSecrets warn spec.vcsRef SecretBlocked"],
        ),
        (
            json!({"required": true}),
            vec!["BlockedSecrets enforce spec.vcsRef SecretBlocked"],
        ),
        (json!({"required": true, "mode": "none"}), vec![]),
    ] {
        judge_run(
            &policy,
            &run(json!({"vcsPolicy": vcs_policy})),
            &around,
            &expected,
        );
    }
}

#[test]
fn prompts_and_memories_from_secrets_must_be_declared() {
    let memory = memory();
    let around = Surroundings {
        memory: Some(MemoryFacts::of(&memory).into()),
        ..Surroundings::default()
    };
    let prompt = json!({"kind": "Secret", "name": "prompt", "key": "text"});
    let policy = Policy::default();
    let undeclared = |at: &str| format!("DeclaredSecrets enforce {at} SecretNotAllowed");
    judge_run(
        &policy,
        &run(json!({"systemPromptRef": prompt})),
        &around,
        &[&undeclared("spec.systemPromptRef.name")],
    );
    judge_run(
        &policy,
        &run(json!({"systemPromptRef": prompt, "secrets": ["prompt"]})),
        &around,
        &[&undeclared("spec.memoryRef")],
    );
    judge_run(
        &policy,
        &run(json!({"systemPromptRef": prompt, "secrets": ["prompt", "mem-secret"]})),
        &around,
        &[],
    );
    let from_config_map = json!({"kind": "ConfigMap", "name": "prompt", "key": "text"});
    judge_run(
        &policy,
        &run(json!({"systemPromptRef": from_config_map})),
        &around,
        &[],
    );
}

#[test]
fn the_default_prompt_of_the_agent_counts_when_the_run_has_none() {
    let agent = object(
        Kind::Agent,
        json!({"providerRef": {"name": "p"}, "defaults": {
            "systemPromptRef": {"kind": "Secret", "name": "prompt", "key": "text"},
        }}),
    );
    let around = Surroundings {
        agent: Some(AgentFacts::of(&agent).into()),
        ..Surroundings::default()
    };
    let policy = Policy::default();
    judge_run(
        &policy,
        &run(json!({})),
        &around,
        &["DeclaredSecrets enforce spec.agentRef SecretNotAllowed"],
    );
    judge_run(
        &policy,
        &run(json!({"systemPrompt": "be kind"})),
        &around,
        &[],
    );
}

#[test]
fn service_accounts_are_judged_after_defaults() {
    let agent = object(
        Kind::Agent,
        json!({
            "providerRef": {"name": "p"}, "security": {"allowedServiceAccounts": ["builder"]},
        }),
    );
    let around = Surroundings {
        agent: Some(AgentFacts::of(&agent).into()),
        ..Surroundings::default()
    };
    let refused =
        "AgentServiceAccounts enforce spec.runtime.config.serviceAccount ServiceAccountNotAllowed";
    let given = |account: &str| {
        run(json!({"runtime": {"type": "job", "config": {"serviceAccount": account}}}))
    };
    let by_operator = policy(json!({"defaults": {"serviceAccount": "builder"}}));
    judge_run(&Policy::default(), &given("builder"), &around, &[]);
    judge_run(&Policy::default(), &given("admin"), &around, &[refused]);
    judge_run(&Policy::default(), &run(json!({})), &around, &[refused]);
    judge_run(&by_operator, &run(json!({})), &around, &[]);
    let custom = run(json!({"runtime": {"type": "custom"}}));
    judge_run(&Policy::default(), &custom, &around, &[]);
}

#[test]
fn bindings_that_name_the_agent_are_the_whole_list() {
    let binding = |subjects: Value| -> Value {
        object(
            Kind::SecretBinding,
            json!({"subjects": subjects, "allowedSecrets": ["a"]}),
        )
    };
    let here = binding(json!([{"kind": "Agent", "name": "coder"}]));
    let elsewhere = binding(json!([{"kind": "Agent", "name": "coder", "namespace": "other"}]));
    let other =
        binding(json!([{"kind": "Tool", "name": "coder"}, {"kind": "Agent", "name": "writer"}]));
    let run = run(json!({"secrets": ["a", "b"]}));
    let required = policy(json!({"requireSecretBinding": true}));
    let missing = "SecretBindings enforce spec.agentRef SecretBindingMissing";
    let not_given = "SecretBindings enforce spec.secrets[1] SecretNotAllowed";
    for (row, policy, bindings, expected) in [
        (
            "named",
            &Policy::default(),
            Some(vec![here.clone(), other.clone()]),
            vec![not_given],
        ),
        (
            "not named",
            &Policy::default(),
            Some(vec![elsewhere.clone(), other.clone()]),
            vec![],
        ),
        (
            "not named, but required",
            &required,
            Some(vec![elsewhere, other]),
            vec![missing],
        ),
        ("none, but required", &required, Some(vec![]), vec![missing]),
        ("required, but nobody looked", &required, None, vec![]),
    ] {
        let around = Surroundings {
            bindings: bindings.map(|bindings| {
                let facts = |binding| BindingFacts::of(binding).into();
                bindings.iter().map(facts).collect()
            }),
            ..Surroundings::default()
        };
        let intake = Intake::of(Kind::AgentRun, &run, &around, &policy.defaults);
        assert_eq!(brief(&evaluate(policy, &intake)), expected, "{row}");
    }
}

#[test]
fn each_rule_runs_in_its_own_mode() {
    let policy = policy(json!({
        "images": {"denied": ["*"]}, "blockedSecrets": ["a"],
        "modes": {"DeniedImages": "audit", "BlockedSecrets": "warn"},
    }));
    judge_run(
        &policy,
        &run(json!({"secrets": ["a"], "workload": {"image": "x"}})),
        &Surroundings::default(),
        &[
            "DeniedImages audit spec.workload.image ImageBlocked",
            "BlockedSecrets warn spec.secrets[0] SecretBlocked",
        ],
    );
}

#[test]
fn other_kinds_are_judged_by_what_they_bring_in() {
    let policy = policy(json!({
        "images": {"denied": ["bad/*"]}, "blockedSecrets": ["mem-secret", "vcs-ssh", "hook", "prompt", "env", "pull", "vol"],
    }));
    let nothing = Surroundings::default();
    let judged = |kind, object: &Value| {
        brief(&evaluate(
            &policy,
            &Intake::of(kind, object, &nothing, &policy.defaults),
        ))
    };
    let tool = object(Kind::Tool, json!({"image": "bad/tool"}));
    assert_eq!(
        judged(Kind::Tool, &tool),
        ["DeniedImages enforce spec.image ImageBlocked"]
    );
    assert_eq!(
        judged(Kind::Memory, &memory()),
        ["BlockedSecrets enforce spec.connection.secretRef.name SecretBlocked"]
    );
    assert_eq!(
        judged(Kind::VersionControlProvider, &vcs()),
        ["BlockedSecrets enforce spec.auth.ssh.privateKeySecretRef.name SecretBlocked"]
    );
    let source = object(
        Kind::ImplementationSource,
        json!({"provider": "github", "auth": {"secretRef": {"name": "hook"}}, "sync": {"secretRef": {"name": "hook"}}}),
    );
    assert_eq!(
        judged(Kind::ImplementationSource, &source),
        [
            "BlockedSecrets enforce spec.auth.secretRef.name SecretBlocked",
            "BlockedSecrets enforce spec.sync.secretRef.name SecretBlocked",
        ]
    );
    let agent = object(
        Kind::Agent,
        json!({"providerRef": {"name": "p"}, "defaults": {
            "systemPromptRef": {"kind": "Secret", "name": "prompt", "key": "text"},
        }}),
    );
    assert_eq!(
        judged(Kind::Agent, &agent),
        ["BlockedSecrets enforce spec.defaults.systemPromptRef.name SecretBlocked"]
    );
    let volume = json!([{"type": "secret", "name": "v", "mountPath": "/v", "secretName": "vol"}]);
    let orchestration = object(
        Kind::Orchestration,
        json!({"steps": [
            {"name": "a", "kind": "Checkpoint"},
            {
                "name": "b", "kind": "AgentRun", "secrets": ["env"], "workload": {"image": "bad/a", "volumes": volume},
                "runtime": {"type": "job", "config": {"imagePullSecrets": [{"name": "pull"}]}},
                "workflow": {"steps": [{"name": "s", "workload": {"image": "bad/b"}}]},
            },
        ]}),
    );
    assert_eq!(
        judged(Kind::Orchestration, &orchestration),
        [
            "DeniedImages enforce spec.steps[1].workload.image ImageBlocked",
            "DeniedImages enforce spec.steps[1].workflow.steps[0].workload.image ImageBlocked",
            "BlockedSecrets enforce spec.steps[1].workload.volumes[0].secretName SecretBlocked",
            "BlockedSecrets enforce spec.steps[1].runtime.config.imagePullSecrets[0].name SecretBlocked",
            "BlockedSecrets enforce spec.steps[1].secrets[0] SecretBlocked",
        ]
    );
}

#[test]
fn an_update_is_judged_by_what_it_adds() {
    let policy = policy(json!({"images": {"denied": ["bad/*"]}, "blockedSecrets": ["a"]}));
    let judged = |run: &Value| {
        evaluate(
            &policy,
            &Intake::of(
                Kind::AgentRun,
                run,
                &Surroundings::default(),
                &policy.defaults,
            ),
        )
    };
    let before = judged(&run(json!({"workload": {"image": "bad/1"}})));
    let same = judged(&run(
        json!({"workload": {"image": "bad/1"}, "secrets": ["a"]}),
    ));
    let other = judged(&run(json!({"workload": {"image": "bad/2"}})));
    assert_eq!(
        brief(&newly_broken(same, &before)),
        ["BlockedSecrets enforce spec.secrets[0] SecretBlocked"]
    );
    assert_eq!(
        brief(&newly_broken(other, &before)),
        ["DeniedImages enforce spec.workload.image ImageBlocked"]
    );
}

#[test]
fn what_an_update_adds_is_seen_also_where_the_messages_are_the_same() {
    let policy = policy(json!({"images": {"denied": ["bad/*"]}, "requireSecretBinding": true}));
    let around = Surroundings {
        bindings: Some(Vec::new()),
        ..Surroundings::default()
    };
    let judged = |spec: Value| {
        let run = run(spec);
        let intake = Intake::of(Kind::AgentRun, &run, &around, &policy.defaults);
        evaluate(&policy, &intake)
    };
    let long = |end: &str| json!({"workload": {"image": format!("bad/{}{end}", "x".repeat(100))}});
    let secrets = |names: &[&str]| json!({"agentRef": {"name": "a"}, "secrets": names});
    for (row, before, after, expected) in [
        ("the same image", long("1"), long("1"), 0),
        ("one that begins like it", long("1"), long("2"), 1),
        ("the same secret", secrets(&["a"]), secrets(&["a"]), 0),
        ("one more", secrets(&["a"]), secrets(&["a", "b"]), 1),
    ] {
        let (before, after) = (judged(before), judged(after));
        assert!(!before.is_empty(), "{row}");
        assert_eq!(newly_broken(after, &before).len(), expected, "{row}");
    }
}

#[test]
fn messages_say_what_would_be_right() {
    let policy = policy(json!({"images": {"allowed": ["a", "b", "c", "d", "e", "f", "g"]}}));
    let run = run(json!({"workload": {"image": "x"}}));
    let nowhere = Surroundings::default();
    let intake = Intake::of(Kind::AgentRun, &run, &nowhere, &policy.defaults);
    let messages: Vec<String> = evaluate(&policy, &intake)
        .into_iter()
        .map(|finding| finding.cause.message)
        .collect();
    assert_eq!(
        messages,
        [r#"image "x" is not allowed here; allowed: "a", "b", "c", "d", "e" and 2 more"#]
    );
}

#[test]
fn a_secret_that_nobody_may_use_gets_no_other_advice() {
    let binding = object(
        Kind::SecretBinding,
        json!({"subjects": [{"kind": "Agent", "name": "coder"}], "allowedSecrets": ["a"]}),
    );
    let around = Surroundings {
        agent: Some(
            AgentFacts {
                secrets: vec!["a".to_owned()],
                ..AgentFacts::default()
            }
            .into(),
        ),
        bindings: Some(vec![BindingFacts::of(&binding).into()]),
        ..Surroundings::default()
    };
    let run = run(json!({"secrets": ["root"]}));
    judge_run(
        &policy(json!({"blockedSecrets": ["root"]})),
        &run,
        &around,
        &["BlockedSecrets enforce spec.secrets[0] SecretBlocked"],
    );
    judge_run(
        &policy(json!({"blockedSecrets": ["root"], "modes": {"BlockedSecrets": "warn"}})),
        &run,
        &around,
        &[
            "BlockedSecrets warn spec.secrets[0] SecretBlocked",
            "AgentSecrets enforce spec.secrets[0] SecretNotAllowed",
            "SecretBindings enforce spec.secrets[0] SecretNotAllowed",
        ],
    );
}

#[test]
fn a_hostile_object_of_many_secrets_is_told_in_short() {
    let names: Vec<String> = (0..200_000).map(|number| format!("s{number}")).collect();
    let run = run(json!({ "secrets": names }));
    let policy = policy(json!({"blockedSecrets": ["s0"], "modes": {"BlockedSecrets": "audit"}}));
    let strict = AgentFacts {
        secrets: vec!["a".to_owned()],
        ..AgentFacts::default()
    };
    let around = Surroundings {
        agent: Some(strict.into()),
        ..Surroundings::default()
    };
    let intake = Intake::of(Kind::AgentRun, &run, &around, &policy.defaults);
    assert!(intake.secrets.len() <= 10_000, "{}", intake.secrets.len());
    let findings = evaluate(&policy, &intake);
    assert_eq!(findings.len(), 101);
    assert_eq!(
        findings.last().map(|finding| finding.cause.reason),
        Some(Reason::TooManyFaults)
    );
    assert_eq!(newly_broken(findings.clone(), &findings), []);
    let nothing = Surroundings::default();
    let lenient = Intake::of(Kind::AgentRun, &run, &nothing, &policy.defaults);
    assert_eq!(
        brief(&evaluate(&Policy::default(), &lenient)),
        ["Amount enforce spec TooMany"]
    );
}
