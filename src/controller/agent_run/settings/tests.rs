//! Each variable of the operator, through the real parser, to what it changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::Settings;
use crate::api::custody::Outcome;
use crate::api::kinds::AgentRun;
use crate::controller::agent_run::job::{Made, make};
use crate::controller::agent_run::retention::{job_ttl, run_due};
use crate::controller::agent_run::turn::Turn;
use crate::controller::agent_run::work::{Found, resolve};
use crate::kit::config::Flags;

fn settings(environment: &[(&str, &str)]) -> Settings {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let environment: BTreeMap<_, _> = environment.iter().map(own).collect();
    let read = Flags::<Settings>::default().resolve(environment);
    read.map_err(|error| error.to_string()).unwrap().0
}

fn read<K: serde::de::DeserializeOwned>(name: &str, spec: Value) -> K {
    let metadata = json!({"name": name, "namespace": "a", "uid": "uid-1"});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
}

fn run() -> AgentRun {
    let spec = json!({"agentRef": {"name": "coder"}, "implementationSpecRef": {"name": "task"}, "runtime": {"type": "job"}});
    read("r", spec)
}

/// All that is made for a run which says nothing, by an operator who says this.
fn made(environment: &[(&str, &str)], security: Value) -> Value {
    let agent = json!({"providerRef": {"name": "shell"}, "security": security});
    let task = Arc::new(read("task", json!({"text": "Do it."})));
    let found = Found {
        agent: Some(Arc::new(read("coder", agent))),
        provider: Some(Arc::new(read("shell", json!({"binary": "/agent"})))),
        implementations: BTreeMap::from([("task".to_owned(), task)]),
        ..Found::default()
    };
    let mut environment = environment.to_vec();
    if !environment.iter().any(|(name, _)| name.ends_with("_IMAGE")) {
        environment.push(("JANGAR_AGENT_RUNNER_IMAGE", "usual"));
    }
    let Settings { runner, .. } = settings(&environment);
    let run = run();
    let work = resolve(&run, Turn::Whole, &found, &runner).unwrap();
    let Made {
        config_maps, job, ..
    } = make(&work, &runner).unwrap();
    json!({"configMaps": config_maps, "job": job})
}

const POD: &str = "/job/spec/template/spec";
const CONTAINER: &str = "/job/spec/template/spec/containers/0";

/// A variable, what is set, where it shows, and as what.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], String, Value);

#[test]
fn each_setting_of_pods_shows_in_the_job() {
    let auth = ("JANGAR_AGENTS_CONTROLLER_AUTH_SECRET_NAME", "auth");
    let image = format!("{CONTAINER}/image");
    let cases: [Case<'_>; 17] = [
        (
            "JANGAR_AGENT_RUNNER_IMAGE",
            &[
                ("JANGAR_AGENT_RUNNER_IMAGE", "one"),
                ("JANGAR_AGENT_IMAGE", "two"),
            ],
            image.clone(),
            json!("one"),
        ),
        (
            "JANGAR_AGENT_IMAGE",
            &[("JANGAR_AGENT_IMAGE", "two")],
            image,
            json!("two"),
        ),
        (
            "JANGAR_AGENT_RUNNER_SERVICE_ACCOUNT",
            &[("JANGAR_AGENT_RUNNER_SERVICE_ACCOUNT", "robot")],
            format!("{POD}/serviceAccountName"),
            json!("robot"),
        ),
        (
            "JANGAR_AGENTS_CONTROLLER_AUTH_SECRET_NAME",
            &[auth],
            format!("{POD}/volumes/2/secret/secretName"),
            json!("auth"),
        ),
        (
            "JANGAR_AGENTS_CONTROLLER_AUTH_SECRET_KEY",
            &[auth, ("JANGAR_AGENTS_CONTROLLER_AUTH_SECRET_KEY", "k.json")],
            format!("{CONTAINER}/env/3/value"),
            json!("/root/.codex/k.json"),
        ),
        (
            "JANGAR_AGENTS_CONTROLLER_AUTH_SECRET_MOUNT_PATH",
            &[
                auth,
                ("JANGAR_AGENTS_CONTROLLER_AUTH_SECRET_MOUNT_PATH", "/home"),
            ],
            format!("{CONTAINER}/env/2/value"),
            json!("/home"),
        ),
        (
            "JANGAR_AGENT_RUNNER_BACKOFF_LIMIT",
            &[("JANGAR_AGENT_RUNNER_BACKOFF_LIMIT", "2")],
            "/job/spec/backoffLimit".to_owned(),
            json!(2),
        ),
        (
            "JANGAR_AGENT_RUNNER_NODE_SELECTOR",
            &[("JANGAR_AGENT_RUNNER_NODE_SELECTOR", r#"{"disk": "ssd"}"#)],
            format!("{POD}/nodeSelector"),
            json!({"disk": "ssd"}),
        ),
        (
            "JANGAR_AGENT_RUNNER_AFFINITY",
            &[("JANGAR_AGENT_RUNNER_AFFINITY", r#"{"podAffinity": {}}"#)],
            format!("{POD}/affinity"),
            json!({"podAffinity": {}}),
        ),
        (
            "JANGAR_AGENT_RUNNER_POD_SECURITY_CONTEXT",
            &[(
                "JANGAR_AGENT_RUNNER_POD_SECURITY_CONTEXT",
                r#"{"runAsUser": 7}"#,
            )],
            format!("{POD}/securityContext"),
            json!({"runAsUser": 7}),
        ),
        (
            "AGENTS_RUNNER_CONTAINER_SECURITY_CONTEXT",
            &[(
                "AGENTS_RUNNER_CONTAINER_SECURITY_CONTEXT",
                r#"{"runAsNonRoot": true}"#,
            )],
            format!("{POD}/containers/0/securityContext"),
            json!({"runAsNonRoot": true}),
        ),
        (
            "JANGAR_AGENT_RUNNER_TOLERATIONS",
            &[(
                "JANGAR_AGENT_RUNNER_TOLERATIONS",
                r#"[{"operator": "Exists"}]"#,
            )],
            format!("{POD}/tolerations"),
            json!([{"operator": "Exists"}]),
        ),
        (
            "JANGAR_AGENT_RUNNER_TOPOLOGY_SPREAD_CONSTRAINTS",
            &[(
                "JANGAR_AGENT_RUNNER_TOPOLOGY_SPREAD_CONSTRAINTS",
                r#"[{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]"#,
            )],
            format!("{POD}/topologySpreadConstraints/0/topologyKey"),
            json!("zone"),
        ),
        (
            "JANGAR_AGENT_RUNNER_IMAGE_PULL_SECRETS",
            &[("JANGAR_AGENT_RUNNER_IMAGE_PULL_SECRETS", r#"["pull"]"#)],
            format!("{POD}/imagePullSecrets"),
            json!([{"name": "pull"}]),
        ),
        (
            "JANGAR_AGENT_RUNNER_PRIORITY_CLASS",
            &[("JANGAR_AGENT_RUNNER_PRIORITY_CLASS", "high")],
            format!("{POD}/priorityClassName"),
            json!("high"),
        ),
        (
            "JANGAR_AGENT_RUNNER_SCHEDULER_NAME",
            &[("JANGAR_AGENT_RUNNER_SCHEDULER_NAME", "mine")],
            format!("{POD}/schedulerName"),
            json!("mine"),
        ),
        (
            "JANGAR_AGENT_RUNNER_LOG_RETENTION_SECONDS",
            &[("JANGAR_AGENT_RUNNER_LOG_RETENTION_SECONDS", "77")],
            "logRetentionSeconds".to_owned(),
            json!(77),
        ),
    ];
    for (variable, environment, pointer, expected) in cases {
        let (made, plain) = (made(environment, json!(null)), made(&[], json!(null)));
        let found = |made: &Value| match pointer.as_str() {
            "logRetentionSeconds" => {
                let document = made["configMaps"][0]["data"]["agent-runner.json"].as_str();
                let document: Value = serde_json::from_str(document.unwrap()).unwrap();
                Some(document["artifacts"]["logRetentionSeconds"].clone())
            }
            pointer => made.pointer(pointer).cloned(),
        };
        assert_eq!(found(&made), Some(expected), "{variable}");
        assert_ne!(found(&made), found(&plain), "{variable} changes nothing");
    }
}

#[test]
fn each_time_shows_in_how_long_something_is_kept() {
    let ttl = |environment: &[(&str, &str)], outcome| {
        job_ttl(&run(), outcome, settings(environment).keep)
    };
    let (well, badly) = (Outcome::Succeeded, Outcome::Failed);
    assert_eq!(ttl(&[], well), Some(600));
    let shorter = [("JANGAR_AGENT_RUNNER_JOB_TTL_SECONDS", "60")];
    assert_eq!(
        (ttl(&shorter, well), ttl(&shorter, badly)),
        (Some(60), Some(60))
    );
    assert_eq!(
        ttl(&[("JANGAR_AGENT_RUNNER_JOB_TTL_SECONDS", "0")], well),
        None
    );
    let longer = [("AGENTS_RUNNER_FAILED_JOB_TTL_SECONDS", "3600")];
    assert_eq!(
        (ttl(&longer, well), ttl(&longer, badly)),
        (Some(600), Some(3600))
    );
    let logs = [("AGENTS_RUNNER_JOB_LOG_RETENTION_SECONDS", "7200")];
    assert_eq!(ttl(&logs, well), Some(7200));

    let mut ended = run();
    let finished = json!({"finishedAt": "2026-01-01T00:00:00Z"});
    ended.status = serde_json::from_value(finished).unwrap();
    let due = |environment: &[(&str, &str)]| {
        let settings = settings(environment);
        let due = run_due(&ended, settings.retention, settings.keep.logs);
        due.map(|due| due.to_string())
    };
    let name = "JANGAR_AGENTS_CONTROLLER_AGENTRUN_RETENTION_SECONDS";
    assert_eq!(due(&[]).as_deref(), Some("2026-01-31T00:00:00Z"));
    assert_eq!(
        due(&[(name, "60")]).as_deref(),
        Some("2026-01-01T00:01:00Z")
    );
    assert_eq!(due(&[(name, "0")]), None);

    let days = |count: u64| Some(Duration::from_secs(count * 24 * 3600));
    let kept = |environment: &[(&str, &str)]| settings(environment).limits.keys_kept();
    assert_eq!(kept(&[]), days(30));
    let name = "JANGAR_AGENTRUN_IDEMPOTENCY_RETENTION_DAYS";
    assert_eq!(kept(&[(name, "2")]), days(2));
}

#[test]
fn version_control_and_artifacts_are_as_the_operator_says() {
    let usual = settings(&[]);
    let set = settings(&[
        ("JANGAR_AGENTS_CONTROLLER_VCS_PROVIDERS_ENABLED", "false"),
        (
            "JANGAR_AGENTS_CONTROLLER_VCS_DEPRECATED_TOKEN_TYPES",
            r#"{"gitlab": ["pat"]}"#,
        ),
        (
            "JANGAR_AGENTS_CONTROLLER_VCS_PR_RATE_LIMITS",
            r#"{"perHour": 3}"#,
        ),
        ("JANGAR_GITHUB_REPOS_ALLOWED", "o/*"),
        ("JANGAR_AGENT_RUNNER_NATS_AUTH_SECRET_NAME", "nats"),
        ("JANGAR_AGENT_RUNNER_NATS_AUTH_USERNAME_KEY", "u"),
        ("JANGAR_AGENT_RUNNER_NATS_AUTH_PASSWORD_KEY", "p"),
        ("JANGAR_AGENTRUN_ARTIFACTS_MAX", "7"),
        ("JANGAR_AGENTRUN_ARTIFACTS_STRICT", "true"),
    ]);
    assert_eq!(
        (usual.runner.vcs.enabled, set.runner.vcs.enabled),
        (true, false)
    );
    assert_ne!(set.runner.vcs.deprecated, usual.runner.vcs.deprecated);
    let limits = json!({"perHour": 3});
    assert_eq!(set.runner.vcs.rate_limits, limits.as_object().cloned());
    assert_ne!(set.runner.vcs.repositories, usual.runner.vcs.repositories);
    let nats = set.runner.nats.unwrap();
    assert_eq!(
        (&*nats.secret, &*nats.username, &*nats.password),
        ("nats", "u", "p")
    );
    assert_eq!(usual.runner.nats, None);
    assert_eq!((usual.artifacts.max, usual.artifacts.strict), (50, false));
    assert_eq!((set.artifacts.max, set.artifacts.strict), (7, true));
}

/// A field that is misspelt would be left out, and containers be less safe than the operator thinks.
#[test]
fn a_security_context_with_an_unknown_field_is_refused() {
    for text in [r#"{"runAsNonroot": true}"#, "[]", "true"] {
        let name = "AGENTS_RUNNER_CONTAINER_SECURITY_CONTEXT".to_owned();
        let environment = BTreeMap::from([(name, text.to_owned())]);
        let read = Flags::<Settings>::default().resolve(environment);
        let error = read.map(drop).unwrap_err().to_string();
        assert!(error.contains("runAsNonRoot"), "{error}");
    }
}
