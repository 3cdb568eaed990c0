//! A real cert-manager makes the certificate by the chart's issuer, has the API server trust it, and renews it while people
//! work.

use std::{net::SocketAddr, sync::Arc};

use agents::api::{contract::port, registration::rung::Rung};
use anyhow::{Context, Result, ensure};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams},
};
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use serde_json::json;
use support::{cert_manager::CertManager, pki, wait};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{is_registered, traffic::Traffic};
use crate::chart::install::is_refused;
use crate::chart::install::stage::{DEADLINE, Stage};

const CERTIFICATE: &str = "agents-webhook";

fn certificates(stage: &Stage) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("cert-manager.io", "v1", "Certificate");
    let resource = ApiResource::from_gvk_with_plural(&kind, "certificates");
    Api::namespaced_with(stage.here.client.clone(), &stage.here.name, &resource)
}

async fn stored(stage: &Stage, key: &str) -> Result<Vec<u8>> {
    let secret = stage.here.api::<Secret>().get("agents-webhook-tls").await?;
    let data = secret.data.unwrap_or_default();
    let found = data.get(key).map(|ByteString(bytes)| bytes.clone());
    found.with_context(|| format!("the Secret has no {key}"))
}

/// Asks for a new certificate, as `cmctl renew` does.
async fn ask_for_another(stage: &Stage) -> Result<()> {
    let all = certificates(stage);
    let found = all.get(CERTIFICATE).await?;
    let mut conditions = found.data["status"]["conditions"].clone();
    let list = conditions.as_array_mut().context("conditions")?;
    list.push(json!({
        "type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "message": "Asked for by a test",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }));
    let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
    all.patch_status(CERTIFICATE, &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

/// The certificates that the webhook pods show to someone who trusts the authority, one of each pod.
async fn shown(stage: &Stage, authority: &[u8]) -> Result<Vec<Vec<u8>>> {
    let webhook = ListParams::default().labels("app.kubernetes.io/component=webhook");
    let pods = stage.here.api::<Pod>().list(&webhook).await?;
    let connector = TlsConnector::from(Arc::new(pki::client_of(authority)?));
    let host = format!("agents-webhook.{}.svc", stage.here.name);
    let mut all = Vec::new();
    for pod in pods {
        let address = pod.status.and_then(|status| status.pod_ip);
        let address = address.context("a pod has an address")?.parse()?;
        let relay = stage.lab.reach(SocketAddr::new(address, port::WEBHOOK))?;
        let stream = TcpStream::connect(relay.address()).await?;
        let name = ServerName::try_from(host.clone())?;
        let stream = connector.connect(name, stream).await?;
        let (_, session) = stream.get_ref();
        let chain = session.peer_certificates().context("a certificate")?;
        all.push(chain[0].to_vec());
    }
    Ok(all)
}

/// The first certificate of a text in PEM.
fn first(pem: &[u8]) -> Result<Vec<u8>> {
    Ok(CertificateDer::from_pem_slice(pem)?.to_vec())
}

#[tokio::test]
async fn cert_manager_issues_injects_and_renews_while_people_work() -> Result<()> {
    support::node_lab!();
    let stage = Stage::enter().await?;
    let manager = CertManager::start(stage.lab).await?;
    let values = json!({
        "controlPlane": {"enabled": false},
        "webhook": {"rung": "fail", "tls": {"source": "cert-manager", "secretName": "", "caBundle": ""}},
    });
    let installed = stage.put("install", &values).await;
    installed.with_context(|| manager.logged())?;
    is_refused(&stage, true).await?;
    let (old, authority) = (
        stored(&stage, "tls.crt").await?,
        stored(&stage, "ca.crt").await?,
    );
    let on_wire = shown(&stage, &authority).await?;
    assert_eq!(on_wire, vec![first(&old)?; 2]);

    let traffic = Traffic::start(&[&stage.here]).await?;
    traffic.goes_on().await?;
    ask_for_another(&stage).await?;
    wait::retry("another certificate", DEADLINE, || async {
        ensure!(stored(&stage, "tls.crt").await? != old, "still the first");
        Ok(())
    })
    .await?;
    assert_eq!(
        stored(&stage, "ca.crt").await?,
        authority,
        "the authority stays"
    );
    let new = vec![first(&stored(&stage, "tls.crt").await?)?; 2];
    wait::retry("both pods with the new certificate", DEADLINE, || async {
        let now = shown(&stage, &authority).await?;
        ensure!(now == new, "not on the wire of both");
        Ok(())
    })
    .await?;
    traffic.goes_on().await?;
    traffic.end("a renewal by cert-manager").await?;
    is_registered(&stage, Rung::Fail).await?;
    stage.uninstall().await
}
