//! A holder is asked to hand the lease to someone by name.

use std::time::{Duration, Instant};

use agents::api::contract::annotation;
use anyhow::{Context, Result};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use support::{
    events::{self, Said},
    gateway::Gateway,
    lab,
    lab::report::{measured, spoken},
    wait,
};

use crate::controller::lease::{BRIEF, LEASE, holder, leading, until_ready};
use crate::controller::scene::{DEADLINE, Scene};
use crate::kit::process::Process;

/// Who a process is.
async fn identity(process: &mut Process) -> String {
    let seeking = |line: &Value| line["message"] == "Seeking the lease";
    let line = process.line("its identity", seeking).await;
    line["identity"].as_str().unwrap_or_default().to_owned()
}

/// Asks for the lease, as the command line or `kubectl annotate` would.
async fn ask(scene: &Scene, annotations: Value) -> Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    let leases = scene.here.api::<Lease>();
    leases.patch(LEASE, &PatchParams::default(), &patch).await?;
    Ok(())
}

fn said<'a>(lease: &'a Lease, annotation: &str) -> Option<&'a str> {
    let text = lease.metadata.annotations.as_ref()?.get(annotation)?;
    Some(text)
}

/// Waits until the holder has refused a request, and gives its words.
async fn refusal(scene: &Scene) -> Result<String> {
    let leases = scene.here.api::<Lease>();
    let refused = |lease: &Lease| said(lease, annotation::YIELD_REFUSED).is_some();
    let lease = wait::until(&leases, LEASE, DEADLINE, refused).await?;
    assert_eq!(said(&lease, annotation::YIELD_TO), None);
    let words = said(&lease, annotation::YIELD_REFUSED).context("words")?;
    Ok(words.to_owned())
}

#[tokio::test]
async fn the_lease_is_yielded_to_a_ready_candidate_within_two_seconds() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let mut first = scene.controller().await?;
    first.line("leading", leading).await;
    let mut second = scene.controller().await?;
    let candidate = identity(&mut second).await;
    until_ready(&mut second).await?;
    let names: Vec<_> = (0..5).map(|count| format!("run-{count}")).collect();
    for name in &names {
        scene.run(name, json!({})).await?;
    }
    let asked = Instant::now();
    ask(&scene, json!({ annotation::YIELD_TO: candidate })).await?;
    second.line("leading", leading).await;
    let took = asked.elapsed();
    measured(format!("the lease yielded on request in {}", spoken(took)));
    assert!(took < Duration::from_secs(2), "{took:?}");
    let ended = first.end().await;
    assert_eq!(ended.code, Some(0), "{}", ended.log.join("\n"));
    let lease = scene.here.api::<Lease>().get(LEASE).await?;
    assert_eq!(holder(&lease), candidate);
    assert_eq!(said(&lease, annotation::YIELD_TO), None);
    assert_eq!(said(&lease, annotation::YIELD_READY), None);
    let spec = lease.spec.context("a spec")?;
    assert_eq!(spec.lease_transitions, Some(1));
    for name in &names {
        scene.until_phase(name, "Running").await?;
    }
    let jobs = scene.here.api::<Job>().list(&ListParams::default()).await?;
    assert_eq!(jobs.items.len(), names.len());
    Ok(())
}

#[tokio::test]
async fn a_request_for_who_is_not_there_or_holds_it_already_is_refused() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let mut only = scene.controller().await?;
    let own = identity(&mut only).await;
    only.line("leading", leading).await;
    ask(&scene, json!({ annotation::YIELD_TO: "nobody_0" })).await?;
    assert_eq!(
        refusal(&scene).await?,
        "nobody_0: did not say in time that it is ready"
    );
    let again = json!({ annotation::YIELD_TO: own, annotation::YIELD_REFUSED: null });
    ask(&scene, again).await?;
    assert_eq!(
        refusal(&scene).await?,
        format!("{own}: it holds the lease already")
    );
    let lease = scene.here.api::<Lease>().get(LEASE).await?;
    assert_eq!(holder(&lease), own);
    // A repeat keeps the first words.
    let expected = [Said {
        kind: "Warning".to_owned(),
        reason: "YieldRefused".to_owned(),
        action: "Lead".to_owned(),
        note: "nobody_0 does not get the lease: did not say in time that it is ready".to_owned(),
        count: 2,
    }];
    wait::retry("an Event that was repeated", DEADLINE, || async {
        let said = events::about(&scene.here.client, &lease).await?;
        anyhow::ensure!(said == expected, "{said:?}");
        Ok(())
    })
    .await?;
    scene.run("after", json!({})).await?;
    scene.until_phase("after", "Running").await?;
    Ok(())
}

#[tokio::test]
async fn a_candidate_that_is_not_ready_does_not_get_the_lease_until_it_is() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let mut first = scene.controller().await?;
    first.line("leading", leading).await;
    let way = Gateway::open(lab::shared().await?.kubeconfig(), None).await?;
    way.hold(|_, path| path.ends_with("/agentproviders"));
    let mut second = scene.controller_by(way.kubeconfig())?;
    let candidate = identity(&mut second).await;
    ask(&scene, json!({ annotation::YIELD_TO: candidate })).await?;
    assert_eq!(
        refusal(&scene).await?,
        format!("{candidate}: did not say in time that it is ready")
    );
    way.release();
    until_ready(&mut second).await?;
    let again = json!({ annotation::YIELD_TO: candidate, annotation::YIELD_REFUSED: null });
    ask(&scene, again).await?;
    second.line("leading", leading).await;
    assert_eq!(first.end().await.code, Some(0));
    Ok(())
}

#[tokio::test]
async fn a_candidate_that_dies_with_the_lease_is_followed_within_the_lease_time() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&BRIEF).await?;
    let mut first = scene.controller().await?;
    first.line("leading", leading).await;
    let mut second = scene.controller().await?;
    until_ready(&mut second).await?;
    // It says that it is ready, and is never heard of again.
    let leases = scene.here.api::<Lease>();
    let renewal = leases
        .get(LEASE)
        .await?
        .spec
        .and_then(|spec| spec.renew_time);
    let renewal = renewal.context("a renewal")?.0;
    let ghost = json!({ annotation::YIELD_TO: "ghost_1", annotation::YIELD_READY: format!("ghost_1 {renewal}") });
    ask(&scene, ghost).await?;
    let given = |lease: &Lease| holder(lease) == "ghost_1";
    wait::until(&leases, LEASE, DEADLINE, given).await?;
    let since = Instant::now();
    assert_eq!(first.end().await.code, Some(0));
    second.line("leading", leading).await;
    let took = since.elapsed();
    let took_words = spoken(took);
    measured(format!(
        "a candidate that died with the lease was followed after {took_words}, with a lease of 4 s"
    ));
    assert!(took > Duration::from_secs(3), "too soon: {took:?}");
    assert!(took < Duration::from_secs(8), "too late: {took:?}");
    Ok(())
}
