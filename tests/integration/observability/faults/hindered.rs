//! A webhook and controllers that are kept from their work: by those who ask, by limits, and by an API server that does not answer.

use std::time::Duration;

use agents::api::{
    contract::{door, env},
    kind::Kind,
    registration::rung::Rung,
};
use agents_webhook::args::variable as webhook;
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use kube::api::DeleteParams;
use nix::sys::signal::Signal;
use serde_json::json;
use support::{Namespace, builders::smallest, gateway::Gateway, lab};
use tokio::{io::AsyncWriteExt, time::interval};

use super::{
    super::{
        live,
        replica::{Beside, Replica},
    },
    Story, provoked,
    watch::Watch,
};
use crate::{
    controller::scene::{ALONE, job_name},
    registration,
    webhook::hostile::target::{Target, head, post, review, review_of},
};

/// Reviews that are allowed at once, and that come at once.
const ALLOWED: &str = "4";
const MANY: usize = 64;
/// Between two parts of a body, of which there are few: all of it comes in time, but not soon.
const DRIP: Duration = Duration::from_millis(500);
const DRIPS: usize = 3;

/// A review whose body comes in drips.
async fn drip(target: &Target) -> Result<()> {
    let body = review("slow").to_string().into_bytes();
    let mut stream = target.connect().await?;
    let head = head(door::VALIDATE, "application/json", body.len());
    stream.write_all(&head).await?;
    let mut pace = interval(DRIP);
    for part in body.chunks(body.len().div_ceil(DRIPS)) {
        pace.tick().await;
        stream.write_all(part).await?;
        stream.flush().await?;
    }
    let (code, said) = target.answer(&mut stream).await?.context("no answer")?;
    ensure!(code == 200, "{said}");
    Ok(())
}

/// Many reviews, all of which are there before the first is looked at.
async fn crowd(target: &Target) -> Result<()> {
    let mut streams = Vec::new();
    for _ in 0..MANY {
        streams.push(target.connect_and_rest().await?);
    }
    let paused = target.pause()?;
    let body = review("many").to_string();
    for stream in &mut streams {
        stream
            .write_all(&post(door::VALIDATE, body.as_bytes()))
            .await?;
        stream.flush().await?;
    }
    drop(paused);
    for stream in &mut streams {
        target.answer(stream).await?;
    }
    Ok(())
}

/// A refusal that nobody can be told of: the namespace of the Event is gone.
async fn refuse_in_vain(target: &Target) -> Result<()> {
    let workspace = smallest(Kind::Workspace, "refused").namespace("no-such-namespace");
    let mut review = review_of("refused", Kind::Workspace, &workspace.json());
    review["request"]["dryRun"] = json!(false);
    let body = review.to_string();
    let answer = target
        .send(&post(door::VALIDATE, body.as_bytes()))
        .await?
        .context("no answer")?;
    ensure!(answer.1.contains(r#""allowed":false"#), "{answer:?}");
    Ok(())
}

/// What those who ask do to a webhook.
async fn of_the_webhook(watch: &Watch, target: &Target) -> Result<()> {
    watch.provoke(&["AgentsWebhookSlow"], drip(target)).await?;
    let alerts = ["AgentsWebhookShedding", "AgentsWebhookErroring"];
    watch.provoke(&alerts, crowd(target)).await?;
    let refused = refuse_in_vain(target);
    watch.provoke(&["AgentsEventsDropped"], refused).await
}

/// A pod without its Job, runs that may not begin, and two that lead. The controller is another one afterwards.
async fn of_the_controllers(
    watch: &Watch,
    replica: &mut Replica,
    (way, second): (&Gateway, &Beside),
) -> Result<()> {
    let Replica {
        scene, controller, ..
    } = replica;
    scene.begin(&["left"]).await?;
    controller.signal(Signal::SIGKILL);
    let orphaned = async {
        let jobs = scene.here.api::<Job>();
        let job = job_name("left");
        jobs.delete(&job, &DeleteParams::orphan()).await?;
        let free = r#"{"metadata":{"finalizers":null}}"#;
        let patch = ["patch", "job", &job, "--type=merge", "--patch", free];
        scene.here.kubectl.run(&patch).await?.ok().map(drop)
    };
    watch.provoke(&["AgentsOrphanedPods"], orphaned).await?;
    scene.end_pod("left", 0).await?;
    *controller = scene.controller_by(way.kubeconfig())?;
    scene.until_phase("left", "Succeeded").await?;

    let waiting = async { scene.run("next", json!({})).await.map(drop) };
    let alerts = ["AgentsQueueStuck", "AgentsRunsWaitLong"];
    watch.provoke(&alerts, waiting).await?;
    let mut other = None;
    let doubled = async {
        let own = second.settings();
        let own: Vec<_> = own.iter().map(|(name, value)| (*name, &**value)).collect();
        other = Some(scene.start(way.kubeconfig(), &own)?);
        Ok(())
    };
    let alert = ["AgentsControllersSeveralLeaders"];
    watch.provoke(&alert, doubled).await?;
    drop(other);
    let held = scene.keep_busy(way);
    let alerts = ["AgentsReconcileStuck", "AgentsReconcileErrors"];
    watch.provoke(&alerts, held).await
}

/// The webhook configurations go, of which the webhook takes notice when it looks the next time.
async fn of_the_registration(watch: &Watch, here: &Namespace) -> Result<()> {
    let removed = registration::remove(here);
    let alert = ["AgentsWebhookRegistrationAtFault"];
    watch.provoke(&alert, removed).await
}

#[tokio::test]
async fn each_alert_is_silent_until_something_is_in_the_way() -> Result<()> {
    support::own_lab!();
    let here = support::namespace("hindered").await?;
    registration::store(&here, Rung::Fail).await?;
    let way = Gateway::open(lab::shared().await?.kubeconfig(), None).await?;
    let by = way.kubeconfig();
    let target = Target::start_with(&[
        ("KUBECONFIG", by.to_str().context("UTF-8")?),
        (webhook::REVIEWS, ALLOWED),
        (webhook::CONFIGURATION_NAME, &here.name),
    ])
    .await?;
    let rate = [
        ALONE,
        (env::RATE_NAMESPACE, "1"),
        (env::RATE_WINDOW, "3600"),
    ];
    let own = support::namespace("hindered").await?;
    let second = Beside::start(&own.name, by)?;
    let mut replica = Replica::start_by(own, by, &rate).await?;
    let pages = [
        ("controllers", replica.page, "5f7d9c"),
        ("controllers", second.page, "6c8b4d"),
        ("webhook", target.admin(), "7bc4f8"),
    ];
    let watch = Watch::start(&live::pages_of(&pages).await?).await?;
    for known in [
        "agents_leading == 1",
        "min(agents_sidecar_job_watch_up) == 1",
        "agents_webhook_registration_looks_total{result=\"judged\"} > 0",
    ] {
        watch.until_told(known).await?;
    }
    watch.until_silent(&provoked(Story::Hindered)).await?;
    tokio::try_join!(
        of_the_registration(&watch, &here),
        of_the_webhook(&watch, &target),
        of_the_controllers(&watch, &mut replica, (&way, &second)),
    )?;
    let away = async {
        drop(way);
        Ok(())
    };
    let alerts = [
        "AgentsApiCallsFailing",
        "AgentsJobWatchDown",
        "AgentsWebhookLookupStale",
    ];
    watch.provoke(&alerts, away).await?;
    watch.has_shown(Story::Hindered)
}
