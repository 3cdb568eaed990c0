//! What comes from the controller that leads, and from the sidecar beside it.

use agents::api::contract::{api_path, env, queue};
use agents::api::kinds::AgentRun;
use agents::kit::args::variable as common;
use agents::serve::variable;
use agents_sidecar::args::variable as sidecar;
use anyhow::{Context, Result};
use kube::ResourceExt;
use kube::api::ListParams;
use nix::sys::signal::Signal;
use serde_json::json;
use support::{lab, ports, wait};

use super::hostile::{MARKUP, WITNESS, is_clean};
use super::scene::sign_in;
use crate::controller::scene::{Scene, phase_of};
use crate::kit::process::{Process, product};
use crate::serve::scene::{ALL, DEADLINE, Plane};

#[tokio::test]
async fn the_queue_and_the_sidecar_of_the_leader_are_shown_live() -> Result<()> {
    support::kinds!();
    let browser = support::browser!();
    let [lines, relayed, page] = ports::free_addresses::<3>()?;
    let [told, relayed, shown] = [lines, relayed, page].map(|address| address.port().to_string());
    let (listen, relay) = (format!("127.0.0.1:{told}"), format!("0.0.0.0:{relayed}"));
    let settings = [
        (env::QUEUE_LISTEN, listen.as_str()),
        (env::QUEUE_RELAY_LISTEN, relay.as_str()),
        (env::CONCURRENCY_AGENT, "1"),
        ("HOSTNAME", "leader"),
    ];
    let scene = Scene::with_agent(&settings).await?;
    let targets = [
        (variable::QUEUE_TARGET, relayed.as_str()),
        (variable::SIDECAR_TARGET, shown.as_str()),
    ];
    let plane = Plane::beside(scene, &targets).await?;
    let token = plane.person("boss", ALL).await?;
    plane.be_a_pod("leader").await?;
    let controller = plane.scene.controller().await?;
    let _sidecar = beside(&plane, &told, &shown).await?;
    for name in ["one", "two", "three"] {
        plane.scene.run(name, json!({})).await?;
    }
    wait::retry("a sidecar that is seen", DEADLINE, || async {
        let seen = plane
            .expect(("GET", api_path::SIDECAR), &token, None, 200)
            .await?;
        anyhow::ensure!(seen["sources"][0]["up"] == true, "{seen}");
        anyhow::ensure!(seen["jobs"]["watch"] == "on", "{seen}");
        Ok(())
    })
    .await?;
    browser.before_each_page(WITNESS).await?;
    sign_in(&browser, plane.address, &token).await?;
    browser.press("2").await?;
    let cards = "[...document.querySelectorAll('.card')].map((one) => one.innerText).join()";
    browser
        .until(&format!(
            "{cards} === 'Waiting\\n2,Running\\n1,Held back\\n2'"
        ))
        .await?;
    browser.until_shows("td", "coder").await?;
    browser.until_shows("td", "ConcurrencyLimit").await?;
    browser
        .until("document.querySelector('.chart path').getAttribute('d').length > 5")
        .await?;
    // The name of a repository is whatever people write. That of an agent in line is one that an object has.
    let evil = json!({"parameters": {"repository": MARKUP}});
    plane.scene.run("evil", evil).await?;
    browser
        .until_shows("td", "<img src=x onerror=alert(1)>")
        .await?;
    is_clean(&browser).await?;
    browser.press("4").await?;
    browser
        .until_shows(".jobs", "the sidecar of leader")
        .await?;
    browser.until_shows("td", "followed").await?;
    browser.until_shows(".card", "Running").await?;
    // The controller sleeps while a Job ends, and stores the outcome when it wakes.
    let runs = plane.scene.here.api::<AgentRun>();
    let runs = runs.list(&ListParams::default()).await?.items;
    let works = runs.iter().find(|run| phase_of(run) == "Running");
    let works = works.context("a run at work")?.name_any();
    controller.signal(Signal::SIGSTOP);
    plane.scene.end_pod(&works, 0).await?;
    browser
        .until_shows(".card", "Outcome not stored yet\n1")
        .await?;
    controller.signal(Signal::SIGCONT);
    browser
        .until_shows(".card", "Outcome not stored yet\n0")
        .await?;
    // Who may not list runs everywhere is told so on both pages.
    let narrow = plane.person("narrow", &[("agents.proompteng.ai", "agentruns", "watch")]);
    let narrow = narrow.await?;
    browser.click("#leave").await?;
    sign_in(&browser, plane.address, &narrow).await?;
    for page in ["2", "4"] {
        browser.press(page).await?;
        browser.until_shows(".problem", "list agentruns").await?;
    }
    Ok(())
}

/// A sidecar of the same pod.
async fn beside(plane: &Plane, queue_port: &str, page: &str) -> Result<Process> {
    let kubeconfig = lab::shared().await?.kubeconfig();
    let stream = format!("controller=http://127.0.0.1:{queue_port}{}", queue::STREAM);
    let listen = format!("0.0.0.0:{page}");
    let environment = [
        ("KUBECONFIG", kubeconfig.to_str().context("UTF-8")?),
        (common::ADMIN_LISTEN, &listen),
        (env::NAMESPACES, plane.namespace()),
        (sidecar::QUEUE_STREAMS, &stream),
    ];
    Ok(Process::start(
        &product("agents-sidecar"),
        &[],
        &environment,
    ))
}
