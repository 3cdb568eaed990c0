//! `agents doctor` on a release with real pods: nothing is found where nothing is wrong, and each fault that is made is found.

use std::collections::BTreeMap;

use agents::api::contract::GROUP;
use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use support::{prometheus::Prometheus, wait};
use tempfile::TempDir;

use super::scraped::job;
use super::stage::{DEADLINE, Stage};
use crate::operate::agents;
use crate::operate::doctor::{Findings, findings, found};

/// The kinds of Prometheus Operator, as far as the chart and the doctor use them.
const MONITORING: [(&str, &str); 4] = [
    ("ServiceMonitor", "servicemonitors"),
    ("PodMonitor", "podmonitors"),
    ("PrometheusRule", "prometheusrules"),
    ("Prometheus", "prometheuses"),
];

fn definition(kind: &str, plural: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.monitoring.coreos.com")},
        "spec": {
            "group": "monitoring.coreos.com", "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
}

impl Stage {
    async fn kubectl(&self, words: &[&str]) -> Result<String> {
        self.here.kubectl.run(words).await?.ok()
    }

    async fn apply(&self, object: &Value) -> Result<()> {
        let words = [
            "apply",
            "--server-side",
            "--force-conflicts",
            "--filename",
            "-",
        ];
        let text = object.to_string();
        let said = self.here.kubectl.run_with_input(&words, &text).await?;
        said.ok().map(drop)
    }

    async fn doctor(&self) -> Result<Findings> {
        let words = ["--namespace", &self.here.name];
        findings(self.lab.kubeconfig(), &words).await
    }

    /// Waits until nothing is found.
    async fn is_well(&self) -> Result<()> {
        wait::retry("the doctor finds nothing", DEADLINE, || async {
            let found = self.doctor().await?;
            ensure!(found.is_empty(), "{found:#?}");
            Ok(())
        })
        .await
    }

    /// Waits until a check finds something.
    async fn is_noticed(&self, check: &str) -> Result<Findings> {
        wait::retry(&format!("{check} finds it"), DEADLINE, || async {
            let found = self.doctor().await?;
            ensure!(found.contains_key(check), "{found:#?}");
            Ok(found)
        })
        .await
    }
}

/// Rights that are taken from each program, and given back.
async fn rights(stage: &Stage) -> Result<()> {
    for (component, group, words) in [
        ("controllers", "batch", "jobs.batch"),
        ("webhook", GROUP, GROUP),
        ("control-plane", GROUP, GROUP),
    ] {
        let selector = format!("--selector=app.kubernetes.io/component={component}");
        let read = ["get", "role", &selector, "--output=json"];
        let roles: Value = serde_json::from_str(&stage.kubectl(&read).await?)?;
        let roles = roles["items"].as_array().context("roles")?;
        for role in roles {
            let rules = role["rules"].as_array().context("rules")?;
            let is_other = |rule: &&Value| {
                let groups = rule["apiGroups"].as_array();
                groups.is_none_or(|groups| !groups.contains(&json!(group)))
            };
            put_rules(
                stage,
                role,
                &json!(rules.iter().filter(is_other).collect::<Vec<_>>()),
            )
            .await?;
        }
        let check = format!("rights-{component}");
        let lacking = stage.is_noticed(&check).await?;
        found(&lacking, &check, "failed", words);
        for role in roles {
            put_rules(stage, role, &role["rules"]).await?;
        }
        stage.is_well().await?;
    }
    Ok(())
}

async fn put_rules(stage: &Stage, role: &Value, rules: &Value) -> Result<()> {
    let name = role["metadata"]["name"].as_str().context("a role")?;
    let change = json!({"rules": rules}).to_string();
    let patch = ["patch", "role", name, "--type=merge", "--patch", &change];
    stage.kubectl(&patch).await.map(drop)
}

/// Programs without pods, and one of another version.
async fn programs(stage: &Stage) -> Result<()> {
    for (deployment, check) in [
        ("deployment/agents-controllers", "controllers"),
        ("deployment/agents", "control-plane"),
    ] {
        let read = ["get", deployment, "--output=jsonpath={.spec.replicas}"];
        let before = format!("--replicas={}", stage.kubectl(&read).await?);
        stage
            .kubectl(&["scale", deployment, "--replicas=0"])
            .await?;
        let gone = stage.is_noticed(check).await?;
        found(&gone, check, "failed", "0 of 0 pods are ready");
        stage.kubectl(&["scale", deployment, &before]).await?;
        stage.is_well().await?;
    }
    let label = |version: &str| format!("app.kubernetes.io/version={version}");
    let read = ["get", "deployment/agents", "--output=json"];
    let stored: Value = serde_json::from_str(&stage.kubectl(&read).await?)?;
    let before = stored["metadata"]["labels"]["app.kubernetes.io/version"].as_str();
    let before = label(before.context("a version")?);
    let put = async |label: &str| {
        let words = ["label", "--overwrite", "deployment/agents", label];
        stage.kubectl(&words).await
    };
    put(&label("0.0.7")).await?;
    let older = stage.doctor().await?;
    found(&older, "versions", "warning", "agents is 0.0.7");
    put(&before).await?;
    stage.is_well().await
}

/// A webhook that is asked about less than it should be.
async fn coverage(stage: &Stage) -> Result<()> {
    let read = [
        "get",
        "validatingwebhookconfiguration",
        "agents-webhook",
        "--output=json",
    ];
    let stored: Value = serde_json::from_str(&stage.kubectl(&read).await?)?;
    let rules = stored["webhooks"][0]["rules"].as_array().context("rules")?;
    let put = async |rules: &Value| {
        let change = json!([{"op": "replace", "path": "/webhooks/0/rules", "value": rules}]);
        let change = change.to_string();
        let patch = [
            &["patch"],
            &read[1..3],
            &["--type=json", "--patch", &change],
        ]
        .concat();
        stage.kubectl(&patch).await
    };
    put(&json!(rules[1..])).await?;
    let less = stage.is_noticed("webhook-registration").await?;
    found(
        &less,
        "webhook-registration",
        "failed",
        "is not asked about",
    );
    put(&json!(rules)).await?;
    stage.is_well().await
}

/// A failure policy that is not that of the rung, and a CA that issued nothing.
async fn registration(stage: &Stage) -> Result<()> {
    let patch = async |change: Value| {
        let change = change.to_string();
        let patch = [
            "patch",
            "validatingwebhookconfiguration",
            "agents-webhook",
            "--type=json",
            "--patch",
            &change,
        ];
        stage.kubectl(&patch).await
    };
    patch(json!([{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Fail"}])).await?;
    let policy = stage.doctor().await?;
    found(
        &policy,
        "webhook-failure-policy",
        "failed",
        "validate.agents.proompteng.ai",
    );
    patch(json!([{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]))
        .await?;
    stage.is_well().await?;

    let read = [
        "get",
        "mutatingwebhookconfiguration",
        "agents-webhook",
        "--output=json",
    ];
    let stored: Value = serde_json::from_str(&stage.kubectl(&read).await?)?;
    let right = stored["webhooks"][0]["clientConfig"]["caBundle"].clone();
    let other = rcgen::generate_simple_self_signed(["other".to_owned()])?
        .cert
        .pem();
    let other = json!(serde_json::to_value(k8s_openapi::ByteString(
        other.into_bytes()
    ))?);
    let put = async |ca: &Value| {
        let change =
            json!([{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": ca}])
                .to_string();
        let patch = [
            "patch",
            "mutatingwebhookconfiguration",
            "agents-webhook",
            "--type=json",
            "--patch",
            &change,
        ];
        stage.kubectl(&patch).await
    };
    put(&other).await?;
    let distrusted = stage.is_noticed("webhook-answers").await?;
    found(
        &distrusted,
        "webhook-ca-bundle",
        "failed",
        "does not lead to",
    );
    found(
        &distrusted,
        "webhook-answers",
        "failed",
        "without being looked at",
    );
    put(&right).await?;
    stage.is_well().await
}

/// Certificates that are for someone else, or end soon.
async fn certificate(stage: &Stage) -> Result<()> {
    let secrets = stage.here.api::<Secret>();
    let before = secrets
        .get("own-tls")
        .await?
        .data
        .context("a certificate")?;
    let put = async |data: Value| {
        let patch = Patch::Merge(json!({"data": data}));
        secrets
            .patch("own-tls", &PatchParams::default(), &patch)
            .await
    };
    let host = format!("agents-webhook.{}.svc", stage.here.name);
    put(pair("else.test", 365)?).await?;
    let wrong = stage.doctor().await?;
    found(
        &wrong,
        "webhook-certificate",
        "failed",
        "it is for else.test",
    );
    put(pair(&host, 3)?).await?;
    let soon = stage.doctor().await?;
    found(&soon, "webhook-certificate-term", "warning", "it ends at");
    put(pair(&host, -1)?).await?;
    let over = stage.doctor().await?;
    found(&over, "webhook-certificate", "failed", "expired");
    put(json!(before)).await?;
    stage.is_well().await
}

/// A certificate that issued itself, and ends after so many days, as a Secret holds it.
fn pair(name: &str, days: i64) -> Result<Value> {
    let date = |days: i64| {
        let then = Timestamp::now() + SignedDuration::from_hours(24 * days);
        let date = then.to_zoned(TimeZone::UTC).date();
        let (month, day) = (date.month().unsigned_abs(), date.day().unsigned_abs());
        rcgen::date_time_ymd(date.year().into(), month, day)
    };
    let mut made = rcgen::CertificateParams::new([name.to_owned()])?;
    made.not_before = date(-400);
    made.not_after = date(days);
    let key = rcgen::KeyPair::generate()?;
    let certificate = made.self_signed(&key)?.pem();
    let bytes = |text: String| k8s_openapi::ByteString(text.into_bytes());
    let pair = BTreeMap::from([
        ("tls.crt", bytes(certificate)),
        ("tls.key", bytes(key.serialize_pem())),
    ]);
    Ok(serde_json::to_value(pair)?)
}

/// A Prometheus that chooses by another label.
async fn monitors(stage: &Stage) -> Result<()> {
    stage.apply(&prometheus("other")).await?;
    let left = stage.doctor().await?;
    found(
        &left,
        "monitor-selected",
        "failed",
        "no Prometheus selects agents",
    );
    stage.apply(&prometheus("kps")).await?;
    stage.is_well().await
}

fn prometheus(release: &str) -> Value {
    json!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus", "metadata": {"name": "own"},
        "spec": {"serviceMonitorSelector": {"matchLabels": {"release": release}}},
    })
}

/// A webhook without pods.
async fn webhook(stage: &Stage) -> Result<()> {
    let scale = async |number: &str| {
        let replicas = format!("--replicas={number}");
        let words = ["scale", "deployment/agents-webhook", &replicas];
        stage.kubectl(&words).await
    };
    scale("0").await?;
    let gone = stage.is_noticed("webhook-endpoints").await?;
    found(&gone, "webhook-endpoints", "failed", "none is ready");
    let gone = stage.is_noticed("webhook-answers").await?;
    found(&gone, "webhook", "failed", "0 of 0 pods");
    let alert = [
        "--namespace",
        &stage.here.name,
        "--alert",
        "AgentsWebhookPassedBy",
    ];
    let behind = findings(stage.lab.kubeconfig(), &alert).await?;
    ensure!(
        !behind.contains_key("webhook"),
        "asked for by no alert of that name: {behind:#?}"
    );
    found(
        &behind,
        "webhook-answers",
        "failed",
        "without being looked at",
    );
    scale("2").await?;
    stage.is_well().await
}

/// What the values say and what is there.
async fn values(stage: &Stage) -> Result<()> {
    let folder = TempDir::new()?;
    let file = folder.path().join("values.yaml");
    std::fs::write(
        &file,
        "webhook: {rung: fail, tls: {source: secret}}\nprogressiveDelivery: {enabled: true}\n",
    )?;
    let file = file.to_str().context("UTF-8")?;
    let words = ["--namespace", &stage.here.name, "--values", file];
    let meant = findings(stage.lab.kubeconfig(), &words).await?;
    found(&meant, "webhook-failure-policy", "failed", "made for deny");
    found(&meant, "rollouts", "failed", "argoproj.io/v1alpha1");
    Ok(())
}

#[tokio::test]
async fn a_release_that_is_well_has_no_finding_and_each_fault_of_it_is_found() -> Result<()> {
    support::node_lab!();
    let stage = Stage::enter().await?;
    for (kind, plural) in MONITORING {
        stage.apply(&definition(kind, plural)).await?;
    }
    let established = [
        "wait",
        "--for=condition=Established",
        "--timeout=60s",
        "crd",
        "--all",
    ];
    stage.kubectl(&established).await?;
    let labels = json!({"metrics": {"serviceMonitor": {"labels": {"release": "kps"}}}});
    stage.put("install", &labels).await?;
    stage.apply(&prometheus("kps")).await?;
    let unread = stage.is_noticed("sidecar-scraped").await?;
    found(
        &unread,
        "sidecar-scraped",
        "failed",
        "no scraper has read the page of agents-controllers",
    );
    let rendered = stage
        .rendered(&json!({"metrics": {"serviceMonitor": {"enabled": true}}}))
        .await?;
    let settings = json!({
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [job(&stage, rendered.get("ServiceMonitor/agents")?)?],
    });
    let _scraper = Prometheus::inside(stage.lab, &settings).await?;
    stage.is_well().await?;
    let text = agents(
        stage.lab.kubeconfig(),
        &["doctor", "--namespace", &stage.here.name],
    )
    .await?;
    ensure!(
        text.stdout.contains("\nNothing was found: "),
        "{}",
        text.stdout
    );
    let queue = ["queue", "--namespace", &stage.here.name, "--output", "json"];
    let queue = agents(stage.lab.kubeconfig(), &queue).await?;
    let told: Value = serde_json::from_str(&queue.stdout).context(queue.stderr)?;
    assert_eq!(told["source"], "leader", "{told:#}");
    assert_eq!(told["queue"]["cluster"]["waiting"], 0, "{told:#}");
    rights(&stage).await?;
    registration(&stage).await?;
    coverage(&stage).await?;
    certificate(&stage).await?;
    monitors(&stage).await?;
    webhook(&stage).await?;
    programs(&stage).await?;
    values(&stage).await?;
    stage.uninstall().await?;
    for (_, plural) in MONITORING {
        let name = format!("{plural}.monitoring.coreos.com");
        stage.kubectl(&["delete", "crd", &name]).await?;
    }
    Ok(())
}
