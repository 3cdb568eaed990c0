//! The real programs, a real Prometheus with the rules of the chart, and one fault after another.
//!
//! The API server counts failed calls to all webhooks together, so no other test may let one fail beside this one.

use std::fs;

use agents::api::{kind::Kind, registration::rung::Rung};
use anyhow::{Context, Result};
use k8s_openapi::api::{batch::v1::Job, core::v1::ResourceQuota};
use kube::api::{Patch, PatchParams, PostParams};
use nix::sys::signal::Signal;
use serde_json::json;
use support::{Namespace, builders::smallest, wait};
use tempfile::TempDir;

use super::{
    super::{live, replica::Replica},
    Story, provoked,
    watch::{DEADLINE, Watch},
};
use crate::{
    controller::scene::{Scene, job_name},
    webhook::hook::{Registered, Station},
};

/// Runs that cannot begin, that fail, or that may not have a Job.
async fn of_runs(watch: &Watch, scene: &Scene) -> Result<()> {
    let blocked = async {
        let nobody = json!({"agentRef": {"name": "nobody"}});
        scene.run("waits", nobody).await.map(drop)
    };
    watch.provoke(&["AgentsRunsBlocked"], blocked).await?;
    let failing = async {
        for count in 0..6 {
            live::carry_out(scene, &format!("bad-{count}"), 1).await?;
        }
        Ok(())
    };
    watch.provoke(&["AgentsRunsFailing"], failing).await?;
    let quotas = scene.here.api::<ResourceQuota>();
    let forbidden = async {
        let quota =
            json!({"metadata": {"name": "none"}, "spec": {"hard": {"count/jobs.batch": "0"}}});
        let quota = serde_json::from_value(quota)?;
        quotas.create(&PostParams::default(), &quota).await?;
        let counted = |quota: &ResourceQuota| {
            let status = quota.status.as_ref();
            status.is_some_and(|status| status.hard.is_some())
        };
        wait::until(&quotas, "none", DEADLINE, counted).await?;
        scene.run("without-a-job", json!({})).await.map(drop)
    };
    watch
        .provoke(&["AgentsReconcileForbidden"], forbidden)
        .await?;
    let gone = ["delete", "resourcequota/none", "agentrun/without-a-job"];
    scene.here.kubectl.run(&gone).await?.ok().map(drop)
}

/// Deletes the Job of a run and its pods, and lets them go as only someone with bad intentions does.
async fn wipe_out(scene: &Scene, run: &str) -> Result<()> {
    scene.begin(&[run]).await?;
    let kubectl = &scene.here.kubectl;
    let pod = scene.pod(run).await?.metadata.name.context("a name")?;
    // The Job first: it would make another pod.
    for object in [format!("job/{}", job_name(run)), format!("pod/{pod}")] {
        let delete = ["delete", &object, "--wait=false", "--grace-period=0"];
        let delete = [&delete[..], &["--cascade=orphan"]].concat();
        kubectl.run(&delete).await?.ok()?;
        let free = r#"{"metadata":{"finalizers":null}}"#;
        let patch = ["patch", &object, "--type=merge", "--patch", free];
        // What nothing else holds is gone already.
        kubectl.run(&patch).await?;
    }
    scene.until_phase(run, "Failed").await.map(drop)
}

/// A controller that is killed, Jobs that someone meddles with, and a controller that ends.
async fn of_custody(watch: &Watch, replica: Replica) -> Result<()> {
    let Replica {
        scene,
        sidecar,
        controller,
        ..
    } = replica;
    scene.begin(&["held"]).await?;
    let killed = async {
        controller.kill().await;
        Ok(())
    };
    watch.provoke(&["AgentsSidecarSourceDown"], killed).await?;
    let jobs = scene.here.api::<Job>();
    let job = job_name("held");
    let short = async {
        scene.end_pod("held", 0).await?;
        let patch = Patch::Merge(json!({"spec": {"ttlSecondsAfterFinished": 59}}));
        jobs.patch(&job, &PatchParams::default(), &patch).await?;
        Ok(())
    };
    let alerts = [
        "AgentsJobHazard",
        "AgentsJobTtlShort",
        "AgentsJobUnrecorded",
    ];
    watch.provoke(&alerts, short).await?;
    let deleted = async {
        let delete = ["delete", "job", &job, "--wait=false"];
        scene.here.kubectl.run(&delete).await?.ok().map(drop)
    };
    watch.provoke(&["AgentsJobsHeld"], deleted).await?;

    let controller = scene.controller().await?;
    scene.until_phase("held", "Succeeded").await?;
    let lost = async {
        wipe_out(&scene, "gone").await?;
        // Only what is added to a series that was seen before is an increase.
        watch
            .until_told("agents_job_missing_total{recovered=\"none\"}")
            .await?;
        wipe_out(&scene, "gone-too").await
    };
    let alerts = ["AgentsJobMissing", "AgentsJobOutcomeLost"];
    watch.provoke(&alerts, lost).await?;

    let ended = async {
        controller.signal(Signal::SIGTERM);
        controller.end().await;
        Ok(())
    };
    let alerts = ["AgentsControllersNoLeader", "AgentsSidecarNothingReceived"];
    watch.provoke(&alerts, ended).await?;
    let ended = async {
        sidecar.signal(Signal::SIGTERM);
        sidecar.end().await;
        Ok(())
    };
    watch.provoke(&["AgentsSidecarDown"], ended).await
}

/// Asks for an object that has nothing wrong, without storing it.
async fn ask(here: &Namespace) -> Result<()> {
    let create = ["create", "--dry-run=server", "--filename", "-"];
    let tool = smallest(Kind::Tool, "asked").to_string();
    here.kubectl.run_with_input(&create, &tool).await.map(drop)
}

/// Files of a webhook that are no good, and a webhook that is gone.
async fn of_the_webhook(watch: &Watch, station: Station, policy: &TempDir) -> Result<()> {
    let mount = &station.certificates.mount;
    let rejected = async {
        Ok(fs::write(
            policy.path().join("policy.yaml"),
            "jobDelete: [\n",
        )?)
    };
    watch
        .provoke(&["AgentsWebhookPolicyRejected"], rejected)
        .await?;
    let refused = async {
        mount.put("no certificate", "no key");
        Ok(())
    };
    let alert = ["AgentsWebhookCertificateReloadFailing"];
    watch.provoke(&alert, refused).await?;
    let short = async {
        mount.swap(&station.certificates.authority.issue_for_days(3));
        Ok(())
    };
    let alert = ["AgentsWebhookCertificateExpiring"];
    watch.provoke(&alert, short).await?;

    let Station {
        hook,
        registered,
        certificates,
    } = station;
    let authority = &certificates.authority;
    let lenient = Registered::shipped(hook.address, authority, Rung::Deny).await?;
    let strict = registered.namespace("faults-strict").await?;
    let open = lenient.namespace("faults-open").await?;
    let gone = async {
        hook.end().await?;
        ask(&strict).await?;
        ask(&open).await
    };
    let alerts = [
        "AgentsWebhookDown",
        "AgentsWebhookBlocksUsers",
        "AgentsWebhookPassedBy",
    ];
    watch.provoke(&alerts, gone).await
}

#[tokio::test]
async fn each_alert_is_silent_until_its_fault_is_there() -> Result<()> {
    support::own_lab!();
    let (station, policy) = Station::lenient().await?;
    let replica = Replica::start(support::namespace("faults").await?).await?;
    let watch = Watch::start(&live::pages(replica.page, station.hook.admin).await?).await?;
    // Only what is added to a series that was seen before is an increase.
    live::carry_out(&replica.scene, "well", 0).await?;
    live::carry_out(&replica.scene, "badly", 1).await?;
    watch.until_told("count(agents_runs_total) == 2").await?;
    watch.until_told("agents:webhook_gate:value").await?;
    watch.until_silent(&provoked(Story::Alone)).await?;
    of_runs(&watch, &replica.scene).await?;
    of_custody(&watch, replica).await?;
    of_the_webhook(&watch, station, &policy).await?;
    watch.has_shown(Story::Alone)
}
