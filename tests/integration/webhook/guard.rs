//! Jobs are not deleted before their outcome is stored; where the policy lets them go, it is known who did it.

use std::{fs, time::Duration};

use agents::api::{
    contract::{annotation, label},
    kind::Kind,
    kinds::AgentRun,
};
use anyhow::{Context, Result};
use k8s_openapi::api::{batch::v1::Job, events::v1::Event};
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use support::{
    Namespace,
    builders::{owned_by, smallest},
    wait,
};
use tempfile::TempDir;

use super::hook::{self, DEADLINE, Station, job};

/// The garbage collector looks for new kinds only now and then.
const COLLECTION: Duration = Duration::from_secs(300);

/// A run and a Job that belongs to it, whose outcome is not stored.
async fn run_with_job(here: &Namespace, name: &str) -> Result<(AgentRun, Job)> {
    let params = PostParams::default();
    let runs = here.api::<AgentRun>();
    let run = smallest(Kind::AgentRun, name).typed()?;
    let run = runs.create(&params, &run).await?;
    let mut owned = job(name, json!({label::AGENT_RUN: name}));
    owned["metadata"]["ownerReferences"] = owned_by(Kind::AgentRun, &run);
    let jobs = here.api::<Job>();
    let owned = jobs
        .create(&params, &serde_json::from_value(owned)?)
        .await?;
    Ok((run, owned))
}

#[tokio::test]
async fn a_job_is_kept_until_its_outcome_is_recorded() -> Result<()> {
    support::own_lab!();
    let here = hook::calm_namespace("guard").await?;
    let (run, owned) = run_with_job(&here, "kept").await?;
    let delete = ["delete", "job", "kept", "--wait=false"];
    let said = here.kubectl.run(&delete).await?;
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    assert!(said.stderr.contains("outcome"), "{}", said.stderr);
    let jobs = here.api::<Job>();
    let stored = jobs.get("kept").await?.metadata;
    assert_eq!((stored.uid, stored.deletion_timestamp), (owned.uid(), None));
    let events = here.api::<Event>();
    let told = wait::until_listed(&events, "", DEADLINE, |list: &[Event]| {
        let reason = |event: &Event| event.reason.as_deref() == Some("JobDeleteRefused");
        list.iter().any(reason)
    });
    let told = told.await?;
    let about = told.iter().find_map(|event| {
        let about = event.regarding.clone()?;
        (event.reason.as_deref() == Some("JobDeleteRefused")).then_some(about)
    });
    assert_eq!(about.context("an object")?.uid, owned.uid());
    // Nothing was deleted, so there is nobody to name.
    let stored = here.api::<AgentRun>().get("kept").await?;
    assert_eq!(stored.resource_version(), run.resource_version());

    let mark = json!({"metadata": {"annotations": {annotation::OUTCOME_RECORDED: "true"}}});
    jobs.patch("kept", &PatchParams::default(), &Patch::Merge(mark))
        .await?;
    here.kubectl.run(&delete).await?.ok()?;
    wait::until_gone(&jobs, "kept", DEADLINE).await
}

#[tokio::test]
async fn who_deleted_a_job_too_early_is_noted_on_its_run() -> Result<()> {
    support::own_lab!();
    let folder = TempDir::new()?;
    let policy = folder.path().join("policy.yaml");
    fs::write(&policy, "jobDelete: warn\n")?;
    let station = Station::with_policy(&policy).await?;
    // Returns only when deletions of Jobs are seen to be asked about here.
    let here = station.registered.namespace("guard-warn").await?;
    let (run, owned) = run_with_job(&here, "lost").await?;
    let said = here
        .kubectl
        .run(&["delete", "job", "lost", "--wait=false"])
        .await?;
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stderr.starts_with("Warning: "), "{}", said.stderr);
    let noted = |run: &AgentRun| run.annotations().contains_key(annotation::JOB_DELETED_BY);
    let stored = wait::until(&here.api::<AgentRun>(), "lost", DEADLINE, noted)
        .await
        .with_context(|| station.hook.logged())?;
    assert_eq!(stored.uid(), run.uid());
    let note: Value = serde_json::from_str(&stored.annotations()[annotation::JOB_DELETED_BY])?;
    let whoami = [
        "auth",
        "whoami",
        "--output=jsonpath={.status.userInfo.username}",
    ];
    let user = here.kubectl.run(&whoami).await?.ok()?;
    assert_eq!(
        (&note["job"], &note["uid"]),
        (&json!("lost"), &json!(owned.uid()))
    );
    assert_eq!(note["user"], json!(user));
    Ok(())
}

#[tokio::test]
async fn a_job_goes_with_its_run() -> Result<()> {
    support::own_lab!();
    let here = hook::namespace("guard-owner").await?;
    run_with_job(&here, "gone").await?;
    let params = DeleteParams::background();
    here.api::<AgentRun>().delete("gone", &params).await?;
    wait::until_gone(&here.api::<Job>(), "gone", COLLECTION).await
}
