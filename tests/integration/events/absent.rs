//! An API server without `events.k8s.io`, as someone may start one.

use agents::events::Severity;
use agents::events::metrics::{Failure, Group, Loss};
use k8s_openapi::api::core::v1::Event as CoreEvent;
use kube::discovery::Discovery;
use support::lab::{Lab, own_name, state::Tier};

use super::*;
use crate::lab::life::ONE_AT_A_TIME;

#[tokio::test]
async fn without_the_group_events_are_core_events() -> Result<()> {
    support::starts_labs!();
    let _turn = ONE_AT_A_TIME.lock().await;
    let without = ["--without-api", "events.k8s.io/v1"];
    let lab = Lab::start_with(&own_name("no-events")?, Tier::ControlPlane, &without).await?;
    let namespace = support::namespace_in(&lab, "events").await?;
    let groups = Discovery::new(namespace.client.clone()).run().await?;
    ensure!(!groups.has_group("events.k8s.io"), "the group is there");
    let metrics = tell(&namespace.client, config(), async |emitter, metrics| {
        for name in ["a", "b", "a"] {
            say(emitter, run(&namespace, name), Reason::Failed, "It failed");
        }
        Ok(metrics.clone())
    })
    .await?;
    let events = namespace.api::<CoreEvent>();
    let events = events.list(&ListParams::default()).await?;
    let mut told: Vec<_> = events
        .into_iter()
        .map(|event| {
            let about = event.involved_object;
            (
                about.kind,
                about.name,
                event.reason,
                event.message,
                event.count,
            )
        })
        .collect();
    told.sort();
    let expected = |name: &str, count| {
        let text = |text: &str| Some(text.to_owned());
        (
            text("AgentRun"),
            text(name),
            text("Failed"),
            text("It failed"),
            Some(count),
        )
    };
    assert_eq!(told, [expected("a", 2), expected("b", 1)]);
    assert_eq!(metrics.emitted(Severity::Warning, Group::Core), 2);
    assert_eq!(
        (
            metrics.errors(Failure::GroupAbsent),
            metrics.dropped(Loss::Undelivered)
        ),
        (1, 0),
        "the group is asked for once"
    );
    Ok(())
}
