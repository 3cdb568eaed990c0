//! Jobs are not deleted before their outcome is stored; where the policy lets them go, it is known who did it.

use std::time::Duration;

use agents::api::{
    contract::{annotation, env, label},
    kind::Kind,
};
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::{batch::v1::Job, core::v1::Namespace as NamespaceObject, events::v1::Event};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use support::{
    Namespace,
    builders::{owned_by, smallest},
    metrics::Page,
    wait,
};

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
    let (station, _policy) = Station::lenient().await?;
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

/// How often the API server has asked about the deletion of a Job.
async fn asked(station: &Station) -> Result<f64> {
    let page = Page::scrape(&station.hook.admin.to_string()).await?;
    let all = page.series("agents_webhook_calls_total");
    let all = all.iter();
    let deletions = all.filter(|(series, _)| series.labels["door"] == "validate-delete");
    Ok(deletions.map(|(_, count)| count).sum())
}

/// The garbage collector and the namespace controller are not even asked about, so neither waits for us.
#[tokio::test]
async fn a_job_goes_with_its_run_and_its_namespace_without_a_question() -> Result<()> {
    support::own_lab!();
    let station = Station::start(&[]).await?;
    let here = station.registered.namespace("guard-owner").await?;
    let before = asked(&station).await?;
    ensure!(before >= 1.0, "deletions by others are asked about");
    run_with_job(&here, SORTS[0], "gone").await?;
    let params = DeleteParams::background();
    runs(&here, Kind::AgentRun)?.delete("gone", &params).await?;
    wait::until_gone(&here.api::<Job>(), "gone", COLLECTION).await?;
    for (number, sort) in SORTS.into_iter().enumerate() {
        run_with_job(&here, sort, &format!("in-it-{number}")).await?;
    }
    let all: Api<NamespaceObject> = Api::all(here.client.clone());
    all.delete(&here.name, &DeleteParams::default()).await?;
    wait::until_gone(&all, &here.name, COLLECTION).await?;
    let after = asked(&station).await?;
    ensure!(after == before, "{} questions", after - before);
    Ok(())
}

#[tokio::test]
async fn refusals_are_told_as_the_operator_wishes() -> Result<()> {
    support::own_lab!();
    /// More than ten times the limit of one in a minute, which holds for one reason in one namespace.
    const JOBS: usize = 12;
    for (setting, expected) in [
        ((env::EVENTS_ENABLED, "true"), JOBS),
        ((env::EVENTS_ENABLED, "false"), 0),
        ((env::EVENTS_RATE_LIMIT_PER_MIN, "1"), 10),
    ] {
        let Station {
            hook,
            registered,
            certificates: _certificates,
        } = Station::start(&[setting]).await?;
        let here = registered.namespace("guard-told").await?;
        let jobs = here.api::<Job>();
        for number in 0..JOBS {
            let name = format!("kept-{number}");
            run_with_job(&here, SORTS[0], &name).await?;
            let refused = jobs.delete(&name, &DeleteParams::background()).await;
            ensure!(refused.is_err(), "{name} was deleted");
        }
        // What is left to tell is told before it ends.
        let (status, log) = hook.end().await?;
        ensure!(status.success(), "{log}");
        let events = here.api::<Event>().list(&ListParams::default()).await?;
        let told = events.iter();
        let told = told.filter(|event| event.reason.as_deref() == Some("JobDeleteRefused"));
        assert_eq!(told.count(), expected, "{setting:?}");
    }
    Ok(())
}
