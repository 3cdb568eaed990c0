use crate::api::object::references::references;
use serde_json::json;

use super::*;
use crate::api::text::names::Scope;

/// An known of namespace `team`, listed, with one object of each kind that is followed, called `known`.
fn known() -> Known {
    let known = Known::default();
    let team = Scope::Namespace("team".to_owned());
    for (kind, _) in Known::followed() {
        let (_, shelf) = known.shelf(kind).unwrap();
        shelf.begin(&team);
        shelf.stage(&team, "team", "known", &json!({"spec": {}}));
        shelf.complete(&team);
    }
    known
}

fn put(known: &Known, kind: Kind, name: &str, spec: Value) {
    let (_, shelf) = known.shelf(kind).unwrap();
    shelf.put("team", name, &json!({"spec": spec}));
}

fn run(spec: Value) -> Value {
    json!({"metadata": {"namespace": "team", "name": "r"}, "spec": spec})
}

#[test]
fn references_that_lead_nowhere_are_missing() {
    let known = known();
    for (kind, spec, expected) in [
        (
            Kind::AgentRun,
            json!({"agentRef": {"name": "known"}, "memoryRef": {"name": "other"}}),
            vec!["other"],
        ),
        (
            Kind::Agent,
            json!({"providerRef": {"name": "none"}, "vcsRef": {"name": "known"}}),
            vec!["none"],
        ),
        (
            Kind::SecretBinding,
            json!({"subjects": [
                {"kind": "Agent", "name": "gone"}, {"kind": "Agent", "name": "far", "namespace": "unwatched"},
            ]}),
            vec!["gone"],
        ),
        (
            Kind::Schedule,
            json!({"targetRef": {"kind": "AgentRun", "name": "runs are not followed"}}),
            vec![],
        ),
    ] {
        let references = references(kind, &json!({"spec": spec}));
        let missing: Vec<&str> = references
            .iter()
            .filter(|reference| known.is_missing("team", reference))
            .map(|reference| reference.name.as_str())
            .collect();
        assert_eq!(missing, expected, "{kind}");
        for reference in &references {
            assert!(!known.is_missing("unwatched", reference), "{reference:?}");
            assert!(
                !Known::default().is_missing("team", reference),
                "{reference:?}"
            );
        }
    }
}

/// An known with an Agent, a spec and hosts of repositories that name each other.
fn hosts() -> Known {
    let known = known();
    for host in ["by-run", "by-inline", "by-work", "by-agent"] {
        let auth = json!({"auth": {"token": {"secretRef": {"name": host}}}});
        put(&known, Kind::VersionControlProvider, host, auth);
    }
    put(
        &known,
        Kind::ImplementationSpec,
        "work",
        json!({"vcsRef": {"name": "by-work"}}),
    );
    put(
        &known,
        Kind::Agent,
        "coder",
        json!({"vcsRef": {"name": "by-agent"}}),
    );
    known
}

#[test]
fn the_repository_host_is_that_of_the_run_then_the_work_then_the_agent() {
    let known = hosts();
    let agent = json!({"name": "coder"});
    let work = json!({"name": "work"});
    for (spec, expected) in [
        (json!({"agentRef": agent}), Some("by-agent")),
        (
            json!({"agentRef": agent, "implementationSpecRef": work}),
            Some("by-work"),
        ),
        (
            json!({"agentRef": agent, "implementationSpecRef": work, "implementation": {"inline": {
                "vcsRef": {"name": "by-inline"},
            }}}),
            Some("by-inline"),
        ),
        (
            json!({"agentRef": agent, "implementationSpecRef": work, "implementation": {"inline": {"text": "t"}}}),
            Some("by-agent"),
        ),
        (
            json!({"agentRef": agent, "implementationSpecRef": work, "vcsRef": {"name": "by-run"}}),
            Some("by-run"),
        ),
        (
            json!({"agentRef": agent, "vcsRef": {"name": "unknown"}}),
            None,
        ),
        (json!({"agentRef": {"name": "unknown"}}), None),
    ] {
        let around = known.surroundings(Kind::AgentRun, &run(spec.clone()));
        let expected: Vec<_> = expected
            .into_iter()
            .map(|name| ("spec.vcsRef".to_owned(), name.to_owned()))
            .collect();
        assert_eq!(chosen_by(&around), expected, "{spec}");
    }
    let steps = json!([
        {"name": "as-the-run"},
        {"name": "a", "implementation": {"inline": {"vcsRef": {"name": "by-inline"}}}},
        {"name": "b", "implementationSpecRef": work},
        {"name": "c", "implementation": {"inline": {"text": "t"}}},
    ]);
    let spec = json!({"agentRef": agent, "workflow": {"steps": steps}});
    let around = known.surroundings(Kind::AgentRun, &run(spec.clone()));
    let expected = [
        ("spec.vcsRef", "by-agent"),
        ("spec.workflow.steps[1]", "by-inline"),
        ("spec.workflow.steps[2]", "by-work"),
        ("spec.workflow.steps[3]", "by-agent"),
    ];
    let expected = expected.map(|(at, name)| (at.to_owned(), name.to_owned()));
    assert_eq!(chosen_by(&around), expected, "steps with work of their own");
    let mut chosen = spec;
    chosen["vcsRef"] = json!({"name": "by-run"});
    let around = known.surroundings(Kind::AgentRun, &run(chosen));
    let expected = [("spec.vcsRef".to_owned(), "by-run".to_owned())];
    assert_eq!(
        chosen_by(&around),
        expected,
        "what the run names counts everywhere"
    );
}

/// Where each repository host is chosen, and its first secret.
fn chosen_by(around: &Surroundings) -> Vec<(String, String)> {
    let hosts = around.vcs.iter();
    hosts
        .map(|(at, vcs)| (at.to_string(), vcs.secrets[0].clone()))
        .collect()
}

#[test]
fn the_memory_is_that_of_the_run_then_the_agent_then_the_namespace() {
    let known = known();
    for (name, is_default) in [("a", false), ("b", true), ("c", true)] {
        let spec = json!({"default": is_default, "connection": {"secretRef": {"name": name}}});
        put(&known, Kind::Memory, name, spec);
    }
    put(
        &known,
        Kind::Agent,
        "coder",
        json!({"memoryRef": {"name": "c"}}),
    );
    for (spec, expected) in [
        (json!({"agentRef": {"name": "known"}}), Some("b")),
        (json!({"agentRef": {"name": "coder"}}), Some("c")),
        (
            json!({"agentRef": {"name": "coder"}, "memoryRef": {"name": "a"}}),
            Some("a"),
        ),
        (json!({"memoryRef": {"name": "unknown"}}), None),
    ] {
        let around = known.surroundings(Kind::AgentRun, &run(spec.clone()));
        let secret = around.memory.and_then(|memory| memory.secret.clone());
        assert_eq!(secret.as_deref(), expected, "{spec}");
    }
}

#[test]
fn runs_see_the_bindings_of_their_namespace_and_tool_runs_their_tool() {
    let known = known();
    put(
        &known,
        Kind::SecretBinding,
        "b",
        json!({"allowedSecrets": ["s"]}),
    );
    put(&known, Kind::Tool, "t", json!({"image": "i"}));
    let around = known.surroundings(Kind::AgentRun, &run(json!({})));
    let given: Vec<_> = around
        .bindings
        .iter()
        .flatten()
        .map(|binding| binding.secrets.clone())
        .collect();
    assert_eq!(given, [vec!["s".to_owned()], vec![]]);
    let around = known.surroundings(Kind::ToolRun, &run(json!({"toolRef": {"name": "t"}})));
    assert_eq!(
        around.tool.and_then(|tool| tool.image.clone()).as_deref(),
        Some("i")
    );
    let elsewhere = json!({"metadata": {"namespace": "other"}, "spec": {"toolRef": {"name": "t"}}});
    assert!(known.surroundings(Kind::ToolRun, &elsewhere).tool.is_none());
}

#[test]
fn an_object_that_cannot_be_read_has_no_surroundings() {
    let known = hosts();
    for object in [
        json!({}),
        json!({"metadata": {}, "spec": {"agentRef": {"name": "coder"}}}),
        json!({"metadata": {"namespace": "team"}, "spec": 1}),
        json!({"metadata": {"namespace": "team"}}),
    ] {
        let around = known.surroundings(Kind::AgentRun, &object);
        assert!(around.agent.is_none() && around.vcs.is_empty(), "{object}");
    }
}
