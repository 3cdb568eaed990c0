//! Values become variables: by the names of the operators, in the order that is promised, and as the programs read them.

use agents::kit::config::{Flags, Settings};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use support::helm::{Helm, Rendered};

/// A JSON object with one value at a dotted path.
pub(super) fn at(path: &str, value: &Value) -> Value {
    let parts = path.rsplit('.');
    parts.fold(value.clone(), |inner, part| json!({part: inner}))
}

/// Lays one JSON object over another.
pub(super) fn merge(under: &mut Value, over: &Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                merge(under.entry(key).or_insert(Value::Null), value);
            }
        }
        (under, over) => *under = over.clone(),
    }
}

/// Whether a program would start with what its container is told.
pub(super) fn starts<S: Settings>(rendered: &Rendered, container: &str) -> Result<()> {
    let told = rendered.plain_variables(container)?;
    let read = Flags::<S>::default().resolve(told);
    read.map(drop)
        .with_context(|| format!("{container} would not start"))
}

/// The mapping of values to variables that operators rely on: path, value, variable, its text. Zeros and false are kept.
const MAPPED: &[Row] = &[
    (
        "controller.enabled",
        "false",
        "JANGAR_AGENTS_CONTROLLER_ENABLED",
        "false",
    ),
    (
        "controller.namespaces",
        r#"["a","b"]"#,
        "JANGAR_AGENTS_CONTROLLER_NAMESPACES",
        "a,b",
    ),
    (
        "controller.concurrency.perNamespace",
        "7",
        "JANGAR_AGENTS_CONTROLLER_CONCURRENCY_NAMESPACE",
        "7",
    ),
    (
        "controller.concurrency.perAgent",
        "8",
        "JANGAR_AGENTS_CONTROLLER_CONCURRENCY_AGENT",
        "8",
    ),
    (
        "controller.concurrency.cluster",
        "1000000",
        "JANGAR_AGENTS_CONTROLLER_CONCURRENCY_CLUSTER",
        "1000000",
    ),
    (
        "controller.repoConcurrency.enabled",
        "true",
        "JANGAR_AGENTS_CONTROLLER_REPO_CONCURRENCY_ENABLED",
        "true",
    ),
    (
        "controller.repoConcurrency.default",
        "3",
        "JANGAR_AGENTS_CONTROLLER_REPO_CONCURRENCY_DEFAULT",
        "3",
    ),
    (
        "controller.repoConcurrency.overrides",
        r#"{"o/n":2}"#,
        "JANGAR_AGENTS_CONTROLLER_REPO_CONCURRENCY_OVERRIDES",
        r#"{"o/n":2}"#,
    ),
    (
        "controller.queue.perNamespace",
        "0",
        "JANGAR_AGENTS_CONTROLLER_QUEUE_NAMESPACE",
        "0",
    ),
    (
        "controller.queue.perRepo",
        "0",
        "JANGAR_AGENTS_CONTROLLER_QUEUE_REPO",
        "0",
    ),
    (
        "controller.queue.cluster",
        "0",
        "JANGAR_AGENTS_CONTROLLER_QUEUE_CLUSTER",
        "0",
    ),
    (
        "controller.rate.windowSeconds",
        "90",
        "JANGAR_AGENTS_CONTROLLER_RATE_WINDOW_SECONDS",
        "90",
    ),
    (
        "controller.rate.perNamespace",
        "0",
        "JANGAR_AGENTS_CONTROLLER_RATE_NAMESPACE",
        "0",
    ),
    (
        "controller.rate.perRepo",
        "0",
        "JANGAR_AGENTS_CONTROLLER_RATE_REPO",
        "0",
    ),
    (
        "controller.rate.cluster",
        "0",
        "JANGAR_AGENTS_CONTROLLER_RATE_CLUSTER",
        "0",
    ),
    (
        "controller.agentRunRetentionSeconds",
        "0",
        "JANGAR_AGENTS_CONTROLLER_AGENTRUN_RETENTION_SECONDS",
        "0",
    ),
    (
        "controller.agentRunRetentionSeconds",
        "2592000",
        "JANGAR_AGENTS_CONTROLLER_AGENTRUN_RETENTION_SECONDS",
        "2592000",
    ),
    (
        "controller.agentRunArtifacts.max",
        "0",
        "JANGAR_AGENTRUN_ARTIFACTS_MAX",
        "0",
    ),
    (
        "controller.agentRunArtifacts.strict",
        "true",
        "JANGAR_AGENTRUN_ARTIFACTS_STRICT",
        "true",
    ),
    (
        "controller.logRetentionSeconds",
        "0",
        "JANGAR_AGENT_RUNNER_LOG_RETENTION_SECONDS",
        "0",
    ),
    (
        "controller.jobTtlSecondsAfterFinished",
        "0",
        "JANGAR_AGENT_RUNNER_JOB_TTL_SECONDS",
        "0",
    ),
    (
        "controller.jobTtlSeconds",
        "86400",
        "JANGAR_AGENT_RUNNER_JOB_TTL_SECONDS",
        "86400",
    ),
    (
        "controller.failedJobTtlSeconds",
        "0",
        "AGENTS_RUNNER_FAILED_JOB_TTL_SECONDS",
        "0",
    ),
    (
        "controller.jobTtlFloorSeconds",
        "0",
        "AGENTS_RUNNER_JOB_TTL_FLOOR_SECONDS",
        "0",
    ),
    (
        "controller.jobLogRetentionSeconds",
        "60",
        "AGENTS_RUNNER_JOB_LOG_RETENTION_SECONDS",
        "60",
    ),
    (
        "controller.jobBackoffLimit",
        "2",
        "JANGAR_AGENT_RUNNER_BACKOFF_LIMIT",
        "2",
    ),
    (
        "controller.referenceGraceSeconds",
        "0",
        "AGENTS_REFERENCE_GRACE_SECONDS",
        "0",
    ),
    (
        "controller.admissionPolicy.labels.required",
        r#"["a"]"#,
        "JANGAR_AGENTS_CONTROLLER_LABELS_REQUIRED",
        r#"["a"]"#,
    ),
    (
        "controller.admissionPolicy.labels.allowed",
        r#"["a*"]"#,
        "JANGAR_AGENTS_CONTROLLER_LABELS_ALLOWED",
        r#"["a*"]"#,
    ),
    (
        "controller.admissionPolicy.labels.denied",
        r#"["b"]"#,
        "JANGAR_AGENTS_CONTROLLER_LABELS_DENIED",
        r#"["b"]"#,
    ),
    (
        "controller.admissionPolicy.images.allowed",
        r#"["i/*"]"#,
        "JANGAR_AGENTS_CONTROLLER_IMAGES_ALLOWED",
        r#"["i/*"]"#,
    ),
    (
        "controller.admissionPolicy.images.denied",
        r#"["j/*"]"#,
        "JANGAR_AGENTS_CONTROLLER_IMAGES_DENIED",
        r#"["j/*"]"#,
    ),
    (
        "controller.admissionPolicy.secrets.blocked",
        r#"["s"]"#,
        "JANGAR_AGENTS_CONTROLLER_BLOCKED_SECRETS",
        r#"["s"]"#,
    ),
    (
        "controller.admissionPolicy.requireSecretBinding",
        "true",
        "AGENTS_POLICY_REQUIRE_SECRET_BINDING",
        "true",
    ),
    (
        "controller.admissionPolicy.modes",
        r#"{"DeniedImages":"warn","BlockedSecrets":"audit"}"#,
        "AGENTS_POLICY_MODES",
        "BlockedSecrets=audit,DeniedImages=warn",
    ),
    (
        "controller.vcsProviders.enabled",
        "false",
        "JANGAR_AGENTS_CONTROLLER_VCS_PROVIDERS_ENABLED",
        "false",
    ),
    (
        "controller.vcsProviders.deprecatedTokenTypes",
        r#"{"github":[]}"#,
        "JANGAR_AGENTS_CONTROLLER_VCS_DEPRECATED_TOKEN_TYPES",
        r#"{"github":[]}"#,
    ),
    (
        "controller.vcsProviders.prRateLimits",
        r#"{"perHour":10}"#,
        "JANGAR_AGENTS_CONTROLLER_VCS_PR_RATE_LIMITS",
        r#"{"perHour":10}"#,
    ),
    (
        "controller.authSecret",
        r#"{"name":"auth"}"#,
        "JANGAR_AGENTS_CONTROLLER_AUTH_SECRET_NAME",
        "auth",
    ),
    (
        "controller.authSecret",
        r#"{"name":"auth","key":"k"}"#,
        "JANGAR_AGENTS_CONTROLLER_AUTH_SECRET_KEY",
        "k",
    ),
    (
        "controller.authSecret",
        r#"{"name":"auth"}"#,
        "JANGAR_AGENTS_CONTROLLER_AUTH_SECRET_MOUNT_PATH",
        "/root/.codex",
    ),
    (
        "controller.leaderElection.enabled",
        "false",
        "JANGAR_LEADER_ELECTION_ENABLED",
        "false",
    ),
    (
        "controller.leaderElection.leaseName",
        r#""l""#,
        "JANGAR_LEADER_ELECTION_LEASE_NAME",
        "l",
    ),
    (
        "controller.leaderElection.leaseNamespace",
        r#""n""#,
        "JANGAR_LEADER_ELECTION_LEASE_NAMESPACE",
        "n",
    ),
    (
        "controller.leaderElection.leaseDurationSeconds",
        "60",
        "JANGAR_LEADER_ELECTION_LEASE_DURATION_SECONDS",
        "60",
    ),
    (
        "controller.leaderElection.renewDeadlineSeconds",
        "25",
        "JANGAR_LEADER_ELECTION_RENEW_DEADLINE_SECONDS",
        "25",
    ),
    (
        "controller.leaderElection.retryPeriodSeconds",
        "2",
        "JANGAR_LEADER_ELECTION_RETRY_PERIOD_SECONDS",
        "2",
    ),
    (
        "controller.defaultWorkload.serviceAccountName",
        r#""w""#,
        "JANGAR_AGENT_RUNNER_SERVICE_ACCOUNT",
        "w",
    ),
    (
        "controller.defaultWorkload.nodeSelector",
        r#"{"a":"b"}"#,
        "JANGAR_AGENT_RUNNER_NODE_SELECTOR",
        r#"{"a":"b"}"#,
    ),
    (
        "controller.defaultWorkload.tolerations",
        r#"[{"key":"a"}]"#,
        "JANGAR_AGENT_RUNNER_TOLERATIONS",
        r#"[{"key":"a"}]"#,
    ),
    (
        "controller.defaultWorkload.affinity",
        r#"{"nodeAffinity":{}}"#,
        "JANGAR_AGENT_RUNNER_AFFINITY",
        r#"{"nodeAffinity":{}}"#,
    ),
    (
        "controller.defaultWorkload.topologySpreadConstraints",
        r#"[{"maxSkew":1}]"#,
        "JANGAR_AGENT_RUNNER_TOPOLOGY_SPREAD_CONSTRAINTS",
        r#"[{"maxSkew":1}]"#,
    ),
    (
        "controller.defaultWorkload.podSecurityContext",
        r#"{"runAsUser":1}"#,
        "JANGAR_AGENT_RUNNER_POD_SECURITY_CONTEXT",
        r#"{"runAsUser":1}"#,
    ),
    (
        "controller.defaultWorkload.containerSecurityContext",
        r#"{"runAsNonRoot":true}"#,
        "AGENTS_RUNNER_CONTAINER_SECURITY_CONTEXT",
        r#"{"runAsNonRoot":true}"#,
    ),
    (
        "controller.defaultWorkload.imagePullSecrets",
        r#"["p"]"#,
        "JANGAR_AGENT_RUNNER_IMAGE_PULL_SECRETS",
        r#"["p"]"#,
    ),
    (
        "controller.defaultWorkload.priorityClassName",
        r#""high""#,
        "JANGAR_AGENT_RUNNER_PRIORITY_CLASS",
        "high",
    ),
    (
        "controller.defaultWorkload.schedulerName",
        r#""own""#,
        "JANGAR_AGENT_RUNNER_SCHEDULER_NAME",
        "own",
    ),
    (
        "runner.image",
        r#"{"repository":"r","tag":"t","digest":"sha256:0000000000000000000000000000000000000000000000000000000000000000"}"#,
        "JANGAR_AGENT_RUNNER_IMAGE",
        "r:t@sha256:0000000000000000000000000000000000000000000000000000000000000000",
    ),
    (
        "runner.image.pullSecrets",
        r#"["q"]"#,
        "JANGAR_AGENT_RUNNER_IMAGE_PULL_SECRETS",
        r#"["q"]"#,
    ),
    (
        "runtime.agentRunnerImage",
        r#""r:1""#,
        "JANGAR_AGENT_RUNNER_IMAGE",
        "r:1",
    ),
    (
        "runtime.agentImage",
        r#""a:1""#,
        "JANGAR_AGENT_IMAGE",
        "a:1",
    ),
    (
        "runnerServiceAccount.create",
        "true",
        "JANGAR_AGENT_RUNNER_SERVICE_ACCOUNT",
        "agents-runner",
    ),
    (
        "runnerServiceAccount.name",
        r#""mine""#,
        "JANGAR_AGENT_RUNNER_SERVICE_ACCOUNT",
        "mine",
    ),
    (
        "orchestrationController.enabled",
        "false",
        "JANGAR_ORCHESTRATION_CONTROLLER_ENABLED",
        "false",
    ),
    (
        "orchestrationController.namespaces",
        r#"["o"]"#,
        "JANGAR_ORCHESTRATION_CONTROLLER_NAMESPACES",
        "o",
    ),
    (
        "supportingController.enabled",
        "false",
        "JANGAR_SUPPORTING_CONTROLLER_ENABLED",
        "false",
    ),
    (
        "supportingController.namespaces",
        r#"["s"]"#,
        "JANGAR_SUPPORTING_CONTROLLER_NAMESPACES",
        "s",
    ),
    (
        "rbac.clusterScoped",
        "true",
        "JANGAR_RBAC_CLUSTER_SCOPED",
        "true",
    ),
    (
        "kubernetesApi.host",
        r#""10.0.0.1""#,
        "KUBERNETES_SERVICE_HOST",
        "10.0.0.1",
    ),
    (
        "kubernetesApi.port",
        "6443",
        "KUBERNETES_SERVICE_PORT",
        "6443",
    ),
    (
        "database.url",
        r#""postgres://u:p@h:5432/n""#,
        "DATABASE_URL",
        "postgres://u:p@h:5432/n",
    ),
    (
        "database.secretRef.name",
        r#""db""#,
        "DATABASE_URL",
        r#"{"secretKeyRef":{"key":"url","name":"db"}}"#,
    ),
    (
        "database.caSecret.name",
        r#""ca""#,
        "PGSSLROOTCERT",
        "/etc/agents/database/ca.crt",
    ),
    (
        "controller.webhook.retry.baseDelaySeconds",
        "2",
        "JANGAR_AGENTS_CONTROLLER_WEBHOOK_RETRY_BASE_DELAY_SECONDS",
        "2",
    ),
    (
        "controller.webhook.retry.maxDelaySeconds",
        "9",
        "JANGAR_AGENTS_CONTROLLER_WEBHOOK_RETRY_MAX_DELAY_SECONDS",
        "9",
    ),
    (
        "controller.webhook.retry.maxAttempts",
        "3",
        "JANGAR_AGENTS_CONTROLLER_WEBHOOK_RETRY_MAX_ATTEMPTS",
        "3",
    ),
    (
        "events.enabled",
        "false",
        "JANGAR_CONTROLLER_EVENTS_ENABLED",
        "false",
    ),
    (
        "events.rateLimitPerMinute",
        "5",
        "JANGAR_CONTROLLER_EVENTS_RATE_LIMIT_PER_MIN",
        "5",
    ),
    ("logging.level", r#""debug""#, "AGENTS_LOG_FILTER", "debug"),
    ("logging.format", r#""text""#, "AGENTS_LOG_FORMAT", "text"),
    (
        "tracing.endpoint",
        r#""http://c:4317""#,
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "http://c:4317",
    ),
    (
        "metrics.enabled",
        "true",
        "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
        "http://127.0.0.1:4317",
    ),
    ("metrics.enabled", "false", "OTEL_METRICS_EXPORTER", "none"),
];

/// Those of the control plane alone.
const MAPPED_FOR_CONTROL_PLANE: &[Row] = &[
    (
        "controller.namespaces",
        r#"["a","b"]"#,
        "JANGAR_PRIMITIVES_NAMESPACES",
        "a,b",
    ),
    ("grpc.enabled", "false", "JANGAR_GRPC_ENABLED", "false"),
    ("grpc.port", "50052", "JANGAR_GRPC_PORT", "50052"),
    ("grpc.enabled", "true", "JANGAR_GRPC_HOST", "0.0.0.0"),
    (
        "controller.webhook.enabled",
        "true",
        "AGENTS_SERVE_DELIVERIES",
        "true",
    ),
    (
        "controller.webhook.queueSize",
        "5",
        "JANGAR_AGENTS_CONTROLLER_WEBHOOK_QUEUE_SIZE",
        "5",
    ),
    (
        "controller.namespaces",
        r#"["a","b"]"#,
        "JANGAR_AGENTS_CONTROLLER_NAMESPACES",
        "a,b",
    ),
];

type Row = (&'static str, &'static str, &'static str, &'static str);

/// Whether two rows can be in one set of values: not where one would hide the other, and of the three groups of kinds only one may be off.
fn go_together(one: &Row, other: &Row) -> bool {
    let is_group = |row: &Row| row.0.to_lowercase().ends_with("controller.enabled");
    let hides = one.0.starts_with(other.0) || other.0.starts_with(one.0);
    !hides && one.2 != other.2 && !(is_group(one) && is_group(other))
}

/// Renders a few charts, each with many of the rows, and looks for each variable in its own.
async fn all_are_mapped(table: &[Row], container: &str) -> Result<()> {
    let helm = Helm::new().await?;
    let mut open = table.to_vec();
    while !open.is_empty() {
        let (mut now, mut later): (Vec<Row>, Vec<Row>) = (Vec::new(), Vec::new());
        for row in open {
            let fits = now.iter().all(|taken| go_together(&row, taken));
            if fits { now.push(row) } else { later.push(row) }
        }
        let mut values = json!({});
        for (path, value, ..) in &now {
            merge(&mut values, &at(path, &serde_json::from_str(value)?));
        }
        let rendered = helm.render(&values, &[]).await?;
        let told = rendered.variables(container)?;
        for (path, value, variable, text) in now {
            let found = told.get(variable).map(String::as_str);
            assert_eq!(found, Some(text), "{path}={value} -> {variable}");
        }
        starts::<agents::controller::Config>(&rendered, "controllers")?;
        starts::<agents::serve::Config>(&rendered, "control-plane")?;
        starts::<agents_webhook::Config>(&rendered, "webhook")?;
        starts::<agents_sidecar::Config>(&rendered, "sidecar")?;
        open = later;
    }
    Ok(())
}

#[tokio::test]
async fn values_become_the_variables_that_operators_know() -> Result<()> {
    all_are_mapped(MAPPED, "controllers").await
}

#[tokio::test]
async fn the_control_plane_has_its_own() -> Result<()> {
    all_are_mapped(MAPPED_FOR_CONTROL_PLANE, "control-plane").await
}

#[tokio::test]
async fn the_nearer_word_wins_and_no_name_is_given_twice() -> Result<()> {
    let values = json!({
        "controlPlane": {"env": {"vars": {"B": "plane", "C": "plane", "JANGAR_GRPC_PORT": "1"}}},
        "controllers": {"env": {"vars": {"B": "controllers", "D": "controllers", "E": 2_592_000}}},
        "controller": {"queue": {"cluster": 5}},
        "env": {
            "vars": {"A": "all", "B": "all", "F": true, "JANGAR_AGENTS_CONTROLLER_QUEUE_CLUSTER": "6", "JANGAR_AGENT_RUNNER_IMAGE": "r:1"},
            "secrets": [{"name": "A", "secretName": "s"}, {"name": "G", "secretName": "s", "key": "k"}],
            "config": [{"name": "G", "configMapName": "c"}, {"name": "H", "configMapName": "c"}],
            "extra": [{"name": "H", "value": 3}],
        },
        "envFromSecretRefs": ["one", {"name": "two", "optional": true}],
        "envFromConfigMapRefs": ["three"],
    });
    let rendered = Helm::new().await?.render(&values, &[]).await?;
    let told = rendered.variables("controllers")?;
    let expected = [
        ("A", r#"{"secretKeyRef":{"key":"value","name":"s"}}"#),
        ("B", "controllers"),
        ("D", "controllers"),
        ("E", "2592000"),
        ("F", "true"),
        ("G", r#"{"configMapKeyRef":{"key":"G","name":"c"}}"#),
        ("H", "3"),
        ("JANGAR_AGENTS_CONTROLLER_QUEUE_CLUSTER", "6"),
    ];
    for (name, value) in expected {
        assert_eq!(told.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert_eq!(told.get("C"), None);
    let plane = rendered.variables("control-plane")?;
    assert_eq!(
        (&*plane["B"], &*plane["C"], &*plane["JANGAR_GRPC_PORT"]),
        ("plane", "plane", "1")
    );
    let webhook = rendered.variables("webhook")?;
    assert_eq!(
        webhook["JANGAR_AGENT_RUNNER_IMAGE"], "r:1",
        "judged by what the controllers do"
    );
    assert!(!webhook.contains_key("A"));
    let from = &rendered.container("controllers")?["envFrom"];
    assert_eq!(
        from,
        &json!([{"secretRef": {"name": "one"}}, {"secretRef": {"name": "two", "optional": true}}, {"configMapRef": {"name": "three"}}])
    );
    Ok(())
}

#[tokio::test]
async fn an_image_is_what_its_component_says_and_a_digest_stays_with_its_image() -> Result<()> {
    let helm = Helm::new().await?;
    let digest = format!("sha256:{}", "0".repeat(64));
    let shared = json!({"repository": "shared", "tag": "1", "digest": digest});
    let cases = [
        (json!({}), "shared", Some("1")),
        (json!({"tag": "2"}), "shared:2", None),
        (json!({"repository": "own"}), "own:1", None),
        (json!({"repository": "own", "tag": "2"}), "own:2", None),
    ];
    for (own, image, tag) in cases {
        let values = json!({"image": shared, "controllers": {"image": own}});
        let rendered = helm.render(&values, &[]).await?;
        let wanted = match tag {
            Some(tag) => format!("{image}:{tag}@{digest}"),
            None => image.to_owned(),
        };
        assert_eq!(rendered.container("controllers")?["image"], wanted);
    }
    let other = format!("sha256:{}", "1".repeat(64));
    let values = json!({
        "image": shared, "controllers": {"image": {"digest": other, "pullPolicy": "Always", "pullSecrets": ["own"]}},
    });
    let rendered = helm.render(&values, &[]).await?;
    let container = rendered.container("controllers")?;
    assert_eq!(container["image"], format!("shared:1@{other}"));
    assert_eq!(container["imagePullPolicy"], "Always");
    let pod = rendered.get("Deployment/agents-controllers")?;
    let secrets = pod.pointer("/spec/template/spec/imagePullSecrets");
    assert_eq!(secrets, Some(&json!([{"name": "own"}])));
    Ok(())
}
