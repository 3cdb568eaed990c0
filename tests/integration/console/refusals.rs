//! Few refusals among many Events.

use anyhow::Result;
use futures::stream::{self, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Event;
use kube::api::PostParams;
use serde_json::json;

use super::scene::{ago, sign_in};
use crate::controller::scene::Scene;
use crate::serve::scene::{ALL, Plane};

/// More than any page that is read from the API server.
const EVENTS: usize = 1_200;
const AT_ONCE: usize = 32;

/// Makes one Event; names are the order in which they are stored. It cannot have happened before it was made, so all of
/// them are still to come.
async fn say(scene: &Scene, name: &str, (sort, reason): (&str, &str), seconds: i64) -> Result<()> {
    let event: Event = serde_json::from_value(json!({
        "metadata": {"name": name}, "type": sort, "reason": reason, "message": format!("spec.{name}: is wrong"),
        "firstTimestamp": ago(seconds), "lastTimestamp": ago(seconds),
        "involvedObject": {"apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun", "name": name,
            "namespace": scene.here.name},
    }))?;
    let events = scene.here.api::<Event>();
    events.create(&PostParams::default(), &event).await?;
    Ok(())
}

#[tokio::test]
async fn a_refusal_is_found_among_more_events_than_a_page_holds() -> Result<()> {
    support::kinds!();
    let browser = support::browser!();
    let plane = Plane::start(&[]).await?;
    let token = plane.person("boss", ALL).await?;
    let names: Vec<_> = (0..EVENTS).map(|number| format!("m-{number:05}")).collect();
    let noise = names
        .iter()
        .map(|name| say(&plane.scene, name, ("Normal", "Scheduled"), -10));
    stream::iter(noise)
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    let told = [
        ("a-first", "InvalidSpec", -20),
        ("z-last", "PolicyDenied", -30),
        ("z-other", "FailedScheduling", -40),
    ];
    for (name, reason, seconds) in told {
        say(&plane.scene, name, ("Warning", reason), seconds).await?;
    }
    for (query, expected) in [
        ("&limit=1", vec!["z-other"]),
        ("&type=Warning", vec!["z-other", "z-last", "a-first"]),
        ("&reason=PolicyDenied", vec!["z-last"]),
        ("&type=Normal&reason=PolicyDenied", vec![]),
        (
            "&kind=AgentRun&type=Warning&reason=InvalidSpec",
            vec!["a-first"],
        ),
    ] {
        let path = format!("/v1/events?namespace={}{query}", plane.namespace());
        let found = plane.expect(("GET", &path), &token, None, 200).await?;
        let items = found["items"].as_array().into_iter().flatten();
        let names: Vec<_> = items.filter_map(|event| event["name"].as_str()).collect();
        assert_eq!(names, expected, "{query}");
        assert!(found.get("partial").is_none(), "{query}: all were seen");
    }
    sign_in(&browser, plane.address, &token).await?;
    browser.press("3").await?;
    browser.until_shows(".note", "the latest first").await?;
    let shown = "[...document.querySelectorAll('.refusals > li > b')].map((one) => one.innerText)";
    let expected = json!(["AgentRun z-last", "AgentRun a-first"]);
    assert_eq!(browser.value(shown).await?, expected);
    Ok(())
}
