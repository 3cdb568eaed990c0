//! A real cert-manager makes the certificate by the chart's issuer, has the API server trust it, and renews it while people
//! work.

use agents::api::registration::rung::Rung;
use anyhow::{Context, Result, ensure};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams},
};
use serde_json::json;
use support::{cert_manager::CertManager, wait};

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

/// How often each webhook pod has taken a certificate over.
async fn taken(stage: &Stage) -> Result<Vec<(String, Option<f64>)>> {
    let webhook = ListParams::default().labels("app.kubernetes.io/component=webhook");
    let pods = stage.here.api::<Pod>().list(&webhook).await?;
    let mut all = Vec::new();
    for pod in pods {
        let page = stage.page(&pod.name_any(), 8081).await?;
        let labels = [("result", "ok")];
        let value = page.value("agents_webhook_certificate_reloads_total", &labels);
        all.push((pod.name_any(), value));
    }
    Ok(all)
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
    let (first, authority) = (
        stored(&stage, "tls.crt").await?,
        stored(&stage, "ca.crt").await?,
    );
    let before = taken(&stage).await?;

    let traffic = Traffic::start(&[&stage.here]).await?;
    traffic.goes_on().await?;
    ask_for_another(&stage).await?;
    wait::retry("another certificate", DEADLINE, || async {
        ensure!(stored(&stage, "tls.crt").await? != first, "still the first");
        Ok(())
    })
    .await?;
    assert_eq!(
        stored(&stage, "ca.crt").await?,
        authority,
        "the authority stays"
    );
    wait::retry("both pods with the new certificate", DEADLINE, || async {
        let now = taken(&stage).await?;
        let more = now
            .iter()
            .zip(&before)
            .all(|(now, before)| now.1 > before.1);
        ensure!(more && now.len() == 2, "{now:?}");
        Ok(())
    })
    .await?;
    traffic.goes_on().await?;
    traffic.end("a renewal by cert-manager").await?;
    is_registered(&stage, Rung::Fail).await?;
    stage.uninstall().await
}
