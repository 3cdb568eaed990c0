//! How the queue stands, as the sidecar reads it.

use std::net::SocketAddr;

use agents::api::contract::{env, queue, queue_event};
use anyhow::{Context, Result};
use futures::future::try_join_all;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use support::sse::{Event, Reader};
use support::wait;

use crate::controller::scene::{DEADLINE, Scene};
use crate::kit::client;
use crate::kit::process::Process;

/// One run of an agent at a time, and nobody is looked at without a cause.
const NARROW: [(&str, &str); 2] = [(env::CONCURRENCY_AGENT, "1"), (env::SWEEP, "1h")];

async fn address(controller: &mut Process) -> SocketAddr {
    controller.address("queue").await
}

fn leading(line: &Value) -> bool {
    line["message"] == "Leading"
}

async fn snapshot(address: SocketAddr) -> Result<Value> {
    let answer = client::get(address, queue::SNAPSHOT).await;
    anyhow::ensure!(answer.status == 200, "{}", answer.body);
    anyhow::ensure!(answer.head.contains("application/json"), "{}", answer.head);
    Ok(serde_json::from_str(&answer.body)?)
}

fn read(event: &Event) -> Value {
    serde_json::from_str(&event.data).expect("JSON")
}

/// Whether so many wait and run in the cluster.
fn counts(value: &Value, waiting: u64, running: u64) -> bool {
    let cluster = &value["queue"]["cluster"];
    cluster["waiting"] == waiting && cluster["running"] == running
}

#[tokio::test]
async fn a_snapshot_and_a_stream_tell_every_change_and_a_reader_goes_on_where_it_was() -> Result<()>
{
    support::kinds!();
    let scene = Scene::with_agent(&NARROW).await?;
    let mut controller = scene.controller().await?;
    controller.line("leading", leading).await;
    let address = address(&mut controller).await;
    let mut reader = Reader::open(address, queue::STREAM, None).await?;
    assert!(reader.head.starts_with("http/1.1 200"), "{}", reader.head);
    assert!(reader.head.contains("text/event-stream"), "{}", reader.head);
    let first = reader.next().await?.context("a first event")?;
    assert_eq!(first.name, queue_event::SNAPSHOT);
    assert_eq!(reader.retry, Some(2000));
    scene
        .run("one", json!({"parameters": {"repository": "O/R"}}))
        .await?;
    reader.until(|event| counts(&read(event), 0, 1)).await?;
    scene.run("two", json!({})).await?;
    scene
        .run("lost", json!({"agentRef": {"name": "nobody"}}))
        .await?;
    let full = |value: &Value| {
        let blocked = &value["queue"]["cluster"]["blocked"];
        counts(value, 1, 1) && *blocked == json!({"ConcurrencyLimit": 1, "MissingAgent": 1})
    };
    let event = reader.until(|event| full(&read(event))).await?;
    assert_eq!(event.name, queue_event::QUEUE);
    let seen = read(&event);
    assert_eq!(seen["leader"], true);
    assert_eq!(
        seen["queue"]["namespaces"]["top"][0]["name"],
        json!(scene.here.name)
    );
    assert_eq!(seen["queue"]["agents"]["top"][0]["name"], "coder");
    assert_eq!(seen["queue"]["agents"]["rest"]["scopes"], 0);
    assert_eq!(seen["queue"]["repositories"]["top"][0]["name"], "o/r");
    assert!(
        seen["queue"]["cluster"]["oldestWaitingSince"].is_string(),
        "{seen}"
    );
    assert!(seen["oldestWaitingSeconds"].is_number(), "{seen}");
    let now = snapshot(address).await?;
    assert_eq!(now["queue"], seen["queue"], "the same as JSON");
    assert_eq!(now["stream"]["readers"], 1);

    // It comes back later and misses nothing.
    let id = event.id.context("an id")?;
    drop(reader);
    scene.end_pod("one", 0).await?;
    scene.until_phase("two", "Running").await?;
    wait::retry("the change", DEADLINE, || async {
        let now = snapshot(address).await?;
        anyhow::ensure!(counts(&now, 0, 1), "{now}");
        Ok(())
    })
    .await?;
    let mut again = Reader::open(address, queue::STREAM, Some(&id)).await?;
    let next = again.next().await?.context("the next event")?;
    assert_eq!(next.name, queue_event::QUEUE, "no snapshot: {next:?}");
    let number = |id: &str| {
        id.split('-')
            .nth(1)
            .and_then(|number| number.parse::<u64>().ok())
    };
    assert_eq!(
        number(&next.id.unwrap_or_default()),
        number(&id).map(|id| id + 1)
    );
    again.until(|event| counts(&read(event), 0, 1)).await?;
    // Of another process, or too old: everything anew, and it says so.
    let mut stranger = Reader::open(address, queue::STREAM, Some("00000000-7")).await?;
    let fresh = stranger.next().await?.context("a snapshot")?;
    assert_eq!(
        (fresh.name.as_str(), &read(&fresh)["gap"]),
        ("snapshot", &json!(true))
    );

    // Readers are told of the end.
    controller.signal(Signal::SIGTERM);
    again.until(|event| event.name == queue_event::END).await?;
    assert_eq!(again.next().await?, None);
    let ended = controller.end().await;
    assert_eq!(ended.code, Some(0), "{}", ended.log.join("\n"));
    Ok(())
}

#[tokio::test]
async fn a_standby_says_that_it_does_not_lead_and_tells_when_it_does() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let mut first = scene.controller().await?;
    first.line("leading", leading).await;
    let mut second = scene.controller().await?;
    let address = address(&mut second).await;
    let now = wait::retry("an answer", DEADLINE, || snapshot(address)).await?;
    assert_eq!(
        (&now["leader"], &now["queue"]),
        (&json!(false), &Value::Null)
    );
    let mut reader = Reader::open(address, queue::STREAM, None).await?;
    let event = reader.next().await?.context("a snapshot")?;
    assert_eq!(read(&event)["leader"], json!(false));
    first.signal(Signal::SIGTERM);
    let event = reader.until(|event| read(event)["leader"] == true).await?;
    assert!(read(&event)["queue"]["cluster"].is_object(), "{event:?}");
    first.end().await;
    Ok(())
}

#[tokio::test]
async fn a_slow_reader_is_told_and_let_go_and_harms_nobody() -> Result<()> {
    support::kinds!();
    let settings = [NARROW[0], NARROW[1], (env::QUEUE_STREAM_INTERVAL, "10ms")];
    let scene = Scene::with_agent(&settings).await?;
    let mut controller = scene.controller().await?;
    controller.line("leading", leading).await;
    let address = address(&mut controller).await;
    let mut slow = Reader::open_narrow(address, queue::STREAM).await?;
    let mut quick = Reader::open(address, queue::STREAM, None).await?;
    // Every run is a change, and the quick reader gets it before the next one is made.
    let mut made = 0;
    let dropped = loop {
        scene.run(&format!("run-{made}"), json!({})).await?;
        made += 1;
        let all = |event: &Event| {
            let cluster = &read(event)["queue"]["cluster"];
            let count = |name: &str| cluster[name].as_u64().unwrap_or_default();
            count("waiting") + count("running") == made
        };
        quick.until(all).await?;
        let backlog = snapshot(address).await?["stream"]["backlog"].as_u64();
        if backlog.context("a number")? > 140 {
            break slow
                .until(|event| event.name == queue_event::DROPPED)
                .await?;
        }
        anyhow::ensure!(made < 2000, "nobody is slow");
    };
    assert_eq!(read(&dropped)["reason"], "slow");
    assert_eq!(slow.next().await?, None);
    let stream = snapshot(address).await?["stream"].clone();
    assert_eq!(
        (&stream["dropped"], &stream["readers"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(
        (&stream["opened"], &stream["closed"]),
        (&json!(2), &json!(1))
    );
    Ok(())
}

#[tokio::test]
async fn two_hundred_readers_get_every_change() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&NARROW).await?;
    let mut controller = scene.controller().await?;
    controller.line("leading", leading).await;
    let address = address(&mut controller).await;
    let open = (0..200).map(|_| Reader::open(address, queue::STREAM, None));
    let mut readers = try_join_all(open).await?;
    scene.run("one", json!({})).await?;
    scene.run("two", json!({})).await?;
    let told = readers
        .iter_mut()
        .map(|reader| reader.until(|event| counts(&read(event), 1, 1)));
    try_join_all(told).await?;
    assert_eq!(snapshot(address).await?["stream"]["readers"], 200);
    // There is an end to it, and room again afterwards.
    let more = (200..256).map(|_| Reader::open(address, queue::STREAM, None));
    readers.extend(try_join_all(more).await?);
    let refused = Reader::open(address, queue::STREAM, None).await?;
    assert!(refused.head.starts_with("http/1.1 503"), "{}", refused.head);
    assert!(refused.head.contains("retry-after: 5"), "{}", refused.head);
    drop(readers);
    wait::retry("all gone", DEADLINE, || async {
        let stream = snapshot(address).await?["stream"].clone();
        anyhow::ensure!(stream["readers"] == 0, "{stream}");
        anyhow::ensure!(stream["opened"] == stream["closed"], "{stream}");
        Ok(())
    })
    .await?;
    let other = client::get(address, "/v1/other").await;
    assert_eq!(other.status, 404);
    Ok(())
}
