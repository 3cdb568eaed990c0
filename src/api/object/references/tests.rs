use serde_json::json;

use super::*;

/// Place, kind, namespace and name of each reference.
fn brief(kind: Kind, spec: Value) -> Vec<String> {
    references(kind, &json!({"spec": spec}))
        .into_iter()
        .map(|reference| {
            let Reference {
                at,
                kind,
                namespace,
                name,
            } = reference;
            match namespace {
                None => format!("{at} {kind} {name}"),
                Some(namespace) => format!("{at} {kind} {namespace}/{name}"),
            }
        })
        .collect()
}

#[test]
fn every_kind_that_refers_to_others_is_read() {
    for (kind, spec, expected) in [
        (
            Kind::Agent,
            json!({"providerRef": {"name": "p"}, "memoryRef": {"name": "m"}, "vcsRef": {"name": "v"}}),
            vec![
                "spec.providerRef.name AgentProvider p",
                "spec.memoryRef.name Memory m",
                "spec.vcsRef.name VersionControlProvider v",
            ],
        ),
        (
            Kind::AgentRun,
            json!({
                "agentRef": {"name": "a"}, "implementationSpecRef": {"name": "i"},
                "implementation": {"inline": {"vcsRef": {"name": "v1"}}},
                "workflow": {"steps": [
                    {"name": "x"},
                    {
                        "name": "y", "implementationSpecRef": {"name": "j"},
                        "implementation": {"inline": {"vcsRef": {"name": "v2"}}},
                    },
                ]},
                "memoryRef": {"name": "m"}, "vcsRef": {"name": "v3"}, "secrets": ["s"],
                "systemPromptRef": {"kind": "Secret", "name": "s", "key": "k"},
            }),
            vec![
                "spec.agentRef.name Agent a",
                "spec.implementationSpecRef.name ImplementationSpec i",
                "spec.implementation.inline.vcsRef.name VersionControlProvider v1",
                "spec.workflow.steps[1].implementationSpecRef.name ImplementationSpec j",
                "spec.workflow.steps[1].implementation.inline.vcsRef.name VersionControlProvider v2",
                "spec.memoryRef.name Memory m",
                "spec.vcsRef.name VersionControlProvider v3",
            ],
        ),
        (
            Kind::ImplementationSpec,
            json!({"text": "do", "vcsRef": {"name": "v"}}),
            vec!["spec.vcsRef.name VersionControlProvider v"],
        ),
        (
            Kind::OrchestrationRun,
            json!({"orchestrationRef": {"name": "o"}}),
            vec!["spec.orchestrationRef.name Orchestration o"],
        ),
        (
            Kind::ToolRun,
            json!({"toolRef": {"name": "t"}}),
            vec!["spec.toolRef.name Tool t"],
        ),
        (
            Kind::SignalDelivery,
            json!({"signalRef": {"name": "s"}}),
            vec!["spec.signalRef.name Signal s"],
        ),
        (
            Kind::Schedule,
            json!({"cron": "@daily", "targetRef": {"kind": "AgentRun", "name": "r", "namespace": "n"}}),
            vec!["spec.targetRef.name AgentRun n/r"],
        ),
        (
            Kind::ApprovalPolicy,
            json!({"subjects": [{"kind": "Orchestration", "name": "o"}]}),
            vec!["spec.subjects[0].name Orchestration o"],
        ),
        (
            Kind::SecretBinding,
            json!({"subjects": [
                {"kind": "User", "name": "u"}, {"kind": "Agent", "name": "a", "namespace": "n"},
            ], "allowedSecrets": ["s"]}),
            vec!["spec.subjects[1].name Agent n/a"],
        ),
    ] {
        assert_eq!(brief(kind, spec), expected, "{kind}");
    }
}

#[test]
fn kinds_that_refer_to_nothing_of_ours_give_nothing() {
    let spec = json!({
        "auth": {"secretRef": {"name": "s"}}, "connection": {"secretRef": {"name": "s"}},
        "storageRef": {"name": "b"}, "agentRef": {"name": "not a field of these"},
    });
    for kind in [
        Kind::AgentProvider,
        Kind::ImplementationSource,
        Kind::VersionControlProvider,
        Kind::Memory,
        Kind::Tool,
        Kind::Budget,
        Kind::Signal,
        Kind::Artifact,
        Kind::Workspace,
    ] {
        assert_eq!(brief(kind, spec.clone()), Vec::<String>::new(), "{kind}");
    }
}

#[test]
fn steps_refer_by_object_by_bare_name_and_by_value() {
    let spec = json!({"steps": [
        {
            "name": "a", "kind": "AgentRun", "agentRef": {"name": "a"}, "implementationSpecRef": "i",
            "memoryRef": {"name": "m"},
        },
        {"name": "b", "kind": "ToolRun", "toolRef": {"name": "t"}},
        {"name": "c", "kind": "SubOrchestration", "orchestrationRef": {"name": "o"}},
        {"name": "d", "kind": "ApprovalGate", "policyRef": "p"},
        {"name": "e", "kind": "ApprovalGate", "with": {"policyRef": "q", "other": "x"}},
        {"name": "f", "kind": "SignalWait", "signalRef": {"name": "s"}, "with": {"signalRef": "not this"}},
        {
            "name": "g", "kind": "AgentRun", "implementation": {"inline": {"text": "t", "vcsRef": {"name": "v"}}},
            "workflow": {"steps": [{"name": "x", "implementationSpecRef": {"name": "j"}}]},
        },
    ]});
    assert_eq!(
        brief(Kind::Orchestration, spec),
        [
            "spec.steps[0].agentRef.name Agent a",
            "spec.steps[0].implementationSpecRef ImplementationSpec i",
            "spec.steps[0].memoryRef.name Memory m",
            "spec.steps[1].toolRef.name Tool t",
            "spec.steps[2].orchestrationRef.name Orchestration o",
            "spec.steps[3].policyRef ApprovalPolicy p",
            "spec.steps[4].with[policyRef] ApprovalPolicy q",
            "spec.steps[5].signalRef.name Signal s",
            "spec.steps[6].implementation.inline.vcsRef.name VersionControlProvider v",
            "spec.steps[6].workflow.steps[0].implementationSpecRef.name ImplementationSpec j",
        ]
    );
}

#[test]
fn what_cannot_be_read_is_no_reference() {
    for (row, object) in [
        ("no spec", json!({})),
        ("spec is text", json!({"spec": "x"})),
        ("reference is text", json!({"spec": {"agentRef": "a"}})),
        (
            "name is a number",
            json!({"spec": {"agentRef": {"name": 1}}}),
        ),
        (
            "name is blank",
            json!({"spec": {"agentRef": {"name": " "}}}),
        ),
        (
            "steps are an object",
            json!({"spec": {"workflow": {"steps": {}}}}),
        ),
        (
            "steps are numbers",
            json!({"spec": {"workflow": {"steps": [1]}}}),
        ),
    ] {
        assert_eq!(references(Kind::AgentRun, &object), [], "{row}");
    }
}

#[test]
fn places_lead_back_to_the_name() {
    let object = json!({"spec": {"steps": [{"with": {"policyRef": " p "}}]}});
    let found = references(Kind::Orchestration, &object);
    assert_eq!(found[0].at.find(&object), Some(&json!(" p ")));
    assert_eq!(found[0].name, "p");
}
