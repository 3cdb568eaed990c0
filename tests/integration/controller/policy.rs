//! Runs and calls are held to the policy, to SecretBindings and to Budgets, whoever let them in.

use agents::api::contract::{annotation, env};
use agents::api::kind::Kind;
use agents::api::kinds::AgentRun;
use anyhow::{Context, Result};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{ListParams, PostParams};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use support::{events, wait};

use super::lease::leading;
use super::scene::{ALONE, DEADLINE, Scene, condition, holds};

/// Makes an Agent that allows so little, and its provider.
async fn make_agent(scene: &Scene, security: Value) -> Result<()> {
    scene
        .make(Kind::AgentProvider, "shell", json!({"binary": "/agent"}))
        .await?;
    let agent = json!({"providerRef": {"name": "shell"}, "security": security});
    scene.make(Kind::Agent, "coder", agent).await?;
    Ok(())
}

async fn make_secret(scene: &Scene, name: &str) -> Result<()> {
    let secret: Secret = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    let secrets = scene.here.api::<Secret>();
    secrets.create(&PostParams::default(), &secret).await?;
    Ok(())
}

/// A run that was refused: by this reason, with an Event that names every cause, and without a Job.
async fn refused(scene: &Scene, run: &AgentRun, reason: &str, causes: &[&str]) -> Result<()> {
    let name = run.metadata.name.as_deref().unwrap_or_default();
    let failed = scene.until_phase(name, "Failed").await?;
    assert_eq!(condition(&failed, "InvalidSpec"), holds("True", reason));
    assert_eq!(condition(&failed, "Failed"), holds("True", reason));
    let told = scene.told(run, "PolicyDenied").await?;
    for cause in causes {
        assert!(
            told.iter().any(|said| said.note.contains(cause)),
            "{told:?}"
        );
    }
    let jobs = scene.here.api::<Job>().list(&ListParams::default()).await?;
    assert_eq!(jobs.items.len(), 0);
    Ok(())
}

#[tokio::test]
async fn a_run_that_came_before_its_agent_is_held_to_the_lists_of_the_agent() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[]).await?;
    let _controller = scene.controller().await?;
    make_secret(&scene, "prod-key").await?;
    let run = scene.run("early", json!({"secrets": ["prod-key"]})).await?;
    let missing = holds("True", "MissingAgent");
    scene
        .until("early", |run| condition(run, "Blocked") == missing)
        .await?;
    let security = json!({"allowedSecrets": ["test-key"], "allowedServiceAccounts": ["runner"]});
    make_agent(&scene, security).await?;
    let causes = ["spec.secrets[0]", "prod-key", "service account"];
    refused(&scene, &run, "SecretNotAllowed", &causes).await
}

#[tokio::test]
async fn a_secret_that_no_binding_gives_is_not_used() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let binding =
        json!({"subjects": [{"kind": "Agent", "name": "coder"}], "allowedSecrets": ["ours"]});
    scene.make(Kind::SecretBinding, "coder", binding).await?;
    make_secret(&scene, "ours").await?;
    make_secret(&scene, "theirs").await?;
    let _controller = scene.controller().await?;
    let run = scene.run("bound", json!({"secrets": ["theirs"]})).await?;
    refused(
        &scene,
        &run,
        "SecretNotAllowed",
        &["SecretBinding", "theirs"],
    )
    .await?;
    scene.run("given", json!({"secrets": ["ours"]})).await?;
    scene.until_phase("given", "Running").await?;
    Ok(())
}

#[tokio::test]
async fn each_variable_of_the_policy_refuses_a_run() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[ALONE]).await?;
    for (number, (variable, value, reason)) in [
        (env::LABELS_REQUIRED, "cost", "MissingRequiredLabels"),
        (env::LABELS_ALLOWED, "cost", "LabelNotAllowed"),
        (env::LABELS_DENIED, "team", "LabelBlocked"),
        (env::IMAGES_ALLOWED, "good.example.com/*", "ImageNotAllowed"),
        (env::IMAGES_DENIED, "registry.example.com/*", "ImageBlocked"),
        (env::BLOCKED_SECRETS, "root", "SecretBlocked"),
    ]
    .into_iter()
    .enumerate()
    {
        let controller = scene.controller_with((variable, value)).await?;
        let run: AgentRun = serde_json::from_value(json!({
            "metadata": {"name": format!("run-{number}"), "labels": {"team": "a"}},
            "spec": {"agentRef": {"name": "coder"}, "implementation": {"inline": {"text": "Do it."}},
                "runtime": {"type": "job"}, "workload": {"image": "registry.example.com/runner:1"}, "secrets": ["root"]},
        }))?;
        let runs = scene.here.api::<AgentRun>();
        let run = runs.create(&PostParams::default(), &run).await?;
        let refused = refused(&scene, &run, reason, &[]);
        refused.await.with_context(|| variable.to_owned())?;
        controller.signal(Signal::SIGTERM);
        controller.end().await;
    }
    Ok(())
}

#[tokio::test]
async fn the_operators_rules_refuse_or_warn_as_they_are_set() -> Result<()> {
    support::kinds!();
    let settings = [
        (env::IMAGES_DENIED, "registry.example.com/*"),
        (env::LABELS_REQUIRED, "team"),
        (env::POLICY_MODES, "DeniedImages=warn,RequiredLabels=audit"),
        (env::BLOCKED_SECRETS, "root"),
    ];
    let scene = Scene::with_agent(&settings).await?;
    let _controller = scene.controller().await?;
    let blocked = scene.run("blocked", json!({"secrets": ["root"]})).await?;
    refused(
        &scene,
        &blocked,
        "SecretBlocked",
        &["spec.secrets[0]", "root"],
    )
    .await?;
    let warned = scene.run("warned", json!({})).await?;
    let running = scene.until_phase("warned", "Running").await?;
    assert_eq!(
        condition(&running, "Warning"),
        holds("True", "ImageBlocked")
    );
    let told = scene.told(&warned, "Submitted").await?;
    let told = told.iter().filter(|said| said.reason == "PolicyDenied");
    assert_eq!(told.count(), 1, "it is told once");
    Ok(())
}

#[tokio::test]
async fn a_call_is_held_to_the_policy_by_the_tool_that_it_finds() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[(env::IMAGES_DENIED, "*:latest")]).await?;
    let _controller = scene.controller().await?;
    let call = json!({"toolRef": {"name": "lint"}});
    scene.make(Kind::ToolRun, "call", call).await?;
    scene
        .until_ready(Kind::ToolRun, "call", "False MissingTool")
        .await?;
    let tool = json!({"image": "lint:latest", "command": ["/lint"]});
    scene.make(Kind::Tool, "lint", tool).await?;
    let failed = scene.until_any(Kind::ToolRun, "call", |call| {
        call.data["status"]["phase"] == "Failed"
    });
    let failed = failed.await?;
    let conditions = failed.data["status"]["conditions"].as_array();
    let invalid = conditions.into_iter().flatten();
    let mut invalid = invalid.filter(|entry| entry["type"] == "InvalidSpec");
    let reason = invalid.next().map(|entry| entry["reason"].clone());
    assert_eq!(reason, Some(json!("ImageBlocked")));
    Ok(())
}

#[tokio::test]
async fn a_run_waits_for_the_claims_and_secrets_of_its_volumes() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let _controller = scene.controller().await?;
    let volumes = json!([{"type": "secret", "name": "s", "mountPath": "/s", "secretName": "late"}]);
    let workload = json!({"image": "registry.example.com/runner:1", "volumes": volumes});
    scene.run("volumes", json!({"workload": workload})).await?;
    let missing = holds("True", "SecretNotFound");
    scene
        .until("volumes", |run| condition(run, "Blocked") == missing)
        .await?;
    make_secret(&scene, "late").await?;
    scene.until_phase("volumes", "Running").await?;
    Ok(())
}

#[tokio::test]
async fn a_budget_that_is_used_up_holds_runs_back_until_it_recovers() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let _controller = scene.controller().await?;
    let limits = json!({"limits": {"tokens": "10"}});
    scene.make(Kind::Budget, "team", limits).await?;
    scene
        .until_ready(Kind::Budget, "team", "True Active")
        .await?;
    let used = |tokens: &str| json!({"used": {"tokens": tokens}});
    scene.merge_status(Kind::Budget, "team", used("11")).await?;
    scene
        .until_ready(Kind::Budget, "team", "False Exceeded")
        .await?;
    let budget = json!({"metadata": {"annotations": {annotation::BUDGET: "team"}}});
    scene.merge(Kind::Agent, "coder", budget).await?;
    let run = scene.run("held", json!({})).await?;
    let exceeded = holds("True", "Exceeded");
    scene
        .until("held", |run| condition(run, "Blocked") == exceeded)
        .await?;
    events::until(&scene.here.client, &run, DEADLINE, |said| {
        said.reason == "Blocked"
    })
    .await?;
    let jobs = scene.here.api::<Job>();
    assert_eq!(jobs.list(&ListParams::default()).await?.items.len(), 0);
    scene.merge_status(Kind::Budget, "team", used("9")).await?;
    let running = scene.until_phase("held", "Running").await?;
    assert_eq!(condition(&running, "Blocked"), holds("False", "Reconciled"));
    wait::until(&jobs, "held-job", DEADLINE, |_| true).await?;
    Ok(())
}

#[tokio::test]
async fn a_policy_file_that_changes_is_told_of_and_one_that_is_wrong_changes_nothing() -> Result<()>
{
    support::kinds!();
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("policy.yaml");
    std::fs::write(&file, "images: {denied: ['old/*']}")?;
    let scene = Scene::with_agent(&[
        (env::POLICY_FILE, file.to_str().unwrap_or_default()),
        (env::POD_UID, "uid-7"),
        ("OTEL_SERVICE_INSTANCE_ID", "controllers-1"),
    ])
    .await?;
    let here = scene.here.name.clone();
    let mut controller = scene.controller_with((env::POD_NAMESPACE, &here)).await?;
    controller.line("leading", leading).await;
    let own: Pod = serde_json::from_value(json!({
        "metadata": {"name": "controllers-1", "namespace": here, "uid": "uid-7"},
    }))?;
    std::fs::write(&file, "images: {denied: ['registry.example.com/*']}")?;
    let said = |kind: &str, reason: &str, note: &str| events::Said {
        kind: kind.to_owned(),
        reason: reason.to_owned(),
        action: "Reload".to_owned(),
        note: note.to_owned(),
        count: 1,
    };
    let changed = said(
        "Normal",
        "PolicyChanged",
        "The changed policy file is in force",
    );
    let is_told = |said: &events::Said| said.reason == "PolicyChanged";
    let told = events::until(&scene.here.client, &own, DEADLINE, is_told).await?;
    assert_eq!(told, changed);
    std::fs::write(&file, "images: {denyed: []}")?;
    let is_told = |said: &events::Said| said.reason == "PolicyRejected";
    let told = events::until(&scene.here.client, &own, DEADLINE, is_told).await?;
    let start = "The policy file cannot be used, the policy before it stays in force";
    assert!(told.note.starts_with(start), "{}", told.note);
    assert!(told.note.contains("denyed"), "{}", told.note);
    let run = scene.run("denied", json!({})).await?;
    refused(&scene, &run, "ImageBlocked", &["registry.example.com"]).await
}
