//! The streams: what happens to all objects, and how the queue stands.

use agents::api::contract::{api_path, control_plane_event, env, queue, queue_event};
use agents::api::kinds::{Agent, AgentRun};
use agents::serve::variable;
use anyhow::{Context, Result};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use support::metrics::Page;
use support::sse::{Event, Reader};
use support::{http, ports, wait};

use super::scene::{ALL, DEADLINE, Plane};
use crate::controller::scene::Scene;

fn read(event: &Event) -> Value {
    serde_json::from_str(&event.data).unwrap_or_default()
}

fn about(event: &Event, name: &str, action: &str) -> bool {
    let value = read(event);
    value["name"] == name && value["action"] == action
}

fn stream(plane: &Plane) -> String {
    format!(
        "{}?namespace={}",
        api_path::CONTROL_PLANE_STREAM,
        plane.namespace()
    )
}

#[tokio::test]
async fn every_change_is_told_and_a_reader_goes_on_where_it_was() -> Result<()> {
    support::kinds!();
    let plane = Plane::start(&[]).await?;
    let token = plane.person("boss", ALL).await?;
    let path = stream(&plane);
    wait::retry("what there is", DEADLINE, || async {
        let mut reader = Reader::open_as(plane.address, &path, None, &token).await?;
        let mut seen = Vec::new();
        loop {
            let event = reader.next().await?.context("an event")?;
            if event.name == control_plane_event::READY {
                break;
            }
            seen.push(read(&event)["name"].clone());
        }
        anyhow::ensure!(seen.contains(&json!("coder")), "{seen:?}");
        Ok(())
    })
    .await?;
    let mut reader = Reader::open_as(plane.address, &path, None, &token).await?;
    assert!(reader.head.contains("text/event-stream"), "{}", reader.head);
    let first = reader.next().await?.context("a first event")?;
    assert_eq!(first.name, control_plane_event::STATUS);
    assert_eq!(reader.retry, Some(1000));
    let status = &read(&first)["status"];
    assert_eq!(status["leader_election"]["held"], false);
    assert_eq!(
        status["namespaces"][0]["degraded_components"],
        json!(["controllers"])
    );
    reader
        .until(|event| event.name == control_plane_event::READY)
        .await?;
    plane
        .scene
        .run("one", json!({"parameters": {"API_TOKEN": "hunter2"}}))
        .await?;
    let added = reader.until(|event| about(event, "one", "ADDED")).await?;
    assert_eq!(added.name, control_plane_event::RESOURCE);
    assert!(!added.data.contains("hunter2"), "{}", added.data);
    assert_eq!(
        read(&added)["resource"]["spec"]["agentRef"]["name"],
        "coder"
    );
    assert_eq!(read(&added)["summary"]["phase"], "Pending");
    let untouched =
        |event: &Event| read(event)["status"]["agentrun_ingestion"]["untouched_run_count"] == 1;
    reader.until(untouched).await?;
    drop(reader);
    // It comes back later and misses nothing.
    let runs = plane.scene.here.api::<AgentRun>();
    let phase = |phase: &str| Patch::Merge(json!({"status": {"phase": phase}}));
    runs.patch_status("one", &PatchParams::default(), &phase("Running"))
        .await?;
    runs.delete("one", &DeleteParams::default()).await?;
    let id = added.id.context("an id")?;
    let mut again = Reader::open_as(plane.address, &path, Some(&id), &token).await?;
    let next = again
        .until(|event| event.name == control_plane_event::RESOURCE)
        .await?;
    assert!(about(&next, "one", "MODIFIED"), "{next:?}");
    again.until(|event| about(event, "one", "DELETED")).await?;
    // Who knows no names of events gets none.
    let mut plain =
        Reader::open_as(plane.address, &format!("{path}&named=false"), None, &token).await?;
    let first = plain.next().await?.context("an event")?;
    assert_eq!(
        (&*first.name, &read(&first)["type"]),
        ("", &json!("status"))
    );
    Ok(())
}

#[tokio::test]
async fn a_reader_sees_only_the_kinds_that_it_may_follow() -> Result<()> {
    support::kinds!();
    let plane = Plane::start(&[]).await?;
    let narrow = plane
        .person("narrow", &[("agents.proompteng.ai", "agents", "watch")])
        .await?;
    let nobody = plane.person("nobody", &[]).await?;
    let refused = plane.ask("GET", &stream(&plane), Some(&nobody), None).await;
    assert_eq!(refused.status, 403, "{}", refused.body);
    let boss = plane.person("boss", ALL).await?;
    let mut all = Reader::open_as(plane.address, &stream(&plane), None, &boss).await?;
    all.until(|event| event.name == control_plane_event::READY)
        .await?;
    let mut some = Reader::open_as(plane.address, &stream(&plane), None, &narrow).await?;
    some.until(|event| event.name == control_plane_event::READY)
        .await?;
    plane.scene.run("one", json!({})).await?;
    all.until(|event| about(event, "one", "ADDED")).await?;
    // Only runs, and those in short.
    let brief = format!("{}&kind=AgentRun&brief=true", stream(&plane));
    let refused = plane.ask("GET", &brief, Some(&narrow), None).await;
    assert_eq!(refused.status, 403, "{}", refused.body);
    let odd = format!("{}&kind=Agentrun", stream(&plane));
    assert_eq!(plane.ask("GET", &odd, Some(&boss), None).await.status, 400);
    let mut runs = Reader::open_as(plane.address, &brief, None, &boss).await?;
    let first = runs
        .until(|event| event.name == control_plane_event::RESOURCE)
        .await?;
    let told = read(&first);
    assert_eq!(
        (&told["name"], &told["summary"]["agent"]),
        (&json!("one"), &json!("coder"))
    );
    assert!(told.get("resource").is_none(), "{told}");
    let more = json!({"apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "Agent",
        "metadata": {"name": "second"}, "spec": {"providerRef": {"name": "shell"}}});
    let agent: Agent = serde_json::from_value(more)?;
    plane
        .scene
        .here
        .api()
        .create(&PostParams::default(), &agent)
        .await?;
    let event = some
        .until(|event| event.name == control_plane_event::RESOURCE)
        .await?;
    assert!(
        about(&event, "second", "ADDED"),
        "the run is not for it: {event:?}"
    );
    Ok(())
}

#[tokio::test]
async fn the_queue_is_relayed_from_whoever_leads_and_says_so_when_nobody_does() -> Result<()> {
    support::kinds!();
    let [free] = ports::free_addresses::<1>()?;
    let port = free.port().to_string();
    let listen = format!("0.0.0.0:{port}");
    let settings = [
        (env::QUEUE_RELAY_LISTEN, listen.as_str()),
        ("HOSTNAME", "leader"),
        (env::LEADER_ELECTION_LEASE_DURATION, "4"),
        (env::LEADER_ELECTION_RENEW_DEADLINE, "2"),
        (env::LEADER_ELECTION_RETRY_PERIOD, "1"),
    ];
    let scene = Scene::with_agent(&settings).await?;
    let plane = Plane::beside(scene, &[(variable::QUEUE_TARGET, &port)]).await?;
    let token = plane.person("boss", ALL).await?;
    let none = plane
        .expect(("GET", queue::SNAPSHOT), &token, None, 503)
        .await?;
    assert_eq!(none["reason"], "NoLeader");
    let mut reader = Reader::open_as(plane.address, queue::STREAM, None, &token).await?;
    let first = reader.next().await?.context("a snapshot")?;
    assert_eq!(first.name, queue_event::SNAPSHOT);
    assert_eq!(read(&first)["leader"], false);
    plane.be_a_pod("leader").await?;
    let controller = plane.scene.controller().await?;
    reader.until(|event| read(event)["leader"] == true).await?;
    // Who comes to the port without the key that is on the lease is told nothing.
    let stranger = http::get(&format!("127.0.0.1:{port}"), queue::SNAPSHOT).await;
    let refused = format!("{:?}", stranger.err().context("a refusal")?);
    assert!(refused.contains("401"), "{refused}");
    plane.scene.run("one", json!({})).await?;
    let running = |value: &Value| value["queue"]["cluster"]["running"] == 1;
    let event = reader.until(|event| running(&read(event))).await?;
    assert_eq!(event.name, queue_event::QUEUE);
    let now = plane
        .expect(("GET", queue::SNAPSHOT), &token, None, 200)
        .await?;
    assert!(running(&now), "{now}");
    drop(controller);
    reader.until(|event| read(event)["leader"] == false).await?;
    wait::retry("no leader", DEADLINE, || async {
        let none = plane
            .expect(("GET", queue::SNAPSHOT), &token, None, 503)
            .await?;
        anyhow::ensure!(none["reason"] == "NoLeader", "{none}");
        Ok(())
    })
    .await
}

/// Changes, each so large that what is kept for who is slow does not hold all of them.
const CHANGES: usize = 90;
const FILLING: usize = 200 * 1024;

/// How many readers there are, came, went, and went because they were slow.
pub(super) async fn counts(admin: &str) -> Result<[f64; 4]> {
    let page = Page::scrape(admin).await?;
    let labels = [("stream", "control-plane")];
    let of = |name: &str| page.value(&format!("agents_serve_stream_{name}"), &labels);
    let names = ["readers", "opened_total", "closed_total", "dropped_total"];
    Ok(names.map(|name| of(name).unwrap_or(-1.0)))
}

#[tokio::test]
async fn who_stalls_is_told_and_let_go_while_others_get_every_change() -> Result<()> {
    support::kinds!();
    let mut plane = Plane::start(&[]).await?;
    let admin = plane.process.address("admin").await.to_string();
    let token = plane.person("boss", ALL).await?;
    let path = stream(&plane);
    let ready = |event: &Event| event.name == control_plane_event::READY;
    let mut prompt = Reader::open_as(plane.address, &path, None, &token).await?;
    prompt.until(ready).await?;
    let mut late = Reader::open_narrow_as(plane.address, &path, &token).await?;
    late.until(ready).await?;
    let deaf = Reader::open_narrow_as(plane.address, &path, &token).await?;
    let agents = plane.scene.here.api::<Agent>();
    let filling = "x".repeat(FILLING);
    for number in 0..CHANGES {
        let change = json!({"metadata": {"annotations": {"number": number.to_string(), "filling": filling}}});
        agents
            .patch("coder", &PatchParams::default(), &Patch::Merge(change))
            .await?;
        let next = prompt
            .until(|event| event.name == control_plane_event::RESOURCE)
            .await?;
        let told = read(&next)["resource"]["metadata"]["annotations"]["number"].clone();
        assert_eq!(told, number.to_string());
    }
    // Who reads on after all is told that it missed something, and that is the end.
    let dropped = late
        .until(|event| event.name == queue_event::DROPPED)
        .await?;
    let told = read(&dropped);
    assert_eq!(told["reason"], "slow", "{told}");
    assert!(told["missed"].as_u64() > Some(0), "{told}");
    assert_eq!(late.next().await?, None);
    // Who takes nothing hears nothing, and need not hang up to be gone.
    wait::retry("who is deaf is let go", DEADLINE, || async {
        let counts = counts(&admin).await?;
        anyhow::ensure!(counts == [1.0, 3.0, 2.0, 2.0], "{counts:?}");
        Ok(())
    })
    .await?;
    drop(deaf);
    plane.scene.run("one", json!({})).await?;
    prompt.until(|event| about(event, "one", "ADDED")).await?;
    Ok(())
}
