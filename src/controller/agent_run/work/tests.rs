use serde_json::{Value, json};

use super::*;

fn object<K: serde::de::DeserializeOwned>(spec: Value) -> K {
    serde_json::from_value(json!({"metadata": {"name": "x", "namespace": "a"}, "spec": spec}))
        .unwrap()
}

fn run(more: Value) -> AgentRun {
    let mut spec = json!({
        "agentRef": {"name": "coder"}, "implementationSpecRef": {"name": "task"}, "runtime": {"type": "job"},
        "workload": {"image": "runner:1"},
    });
    spec.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    object(spec)
}

fn stored(spec: Value) -> BTreeMap<String, Arc<ImplementationSpec>> {
    BTreeMap::from([("task".to_owned(), Arc::new(object(spec)))])
}

fn found() -> Found {
    Found {
        agent: Some(Arc::new(object(json!({"providerRef": {"name": "shell"}})))),
        provider: Some(Arc::new(object(json!({"binary": "/agent"})))),
        implementations: stored(json!({"text": "Do it."})),
        ..Found::default()
    }
}

fn notes() -> Arc<Memory> {
    Arc::new(object(
        json!({"type": "postgres", "connection": {"secretRef": {"name": "notes"}}}),
    ))
}

fn lack(run: &AgentRun, found: &Found) -> Lack {
    resolve(run, Turn::Whole, found, &Runner::default()).unwrap_err()
}

fn waits(reason: Hindrance, message: &str) -> Lack {
    Lack::Waits {
        reason,
        message: message.to_owned(),
    }
}

#[test]
fn what_is_not_there_is_waited_for_and_named_all_at_once() {
    let run = run(json!({"memoryRef": {"name": "notes"}}));
    for (found, expected) in [
        (
            Found::default(),
            waits(
                Hindrance::MissingAgent,
                "Agent coder, ImplementationSpec task, Memory notes do not exist yet",
            ),
        ),
        (
            Found {
                provider: None,
                memory: Some(notes()),
                ..found()
            },
            waits(
                Hindrance::MissingProvider,
                "AgentProvider shell does not exist yet",
            ),
        ),
        (
            found(),
            waits(Hindrance::MissingMemory, "Memory notes does not exist yet"),
        ),
        (
            Found {
                memory: Some(notes()),
                absent_secrets: vec!["key".to_owned()],
                absent_config_maps: vec!["p".to_owned()],
                ..found()
            },
            waits(
                Hindrance::SecretNotFound,
                "Secret key, ConfigMap p do not exist yet",
            ),
        ),
    ] {
        assert_eq!(lack(&run, &found), expected);
    }
}

#[test]
fn a_run_without_any_image_is_wrong_and_the_operators_image_helps() {
    let run = run(json!({"workload": null}));
    let Lack::Wrong { reason, .. } = lack(&run, &found()) else {
        panic!("it should not wait");
    };
    assert_eq!(reason, Lifecycle::MissingWorkloadImage.into());
    let runner = Runner {
        image: Some("default:1".to_owned()),
        ..Runner::default()
    };
    let all = found();
    assert_eq!(
        resolve(&run, Turn::Whole, &all, &runner).unwrap().image,
        "default:1"
    );
}

#[test]
fn parameters_that_the_work_asks_for_must_be_given() {
    let asks = Found {
        implementations: stored(json!({
            "text": "Do it.", "contract": {"requiredKeys": ["repository", "goal"], "mappings": [{"from": "aim", "to": "goal"}]},
        })),
        ..found()
    };
    let given = |parameters: Value| run(json!({ "parameters": parameters }));
    let Lack::Wrong { contract, .. } = lack(&given(json!({"repo": " "})), &asks) else {
        panic!("it should not wait");
    };
    let keys = |keys: &[&str]| Some(keys.iter().map(|key| (*key).to_owned()).collect());
    assert_eq!(
        contract,
        Some(ContractStatus {
            required_keys: keys(&["goal", "repository"]),
            missing_keys: keys(&["goal", "repository"])
        })
    );
    let run = given(json!({"repo": "o/r", "aim": "speed"}));
    let runner = Runner::default();
    let work = resolve(&run, Turn::Whole, &asks, &runner).unwrap();
    assert_eq!(work.metadata["repository"], "o/r");
    assert_eq!(work.metadata["goal"], "speed");
}

#[test]
fn gaps_are_filled_from_the_implementation() {
    let implementation = ImplementationFields {
        text: "The text.".to_owned(),
        summary: Some("The summary".to_owned()),
        source: serde_json::from_value(
            json!({"provider": "github", "externalId": "o/r#7", "url": "https://x/7"}),
        )
        .ok(),
        ..ImplementationFields::default()
    };
    let parameters = BTreeMap::from([("issue_number".to_owned(), "8".to_owned())]);
    let map = metadata::of(Some(&parameters), &implementation);
    let map: Vec<(&str, &str)> = map
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        map,
        [
            ("issueBody", "The text."),
            ("issueNumber", "8"),
            ("issueTitle", "The summary"),
            ("issueUrl", "https://x/7"),
            ("issue_number", "8"),
            ("prompt", "The text."),
            ("repository", "o/r"),
            ("url", "https://x/7"),
        ]
    );
}

#[test]
fn the_runs_own_prompt_wins_over_the_agents_and_a_reference_over_a_text() {
    let stored = |name: &str| json!({"kind": "ConfigMap", "name": name, "key": "k"});
    let agent = |defaults: Value| {
        object::<Agent>(json!({"providerRef": {"name": "p"}, "defaults": defaults}))
    };
    for (own, defaults, expected) in [
        (json!({}), json!({}), "None"),
        (
            json!({}),
            json!({"systemPrompt": "agent"}),
            "Text(\"agent\")",
        ),
        (
            json!({"systemPrompt": "own"}),
            json!({"systemPromptRef": stored("agent")}),
            "Text(\"own\")",
        ),
        (
            json!({"systemPrompt": " "}),
            json!({"systemPrompt": "agent"}),
            "Text(\"agent\")",
        ),
    ] {
        let (run, agent) = (run(own), agent(defaults));
        assert_eq!(format!("{:?}", prompt(&run, Some(&agent))), expected);
    }
    let (run, agent) = (
        run(json!({"systemPromptRef": stored("own")})),
        agent(json!({"systemPrompt": "agent"})),
    );
    let Prompt::Stored(reference) = prompt(&run, Some(&agent)) else {
        panic!("a reference");
    };
    assert_eq!(reference.name, "own");
}

#[test]
fn a_step_does_what_it_names_itself_else_what_the_run_names() {
    let inline = |text: &str| json!({"inline": {"text": text}});
    for (row, spec, step, expected) in [
        (
            "the text of the step",
            json!({"implementation": inline("run")}),
            json!({"implementation": inline("step")}),
            "step",
        ),
        (
            "the reference of the step",
            json!({"implementation": inline("run")}),
            json!({"implementationSpecRef": {"name": "task"}}),
            "Do it.",
        ),
        (
            "the text of the run",
            json!({"implementation": inline("run")}),
            json!({}),
            "run",
        ),
        ("the reference of the run", json!({}), json!({}), "Do it."),
    ] {
        let mut spec = spec;
        let mut step = step;
        step["name"] = json!("s");
        spec["runtime"] = json!({"type": "workflow"});
        spec["workflow"] = json!({"steps": [step]});
        let (run, found, runner) = (run(spec), found(), Runner::default());
        let turn = Turn::Step(turn::Try::first(0));
        let work = resolve(&run, turn, &found, &runner).unwrap();
        assert_eq!(work.implementation.text, expected, "{row}");
    }
}
