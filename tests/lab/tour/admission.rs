//! Registers the webhook of the tour, and lets it refuse an example.

use agents::api::{
    registration::rung::Rung,
    registration::{DEFAULT_NAME, Reach, Registration},
};
use anyhow::{Context, Result, bail};
use kube::{Api, api::PostParams};
use std::time::Duration;
use support::{fixtures, lab::Lab, wait};

/// The rung of the tour; the programs are told the same.
pub(super) const RUNG: Rung = Rung::Fail;

/// An object with faults, for people to try as well.
pub(super) const REFUSED: &str = "examples/refused/agent-run.yaml";

/// How soon every part of the API server asks a webhook that was registered.
const DEADLINE: Duration = Duration::from_secs(30);

/// Where the API server finds the webhook, and who issued its certificate.
pub(super) struct Webhook {
    pub(super) reach: Reach,
    pub(super) ca: Vec<u8>,
}

/// Registers the webhook and returns what kubectl prints for an object that it refuses.
pub(super) async fn register(lab: &Lab, webhook: Webhook, namespace: &str) -> Result<String> {
    let Webhook { reach, ca } = webhook;
    let registration = Registration {
        name: DEFAULT_NAME.to_owned(),
        rung: RUNG,
        reach,
        ca: Some(ca),
    };
    let client = lab.client().await?;
    let new = PostParams::default();
    Api::all(client.clone())
        .create(&new, &registration.mutating())
        .await?;
    Api::all(client)
        .create(&new, &registration.validating())
        .await?;
    let file = fixtures::repository().join(REFUSED);
    let file = file
        .to_str()
        .context("the path of examples/ is not UTF-8")?;
    let kubectl = lab.kubectl().in_namespace(namespace);
    wait::retry("the webhook refuses a wrong object", DEADLINE, || async {
        let said = kubectl
            .run(&["apply", "--dry-run=server", "--filename", file])
            .await?;
        if !said.stderr.contains("spec.workload.image") {
            bail!("kubectl said: {}{}", said.stdout, said.stderr);
        }
        Ok(said.stderr)
    })
    .await
}
