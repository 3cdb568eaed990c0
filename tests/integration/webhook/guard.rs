//! Jobs are not deleted before their outcome is stored; where the policy lets them go, it is known who did it.

use std::{fs, time::Duration};

use agents::api::{
    contract::{annotation, label},
    kind::Kind,
};
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::{batch::v1::Job, core::v1::Namespace as NamespaceObject, events::v1::Event};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use support::{
    Namespace,
    builders::{owned_by, smallest},
    wait,
};
use tempfile::TempDir;

use super::{
    cases::resource,
    hook::{self, DEADLINE, Station, job, run_labels},
};

/// The garbage collector looks for new kinds only now and then.
const COLLECTION: Duration = Duration::from_secs(300);

/// The sorts of runs that Jobs carry out, and the label of each.
const SORTS: [(Kind, &str); 2] = [
    (Kind::AgentRun, label::AGENT_RUN),
    (Kind::ToolRun, label::TOOL_RUN),
];

fn runs(here: &Namespace, kind: Kind) -> Result<Api<DynamicObject>> {
    let client = here.client.clone();
    Ok(Api::namespaced_with(
        client,
        &here.name,
        &resource(kind.as_str())?,
    ))
}

/// A run and a Job that belongs to it, whose outcome is not stored.
async fn run_with_job(
    here: &Namespace,
    (kind, sort): (Kind, &str),
    name: &str,
) -> Result<(DynamicObject, Job)> {
    let params = PostParams::default();
    let run = smallest(kind, name).typed()?;
    let run = runs(here, kind)?.create(&params, &run).await?;
    let uid = run.uid().context("a uid")?;
    let mut owned = job(name, run_labels(sort, name, &uid));
    owned["metadata"]["ownerReferences"] = owned_by(kind, &run);
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
    let (run, owned) = run_with_job(&here, SORTS[0], "kept").await?;
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
    let stored = runs(&here, Kind::AgentRun)?.get("kept").await?;
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
    let whoami = [
        "auth",
        "whoami",
        "--output=jsonpath={.status.userInfo.username}",
    ];
    let user = here.kubectl.run(&whoami).await?.ok()?;
    for (kind, sort) in SORTS {
        let name = format!("lost-by-{}", kind.plural());
        let (run, owned) = run_with_job(&here, (kind, sort), &name).await?;
        let delete = ["delete", "job", &name, "--wait=false"];
        let said = here.kubectl.run(&delete).await?;
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        assert!(said.stderr.starts_with("Warning: "), "{}", said.stderr);
        let noted =
            |run: &DynamicObject| run.annotations().contains_key(annotation::JOB_DELETED_BY);
        let runs = runs(&here, kind)?;
        let stored = wait::retry("a note on the run", DEADLINE, || async {
            let run = runs.get(&name).await?;
            ensure!(noted(&run), "no note yet");
            Ok(run)
        })
        .await
        .with_context(|| station.hook.logged())?;
        assert_eq!(stored.uid(), run.uid());
        let note: Value = serde_json::from_str(&stored.annotations()[annotation::JOB_DELETED_BY])?;
        assert_eq!(
            (&note["job"], &note["uid"]),
            (&json!(name), &json!(owned.uid()))
        );
        assert_eq!(note["user"], json!(user), "{kind}");
    }
    Ok(())
}

#[tokio::test]
async fn a_job_of_a_tool_run_is_kept_like_any_other() -> Result<()> {
    support::own_lab!();
    let here = hook::calm_namespace("guard-tool").await?;
    run_with_job(&here, SORTS[1], "kept").await?;
    let said = here
        .kubectl
        .run(&["delete", "job", "kept", "--wait=false"])
        .await?;
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    assert!(said.stderr.contains("outcome"), "{}", said.stderr);
    Ok(())
}

#[tokio::test]
async fn a_namespace_goes_with_all_its_jobs() -> Result<()> {
    support::own_lab!();
    let here = hook::namespace("guard-namespace").await?;
    for (number, sort) in SORTS.into_iter().enumerate() {
        run_with_job(&here, sort, &format!("in-it-{number}")).await?;
    }
    let all: Api<NamespaceObject> = Api::all(here.client.clone());
    all.delete(&here.name, &DeleteParams::default()).await?;
    wait::until_gone(&all, &here.name, COLLECTION).await
}

#[tokio::test]
async fn a_job_goes_with_its_run() -> Result<()> {
    support::own_lab!();
    let here = hook::namespace("guard-owner").await?;
    run_with_job(&here, SORTS[0], "gone").await?;
    let params = DeleteParams::background();
    runs(&here, Kind::AgentRun)?.delete("gone", &params).await?;
    wait::until_gone(&here.api::<Job>(), "gone", COLLECTION).await
}
