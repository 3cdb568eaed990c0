//! Ten thousand runs.

use std::time::{Duration, Instant};

use agents::api::kinds::AgentRun;
use anyhow::Result;
use futures::stream::{self, StreamExt, TryStreamExt};
use kube::api::PostParams;
use serde_json::json;
use support::browser::key;

use super::scene::{ago, sign_in, stand, until_listed};
use crate::controller::scene::Scene;
use crate::serve::scene::{ALL, Plane};

const RUNS: usize = 10_000;
const AT_ONCE: usize = 32;

/// A person waits no longer than this for a page.
const PATIENCE: Duration = Duration::from_secs(20);

async fn make(scene: &Scene) -> Result<()> {
    let runs = scene.here.api::<AgentRun>();
    let made = (0..RUNS).map(|number| {
        let run = json!({
            "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun",
            "metadata": {"name": format!("run-{number:05}")},
            "spec": {"agentRef": {"name": "coder"}, "implementation": {"inline": {"text": "x"}}, "runtime": {"type": "job"}},
        });
        let runs = &runs;
        async move {
            let run = serde_json::from_value(run)?;
            runs.create(&PostParams::default(), &run).await?;
            anyhow::Ok(())
        }
    });
    stream::iter(made)
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}

/// How many the API lists, page by page, and on how many pages.
async fn listed(plane: &Plane, token: &str) -> Result<(usize, usize)> {
    let (mut runs, mut pages, mut next) = (0, 0, String::new());
    loop {
        let path = format!(
            "/v1/agent-runs?namespace={}&limit=500&continue={next}",
            plane.namespace()
        );
        let page = plane.expect(("GET", &path), token, None, 200).await?;
        runs += page["items"].as_array().map_or(0, Vec::len);
        pages += 1;
        match page["continue"].as_str() {
            Some(more) => next = more.to_owned(),
            None => return Ok((runs, pages)),
        }
    }
}

#[tokio::test]
async fn ten_thousand_runs_are_shown_found_and_gone_through_by_keyboard() -> Result<()> {
    support::kinds!();
    let browser = support::browser!();
    let scene = Scene::with_agent(&[]).await?;
    let begun = Instant::now();
    make(&scene).await?;
    eprintln!("{RUNS} runs made in {:?}", begun.elapsed());
    let plane = Plane::beside(scene, &[]).await?;
    let token = plane.person("boss", ALL).await?;
    assert_eq!(listed(&plane, &token).await?, (RUNS, RUNS / 500));
    let begun = Instant::now();
    sign_in(&browser, plane.address, &token).await?;
    browser
        .until_shows(".note", &format!("{RUNS} of {RUNS} runs"))
        .await?;
    let took = begun.elapsed();
    eprintln!("{RUNS} runs shown in {took:?}");
    assert!(took < PATIENCE, "{took:?}");
    let rows = "document.querySelectorAll('.body .row').length";
    let drawn = browser.value(rows).await?.as_u64();
    assert!(
        drawn.is_some_and(|drawn| (10..100).contains(&drawn)),
        "{drawn:?} rows"
    );
    let height = browser
        .value("document.querySelector('.body').offsetHeight")
        .await?;
    assert_eq!(height, json!(36 * RUNS));
    browser.press(key::END).await?;
    browser
        .until(&format!(
            "document.querySelector('[aria-selected=true]')?.ariaRowIndex === '{}'",
            RUNS + 1
        ))
        .await?;
    browser.press(key::HOME).await?;
    browser
        .until("document.querySelector('[aria-selected=true]')?.ariaRowIndex === '2'")
        .await?;
    browser.press("/run-04242").await?;
    browser
        .until_shows(".note", &format!("1 of {RUNS} runs"))
        .await?;
    until_listed(&browser, "run-04242").await?;
    // What happens among so many is seen at once.
    browser
        .press(&format!("{}{}{}", key::ENTER, key::DOWN, key::ENTER))
        .await?;
    browser.until_shows("h1", "Pending run-04242").await?;
    let begun = json!({"phase": "Running", "startedAt": ago(1)});
    stand(&plane.scene, "run-04242", begun).await?;
    browser.until_shows("h1", "Running run-04242").await
}
