//! A webhook between the API server and one namespace.

use crate::{
    pki::Identity,
    program::{Program, RUNG, free_address},
};
use agents::{
    api::{
        contract::env,
        registration::{Reach, Registration},
    },
    kit::args::variable as common,
};
use agents_webhook::args::variable as own;
use anyhow::{Context, Result, ensure};
use k8s_openapi::{
    api::admissionregistration::v1::{
        MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::{
    Api, Client,
    api::{DeleteParams, PostParams},
};
use std::{
    ffi::{OsStr, OsString},
    net::SocketAddr,
    time::Duration,
};
use support::{Namespace, lab};
use tokio::time::{Instant, sleep};

/// Label that every namespace has.
const NAME: &str = "kubernetes.io/metadata.name";
/// The API server takes a moment to hear of a registration.
const DEADLINE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(100);

/// A webhook that every write of ours in a namespace goes through.
pub struct Hooked {
    _program: Program,
    identity: Identity,
    name: String,
    client: Client,
}

impl Hooked {
    /// Starts the release build as the chart does and registers it; returns when it is asked.
    pub async fn start(here: &Namespace) -> Result<Self> {
        let identity = Identity::make()?;
        let address = free_address()?;
        let program = program(&identity, address).await?;
        let hooked = Self {
            _program: program,
            name: format!("bench-{}", here.name),
            client: here.client.clone(),
            identity,
        };
        hooked.register(here, address).await?;
        hooked.is_asked(here).await?;
        Ok(hooked)
    }

    async fn register(&self, here: &Namespace, address: SocketAddr) -> Result<()> {
        let registration = Registration {
            name: self.name.clone(),
            rung: RUNG,
            reach: Reach::Url(format!("https://localhost:{}", address.port())),
            ca: Some(self.identity.authority_pem().into_bytes()),
        };
        let only_here = |namespaces: &mut Option<LabelSelector>| {
            let labels = namespaces
                .get_or_insert_default()
                .match_labels
                .get_or_insert_default();
            labels.insert(NAME.to_owned(), here.name.clone());
        };
        let mut validating = registration.validating();
        for hook in validating.webhooks.iter_mut().flatten() {
            only_here(&mut hook.namespace_selector);
        }
        let mut mutating = registration.mutating();
        for hook in mutating.webhooks.iter_mut().flatten() {
            only_here(&mut hook.namespace_selector);
        }
        let params = PostParams::default();
        self.validating().create(&params, &validating).await?;
        self.mutating().create(&params, &mutating).await?;
        Ok(())
    }

    /// Waits until a run is refused that only the webhook refuses. Nothing is left of it.
    async fn is_asked(&self, here: &Namespace) -> Result<()> {
        let params = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let wrong = super::run(&"long".repeat(16))?;
        let until = Instant::now() + DEADLINE;
        while here.api().create(&params, &wrong).await.is_ok() {
            ensure!(
                Instant::now() < until,
                "the API server does not ask the webhook"
            );
            sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Takes it out of the API server's books, and ends it.
    pub async fn end(self) -> Result<()> {
        let params = DeleteParams::default();
        self.mutating().delete(&self.name, &params).await?;
        self.validating().delete(&self.name, &params).await?;
        Ok(())
    }

    fn mutating(&self) -> Api<MutatingWebhookConfiguration> {
        Api::all(self.client.clone())
    }

    fn validating(&self) -> Api<ValidatingWebhookConfiguration> {
        Api::all(self.client.clone())
    }
}

async fn program(identity: &Identity, address: SocketAddr) -> Result<Program> {
    let kubeconfig = lab::shared().await?.kubeconfig().as_os_str().to_owned();
    let (certificate, key) = (identity.certificate_file(), identity.key_file());
    let listen = OsString::from(address.to_string());
    let variables = [
        ("KUBECONFIG", kubeconfig.as_os_str()),
        (env::NAMESPACES, OsStr::new("*")),
        (own::LISTEN, listen.as_os_str()),
        (own::RUNG, OsStr::new(RUNG.as_str())),
        (common::TLS_CERTIFICATE_FILE, certificate.as_os_str()),
        (common::TLS_KEY_FILE, key.as_os_str()),
    ];
    let program = || Program::start("agents-webhook", &[], &variables);
    tokio::task::block_in_place(program).context("the webhook")
}
