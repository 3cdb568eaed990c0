//! The ladder: by `helm upgrade` alone the webhook goes up every rung and down again while people work, with certificates of
//! its own. And on the last rung, without a single webhook pod, what runs still ends well.

use agents::api::contract::label;
use agents::api::kinds::AgentRun;
use agents::api::registration::rung::Rung;
use anyhow::{Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace as NamespaceObject, Pod};
use kube::api::{EvictParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use support::{Namespace, namespace_in, wait};

use super::{is_registered, traffic::Traffic};
use crate::chart::install::is_refused;
use crate::chart::install::stage::{DEADLINE, Stage, works};
use crate::chart::rungs::in_values;
use crate::controller::scene::phase_of;

/// Everything but the rung stays the same.
fn values(rung: Rung) -> Value {
    json!({
        "controlPlane": {"enabled": false},
        "controller": {"namespaces": ["*"]},
        "rbac": {"clusterScoped": true},
        "webhook": {
            "rung": in_values(rung), "rotator": {"settle": "5s"},
            "tls": {"source": "rotator", "secretName": "", "caBundle": ""},
        },
    })
}

/// A namespace in which nothing is stored unjudged before that is so everywhere.
async fn labelled(stage: &Stage) -> Result<Namespace> {
    let there = namespace_in(stage.lab, "ladder-labelled").await?;
    let all: Api<NamespaceObject> = Api::all(there.client.clone());
    let labels = json!({"metadata": {"labels": {label::ADMISSION: label::ADMISSION_FAIL}}});
    all.patch(&there.name, &PatchParams::default(), &Patch::Merge(labels))
        .await?;
    Ok(there)
}

/// Takes every webhook pod away and returns when nothing is stored any more.
async fn without_webhook(stage: &Stage) -> Result<()> {
    let scale = ["scale", "deployment/agents-webhook", "--replicas=0"];
    stage.here.kubectl.run(&scale).await?.ok()?;
    let pods = stage.here.api::<Pod>();
    let webhook = "app.kubernetes.io/component=webhook";
    wait::until_listed(&pods, webhook, DEADLINE, |pods: &[Pod]| pods.is_empty()).await?;
    let create = ["create", "--dry-run=server", "--filename", "-"];
    let signal = json!({
        "apiVersion": "signals.proompteng.ai/v1alpha1", "kind": "Signal", "metadata": {"name": "unjudged"},
        "spec": {"channel": "unjudged"},
    });
    let said = stage
        .here
        .kubectl
        .run_with_input(&create, &signal.to_string())
        .await?;
    ensure!(
        said.stderr.contains("failed calling webhook"),
        "{}",
        said.stderr
    );
    Ok(())
}

/// Up every rung and down again. Whoever works meanwhile notices nothing.
async fn climb(stage: &Stage) -> Result<()> {
    let labelled = labelled(stage).await?;
    let traffic = Traffic::start(&[&stage.here, &labelled]).await?;
    let up = Rung::ALL.into_iter().skip(1);
    let down = Rung::ALL.into_iter().rev().skip(1);
    for rung in up.chain(down) {
        traffic.goes_on().await?;
        stage.put("upgrade", &values(rung)).await?;
        is_registered(stage, rung).await?;
        is_refused(stage, rung.refuses()).await?;
    }
    traffic.goes_on().await?;
    traffic.end("every rung up and down").await
}

/// What is under way while nobody judges: a run that ends, and a namespace that goes.
async fn goes_on(stage: &Stage) -> Result<()> {
    let other = namespace_in(stage.lab, "ladder-other").await?;
    for place in [&stage.here, &other] {
        stage.make_agent(place).await?;
        stage.start_run(place, "at-work").await?;
    }
    without_webhook(stage).await?;

    let pods = stage.here.api::<Pod>();
    let pod = works(&pods, "at-work").await?;
    pods.evict(&pod, &EvictParams::default()).await?;
    let is_over = |run: &AgentRun| phase_of(run) == "Failed";
    wait::until(&stage.here.api(), "at-work", DEADLINE, is_over).await?;
    let is_let_go = |job: &Job| job.finalizers().is_empty();
    wait::until(&stage.here.api(), "at-work-job", DEADLINE, is_let_go).await?;

    let delete = ["delete", "namespace", &other.name, "--wait=false"];
    stage.lab.kubectl().run(&delete).await?.ok()?;
    let all: Api<NamespaceObject> = Api::all(other.client.clone());
    wait::until_gone(&all, &other.name, DEADLINE).await
}

#[tokio::test]
async fn no_rung_fails_a_request_and_without_a_webhook_the_last_one_lets_runs_end_and_namespaces_go()
-> Result<()> {
    support::node_lab!();
    let stage = Stage::enter().await?;
    stage.put("install", &values(Rung::Audit)).await?;
    is_registered(&stage, Rung::Audit).await?;
    climb(&stage).await?;
    stage.put("upgrade", &values(Rung::Fail)).await?;
    is_refused(&stage, true).await?;
    goes_on(&stage).await?;
    stage.uninstall().await
}
