//! `agents run logs`: real pods on a node, and what is said when there is nothing to read.

use agents::serve::variable;
use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use nix::sys::signal::Signal;
use serde_json::json;
use support::lab::{self, Lab};
use support::ports::free_addresses;
use support::{http, wait};

use super::{agents, ended};
use crate::console::scene::sign_in;
use crate::controller::custody::pods;
use crate::controller::scene::{ALONE, DEADLINE, Scene};
use crate::serve::scene::{ALL, Plane};

#[tokio::test]
async fn the_log_of_a_real_pod_is_followed_to_its_end_and_read_again() -> Result<()> {
    let lab = support::node_lab!();
    let (scene, image) = pods::stage(lab, &[]).await?;
    let _controller = scene.controller_by(lab.kubeconfig())?;
    pods::run(&scene, &image, "wait", json!({})).await?;
    let words = ["run", "-n", &scene.here.name, "logs", "wait"];
    let stop = async {
        scene.until_phase("wait", "Running").await?;
        let begun = |pods: &[Pod]| {
            pods.iter().any(|pod| {
                pod.status
                    .as_ref()
                    .and_then(|status| status.phase.as_deref())
                    == Some("Running")
            })
        };
        wait::until_listed(&scene.here.api::<Pod>(), "", DEADLINE, begun).await?;
        agents(
            lab.kubeconfig(),
            &["run", "-n", &scene.here.name, "cancel", "wait"],
        )
        .await
    };
    let follow = [&words[..], &["--follow"]].concat();
    let (followed, stopped) = tokio::join!(agents(lab.kubeconfig(), &follow), stop);
    ended(&stopped?, 0);
    let followed = followed?;
    ended(&followed, 0);
    assert!(followed.stdout.starts_with("at work\n"), "{followed:?}");

    pods::run(&scene, &image, "succeed", json!({})).await?;
    scene.until_phase("succeed", "Succeeded").await?;
    let whole = agents(
        lab.kubeconfig(),
        &["run", "-n", &scene.here.name, "logs", "succeed"],
    )
    .await?;
    ended(&whole, 0);
    assert_eq!(whole.stdout, "Do it.\n");
    let tail = agents(
        lab.kubeconfig(),
        &[
            "run",
            "-n",
            &scene.here.name,
            "logs",
            "succeed",
            "--tail",
            "0",
        ],
    )
    .await?;
    assert_eq!((tail.code, tail.stdout.as_str()), (Some(0), ""));
    by_the_api(lab, scene, &image).await
}

/// The same through the control plane.
async fn by_the_api(lab: &Lab, scene: Scene, image: &str) -> Result<()> {
    pods::run(&scene, image, "work", json!({})).await?;
    let plane = Plane::by(scene, lab.kubeconfig(), &[]).await?;
    let token = plane.person("reader", &[("", "pods/log", "get")]).await?;
    let address = plane.address.to_string();
    let logs = |query: &str| format!("{}/logs{query}", plane.run("work"));
    let follow = logs("?follow=true");
    let followed = wait::retry("a log that is followed", DEADLINE, || {
        http::get_by(&address, &follow, &token)
    });
    // It works for some seconds between its first line and its last.
    assert_eq!(followed.await?, "at work\ndone\n");
    let tail = http::get_by(&address, &logs("?tail=1"), &token).await?;
    assert_eq!(tail, "done\n");
    Ok(())
}

#[tokio::test]
async fn the_console_shows_the_log_of_a_real_pod_and_reads_on_after_a_loss_and_a_new_try()
-> Result<()> {
    let lab = support::node_lab!();
    let browser = support::browser!();
    let (scene, image) = pods::stage(lab, &[]).await?;
    let _controller = scene.controller_by(lab.kubeconfig())?;
    let twice = json!({"runtime": {"type": "job", "config": {"backoffLimit": 2}}});
    pods::run(&scene, &image, "wait", twice).await?;
    let [address] = free_addresses::<1>()?;
    let listen = address.to_string();
    let settings = [(variable::LISTEN, listen.as_str())];
    let plane = Plane::by(scene, lab.kubeconfig(), &settings).await?;
    let token = plane.person("boss", ALL).await?;
    sign_in(&browser, address, &token).await?;
    let page = format!("location.hash = '#/run/{}/wait'", plane.namespace());
    browser.value(&page).await?;
    let shows = |text: &str| {
        let log = "document.querySelector('.log')?.textContent";
        format!("{log} === {}", json!(text))
    };
    browser.until(&shows("at work\n")).await?;
    browser.until_shows(".run .note", "Live").await?;
    // The control plane goes, and comes back.
    let Plane { scene, process, .. } = plane;
    process.signal(Signal::SIGKILL);
    process.end().await;
    browser.until_shows(".run .note", "cut off").await?;
    let plane = Plane::by(scene, lab.kubeconfig(), &settings).await?;
    browser.until_shows(".run .note", "Live").await?;
    assert_eq!(browser.value(&shows("at work\n")).await?, true);
    // The pod ends, and the Job makes another one.
    let delete = ["delete", "pod", "--all", "--wait=false"];
    plane.scene.here.kubectl.run(&delete).await?.ok()?;
    browser.until(&shows("at work\nstopped\n")).await?;
    browser.until(&shows("at work\n")).await?;
    browser.until_shows(".run .note", "Live").await
}

#[tokio::test]
async fn without_a_pod_it_is_said_why_and_which_setting_decides() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[ALONE]).await?;
    let file = lab::shared().await?.kubeconfig();
    let logs = ["run", "-n", scene.here.name.as_str(), "logs", "fix"];
    scene
        .run(
            "fix",
            json!({"runtime": {"type": "job", "config": {"ttlSecondsAfterFinished": 0}}}),
        )
        .await?;
    let early = agents(file, &logs).await?;
    ended(&early, 1);
    assert!(
        early
            .stderr
            .contains("fix has no pod to read from: it is Pending"),
        "{}",
        early.stderr
    );
    let _controller = scene.controller().await?;
    scene.until_phase("fix", "Running").await?;
    let unread = agents(file, &logs).await?;
    ended(&unread, 0);
    assert!(
        unread.stderr.contains("has written nothing yet"),
        "{}",
        unread.stderr
    );
    scene.end_pod("fix", 0).await?;
    scene.until_phase("fix", "Succeeded").await?;
    scene.until_free("fix").await?;
    let pod = scene.pod("fix").await?.metadata.name.unwrap_or_default();
    let pods = scene.here.api::<Pod>();
    pods.delete(&pod, &DeleteParams::default().grace_period(0))
        .await?;
    wait::until_gone(&pods, &pod, DEADLINE).await?;
    let gone = agents(file, &logs).await?;
    ended(&gone, 1);
    assert!(
        gone.stderr.contains("fix ended Succeeded at "),
        "{}",
        gone.stderr
    );
    assert!(
        gone.stderr.contains("someone removed its pods"),
        "{}",
        gone.stderr
    );
    scene
        .here
        .kubectl
        .run(&["delete", "job", "fix-job", "--wait"])
        .await?
        .ok()?;
    let gone = agents(file, &logs).await?;
    ended(&gone, 1);
    assert!(
        gone.stderr
            .contains("spec.runtime.config.ttlSecondsAfterFinished"),
        "{}",
        gone.stderr
    );
    Ok(())
}
