//! The cluster and the control plane go away and come back while someone looks.

use agents::serve::variable;
use anyhow::Result;
use nix::sys::signal::Signal;
use serde_json::json;
use support::browser::Browser;
use support::ports;
use tokio::sync::watch;

use super::scene::{LIVE, sign_in, until_listed};
use crate::controller::scene::Scene;
use crate::serve::scene::{ALL, Plane};
use crate::way::Way;

#[tokio::test]
async fn what_is_old_is_said_to_be_until_the_cluster_and_the_control_plane_are_back() -> Result<()>
{
    support::kinds!();
    let browser = support::browser!();
    let way = Way::new().await?;
    let (switch, open) = watch::channel(true);
    tokio::select! {
        looked = look(&browser, &way, &switch) => looked,
        broken = way.serve(open) => broken,
    }
}

async fn look(browser: &Browser, way: &Way, switch: &watch::Sender<bool>) -> Result<()> {
    let [address] = ports::free_addresses::<1>()?;
    let listen = address.to_string();
    let settings = [(variable::LISTEN, listen.as_str())];
    let scene = Scene::with_agent(&[]).await?;
    scene.run("first", json!({})).await?;
    let plane = Plane::by(scene, way.kubeconfig(), &settings).await?;
    let token = plane.person("boss", ALL).await?;
    sign_in(browser, address, &token).await?;
    until_listed(browser, "first").await?;
    // The way to the cluster is cut.
    switch.send_replace(false);
    browser
        .until("document.querySelector('#link').dataset.state === 'stale'")
        .await?;
    browser
        .until_shows(".note", "AgentRun cannot be read now")
        .await?;
    until_listed(browser, "first").await?;
    plane.scene.run("second", json!({})).await?;
    browser.until_shows("#link", "stale").await?;
    switch.send_replace(true);
    until_listed(browser, "second").await?;
    browser.until(LIVE).await?;
    browser
        .until("!document.querySelector('.note').innerText.includes('cannot')")
        .await?;
    // The control plane itself is gone.
    let Plane { scene, process, .. } = plane;
    process.signal(Signal::SIGKILL);
    process.end().await;
    browser.until_shows("#link", "not live: last heard").await?;
    until_listed(browser, "second").await?;
    scene.run("third", json!({})).await?;
    // From now on the cluster is asked about everyone every time.
    let settings = [settings[0], (variable::REVIEWS_KEPT, "0s")];
    let plane = Plane::by(scene, way.kubeconfig(), &settings).await?;
    until_listed(browser, "third").await?;
    browser.until(LIVE).await?;
    // Whoever loads the page meanwhile waits as well, and is not asked for a token again.
    switch.send_replace(false);
    browser.reload().await?;
    browser.until_shows("main", "Connecting").await?;
    switch.send_replace(true);
    until_listed(browser, "third").await?;
    browser.until(LIVE).await?;
    other_pages(browser, plane.namespace(), switch).await
}

/// Each of the other pages says that it cannot be read, and goes on by itself.
async fn other_pages(
    browser: &Browser,
    namespace: &str,
    switch: &watch::Sender<bool>,
) -> Result<()> {
    let run = format!("run/{namespace}/first");
    // It does not answer, or did not say in time who asks.
    let away = "the API server d";
    for (page, gone, back) in [
        (run.as_str(), (".problem", away), ("h1", "Pending first")),
        (
            "queue",
            (".note", "Not live"),
            (".problem", "Nobody says how the queue stands"),
        ),
        (
            "refusals",
            (".problem", away),
            (".note", "Nothing was refused"),
        ),
        (
            "jobs",
            (".problem", away),
            (".problem", "nobody holds the lease"),
        ),
    ] {
        switch.send_replace(false);
        browser
            .value(&format!("location.hash = '#/{page}'"))
            .await?;
        browser.until_shows(gone.0, gone.1).await?;
        switch.send_replace(true);
        browser.until_shows(back.0, back.1).await?;
        browser.until(LIVE).await?;
    }
    // What was read stays in sight while it cannot be read anew.
    browser.value(&format!("location.hash = '#/{run}'")).await?;
    browser.until_shows("h1", "Pending first").await?;
    switch.send_replace(false);
    browser.until_shows("#link", "stale").await?;
    browser.until_shows("h1", "Pending first").await?;
    switch.send_replace(true);
    browser.until(LIVE).await
}
