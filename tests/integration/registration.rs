//! The webhook configurations on the real API server: every rung is taken as it is, and the webhook notices what is not.
//!
//! A stored configuration would concern every test that shares the cluster. So most are only rehearsed (a dry run goes
//! through the same validation, CEL included), and those that are stored have a condition that nobody fulfils.

use std::time::Duration;

use agents::api::contract::reporter;
use agents::api::registration::rung::Rung;
use agents::api::registration::{Check, Reach, Registration};
use agents::cli::webhook_configuration;
use agents::events::{self, Reporter};
use agents::kit::shutdown::channel;
use agents_webhook::registration::{Metrics, Warden};
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::api::PostParams;
use kube::{Api, Client};
use prometheus_client::{encoding::text::encode, registry::Registry};
use support::{Namespace, events as seen, lab, namespace, wait};
use tokio::time::Instant;

const DEADLINE: Duration = Duration::from_secs(90);

fn registration(name: &str, rung: Rung, reach: Reach) -> Registration {
    let authority = rcgen::generate_simple_self_signed(["webhook.test".to_owned()]);
    let pem = authority.expect("a certificate").cert.pem();
    Registration {
        name: name.to_owned(),
        rung,
        reach,
        ca: Some(pem.into_bytes()),
    }
}

fn service() -> Reach {
    Reach::Service {
        namespace: "agents".to_owned(),
        name: "agents-webhook".to_owned(),
        port: 443,
    }
}

#[tokio::test]
async fn the_configurations_of_every_rung_are_taken_without_a_warning() -> Result<()> {
    let kubectl = lab::shared().await?.kubectl();
    for rung in Rung::ALL {
        for reach in [service(), Reach::Url("https://127.0.0.1:8443".to_owned())] {
            let printed = webhook_configuration::text(&registration("rehearsal", rung, reach))?;
            let arguments = [
                "apply",
                "--dry-run=server",
                "--validate=strict",
                "--filename",
                "-",
            ];
            let said = kubectl.run_with_input(&arguments, &printed).await?;
            let expected = "mutatingwebhookconfiguration.admissionregistration.k8s.io/rehearsal created (server dry run)\n\
                 validatingwebhookconfiguration.admissionregistration.k8s.io/rehearsal created (server dry run)\n";
            ensure!(
                (said.code, said.stderr.as_str(), said.stdout.as_str()) == (Some(0), "", expected),
                "{rung}: {said:?}"
            );
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_rehearsal_would_find_a_condition_that_does_not_compile() -> Result<()> {
    let kubectl = lab::shared().await?.kubectl();
    let printed = webhook_configuration::text(&registration("rehearsal", Rung::Deny, service()))?;
    let broken = printed.replace("request.userInfo.username", "request.uid");
    ensure!(broken != printed, "there is no condition in {printed}");
    let arguments = ["apply", "--dry-run=server", "--filename", "-"];
    let said = kubectl.run_with_input(&arguments, &broken).await?;
    ensure!(
        said.code == Some(1) && said.stderr.contains("matchConditions"),
        "{said:?}"
    );
    Ok(())
}

/// Both configurations of a rung, stored so that no request ever fulfils their conditions.
pub(crate) async fn store(here: &Namespace, rung: Rung) -> Result<ValidatingWebhookConfiguration> {
    lab::shared().await?.ensure_ours()?;
    let made = registration(&here.name, rung, service());
    let (mut mutating, mut validating) = (made.mutating(), made.validating());
    let nobody = MatchCondition {
        name: "nobody".to_owned(),
        expression: "request.userInfo.username == 'nobody'".to_owned(),
    };
    for hook in mutating.webhooks.iter_mut().flatten() {
        hook.match_conditions
            .get_or_insert_default()
            .push(nobody.clone());
    }
    for hook in validating.webhooks.iter_mut().flatten() {
        hook.match_conditions
            .get_or_insert_default()
            .push(nobody.clone());
    }
    let params = PostParams::default();
    let api: Api<MutatingWebhookConfiguration> = Api::all(here.client.clone());
    api.create(&params, &mutating).await?;
    let api: Api<ValidatingWebhookConfiguration> = Api::all(here.client.clone());
    Ok(api.create(&params, &validating).await?)
}

/// Removes both, so that no later request has to be held against them.
pub(crate) async fn remove(here: &Namespace) -> Result<()> {
    let both = "mutatingwebhookconfigurations,validatingwebhookconfigurations";
    let said = here.kubectl.run(&["delete", both, &here.name]).await?;
    said.ok().map(drop)
}

/// A warden that runs as long as `story`, which may look at its metrics.
async fn with_warden<T>(
    client: &Client,
    expected: (String, Rung),
    story: impl AsyncFnOnce(&Registry) -> Result<T>,
) -> Result<T> {
    let mut registry = Registry::default();
    let settings = events::Settings {
        enabled: true,
        per_minute: 60,
    };
    let config = events::Config::new(settings, Reporter::new(reporter::WEBHOOK, "pod-0"));
    let (emitter, writer) = events::new(client.clone(), config, events::Metrics::default());
    let metrics = Metrics::register(&mut registry);
    let warden = Warden::new(client.clone(), expected, emitter, metrics);
    let (trigger, shutdown) = channel();
    let story = async {
        let told = story(&registry).await;
        trigger.start(Instant::now() + Duration::from_secs(10));
        told
    };
    tokio::join!(
        warden.run(shutdown.clone()),
        writer.run(shutdown.started()),
        story
    )
    .2
}

/// Waits until the metrics show every one of these lines; one without a value stands for any but 0, since on a slow
/// machine a warden may have looked more than once.
async fn shows(registry: &Registry, wanted: &[&str]) -> Result<String> {
    let fits = |shown: &str, line: &str| {
        let value = shown.strip_prefix(line);
        shown == line || value.is_some_and(|value| value.starts_with(' ') && value != " 0")
    };
    wait::retry("metrics of the registration", DEADLINE, async || {
        let mut page = String::new();
        encode(&mut page, registry)?;
        let missing = wanted
            .iter()
            .find(|line| !page.lines().any(|shown| fits(shown, line)));
        match missing {
            None => Ok(page),
            Some(line) => anyhow::bail!("{line} is not in\n{page}"),
        }
    })
    .await
}

#[tokio::test]
async fn a_registration_of_its_own_rung_is_found_to_be_as_it_should() -> Result<()> {
    support::own_lab!();
    let here = namespace("registered").await?;
    store(&here, Rung::FailLabelled).await?;
    let expected = (here.name.clone(), Rung::FailLabelled);
    let page = with_warden(&here.client, expected, async |registry| {
        shows(registry, &["registration_looks_total{result=\"judged\"}"]).await
    })
    .await?;
    for check in Check::ALL {
        let line = format!("registration_findings{{check=\"{check}\"}} 0");
        ensure!(page.contains(&line), "{line} is not in\n{page}");
    }
    remove(&here).await
}

#[tokio::test]
async fn a_registration_of_another_rung_is_counted_and_told_in_an_event() -> Result<()> {
    support::own_lab!();
    let here = namespace("drifted").await?;
    let stored = store(&here, Rung::Fail).await?;
    let expected = (here.name.clone(), Rung::Audit);
    let said = with_warden(&here.client, expected, async |registry| {
        shows(registry, &["registration_findings{check=\"rung\"} 4"]).await?;
        let drifted = |said: &seen::Said| said.note.contains("in plain namespaces");
        seen::until(&here.client, &stored, DEADLINE, drifted).await
    })
    .await?;
    let words = [&said.kind, &said.reason, &said.action, &said.note].map(String::as_str);
    assert_eq!(
        words,
        [
            "Warning",
            "RegistrationAtFault",
            "Inspect",
            "rung: validate.agents.proompteng.ai: in labelled namespaces failurePolicy is Fail, but the rung audit means Ignore; \
             rung: validate.agents.proompteng.ai: in plain namespaces failurePolicy is Fail, but the rung audit means Ignore",
        ]
    );
    remove(&here).await
}

#[tokio::test]
async fn a_registration_that_is_not_there_or_not_readable_is_said_and_ends_nothing() -> Result<()> {
    let here = namespace("unregistered").await?;
    let missing = [
        "registration_looks_total{result=\"missing\"}",
        "registration_findings{check=\"unseen\"} 1",
    ];
    let expected = (here.name.clone(), Rung::Deny);
    with_warden(&here.client, expected.clone(), async |registry| {
        shows(registry, &missing).await
    })
    .await?;
    let mut config = support::cluster::config(lab::shared().await?.kubeconfig()).await?;
    config.auth_info.impersonate = Some("someone-without-rights".to_owned());
    let stranger = Client::try_from(config).context("a client")?;
    with_warden(&stranger, expected, async |registry| {
        shows(
            registry,
            &["registration_looks_total{result=\"forbidden\"}"],
        )
        .await
    })
    .await?;
    Ok(())
}
