use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::controller::agent_run::settings::Auth;
use crate::controller::agent_run::turn::Try;
use crate::controller::agent_run::work::{Found, resolve};

fn read<K: serde::de::DeserializeOwned>(name: &str, spec: Value) -> K {
    let metadata = json!({"name": name, "namespace": "a", "uid": "uid-1",
        "annotations": {"agents.proompteng.ai/traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
}

fn made(run: Value, provider: Value, agent: Value, runner: &Runner) -> Value {
    made_for(Turn::Whole, run, provider, agent, runner)
}

fn made_for(turn: Turn, run: Value, provider: Value, agent: Value, runner: &Runner) -> Value {
    let mut spec = json!({
        "agentRef": {"name": "coder"}, "implementationSpecRef": {"name": "Task 1"}, "runtime": {"type": "job"},
        "workload": {"image": "runner:1"},
    });
    spec.as_object_mut()
        .unwrap()
        .extend(run.as_object().unwrap().clone());
    let run: AgentRun = read("r", spec);
    let found = Found {
        agent: Some(Arc::new(read("Coder A", agent))),
        provider: Some(Arc::new(read("shell", provider))),
        implementations: BTreeMap::from([(
            "Task 1".to_owned(),
            Arc::new(read("task", json!({"text": "Do it.", "summary": "It"}))),
        )]),
        ..Found::default()
    };
    let work = resolve(&run, turn, &found, runner).unwrap();
    let Made { config_maps, job } = make(&work, runner).unwrap();
    json!({"configMaps": config_maps, "job": job})
}

fn agent() -> Value {
    json!({"providerRef": {"name": "shell"}})
}

fn provider() -> Value {
    json!({"binary": "/agent"})
}

fn pod(made: &Value) -> &Value {
    &made["job"]["spec"]["template"]["spec"]
}

#[test]
fn the_smallest_run_becomes_this_job() {
    let made = made(json!({}), provider(), agent(), &Runner::default());
    let labels = json!({
        "agents.proompteng.ai/agent": "coder-a", "agents.proompteng.ai/agent-run": "r",
        "agents.proompteng.ai/implementation": "task-1", "agents.proompteng.ai/provider": "shell",
        "agents.proompteng.ai/run-uid": "uid-1",
    });
    let owner = json!([{"apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun", "name": "r", "uid": "uid-1", "controller": true}]);
    assert_eq!(
        made["job"],
        json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "r-job", "namespace": "a", "labels": labels, "ownerReferences": owner,
                "finalizers": ["agents.proompteng.ai/outcome"]},
            "spec": {"backoffLimit": 0, "podReplacementPolicy": "Failed", "template": {
                "metadata": {"labels": labels, "finalizers": ["agents.proompteng.ai/evidence"]},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{
                        "name": "agent-runner", "image": "runner:1", "command": ["/agent"], "args": [], "resources": {},
                        "env": [
                            {"name": "AGENT_RUN_SPEC", "value": "/workspace/run.json"},
                            {"name": "AGENT_RUNNER_SPEC_PATH", "value": "/workspace/agent-runner.json"},
                            {"name": "AGENT_PROVIDER", "value": "shell"},
                            {"name": "TRACEPARENT", "value": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
                        ],
                        "volumeMounts": [
                            {"name": "r-spec-vol", "mountPath": "/workspace/run.json", "subPath": "run.json", "readOnly": true},
                            {"name": "r-spec-vol", "mountPath": "/workspace/agent-runner.json", "subPath": "agent-runner.json", "readOnly": true},
                        ],
                    }],
                    "volumes": [{"name": "r-spec-vol", "configMap": {"name": "r-spec"}}],
                },
            }},
        })
    );
    assert_eq!(made["configMaps"][0]["metadata"]["ownerReferences"], owner);
}

#[test]
fn the_documents_say_what_is_to_be_done() {
    let run = json!({"parameters": {"repo": "o/r"}, "systemPrompt": "Be kind."});
    let provider = json!({"binary": "/agent", "inputFiles": [{"path": "/in/a", "content": "A"}], "outputArtifacts": [{"name": "patch"}]});
    let made = made(run, provider, agent(), &Runner::default());
    let document = |map: usize, key: &str| -> Value {
        serde_json::from_str(made["configMaps"][map]["data"][key].as_str().unwrap()).unwrap()
    };
    assert_eq!(
        document(0, "run.json"),
        json!({
            "provider": "shell", "agentRun": {"name": "r", "namespace": "a", "uid": "uid-1"},
            "implementation": {"text": "Do it.", "summary": "It"}, "parameters": {"repo": "o/r"}, "memory": null,
            "artifacts": [{"name": "patch"}], "systemPrompt": "Be kind.", "prompt": "Do it.", "repository": "o/r",
            "issueTitle": "It", "issueBody": "Do it.",
            "metadata": {"map": {"repo": "o/r", "repository": "o/r", "issueTitle": "It", "issueBody": "Do it.", "prompt": "Do it."}},
        })
    );
    assert_eq!(
        document(0, "agent-runner.json"),
        json!({
            "provider": "shell", "inputs": {"repo": "o/r"}, "payloads": {"eventFilePath": "/workspace/run.json"},
            "artifacts": {"statusPath": "/workspace/.agent/status.json", "logPath": "/workspace/.agent/runner.log", "logRetentionSeconds": 0},
        })
    );
    assert_eq!(made["configMaps"][1]["data"], json!({"input-0": "A"}));
    let mounts = pod(&made)["containers"][0]["volumeMounts"]
        .as_array()
        .unwrap();
    assert_eq!(
        mounts[0],
        json!({"name": "r-inputs-vol", "mountPath": "/in/a", "subPath": "input-0", "readOnly": true})
    );
}

#[test]
fn secrets_are_referred_to_and_never_copied() {
    let run = json!({
        "secrets": ["model-key"], "systemPromptRef": {"kind": "Secret", "name": "prompts", "key": "p"},
        "workload": {"image": "runner:1", "volumes": [{"type": "secret", "name": "keys", "mountPath": "/keys", "secretName": "ssh", "readOnly": true}]},
    });
    let runner = Runner {
        auth: Some(Auth {
            secret: "auth".to_owned(),
            key: "auth.json".to_owned(),
            mount: "/root/.codex/".to_owned(),
        }),
        ..Runner::default()
    };
    let made = made(run, provider(), agent(), &runner);
    let container = &pod(&made)["containers"][0];
    assert_eq!(
        container["envFrom"],
        json!([{"secretRef": {"name": "model-key"}}])
    );
    let volumes = pod(&made)["volumes"].as_array().unwrap();
    let secrets: Vec<_> = volumes
        .iter()
        .filter_map(|volume| volume["secret"]["secretName"].as_str())
        .collect();
    assert_eq!(secrets, ["ssh", "prompts", "auth"]);
    let mounts = container["volumeMounts"].as_array().unwrap();
    let paths: Vec<_> = mounts
        .iter()
        .filter_map(|mount| mount["mountPath"].as_str())
        .collect();
    assert_eq!(
        paths,
        [
            "/keys",
            "/workspace/run.json",
            "/workspace/agent-runner.json",
            "/workspace/.codex",
            "/root/.codex/",
            "/root/.codex/auth.json"
        ]
    );
    let env: Vec<_> = container["env"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|env| env["name"].as_str())
        .collect();
    assert_eq!(
        env,
        [
            "AGENT_RUN_SPEC",
            "AGENT_RUNNER_SPEC_PATH",
            "CODEX_HOME",
            "CODEX_AUTH",
            "AGENT_PROVIDER",
            "CODEX_SYSTEM_PROMPT_PATH",
            "TRACEPARENT"
        ]
    );
}

#[test]
fn templates_the_agents_environment_and_limits_reach_the_pod() {
    let run = json!({
        "parameters": {"x": "1"},
        "workload": {"image": "runner:1", "resources": {"limits": {"cpu": "2"}},
            "volumes": [{"type": "emptyDir", "name": "tmp", "mountPath": "/tmp", "sizeLimit": "1Gi"}, {"type": "pvc", "name": "cache", "mountPath": "/cache", "claimName": "c"}]},
    });
    let provider = json!({"binary": "/agent", "argsTemplate": ["--x={{ parameters.x }}"], "envTemplate": {"MODEL": "{{ agent.config.model }}"}});
    let agent = json!({"providerRef": {"name": "shell"}, "config": {"model": "large"}, "env": [{"name": "MODE", "value": "fast"}],
        "defaults": {"timeoutSeconds": 60, "retryLimit": 2}});
    let made = made(run, provider, agent, &Runner::default());
    let container = &pod(&made)["containers"][0];
    assert_eq!(container["args"], json!(["--x=1"]));
    assert_eq!(
        container["env"][2],
        json!({"name": "MODE", "value": "fast"})
    );
    assert_eq!(
        container["env"][3],
        json!({"name": "MODEL", "value": "large"})
    );
    assert_eq!(container["resources"], json!({"limits": {"cpu": "2"}}));
    assert_eq!(
        pod(&made)["volumes"][0],
        json!({"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}})
    );
    assert_eq!(
        pod(&made)["volumes"][1],
        json!({"name": "cache", "persistentVolumeClaim": {"claimName": "c"}})
    );
    assert_eq!(made["job"]["spec"]["activeDeadlineSeconds"], 60);
    assert_eq!(made["job"]["spec"]["backoffLimit"], 2);
}

#[test]
fn the_runs_settings_of_the_pod_go_over_the_operators() {
    let config = json!({"type": "job", "config": {
        "serviceAccount": "own", "tolerations": [], "nodeSelector": {"pool": "own"}, "imagePullSecrets": ["a", {"name": "b"}], "backoffLimit": 1,
    }});
    let operators = json!({"tolerations": [{"key": "x"}], "nodeSelector": {"pool": "operator"}, "priorityClassName": "low"});
    let runner = Runner {
        pod: operators.as_object().cloned().unwrap(),
        service_account: Some("operator".to_owned()),
        ..Runner::default()
    };
    let own = made(json!({ "runtime": config }), provider(), agent(), &runner);
    let own = pod(&own);
    assert_eq!(own["serviceAccountName"], "own");
    assert_eq!(own["nodeSelector"], json!({"pool": "own"}));
    assert_eq!(
        own["tolerations"],
        Value::Null,
        "an empty list clears the operator's"
    );
    assert_eq!(
        own["imagePullSecrets"],
        json!([{"name": "a"}, {"name": "b"}])
    );
    assert_eq!(own["priorityClassName"], "low");
    let plain = made(json!({}), provider(), agent(), &runner);
    assert_eq!(pod(&plain)["serviceAccountName"], "operator");
    assert_eq!(pod(&plain)["tolerations"], json!([{"key": "x"}]));
}

#[test]
fn a_step_becomes_a_job_of_its_own_with_what_it_changes() {
    let run = json!({
        "runtime": {"type": "workflow"}, "parameters": {"a": "run", "b": "run"},
        "workflow": {"steps": [
            {"name": "first"},
            {"name": "Second one", "parameters": {"b": "step", "c": "step"}, "timeoutSeconds": 90, "loop": {"maxIterations": 3},
                "implementation": {"inline": {"text": "Do more."}}, "workload": {"image": "other:2"}},
        ]},
    });
    let provider = json!({"binary": "/agent", "argsTemplate": ["{{ step.name }}", "{{ step.iteration }}", "{{ parameters.b }}"]});
    let agent = json!({"providerRef": {"name": "shell"}, "defaults": {"timeoutSeconds": 60}});
    let turn = |index, iteration, attempt| {
        Turn::Step(Try {
            index,
            iteration,
            attempt,
        })
    };
    let of = |turn| {
        made_for(
            turn,
            run.clone(),
            provider.clone(),
            agent.clone(),
            &Runner::default(),
        )
    };
    let first = of(turn(0, 1, 1));
    assert_eq!(first["job"]["metadata"]["name"], "r-step-1-attempt-1");
    assert_eq!(first["job"]["spec"]["activeDeadlineSeconds"], 60);
    assert_eq!(pod(&first)["containers"][0]["image"], "runner:1");
    let second = of(turn(1, 2, 1));
    let name = "r-step-2-iteration-2-attempt-1";
    assert_eq!(second["job"]["metadata"]["name"], name);
    assert_eq!(second["job"]["spec"]["activeDeadlineSeconds"], 90);
    let container = &pod(&second)["containers"][0];
    assert_eq!(container["image"], "other:2");
    assert_eq!(container["args"], json!(["Second one", "2", "step"]));
    let labels = &second["job"]["spec"]["template"]["metadata"]["labels"];
    assert_eq!(labels["agents.proompteng.ai/step"], "second-one");
    assert_eq!(labels["agents.proompteng.ai/step-index"], "2");
    let map = &second["configMaps"][0];
    assert_eq!(
        map["metadata"]["name"],
        "r-spec-step-2-iteration-2-attempt-1"
    );
    let document: Value = serde_json::from_str(map["data"]["run.json"].as_str().unwrap()).unwrap();
    assert_eq!(
        document["parameters"],
        json!({"a": "run", "b": "step", "c": "step"})
    );
    assert_eq!(document["implementation"]["text"], "Do more.");
    assert_eq!(
        document["step"],
        json!({"name": "Second one", "index": 2, "iteration": 2, "attempt": 1})
    );
}
