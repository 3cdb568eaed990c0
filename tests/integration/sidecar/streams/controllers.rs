//! The queue of real controllers, as their sidecars show it.

use agents::api::contract::{env, queue};
use agents_sidecar::args::variable;
use anyhow::Result;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use support::metrics::Page;

use super::{Sidecar, by, of, queue as queue_of};
use crate::controller::scene::Scene;
use crate::kit::process::Process;

/// One run of an agent at a time, and nobody is looked at without a cause.
const NARROW: [(&str, &str); 2] = [(env::CONCURRENCY_AGENT, "1"), (env::SWEEP, "1h")];

/// What every sidecar calls its controller.
const SOURCE: &str = "controller";

/// The sidecar of a controller.
async fn beside(controller: &mut Process) -> Sidecar {
    let address = controller.address("queue").await;
    let source = format!("{SOURCE}=http://{address}{}", queue::STREAM);
    let settings = [
        (variable::QUEUE_STREAMS, &*source),
        (variable::STREAM_GRACE, "2s"),
    ];
    Sidecar::start(&settings).await
}

fn leading(line: &Value) -> bool {
    line["message"] == "Leading"
}

fn stands(page: &Page, depth: f64, running: f64) -> bool {
    of(page, SOURCE, "queue_depth") == Some(depth)
        && of(page, SOURCE, "queue_running") == Some(running)
}

#[tokio::test]
async fn the_queue_of_a_controller_is_on_the_page_and_goes_with_it() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&NARROW).await?;
    let mut controller = scene.controller().await?;
    let mut sidecar = beside(&mut controller).await;
    let following = |line: &Value| line["message"] == "Following a stream";
    let line = sidecar.process.line("the stream", following).await;
    let url = format!(
        "http://{}{}",
        controller.address("queue").await,
        queue::STREAM
    );
    assert_eq!(
        (&line["source"], &line["url"]),
        (&json!(SOURCE), &json!(url))
    );
    controller.line("leading", leading).await;
    let empty =
        |page: &Page| of(page, SOURCE, "source_leader") == Some(1.0) && stands(page, 0.0, 0.0);
    sidecar.until("an empty queue", empty).await?;
    scene.run("one", json!({})).await?;
    sidecar
        .until("a run", |page| stands(page, 0.0, 1.0))
        .await?;
    scene.run("two", json!({})).await?;
    scene
        .run("lost", json!({"agentRef": {"name": "nobody"}}))
        .await?;
    let blocked = |page: &Page, reason| by(page, SOURCE, "queue_blocked", ("reason", reason));
    let full = |page: &Page| {
        stands(page, 1.0, 1.0)
            && blocked(page, "ConcurrencyLimit") == Some(1.0)
            && blocked(page, "MissingAgent") == Some(1.0)
            && of(page, SOURCE, "queue_oldest_age_seconds") > Some(0.0)
    };
    let page = sidecar.until("a full queue", full).await?;
    for (name, expected) in [
        ("source_up", 1.0),
        ("source_connections_total", 1.0),
        ("source_dropped_total", 0.0),
        ("stream_readers", 1.0),
    ] {
        assert_eq!(of(&page, SOURCE, name), Some(expected), "{name}");
    }
    assert!(of(&page, SOURCE, "source_lag_seconds").is_some_and(|lag| lag < 60.0));
    assert!(of(&page, SOURCE, "source_last_event_age_seconds").is_some());
    // The oldest goes on ageing although nothing is told.
    let age = of(&page, SOURCE, "queue_oldest_age_seconds");
    let older = |page: &Page| of(page, SOURCE, "queue_oldest_age_seconds") > age;
    sidecar.until("an older one", older).await?;

    controller.signal(Signal::SIGTERM);
    let down = |page: &Page| {
        of(page, SOURCE, "source_up") == Some(0.0)
            && by(page, SOURCE, "source_events_total", ("event", "end")) == Some(1.0)
            && by(page, SOURCE, "source_disconnects_total", ("cause", "ended")) == Some(1.0)
    };
    sidecar.until("the end", down).await?;
    controller.end().await;
    let page = sidecar
        .until("nothing", |page| queue_of(page, SOURCE).is_empty())
        .await?;
    assert_eq!(of(&page, SOURCE, "source_leader"), None);
    sidecar.process.signal(Signal::SIGTERM);
    let ended = sidecar.process.end().await;
    assert_eq!(ended.code, Some(0), "{}", ended.log.join("\n"));
    Ok(())
}

#[tokio::test]
async fn only_the_sidecar_of_the_holder_of_the_lease_shows_the_queue() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&NARROW).await?;
    let mut first = scene.controller().await?;
    first.line("leading", leading).await;
    let mut second = scene.controller().await?;
    let (leader, standby) = (beside(&mut first).await, beside(&mut second).await);
    scene.run("one", json!({})).await?;
    scene.run("two", json!({})).await?;
    leader
        .until("the queue", |page| stands(page, 1.0, 1.0))
        .await?;
    let waits = |page: &Page| of(page, SOURCE, "source_leader") == Some(0.0);
    let page = standby.until("a standby", waits).await?;
    assert_eq!(queue_of(&page, SOURCE), Vec::<String>::new());
    assert_eq!(of(&page, SOURCE, "source_up"), Some(1.0));

    first.signal(Signal::SIGTERM);
    first.end().await;
    let leads =
        |page: &Page| of(page, SOURCE, "source_leader") == Some(1.0) && stands(page, 1.0, 1.0);
    standby.until("the queue, by the other", leads).await?;
    let page = leader
        .until("nothing", |page| queue_of(page, SOURCE).is_empty())
        .await?;
    assert_eq!(of(&page, SOURCE, "source_leader"), None);
    Ok(())
}
