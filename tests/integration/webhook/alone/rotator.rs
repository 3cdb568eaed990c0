//! The webhook makes its certificates itself: two replicas, a busy API server, renewals and another authority. No call fails.

use std::{collections::BTreeSet, time::Instant};

use agents::{
    api::{contract::env as variable, registration::rung::Rung},
    kit::args::variable as common,
};
use agents_webhook::args::variable as own;
use anyhow::{Context, Result, ensure};
use k8s_openapi::{
    ByteString,
    api::{
        admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
        core::v1::Secret,
    },
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use support::{Namespace, wait};

use super::{
    balancer::{self, Endpoints},
    load::{self, Tally},
};
use crate::webhook::hook::{DEADLINE, Folder, Hook, Registered};

const WRITERS: usize = 4;
/// Long enough for a busy machine, short enough to see several of them.
const LIFETIME: &str = "24s";
const RENEWALS: usize = 2;

/// What is stored and trusted at a time.
struct Look {
    certificate: Vec<u8>,
    authority: Vec<u8>,
    /// Texts of all entries of both configurations.
    bundles: BTreeSet<Vec<u8>>,
}

async fn look(home: &Namespace, registration: &str) -> Result<Look> {
    let secret = home.api::<Secret>().get("rotator").await?;
    let data = secret.data.unwrap_or_default();
    let text = |key: &str| {
        let found = data.get(key).map(|ByteString(bytes)| bytes.clone());
        found.with_context(|| format!("the Secret has no {key} yet"))
    };
    Ok(Look {
        certificate: text("tls.crt")?,
        authority: text("ca.crt")?,
        bundles: bundles(&home.client, registration).await?,
    })
}

async fn bundles(client: &Client, name: &str) -> Result<BTreeSet<Vec<u8>>> {
    let all: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let mutating = all.get(name).await?.webhooks.unwrap_or_default();
    let all: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let validating = all.get(name).await?.webhooks.unwrap_or_default();
    let mutating = mutating.into_iter().map(|hook| hook.client_config);
    let validating = validating.into_iter().map(|hook| hook.client_config);
    let bundles = mutating.chain(validating).map(|client| client.ca_bundle);
    Ok(bundles.map(|bundle| bundle.unwrap_or_default().0).collect())
}

/// Whether a bundle has this authority.
fn holds(bundle: &[u8], authority: &[u8]) -> bool {
    let plain = |text: &[u8]| {
        String::from_utf8_lossy(text)
            .split_whitespace()
            .collect::<String>()
    };
    plain(bundle).contains(&plain(authority))
}

fn trust(look: &Look, authority: &[u8]) -> bool {
    look.bundles.iter().all(|bundle| holds(bundle, authority))
}

/// Looks at what is stored until something holds.
async fn follow(
    home: &Namespace,
    registration: &str,
    what: &str,
    done: impl Fn(&Look) -> bool,
) -> Result<Look> {
    wait::retry(what, DEADLINE, || async {
        let look = look(home, registration).await?;
        ensure!(done(&look), "not yet");
        Ok(look)
    })
    .await
}

async fn replica(
    folder: &Folder,
    home: &Namespace,
    registration: &str,
    endpoints: &Endpoints,
) -> Result<Hook> {
    let settings = [
        (variable::POD_NAMESPACE, home.name.as_str()),
        (own::CONFIGURATION_NAME, registration),
        (own::ROTATOR_SECRET, "rotator"),
        (own::ROTATOR_LIFETIME, LIFETIME),
        (own::ROTATOR_AUTHORITY_LIFETIME, "1h"),
        (own::ROTATOR_SETTLE, "2s"),
        (common::TLS_SERVER_NAMES, "127.0.0.1"),
    ];
    let hook = Hook::start_in(folder, &settings).await?;
    endpoints.add(hook.address, hook.admin);
    Ok(hook)
}

/// Takes the key of the authority away, which is how operators ask for another.
async fn ask_for_another(home: &Namespace) -> Result<()> {
    let patch = Patch::Merge(json!({"data": {"ca.key": null}}));
    let secrets = home.api::<Secret>();
    secrets
        .patch("rotator", &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

async fn story(home: &Namespace, registered: &Registered, tally: &Tally) -> Result<()> {
    let name = registered.name.as_str();
    let is_other = |known: Vec<u8>| move |look: &Look| look.certificate != known;
    let mut seen = look(home, name).await?;
    let first = seen.authority.clone();
    for _ in 0..RENEWALS {
        tally.until(tally.sent() + WRITERS).await?;
        seen = follow(home, name, "a renewal", is_other(seen.certificate)).await?;
        ensure!(seen.authority == first, "the authority stays");
        ensure!(
            seen.bundles.len() == 1 && trust(&seen, &first),
            "one bundle"
        );
    }
    ask_for_another(home).await?;
    let both = |look: &Look| look.authority != first;
    let changed = follow(home, name, "another authority", both).await?;
    ensure!(
        trust(&changed, &first) && trust(&changed, &changed.authority),
        "both are trusted while one takes over from the other"
    );
    let alone = |look: &Look| !look.bundles.iter().any(|bundle| holds(bundle, &first));
    let end = follow(home, name, "the end of the first authority", alone).await?;
    ensure!(trust(&end, &end.authority), "the second stays");
    tally.until(tally.sent() + WRITERS).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn renewals_and_another_authority_under_load_fail_no_request() -> Result<()> {
    support::own_lab!();
    let home = support::namespace("rotator-home").await?;
    let mut secret = Secret::default();
    secret.metadata.name = Some("rotator".to_owned());
    home.api::<Secret>()
        .create(&PostParams::default(), &secret)
        .await?;
    let endpoints = Endpoints::default();
    let (listener, address) = balancer::listen().await?;
    let serving = balancer::serve(listener, endpoints.clone());
    // As the chart registers it: without a caBundle.
    let registered = Registered::without_ca(address, Rung::Fail).await?;
    let folders = [Folder::new()?, Folder::new()?];
    let telling = async {
        let starting = folders
            .iter()
            .map(|folder| replica(folder, &home, &registered.name, &endpoints));
        let replicas = futures::future::try_join_all(starting).await?;
        let here = registered.namespace("rotator").await?;
        let (tally, start) = (Tally::default(), Instant::now());
        let told = async {
            let told = story(&home, &registered, &tally).await;
            tally.stop(); // also after a failure, or the writers would go on
            told
        };
        tokio::try_join!(told, load::write(&here, WRITERS, &tally))?;
        for replica in replicas {
            let (status, log) = replica.end().await?;
            ensure!(status.success(), "{log}");
            ensure!(!log.contains("cannot be kept up to date"), "{log}");
        }
        tally.verdict("Renewals and another authority of two replicas", start)
    };
    tokio::select! {
        told = telling => told,
        served = serving => served,
    }
}
