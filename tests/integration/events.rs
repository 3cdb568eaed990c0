//! Events as the API server takes, stores and shows them.

mod absent;
mod access;
mod outage;
mod volume;

use std::time::{Duration, SystemTime};

use agents::api::contract::reporter;
use agents::api::kind::Kind;
use agents::api::text::sanitise::Secrets;
use agents::events::{
    Config, Effect, Emitter, Metrics, Note, Occurrence, Reason, Regarding, Reporter, Settings,
};
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference};
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Client, Resource};
use support::{Namespace, wait};
use tokio::sync::oneshot;
use tokio::time::Instant;

const DEADLINE: Duration = Duration::from_secs(30);

fn config() -> Config {
    let settings = Settings {
        enabled: true,
        per_minute: 10,
    };
    Config::new(settings, Reporter::new(reporter::CONTROLLER, "pod-0"))
}

/// An emitter whose writer runs as long as `story`, and then has ten seconds to finish.
async fn tell<T>(
    client: &Client,
    config: Config,
    story: impl AsyncFnOnce(&Emitter, &Metrics) -> Result<T>,
) -> Result<T> {
    let metrics = Metrics::default();
    let (emitter, writer) = agents::events::new(client.clone(), config, metrics.clone());
    let (end, shutdown) = oneshot::channel::<()>();
    let shutdown = async {
        // A story that failed has dropped its end, which counts as well.
        let _ = shutdown.await;
        Instant::now() + Duration::from_secs(10)
    };
    let story = async {
        let told = story(&emitter, &metrics).await;
        drop(end);
        told
    };
    tokio::join!(writer.run(shutdown), story).1
}

/// Tells a story of several programs, once more if it failed over the end of an hour: the name of an Event says in which
/// hour it began, so a program that starts in the next one rightly begins another.
pub(crate) async fn within_the_hour(story: impl AsyncFn() -> Result<()>) -> Result<()> {
    let hour = || {
        SystemTime::UNIX_EPOCH
            .elapsed()
            .map(|time| time.as_secs() / 3600)
    };
    let began = hour()?;
    match story().await {
        Err(_) if hour()? != began => story().await,
        told => told,
    }
}

fn run(namespace: &Namespace, name: &str) -> Regarding {
    Regarding::named(Kind::AgentRun, &namespace.name, name)
}

fn say(emitter: &Emitter, regarding: Regarding, reason: Reason, note: &str) {
    emitter.emit(
        Effect::Real,
        Occurrence::new(regarding, reason, Note::new(note)),
    );
}

fn count(event: &Event) -> i32 {
    event.series.as_ref().map_or(1, |series| series.count)
}

/// All Events of a namespace, by the name of the object they are about.
async fn stored(namespace: &Namespace) -> Result<Vec<(String, i32)>> {
    let events = namespace
        .api::<Event>()
        .list(&ListParams::default())
        .await?;
    let about = |event: &Event| event.regarding.clone().and_then(|object| object.name);
    let mut found: Vec<_> = events
        .iter()
        .map(|event| (about(event).unwrap_or_default(), count(event)))
        .collect();
    found.sort();
    Ok(found)
}

/// Waits for the Events of a namespace to be as wanted.
async fn all(namespace: &Namespace, wanted: impl Fn(&[Event]) -> bool) -> Result<Vec<Event>> {
    let events = namespace.api::<Event>();
    wait::until_listed(&events, "", DEADLINE, wanted).await
}

/// Waits for the one Event of a namespace to be as wanted.
async fn only(namespace: &Namespace, wanted: impl Fn(&Event) -> bool) -> Result<Event> {
    let mut events = all(namespace, |list| list.iter().any(&wanted)).await?;
    ensure!(events.len() == 1, "not one Event: {events:?}");
    events.pop().context("an Event")
}

async fn config_map(namespace: &Namespace, name: &str) -> Result<ConfigMap> {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.to_owned());
    Ok(namespace
        .api()
        .create(&PostParams::default(), &object)
        .await?)
}

#[tokio::test]
async fn the_first_occurrence_is_stored_at_once_with_all_its_fields() -> Result<()> {
    let namespace = support::namespace("events").await?;
    let object = config_map(&namespace, "prompt").await?;
    let event = tell(&namespace.client, config(), async |emitter, _| {
        let related = run(&namespace, "nightly");
        let note = Note::new("The prompt was read");
        let occurrence = Occurrence::new(Regarding::of(&object), Reason::Started, note);
        emitter.emit(Effect::Real, occurrence.related_to(related));
        only(&namespace, |_| true).await
    })
    .await?;
    let expected = Event {
        action: Some("Run".into()),
        event_time: event.event_time.clone(),
        metadata: event.metadata.clone(),
        note: Some("The prompt was read".into()),
        reason: Some("Started".into()),
        regarding: Some(ObjectReference {
            api_version: Some("v1".into()),
            kind: Some("ConfigMap".into()),
            namespace: Some(namespace.name.clone()),
            name: Some("prompt".into()),
            uid: object.meta().uid.clone(),
            ..ObjectReference::default()
        }),
        related: Some(ObjectReference {
            api_version: Some("agents.proompteng.ai/v1alpha1".into()),
            kind: Some("AgentRun".into()),
            namespace: Some(namespace.name.clone()),
            name: Some("nightly".into()),
            ..ObjectReference::default()
        }),
        reporting_controller: Some("agents.proompteng.ai/controller".into()),
        reporting_instance: Some("pod-0".into()),
        type_: Some("Normal".into()),
        ..Event::default()
    };
    assert_eq!(
        event,
        Event {
            deprecated_source: event.deprecated_source.clone(),
            ..expected
        }
    );
    Ok(())
}

#[tokio::test]
async fn an_object_that_does_not_exist_can_have_an_event_under_its_name() -> Result<()> {
    let namespace = support::namespace("events").await?;
    tell(&namespace.client, config(), async |emitter, _| {
        say(
            emitter,
            run(&namespace, "refused"),
            Reason::InvalidSpec,
            "spec.runtime is missing",
        );
        Ok(())
    })
    .await?;
    let words = [
        "get",
        "events",
        "--field-selector=involvedObject.name=refused",
        "--no-headers",
    ];
    let shown = namespace.kubectl.run(&words).await?.ok()?;
    for word in [
        "Warning",
        "InvalidSpec",
        "agentrun/refused",
        "spec.runtime is missing",
    ] {
        assert!(shown.contains(word), "no {word} in: {shown}");
    }
    Ok(())
}

#[tokio::test]
async fn a_dry_run_leaves_no_event() -> Result<()> {
    let namespace = support::namespace("events").await?;
    tell(&namespace.client, config(), async |emitter, _| {
        let occurrence = Occurrence::new(
            run(&namespace, "a"),
            Reason::InvalidSpec,
            Note::new("Wrong"),
        );
        emitter.emit(Effect::of_request(true), occurrence);
        Ok(())
    })
    .await?;
    assert_eq!(stored(&namespace).await?, []);
    Ok(())
}

#[tokio::test]
async fn the_longest_note_and_name_are_taken() -> Result<()> {
    let namespace = support::namespace("events").await?;
    let name = "a.".repeat(126) + "a";
    let event = tell(&namespace.client, config(), async |emitter, _| {
        say(
            emitter,
            run(&namespace, &name),
            Reason::Failed,
            &"ä漢".repeat(1_000),
        );
        only(&namespace, |_| true).await
    })
    .await?;
    let note = event.note.unwrap_or_default();
    assert!(
        (1020..=1024).contains(&note.len()) && note.ends_with('…'),
        "{} bytes: {note}",
        note.len()
    );
    assert_eq!(event.regarding.and_then(|object| object.name), Some(name));
    Ok(())
}

#[tokio::test]
async fn any_name_that_a_refused_object_may_carry_is_taken() -> Result<()> {
    let namespace = support::namespace("events").await?;
    let names = [
        "nightly-",
        "-x",
        "UPPER case",
        "a..b",
        "漢字",
        "\u{1b}[31m",
        "",
        "x/y",
        ".",
    ];
    tell(&namespace.client, config(), async |emitter, _| {
        for name in names {
            say(
                emitter,
                run(&namespace, name),
                Reason::InvalidSpec,
                "The name is wrong",
            );
        }
        all(&namespace, |list| list.len() == names.len()).await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn every_reason_of_the_catalogue_is_taken() -> Result<()> {
    let namespace = support::namespace("events").await?;
    let mut config = config();
    config.limits.per_second = 1_000;
    tell(&namespace.client, config, async |emitter, _| {
        for reason in Reason::ALL {
            let name = reason.as_str().to_lowercase();
            say(emitter, run(&namespace, &name), *reason, reason.meaning());
        }
        Ok(())
    })
    .await?;
    assert_eq!(stored(&namespace).await?.len(), Reason::ALL.len());
    Ok(())
}

#[tokio::test]
async fn no_secret_is_in_the_stored_event() -> Result<()> {
    let namespace = support::namespace("events").await?;
    let value = "correct horse battery";
    let note = Note::new("The clone failed")
        .because(&format!(
            "https://bob:{value}@git.example/x.git with Bearer abcdefgh and PASSWORD={value}"
        ))
        .without(Secrets::new([value]));
    let event = tell(&namespace.client, config(), async |emitter, _| {
        emitter.emit(
            Effect::Real,
            Occurrence::new(run(&namespace, "a"), Reason::Failed, note),
        );
        only(&namespace, |_| true).await
    })
    .await?;
    let stored = serde_json::to_string(&event)?;
    for secret in ["correct", "horse", "battery", "abcdefgh"] {
        assert!(!stored.contains(secret), "{stored}");
    }
    Ok(())
}

#[tokio::test]
async fn a_deleted_event_is_stored_anew_with_its_count() -> Result<()> {
    let namespace = support::namespace("events").await?;
    let events = namespace.api::<Event>();
    tell(&namespace.client, config(), async |emitter, _| {
        say(emitter, run(&namespace, "a"), Reason::Failed, "It failed");
        let first = only(&namespace, |_| true).await?;
        let name = first.metadata.name.context("a name")?;
        events.delete(&name, &DeleteParams::default()).await?;
        say(emitter, run(&namespace, "a"), Reason::Failed, "It failed");
        let again = only(&namespace, |event| count(event) == 2).await?;
        assert_eq!(again.note.as_deref(), Some("It failed"));
        assert_ne!(again.metadata.uid, first.metadata.uid);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_restarted_program_and_a_second_replica_add_to_the_same_event() -> Result<()> {
    within_the_hour(async || {
        let namespace = support::namespace("events").await?;
        for _ in 0..2 {
            tell(&namespace.client, config(), async |emitter, _| {
                say(emitter, run(&namespace, "a"), Reason::Failed, "It failed");
                Ok(())
            })
            .await?;
        }
        let found = stored(&namespace).await?;
        ensure!(found == [("a".to_owned(), 2)], "after a restart: {found:?}");
        let replica = |instance| {
            let config = Config {
                reporter: Reporter::new(reporter::CONTROLLER, instance),
                ..config()
            };
            tell(&namespace.client, config, async |emitter, _| {
                for _ in 0..20 {
                    say(emitter, run(&namespace, "a"), Reason::Failed, "It failed");
                }
                Ok(())
            })
        };
        tokio::try_join!(replica("pod-1"), replica("pod-2"), replica("pod-3"))?;
        let found = stored(&namespace).await?;
        ensure!(
            found == [("a".to_owned(), 62)],
            "with three replicas: {found:?}"
        );
        Ok(())
    })
    .await
}
