//! `agents release`: what is held goes, by someone with few rights, and never in silence.

use std::path::PathBuf;

use agents::api::contract::{annotation, finalizer, label};
use anyhow::{Context, Result};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{ListParams, PostParams};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use support::{Namespace, lab};
use tempfile::TempDir;

use super::{agents, ended};
use crate::controller::scene::{ALONE, Scene, is_held};

/// A kubeconfig of someone who may get, list and patch Jobs and pods of a namespace, and nothing else.
async fn janitor(here: &Namespace, folder: &TempDir) -> Result<PathBuf> {
    let (params, user) = (PostParams::default(), format!("janitor-of-{}", here.name));
    let verbs = ["get", "list", "patch"];
    let role: Role = serde_json::from_value(json!({"metadata": {"name": "janitor"}, "rules": [
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": verbs},
        {"apiGroups": [""], "resources": ["pods"], "verbs": verbs},
    ]}))?;
    here.api().create(&params, &role).await?;
    let binding: RoleBinding = serde_json::from_value(json!({"metadata": {"name": "janitor"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "janitor"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }))?;
    here.api().create(&params, &binding).await?;
    let admin = std::fs::read_to_string(lab::shared().await?.kubeconfig())?;
    let mut kubeconfig: Value = serde_saphyr::from_str(&admin)?;
    kubeconfig["users"][0]["user"]["as"] = json!(user);
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, kubeconfig.to_string())?;
    Ok(file)
}

async fn held(here: &Namespace) -> Result<usize> {
    let all = ListParams::default();
    let jobs = here.api::<Job>().list(&all).await?;
    let pods = here.api::<Pod>().list(&all).await?;
    let jobs = jobs.iter().filter(|job| is_held(*job)).count();
    Ok(jobs + pods.iter().filter(|pod| is_held(*pod)).count())
}

#[tokio::test]
async fn an_outcome_that_is_not_recorded_is_named_and_lost_only_on_demand() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[ALONE]).await?;
    let controller = scene.controller().await?;
    scene.run("fix", json!({})).await?;
    scene.until_phase("fix", "Running").await?;
    scene.pod("fix").await?;
    controller.signal(Signal::SIGKILL);
    controller.end().await;
    scene.end_pod("fix", 0).await?;
    let complete = |job: &Job| {
        let status = job.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_deref());
        let mut conditions = conditions.unwrap_or_default().iter();
        conditions.any(|one| one.type_ == "Complete" && one.status == "True")
    };
    scene.until_job("fix", complete).await?;

    let folder = tempfile::tempdir()?;
    let janitor = janitor(&scene.here, &folder).await?;
    let here = ["release", "--namespace", scene.here.name.as_str()];
    let refused = agents(&janitor, &here).await?;
    ended(&refused, 1);
    for words in [
        "AgentRun/fix   ended well, not recorded",
        "AgentRun/fix   goes with its Job",
        "would be lost: AgentRun/fix.",
    ] {
        assert!(refused.stdout.contains(words), "{}", refused.stdout);
    }
    assert!(
        refused.stderr.contains("nothing was released"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains("next: "), "{}", refused.stderr);

    let rehearsed = agents(&janitor, &[&here[..], &["--yes", "--dry-run"]].concat()).await?;
    ended(&rehearsed, 0);
    assert_eq!(rehearsed.stdout, refused.stdout);
    assert_eq!(held(&scene.here).await?, 2);

    let released = agents(&janitor, &[&here[..], &["--yes"]].concat()).await?;
    ended(&released, 0);
    assert!(
        released.stdout.ends_with("2 objects released.\n"),
        "{}",
        released.stdout
    );
    assert_eq!(held(&scene.here).await?, 0);
    let again = agents(&janitor, &here).await?;
    ended(&again, 0);
    let nothing = format!(
        "Nothing of ours is held in namespace {}.\n",
        scene.here.name
    );
    assert_eq!(again.stdout, nothing);
    Ok(())
}

/// A Job that never starts a pod.
fn job(name: &str, recorded: bool) -> Result<Job> {
    let annotations = match recorded {
        true => json!({annotation::OUTCOME_RECORDED: "2026-01-01T12:00:00Z"}),
        false => json!({}),
    };
    serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {label::TOOL_RUN: name}, "annotations": annotations,
            "finalizers": [finalizer::OUTCOME, "example.com/other"]},
        "spec": {"suspend": true, "template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "main", "image": "registry.example.com/x:1"}]}}},
    }))
    .context("a Job")
}

#[tokio::test]
async fn what_is_recorded_goes_without_a_question_and_only_what_is_named() -> Result<()> {
    let here = support::namespace("release").await?;
    let jobs = here.api::<Job>();
    jobs.create(&PostParams::default(), &job("stored", true)?)
        .await?;
    jobs.create(&PostParams::default(), &job("busy", false)?)
        .await?;
    let admin = lab::shared().await?.kubeconfig();
    let words = ["release", "-n", &here.name, "--job", "stored"];
    let said = agents(admin, &words).await?;
    ended(&said, 0);
    assert!(
        said.stdout.contains("ToolRun/stored   outcome recorded"),
        "{}",
        said.stdout
    );
    assert!(
        said.stdout.contains("nothing would be lost"),
        "{}",
        said.stdout
    );
    let finalizers = |job: Job| job.metadata.finalizers.unwrap_or_default();
    assert_eq!(finalizers(jobs.get("stored").await?), ["example.com/other"]);
    assert_eq!(
        finalizers(jobs.get("busy").await?),
        [finalizer::OUTCOME, "example.com/other"]
    );

    let all = agents(admin, &["release", "-n", &here.name, "-y"]).await?;
    ended(&all, 0);
    assert_eq!(finalizers(jobs.get("busy").await?), ["example.com/other"]);
    for name in ["stored", "busy"] {
        let strip = json!({"metadata": {"finalizers": null}});
        let patch = kube::api::Patch::Merge(strip);
        jobs.patch(name, &Default::default(), &patch).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_release_says_where_and_a_lack_of_rights_is_told() -> Result<()> {
    let here = support::namespace("release").await?;
    let admin = lab::shared().await?.kubeconfig();
    let nowhere = agents(admin, &["release"]).await?;
    ended(&nowhere, 2);
    assert!(nowhere.stderr.contains("--namespace"), "{}", nowhere.stderr);
    let folder = tempfile::tempdir()?;
    let janitor = janitor(&here, &folder).await?;
    let elsewhere = agents(&janitor, &["release", "-n", "default"]).await?;
    ended(&elsewhere, 3);
    assert!(
        elsewhere.stderr.contains("could not list the Jobs"),
        "{}",
        elsewhere.stderr
    );
    assert!(
        elsewhere.stderr.contains("next: ask for this right"),
        "{}",
        elsewhere.stderr
    );
    let unknown = agents(admin, &["release", "-n", "x", "--context", "none"]).await?;
    ended(&unknown, 2);
    assert!(
        unknown.stderr.contains("could not use the context none"),
        "{}",
        unknown.stderr
    );
    Ok(())
}
