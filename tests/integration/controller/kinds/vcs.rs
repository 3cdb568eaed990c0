//! Version control: what the pod of a run is given, what a run goes on without, and what ends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agents::api::contract::env;
use agents::api::kind::Kind;
use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use serde_json::{Value, json};
use support::events::{self, Said};
use support::gateway::Gateway;
use support::lab;

use crate::controller::scene::endpoint::{Endpoint, LOOPBACK, said};
use crate::controller::scene::{DEADLINE, Scene, condition, holds};

async fn make_secret(scene: &Scene, name: &str, key: &str) -> Result<()> {
    let secret: Secret = serde_json::from_value(json!({
        "metadata": {"name": name}, "stringData": {key: "planted-token-value"},
    }))?;
    let secrets = scene.here.api::<Secret>();
    secrets.create(&PostParams::default(), &secret).await?;
    Ok(())
}

fn github() -> Value {
    json!({
        "provider": "github", "auth": {"token": {"secretRef": {"name": "git-token"}, "type": "pat"}},
        "defaults": {"baseBranch": "main", "branchTemplate": "work/{{ agentRun.name }}"},
    })
}

fn asking(more: Value) -> Value {
    let mut spec = json!({"vcsRef": {"name": "github"}, "parameters": {"repo": "o/r"}});
    if let (Some(spec), Some(more)) = (spec.as_object_mut(), more.as_object()) {
        spec.extend(more.clone());
    }
    spec
}

#[tokio::test]
async fn a_run_waits_for_its_host_and_its_pod_gets_the_token_by_name_only() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[(env::VCS_PR_RATE_LIMITS, r#"{"perHour": 3}"#)]).await?;
    let _controller = scene.controller().await?;
    scene.run("late", asking(json!({}))).await?;
    for (missing, step) in [("MissingVcsProvider", 0), ("SecretNotFound", 1)] {
        let missing = holds("True", missing);
        scene
            .until("late", |run| condition(run, "Blocked") == missing)
            .await?;
        match step {
            0 => drop(
                scene
                    .make(Kind::VersionControlProvider, "github", github())
                    .await?,
            ),
            _ => make_secret(&scene, "git-token", "token").await?,
        }
    }
    let running = scene.until_phase("late", "Running").await?;
    assert_eq!(
        condition(&running, "Warning"),
        holds("True", "DeprecatedAuth")
    );
    assert_eq!(condition(&running, "VcsSkipped"), None);
    let status = serde_json::to_value(running.status.and_then(|status| status.vcs))?;
    let expected = json!({"provider": "github", "repository": "o/r", "baseBranch": "main",
        "headBranch": "work/late", "mode": "read-write"});
    assert_eq!(status, expected);
    let job = serde_json::to_value(scene.until_job("late", |_| true).await?)?;
    assert!(!job.to_string().contains("planted-token-value"));
    let token = |name: &str| json!({"name": name, "valueFrom": {"secretKeyRef": {"name": "git-token", "key": "token"}}});
    let plain = |name: &str, value: &str| json!({"name": name, "value": value});
    assert_eq!(
        job["spec"]["template"]["spec"]["containers"][0]["env"],
        json!([
            plain("AGENT_RUN_SPEC", "/workspace/run.json"),
            plain("AGENT_RUNNER_SPEC_PATH", "/workspace/agent-runner.json"),
            plain("AGENT_PROVIDER", "shell"),
            plain("VCS_AUTH_METHOD", "token"),
            token("VCS_TOKEN"),
            token("GITHUB_TOKEN"),
            token("GH_TOKEN"),
            plain("VCS_PROVIDER", "github"),
            plain("VCS_PROVIDER_NAME", "github"),
            plain("VCS_REPOSITORY", "o/r"),
            plain("VCS_BASE_BRANCH", "main"),
            plain("VCS_HEAD_BRANCH", "work/late"),
            plain("VCS_USERNAME", "x-access-token"),
            plain("GIT_ASKPASS_USERNAME", "x-access-token"),
            plain("VCS_BRANCH_TEMPLATE", "work/{{ agentRun.name }}"),
            plain("VCS_PR_RATE_LIMITS", r#"{"perHour":3}"#),
            plain("VCS_PR_DRAFT", "false"),
            plain("VCS_WRITE_ENABLED", "true"),
            plain("VCS_PULL_REQUESTS_ENABLED", "true"),
            plain("VCS_MODE", "read-write"),
        ])
    );
    let maps = scene.here.api::<k8s_openapi::api::core::v1::ConfigMap>();
    let map = maps.get("late-spec").await?.data.context("data")?;
    let document: Value = serde_json::from_str(&map["run.json"])?;
    assert_eq!(document["vcs"]["repository"], "o/r");
    assert_eq!(document["parameters"]["head"], "work/late");
    assert_eq!(document["base"], "main");
    Ok(())
}

#[tokio::test]
async fn a_run_that_does_not_need_it_goes_on_without_and_one_that_does_ends() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[(env::REFERENCE_GRACE, "1s")]).await?;
    let mut strict = github();
    strict["repositoryPolicy"] = json!({"deny": ["o/*"]});
    scene
        .make(Kind::VersionControlProvider, "strict", strict)
        .await?;
    scene
        .make(Kind::VersionControlProvider, "github", github())
        .await?;
    let _controller = scene.controller().await?;
    let required = json!({"vcsPolicy": {"required": true}});
    scene.run("without", asking(json!({}))).await?;
    scene.run("needs", asking(required)).await?;
    scene
        .run("denied", asking(json!({"vcsRef": {"name": "strict"}})))
        .await?;
    let running = scene.until_phase("without", "Running").await?;
    assert_eq!(
        condition(&running, "VcsSkipped"),
        holds("True", "VcsAuthUnavailable")
    );
    for (name, reason) in [
        ("needs", "VcsAuthUnavailable"),
        ("denied", "VcsPolicyDenied"),
    ] {
        let failed = scene.until_phase(name, "Failed").await?;
        assert_eq!(condition(&failed, "InvalidSpec"), holds("True", reason));
    }
    Ok(())
}

#[tokio::test]
async fn where_the_operator_switched_it_off_every_run_goes_on_without() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[(env::VCS_PROVIDERS_ENABLED, "false")]).await?;
    let _controller = scene.controller().await?;
    scene.run("off", asking(json!({}))).await?;
    let running = scene.until_phase("off", "Running").await?;
    assert_eq!(
        condition(&running, "VcsSkipped"),
        holds("True", "VcsProvidersDisabled")
    );
    Ok(())
}

#[tokio::test]
async fn only_the_repositories_that_the_operator_lists_are_used() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[(env::GITHUB_REPOS_ALLOWED, "o/other, x/*")]).await?;
    make_secret(&scene, "git-token", "token").await?;
    scene
        .make(Kind::VersionControlProvider, "github", github())
        .await?;
    let _controller = scene.controller().await?;
    scene.run("refused", asking(json!({}))).await?;
    let failed = scene.until_phase("refused", "Failed").await?;
    assert_eq!(
        condition(&failed, "InvalidSpec"),
        holds("True", "VcsPolicyDenied")
    );
    let allowed = json!({"parameters": {"repo": "o/other"}});
    scene.run("allowed", asking(allowed)).await?;
    scene.until_phase("allowed", "Running").await?;
    Ok(())
}

#[tokio::test]
async fn a_host_whose_secret_lacks_the_entry_says_so() -> Result<()> {
    support::kinds!();
    let deprecated = (env::VCS_DEPRECATED_TOKEN_TYPES, r#"{"github": []}"#);
    let scene = Scene::new(&[deprecated]).await?;
    make_secret(&scene, "git-token", "other").await?;
    let _controller = scene.controller().await?;
    scene
        .make(Kind::VersionControlProvider, "github", github())
        .await?;
    scene
        .until_ready(
            Kind::VersionControlProvider,
            "github",
            "False SecretKeyMissing",
        )
        .await?;
    let entry = json!({"stringData": {"token": "planted-token-value"}});
    let patch = kube::api::Patch::Merge(entry);
    let secrets = scene.here.api::<Secret>();
    secrets
        .patch("git-token", &Default::default(), &patch)
        .await?;
    let ready = scene
        .until_ready(Kind::VersionControlProvider, "github", "True AuthReady")
        .await?;
    assert!(
        !ready.data.to_string().contains("DeprecatedAuth"),
        "the operator does not mind"
    );
    Ok(())
}

#[tokio::test]
async fn a_host_that_does_not_answer_is_told_of_until_it_does() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[LOOPBACK, (env::REACH, "1")]).await?;
    let _controller = scene.controller().await?;
    let is_well = Arc::new(AtomicBool::new(false));
    let well = Arc::clone(&is_well);
    let server = Endpoint::start(move |_| match well.load(Ordering::Relaxed) {
        // Nobody is let in without a token, and that is an answer.
        true => said(401, &[], &json!({})),
        false => said(503, &[], &json!({})),
    })
    .await?;
    let url = server.url("/api/v3");
    const HOST: Kind = Kind::VersionControlProvider;
    let spec = json!({"provider": "gitea", "apiBaseUrl": url});
    scene.make(HOST, "x", spec).await?;
    let failed = scene
        .until_ready(HOST, "x", "False ConnectionFailed")
        .await?;
    let message = format!("{url} answered 503");
    let conditions = failed.data["status"]["conditions"].as_array();
    let unreachable = conditions.into_iter().flatten();
    let mut unreachable = unreachable.filter(|entry| entry["type"] == "Unreachable");
    let unreachable = unreachable.next().context("a condition")?;
    let told = ["status", "reason", "message"].map(|field| &unreachable[field]);
    assert_eq!(told, ["True", "ConnectionFailed", &message]);
    let is_it = |said: &Said| said.reason == "Unreachable";
    let event = events::until(&scene.here.client, &failed, DEADLINE, is_it).await?;
    let expected = Said {
        kind: "Warning".to_owned(),
        reason: "Unreachable".to_owned(),
        action: "Resolve".to_owned(),
        note: message,
        count: 1,
    };
    assert_eq!(event, expected);
    is_well.store(true, Ordering::Relaxed);
    scene.until_ready(HOST, "x", "True NoAuth").await?;
    for asked in server.asked() {
        let asked = (&*asked.method, &*asked.path, asked.header("authorization"));
        assert_eq!(asked, ("GET", "/api/v3", ""));
    }
    Ok(())
}

/// As in a cluster whose CRDs have no VersionControlProvider.
#[tokio::test]
async fn where_version_control_is_off_its_kind_need_not_be_installed() -> Result<()> {
    support::kinds!();
    let way = Gateway::open(lab::shared().await?.kubeconfig(), None).await?;
    way.alter_kinds(|described| {
        if let Some(served) = described["resources"].as_array_mut() {
            served.retain(|kind| {
                let name = kind["name"].as_str().unwrap_or_default();
                !name.starts_with("versioncontrolproviders")
            });
        }
    });
    let on = Scene::new(&[]).await?;
    let ended = on.controller_by(way.kubeconfig())?.end().await;
    assert_eq!(ended.code, Some(1));
    let log = ended.log.join("\n");
    assert!(
        log.contains("versioncontrolproviders.agents.proompteng.ai"),
        "{log}"
    );

    let off = Scene::with_agent(&[(env::VCS_PROVIDERS_ENABLED, "false")]).await?;
    let named = json!({"spec": {"vcsRef": {"name": "github"}}});
    off.merge(Kind::Agent, "coder", named).await?;
    let _controller = off.controller_by(way.kubeconfig())?;
    off.until_ready(Kind::Agent, "coder", "True ValidSpec")
        .await?;
    off.run("without", json!({})).await?;
    let running = off.until_phase("without", "Running").await?;
    assert_eq!(
        condition(&running, "VcsSkipped"),
        holds("True", "VcsProvidersDisabled")
    );
    Ok(())
}
