//! `agents doctor` on a cluster of its own without pods: before an installation, and faults that need no program of ours.
//! What needs a release with pods is in `chart::install::doctor`.

use std::{collections::BTreeMap, fs, path::Path, path::PathBuf};

use agents::api::contract::{GROUP, VERSION, annotation, finalizer, label};
use agents::api::registration::rung::Rung;
use agents::api::registration::{Reach, Registration};
use anyhow::{Context, Result, ensure};
use http::HeaderValue;
use jiff::fmt::rfc2822::DateTimePrinter;
use serde_json::{Value, json};
use support::gateway::Gateway;
use support::lab::state::Tier;
use support::lab::{Lab, own_name};
use support::{ports::free_addresses, wait};
use tempfile::TempDir;

use super::{DEADLINE, agents, ended};

/// What the doctor found, by check: how grave, and in which words.
pub(crate) type Findings = BTreeMap<String, (String, String)>;

/// Where the release would be.
const NAMESPACE: &str = "agents";

/// Runs the doctor and returns what it found or could not look at.
pub(crate) async fn findings(kubeconfig: &Path, words: &[&str]) -> Result<Findings> {
    let words = [&["doctor", "--output", "json"], words].concat();
    let said = agents(kubeconfig, &words).await?;
    let told: Value = serde_json::from_str(&said.stdout)
        .with_context(|| format!("{}{}", said.stdout, said.stderr))?;
    let failed = told["summary"]["failed"].as_u64().unwrap_or_default();
    ended(&said, if failed > 0 { 5 } else { 0 });
    let mut found = Findings::new();
    for check in told["checks"].as_array().into_iter().flatten() {
        let text = |field: &str| check[field].as_str().unwrap_or_default().to_owned();
        let result = text("result");
        if !["ok", "skipped"].contains(&&*result) {
            found.insert(text("check"), (result, text("message")));
        }
    }
    Ok(found)
}

/// That a check found something, and says these words about it.
#[track_caller]
pub(crate) fn found(findings: &Findings, check: &str, result: &str, words: &str) {
    let Some((how, said)) = findings.get(check) else {
        panic!("{check} found nothing: {findings:#?}");
    };
    assert_eq!(how, result, "{check}: {said}");
    assert!(said.contains(words), "{check}: {said}");
}

async fn here(lab: &Lab) -> Result<Findings> {
    findings(lab.kubeconfig(), &["--namespace", NAMESPACE]).await
}

/// The way to the cluster of someone with a token.
async fn nobody(lab: &Lab, folder: &Path) -> Result<PathBuf> {
    let kubectl = lab.kubectl().in_namespace("default");
    kubectl
        .run(&["create", "serviceaccount", "nobody"])
        .await?
        .ok()?;
    let token = kubectl.run(&["create", "token", "nobody"]).await?.ok()?;
    with_token(lab, folder, token.trim())
}

/// A kubeconfig in a folder for whoever has a token.
pub(crate) fn with_token(lab: &Lab, folder: &Path, token: &str) -> Result<PathBuf> {
    let text = fs::read_to_string(lab.kubeconfig())?;
    let mut config: Value = serde_saphyr::from_str(&text)?;
    for user in config["users"].as_array_mut().into_iter().flatten() {
        user["user"] = json!({"token": token});
    }
    let file = folder.join("kubeconfig");
    fs::write(&file, config.to_string())?;
    Ok(file)
}

/// Before anything is installed.
async fn before(lab: &Lab, folder: &Path) -> Result<()> {
    let file = lab.kubeconfig();
    let pre = ["--pre", "--namespace", NAMESPACE];
    let first = findings(file, &pre).await?;
    found(&first, "cert-manager", "failed", "cert-manager.io/v1");
    ensure!(first.len() == 1, "{first:#?}");
    let values = folder.join("values.yaml");
    fs::write(&values, "webhook: {tls: {source: secret}}\n")?;
    let values = values.to_str().context("UTF-8")?;
    let fit = findings(file, &[&pre[..], &["--values", values]].concat()).await?;
    ensure!(fit.is_empty(), "{fit:#?}");
    fs::write(
        folder.join("more.yaml"),
        "progressiveDelivery: {enabled: true}\nmetrics: {serviceMonitor: {enabled: true}}\n",
    )?;
    let more = folder.join("more.yaml");
    let more = [
        "--values",
        values,
        "--values",
        more.to_str().context("UTF-8")?,
    ];
    let wants = findings(file, &[&pre[..], &more].concat()).await?;
    found(&wants, "rollouts", "failed", "argoproj.io/v1alpha1");
    found(&wants, "monitoring", "failed", "monitoring.coreos.com/v1");
    let nobody = nobody(lab, folder).await?;
    let lacks = findings(&nobody, &pre).await?;
    found(
        &lacks,
        "rights-install",
        "failed",
        "you may not create customresourcedefinitions",
    );
    Ok(())
}

/// Who asks wrongly, and who asks nobody.
async fn asked_wrongly(lab: &Lab, folder: &Path) -> Result<()> {
    let unknown = agents(lab.kubeconfig(), &["doctor", "--alert", "AgentsWebhookDwn"]).await?;
    ended(&unknown, 2);
    assert!(
        unknown.stderr.contains("AgentsWebhookDown"),
        "{}",
        unknown.stderr
    );
    let file = folder.join("values-wrong.yaml");
    fs::write(&file, "webhook: {rung: enforce}")?;
    let wrong = ["doctor", "--values", file.to_str().context("UTF-8")?];
    ended(&agents(lab.kubeconfig(), &wrong).await?, 2);
    let [free] = free_addresses::<1>()?;
    let silent = folder.join("silent");
    fs::write(
        &silent,
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "a",
            "clusters": [{"name": "a", "cluster": {"server": format!("https://{free}")}}],
            "users": [{"name": "a", "user": {}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        })
        .to_string(),
    )?;
    let said = agents(&silent, &["doctor"]).await?;
    ended(&said, 3);
    assert!(
        said.stdout.contains("\u{d7} the API server answers"),
        "{}",
        said.stdout
    );
    Ok(())
}

/// Definitions that are missing, and one that is older.
async fn kinds(lab: &Lab) -> Result<()> {
    let missing = here(lab).await?;
    found(
        &missing,
        "kinds-served",
        "failed",
        "is missing; and 16 more",
    );
    ended(&agents(lab.kubeconfig(), &["crds", "apply"]).await?, 0);
    let run = format!("agentruns.{GROUP}");
    let kubectl = lab.kubectl();
    let read = kubectl.run(&["get", "crd", &run, "--output=json"]).await?;
    let mut older: Value = serde_json::from_str(&read.ok()?)?;
    let fields = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
    let fields = older.pointer_mut(fields).and_then(Value::as_object_mut);
    fields
        .context("a status")?
        .remove("jobRef")
        .context("jobRef")?;
    let replace = ["replace", "--filename", "-"];
    kubectl
        .run_with_input(&replace, &older.to_string())
        .await?
        .ok()?;
    wait::retry("an older definition is noticed", DEADLINE, || async {
        let older = here(lab).await?;
        let told = older
            .get("kinds-current")
            .map(|(_, said)| said.contains("status.jobRef"));
        ensure!(told == Some(true), "{older:#?}");
        Ok(())
    })
    .await?;
    let apply = ["crds", "apply", "--force-conflicts"];
    ended(&agents(lab.kubeconfig(), &apply).await?, 0);
    wait::retry("the definition is as it was", DEADLINE, || async {
        let again = here(lab).await?;
        ensure!(!again.contains_key("kinds-current"), "{again:#?}");
        Ok(())
    })
    .await
}

async fn apply(lab: &Lab, object: &Value) -> Result<()> {
    let words = ["apply", "--server-side", "--filename", "-"];
    let kubectl = lab.kubectl().in_namespace(NAMESPACE);
    kubectl
        .run_with_input(&words, &object.to_string())
        .await?
        .ok()?;
    Ok(())
}

/// Changes an object; the words say which one.
async fn merge(lab: &Lab, words: &[&str], patch: &Value) -> Result<()> {
    let patch = patch.to_string();
    let words = [&["patch", "--type=merge", "--patch", &*patch], words].concat();
    let kubectl = lab.kubectl().in_namespace(NAMESPACE);
    kubectl.run(&words).await?.ok()?;
    Ok(())
}

/// A lease that nobody renews, and one whose holder has another time.
async fn lease(lab: &Lab) -> Result<()> {
    found(
        &here(lab).await?,
        "lease",
        "failed",
        "jangar-controller-leader",
    );
    let lease = |renewed: jiff::Timestamp| {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "jangar-controller-leader"},
            "spec": {"holderIdentity": "ghost_1", "leaseDurationSeconds": 30, "renewTime": format!("{renewed:.6}")},
        })
    };
    let now = jiff::Timestamp::now();
    apply(lab, &lease(now - jiff::SignedDuration::from_mins(20))).await?;
    let stuck = here(lab).await?;
    found(
        &stuck,
        "lease",
        "failed",
        "ghost_1 holds the lease and has not renewed it",
    );
    found(&stuck, "lease", "failed", "there is no such pod");
    found(&stuck, "lease-clock", "failed", "s behind the API server");
    apply(
        lab,
        &lease(jiff::Timestamp::now() + jiff::SignedDuration::from_mins(20)),
    )
    .await?;
    let ahead = here(lab).await?;
    found(&ahead, "lease-clock", "failed", "s ahead of the API server");
    Ok(())
}

/// A Job that would go before its outcome is stored.
async fn jobs(lab: &Lab) -> Result<()> {
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "short", "labels": {label::RUN_UID: "1"}, "finalizers": [finalizer::OUTCOME]},
        "spec": {"suspend": true, "ttlSecondsAfterFinished": 5, "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "a", "image": "localhost/none"}]}}},
    });
    apply(lab, &job).await?;
    found(
        &here(lab).await?,
        "job-ttl",
        "failed",
        "agents/short lives 5 s after its end",
    );
    let recorded = json!({"metadata": {"annotations": {annotation::OUTCOME_RECORDED: "2026-01-01T00:00:00Z"}}});
    merge(lab, &["job", "short"], &recorded).await?;
    ensure!(!here(lab).await?.contains_key("job-ttl"));
    Ok(())
}

/// An API server that says that so many minutes have gone by.
async fn later(lab: &Lab, minutes: i64) -> Result<Gateway> {
    let way = Gateway::open(lab.kubeconfig(), None).await?;
    let later = jiff::Timestamp::now() + jiff::SignedDuration::from_mins(minutes);
    let later = DateTimePrinter::new().timestamp_to_rfc9110_string(&later)?;
    way.tell_time(HeaderValue::from_str(&later)?);
    Ok(way)
}

/// A Job that has ended, and nobody stores how.
async fn unrecorded(lab: &Lab) -> Result<()> {
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "ended", "labels": {label::RUN_UID: "2"}},
        "spec": {"suspend": true, "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "a", "image": "localhost/none"}]}}},
    });
    apply(lab, &job).await?;
    let now = jiff::Timestamp::now();
    let now = now.round(jiff::Unit::Second)?.to_string();
    let holds = |type_: &str| json!({"type": type_, "status": "True", "lastTransitionTime": now});
    let over = json!({"status": {"startTime": now, "completionTime": now, "succeeded": 1,
        "conditions": [holds("SuccessCriteriaMet"), holds("Complete")]}});
    merge(lab, &["job", "ended", "--subresource=status"], &over).await?;
    ensure!(!here(lab).await?.contains_key("jobs-recorded"), "too early");
    let way = later(lab, 20).await?;
    let words = ["--namespace", NAMESPACE];
    let late = findings(way.kubeconfig(), &words).await?;
    found(&late, "jobs-recorded", "failed", "agents/ended ended");
    let recorded = json!({"metadata": {"annotations": {annotation::OUTCOME_RECORDED: now}}});
    merge(lab, &["job", "ended"], &recorded).await?;
    let stored = findings(way.kubeconfig(), &words).await?;
    ensure!(!stored.contains_key("jobs-recorded"), "{stored:#?}");
    let kubectl = lab.kubectl().in_namespace(NAMESPACE);
    kubectl.run(&["delete", "job", "ended"]).await?.ok()?;
    Ok(())
}

/// The same Job, deleted, with nobody to let it go. Minutes must go by first, so the API server says that they have.
async fn held(lab: &Lab) -> Result<()> {
    let kubectl = lab.kubectl().in_namespace(NAMESPACE);
    let delete = ["delete", "job", "short", "--wait=false"];
    kubectl.run(&delete).await?.ok()?;
    ensure!(!here(lab).await?.contains_key("jobs-held"), "too early");
    let way = later(lab, 20).await?;
    let words = ["--namespace", NAMESPACE];
    let stuck = findings(way.kubeconfig(), &words).await?;
    found(&stuck, "jobs-held", "failed", "agents/short has been held");
    let free = json!({"metadata": {"finalizers": null}});
    merge(lab, &["job", "short"], &free).await?;
    let gone = findings(way.kubeconfig(), &words).await?;
    ensure!(!gone.contains_key("jobs-held"), "{gone:#?}");
    Ok(())
}

/// A run that nobody begins, and then one that waits for something that is missing.
async fn runs(lab: &Lab) -> Result<()> {
    let run = json!({
        "apiVersion": format!("{GROUP}/{VERSION}"), "kind": "AgentRun",
        "metadata": {"name": "stuck"},
        "spec": {"agentRef": {"name": "none"}, "implementation": {"inline": {"text": "Do it."}},
            "runtime": {"type": "job"}, "workload": {"image": "localhost/none"}},
    });
    apply(lab, &run).await?;
    let early = here(lab).await?;
    ensure!(!early.contains_key("runs-blocked"), "{early:#?}");
    ensure!(!early.contains_key("runs-waiting"), "{early:#?}");
    let way = later(lab, 40).await?;
    let words = ["--namespace", NAMESPACE];
    let long = findings(way.kubeconfig(), &words).await?;
    found(&long, "runs-waiting", "warning", "one has waited for");
    let blocked = json!({"status": {"conditions": [{
        "type": "Blocked", "status": "True", "reason": "MissingAgent",
        "message": "there is no Agent none", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    let kind = format!("agentruns.{GROUP}");
    merge(lab, &[&*kind, "stuck", "--subresource=status"], &blocked).await?;
    found(
        &here(lab).await?,
        "runs-blocked",
        "warning",
        "agents/stuck: MissingAgent",
    );
    let kubectl = lab.kubectl().in_namespace(NAMESPACE);
    kubectl.run(&["delete", &kind, "stuck"]).await?.ok()?;
    ensure!(!here(lab).await?.contains_key("runs-blocked"));
    Ok(())
}

/// A webhook that nobody answers for, half of one, and one of others in the same state.
async fn webhooks(lab: &Lab) -> Result<()> {
    let [free] = free_addresses::<1>()?;
    let authority = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])?;
    let made = Registration {
        name: "agents-webhook".to_owned(),
        rung: Rung::Fail,
        reach: Reach::Url(format!("https://{free}")),
        ca: Some(authority.cert.pem().into_bytes()),
    };
    apply(lab, &serde_json::to_value(made.mutating())?).await?;
    apply(lab, &serde_json::to_value(made.validating())?).await?;
    wait::retry(
        "a webhook that does not answer is noticed",
        DEADLINE,
        || async {
            let away = here(lab).await?;
            let refused = away.get("webhook-answers").map(|(how, _)| how == "failed");
            ensure!(refused == Some(true), "{away:#?}");
            Ok(())
        },
    )
    .await?;
    let away = here(lab).await?;
    found(&away, "webhook-answers", "failed", "failed calling webhook");
    found(&away, "webhook-certificate", "unknown", "refused");
    let kubectl = lab.kubectl();
    let [first, second] =
        ["mutating", "validating"].map(|one| format!("{one}webhookconfigurations"));
    kubectl
        .run(&["delete", &first, "agents-webhook"])
        .await?
        .ok()?;
    found(
        &here(lab).await?,
        "webhook-registered",
        "failed",
        "MutatingWebhookConfiguration is missing",
    );
    kubectl
        .run(&["delete", &second, "agents-webhook"])
        .await?
        .ok()?;
    ensure!(!here(lab).await?.contains_key("webhook-registered"));
    let theirs = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "theirs"},
        "webhooks": [{
            "name": "check.theirs.test", "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": "theirs", "name": "gone"}},
            "rules": [{"apiGroups": [GROUP], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}],
        }],
    });
    apply(lab, &theirs).await?;
    found(
        &here(lab).await?,
        "other-webhooks",
        "failed",
        "check.theirs.test of theirs",
    );
    kubectl.run(&["delete", &second, "theirs"]).await?.ok()?;
    ensure!(!here(lab).await?.contains_key("other-webhooks"));
    Ok(())
}

/// An API server whose clock is wrong.
async fn clock(lab: &Lab) -> Result<()> {
    let way = Gateway::open(lab.kubeconfig(), None).await?;
    let words = ["--namespace", NAMESPACE];
    let right = findings(way.kubeconfig(), &words).await?;
    ensure!(!right.contains_key("clock"), "{right:#?}");
    way.tell_time(HeaderValue::from_static("Thu, 01 Jan 2026 12:00:00 GMT"));
    let wrong = findings(way.kubeconfig(), &words).await?;
    found(&wrong, "clock", "failed", "behind this machine");
    Ok(())
}

#[tokio::test]
async fn faults_of_a_cluster_are_found_and_gone_when_they_are() -> Result<()> {
    support::starts_labs!();
    let lab = Lab::start(&own_name("doctor")?, Tier::ControlPlane).await?;
    let folder = TempDir::new()?;
    before(&lab, folder.path()).await?;
    asked_wrongly(&lab, folder.path()).await?;
    lab.kubectl()
        .run(&["create", "namespace", NAMESPACE])
        .await?
        .ok()?;
    kinds(&lab).await?;
    lease(&lab).await?;
    jobs(&lab).await?;
    unrecorded(&lab).await?;
    held(&lab).await?;
    runs(&lab).await?;
    webhooks(&lab).await?;
    clock(&lab).await
}
