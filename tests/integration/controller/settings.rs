//! What operators set, as the process obeys it. What shows in Jobs and in numbers is shown by unit tests.

use std::fs;
use std::path::Path;

use agents::api::contract::env;
use agents::api::kind::Kind;
use agents::controller::variables::{Stance, TABLE, Variable};
use anyhow::Result;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ListParams;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use support::{events, fixtures::repository, lab, wait};

use super::lease::holder;
use super::scene::{DEADLINE, Scene};
use crate::kit::process::{Process, product};

/// What one kind of each group takes.
fn sample(kind: Kind) -> Value {
    let samples = [
        (Kind::AgentProvider, json!({"binary": "/agent"})),
        (
            Kind::Orchestration,
            json!({"steps": [{"name": "a", "kind": "Checkpoint"}]}),
        ),
    ];
    let own = samples.into_iter().find(|(known, _)| *known == kind);
    own.map_or(json!({}), |(_, spec)| spec)
}

/// With this setting, this kind is worked on and that one is not.
async fn works(
    setting: (&str, &str),
    (done, there): (Kind, &Scene),
    left: (Kind, &Scene),
) -> Result<()> {
    let here = left.1;
    let controller = here.controller_with(setting).await?;
    here.make(left.0, "left", sample(left.0)).await?;
    there.make(done, "done", sample(done)).await?;
    there
        .until_any(done, "done", |object| !object.data["status"].is_null())
        .await?;
    let idle = here.any(left.0).get("left").await?;
    assert_eq!(idle.data.get("status"), None, "{setting:?}");
    controller.signal(Signal::SIGTERM);
    controller.end().await;
    Ok(())
}

#[tokio::test]
async fn each_group_works_where_it_is_told_to_and_can_be_off() -> Result<()> {
    support::kinds!();
    let (provider, flow, signal) = (Kind::AgentProvider, Kind::Orchestration, Kind::Signal);
    for (variable, done, left) in [
        (env::ENABLED, signal, provider),
        (env::ORCHESTRATIONS_ENABLED, provider, flow),
        (env::SUPPORTING_ENABLED, provider, signal),
    ] {
        let scene = Scene::new(&[]).await?;
        works((variable, "false"), (done, &scene), (left, &scene)).await?;
    }
    for (variable, kind) in [
        (env::NAMESPACES, provider),
        (env::ORCHESTRATIONS_NAMESPACES, flow),
        (env::SUPPORTING_NAMESPACES, signal),
    ] {
        let scene = Scene::new(&[]).await?;
        let other = scene.beside(support::namespace("controller").await?);
        let name = other.here.name.clone();
        works((variable, &name), (kind, &other), (kind, &scene)).await?;
    }
    Ok(())
}

/// The lease that a controller with these settings takes.
async fn taken(scene: &Scene, name: &str, settings: &[(&str, &str)]) -> Result<Lease> {
    let kubeconfig = lab::shared().await?.kubeconfig();
    let own = support::namespace("controller").await?;
    let mut environment = vec![
        ("KUBECONFIG", kubeconfig.to_str().unwrap_or_default()),
        ("AGENTS_ADMIN_LISTEN", "127.0.0.1:0"),
        (env::NAMESPACES, &own.name),
    ];
    environment.extend(settings);
    let controller = Process::start(&product("agents"), &["controller"], &environment);
    let held = |lease: &Lease| !holder(lease).is_empty();
    let lease = wait::until(&scene.here.api(), name, DEADLINE, held).await?;
    controller.signal(Signal::SIGTERM);
    controller.end().await;
    Ok(lease)
}

#[tokio::test]
async fn the_lease_is_called_held_and_placed_as_the_operator_says() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[]).await?;
    let here = scene.here.name.as_str();
    let mut settings = vec![
        ("JANGAR_POD_NAMESPACE", here),
        ("JANGAR_POD_UID", "uid-7"),
        ("HOSTNAME", "pod-7"),
        ("JANGAR_LEADER_ELECTION_LEASE_NAME", "mine"),
        ("JANGAR_LEADER_ELECTION_LEASE_DURATION_SECONDS", "41"),
    ];
    let lease = taken(&scene, "mine", &settings).await?;
    assert_eq!(holder(&lease), "pod-7_uid-7");
    let seconds = lease.spec.and_then(|spec| spec.lease_duration_seconds);
    assert_eq!(seconds, Some(41));

    settings[0].1 = "default";
    settings[3].1 = "yours";
    settings.push(("JANGAR_LEADER_ELECTION_LEASE_NAMESPACE", here));
    taken(&scene, "yours", &settings).await?;

    let off = ("JANGAR_LEADER_ELECTION_ENABLED", "false");
    let alone = Scene::with_agent(&[off]).await?;
    let _controller = alone.controller().await?;
    alone.run("free", json!({})).await?;
    alone.until_phase("free", "Running").await?;
    let leases = alone.here.api::<Lease>();
    let leases = leases.list(&ListParams::default()).await?;
    assert_eq!(leases.items.len(), 0);
    Ok(())
}

#[tokio::test]
async fn events_are_told_as_the_operator_wishes() -> Result<()> {
    support::kinds!();
    for (setting, expected) in [
        ((env::EVENTS_ENABLED, "true"), 2),
        ((env::EVENTS_ENABLED, "false"), 0),
        ((env::EVENTS_RATE_LIMIT_PER_MIN, "1"), 1),
    ] {
        let scene = Scene::with_agent(&[setting]).await?;
        let controller = scene.controller().await?;
        let run = scene.run("told", json!({})).await?;
        scene.until_phase("told", "Running").await?;
        scene.end_pod("told", 0).await?;
        scene.until_phase("told", "Succeeded").await?;
        scene.until_free("told").await?;
        // What is left to tell is told before it ends.
        controller.signal(Signal::SIGTERM);
        controller.end().await;
        let told = events::about(&scene.here.client, &run).await?;
        assert_eq!(told.len(), expected, "{setting:?}: {told:?}");
    }
    Ok(())
}

/// All texts of Rust below a folder.
fn sources(folder: &Path, texts: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, texts)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            texts.push(fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

#[test]
fn every_variable_that_is_honoured_has_a_test_that_names_it() -> Result<()> {
    let mut texts = Vec::new();
    for folder in ["src", "webhook/src", "tests/integration"] {
        sources(&repository().join(folder), &mut texts)?;
    }
    for Variable {
        name,
        constant,
        stance,
    } in TABLE
    {
        let Stance::Honoured { test } = stance else {
            continue;
        };
        let (declared, literal) = (format!("fn {test}("), format!("\"{name}\""));
        let constant = format!("env::{}", if constant.is_empty() { "-" } else { constant });
        let shows = |text: &&String| {
            let mut uses = text.match_indices(&constant);
            let is_used = uses.any(|(at, found)| {
                let rest = &text[at + found.len()..];
                !rest.starts_with(|next: char| next == '_' || next.is_alphanumeric())
            });
            text.contains(&declared) && (text.contains(&literal) || is_used)
        };
        assert!(
            texts.iter().any(|text| shows(&text)),
            "{name}: no test {test} that names it"
        );
    }
    Ok(())
}
