//! The programs as pods, from images made of our own static binaries.

use super::{Console, Held, Programs, Up, admission::Webhook};
use agents::api::{contract::port, registration::Reach};
use anyhow::{Context, Result};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::{Api, api::PostParams};
use std::{collections::BTreeMap, fs, net::SocketAddr, time::Duration};
use support::{
    image::OwnPrograms,
    lab::{
        Lab,
        pki::{Authority, Subject},
    },
    pods::is_ready,
    wait,
};

const MANIFESTS: &str = include_str!("programs.yaml");
const NAMESPACE: &str = "agents-system";
const DEADLINE: Duration = Duration::from_secs(60);

/// Name, label `app` of the pod, and admin port of each program.
const PROGRAMS: [(&str, &str, u16); 4] = [
    ("agents", "agents-controllers", port::AGENTS_ADMIN),
    ("agents-sidecar", "agents-controllers", port::SIDECAR_ADMIN),
    ("agents-webhook", "agents-webhook", port::WEBHOOK_ADMIN),
    ("agents serve", CONTROL_PLANE, port::AGENTS_ADMIN),
];

/// Label `app` of the pod that has the console.
const CONTROL_PLANE: &str = "agents-control-plane";

/// Brings the images in.
pub(super) async fn import(lab: &Lab, own: &OwnPrograms) -> Result<()> {
    let images = own.product_images()?;
    try_join_all(images.iter().map(|image| lab.import(image))).await?;
    Ok(())
}

/// Starts the pods, whose images are there, and waits until all are ready.
pub(super) async fn start(lab: &Lab) -> Result<Programs> {
    let apply = ["apply", "--filename", "-"];
    lab.kubectl()
        .run_with_input(&apply, MANIFESTS)
        .await?
        .ok()?;
    let client = lab.client().await?;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let (secret, ca) = tls_secret()?;
    secrets.create(&PostParams::default(), &secret).await?;
    let pods: Api<Pod> = Api::namespaced(client, NAMESPACE);
    let (mut up, mut console) = (Vec::new(), None);
    for (name, app, port) in PROGRAMS {
        let selector = format!("app={app}");
        let ready =
            wait::until_listed(&pods, &selector, DEADLINE, |pods| pods.iter().any(is_ready));
        let ready = ready.await?;
        let address = ready
            .iter()
            .find_map(address)
            .context("a ready pod has no address")?;
        let address = address.parse()?;
        let relay = lab.reach(SocketAddr::new(address, port))?;
        if app == CONTROL_PLANE {
            let relay = lab.reach(SocketAddr::new(address, port::SERVE))?;
            console = Some(Console {
                address: relay.address(),
                _held: Some(relay),
            });
        }
        up.push(Up {
            name,
            admin: relay.address(),
            _held: Held::Pod(relay),
        });
    }
    let reach = Reach::Service {
        namespace: NAMESPACE.to_owned(),
        name: "agents-webhook".to_owned(),
        port: 443,
    };
    Ok(Programs {
        up,
        webhook: Webhook { reach, ca },
        console: console.context("the control plane is not among the programs")?,
    })
}

fn address(pod: &Pod) -> Option<String> {
    pod.status.as_ref()?.pod_ip.clone()
}

/// A throw-away certificate for the Service of the webhook, and the certificate of its issuer.
fn tls_secret() -> Result<(Secret, Vec<u8>)> {
    let folder = tempfile::tempdir()?;
    let authority = Authority::make(folder.path())?;
    let host = format!("agents-webhook.{NAMESPACE}.svc");
    let subject = Subject {
        name: &host,
        group: "",
        hosts: &[&host],
    };
    authority.issue("tls", subject)?;
    let mut data = BTreeMap::new();
    for file in ["tls.crt", "tls.key"] {
        data.insert(
            file.to_owned(),
            fs::read_to_string(folder.path().join(file))?,
        );
    }
    let mut secret = Secret {
        string_data: Some(data),
        type_: Some("kubernetes.io/tls".to_owned()),
        ..Secret::default()
    };
    secret.metadata.name = Some("agents-webhook-tls".to_owned());
    Ok((secret, fs::read(authority.certificate())?))
}
