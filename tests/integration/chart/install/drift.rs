//! What the webhook writes into its own objects stays when the same release is applied again and again, as GitOps does; and where it
//! may not write, it says so.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::{ResourceExt, api::ListParams};
use serde_json::{Value, json};
use support::wait;

use super::{
    is_refused,
    stage::{DEADLINE, Stage},
};

/// Values for a webhook that makes its certificate itself, and may bring it into its configurations or may not.
fn rotated(writes: bool) -> Value {
    json!({
        "controlPlane": {"enabled": false},
        "webhook": {
            "tls": {"source": "rotator", "secretName": "", "caBundle": ""},
            "rbac": {"writeConfigurations": writes},
        },
    })
}

/// The versions of what both write to: the two configurations, and the Secret with the certificate.
async fn versions(stage: &Stage) -> Result<Vec<String>> {
    let mut versions = Vec::new();
    for kind in [
        "mutatingwebhookconfiguration",
        "validatingwebhookconfiguration",
    ] {
        let found = stage.configuration(kind).await?;
        let version = found["metadata"]["resourceVersion"].as_str();
        versions.push(version.context("a version")?.to_owned());
    }
    let secret = stage
        .here
        .api::<Secret>()
        .get("agents-webhook-rotator")
        .await?;
    versions.push(secret.resource_version().context("a version")?);
    Ok(versions)
}

#[tokio::test]
async fn a_release_that_is_applied_again_as_gitops_does_moves_nothing_that_the_rotator_wrote()
-> Result<()> {
    support::node_lab!();
    let stage = Stage::enter().await?;
    let values = rotated(true);
    stage.put("install", &values).await?;
    is_refused(&stage, true).await?;
    let release = stage.rendered(&values).await?.text;
    let apply = ["apply", "--server-side", "--force-conflicts"];
    let who = ["--field-manager=argocd-controller", "--filename", "-"];
    let apply = [&apply[..], &who].concat();
    let mut seen = Vec::new();
    // The first time, a field gets one more owner.
    for _ in 0..3 {
        let kubectl = &stage.here.kubectl;
        kubectl.run_with_input(&apply, &release).await?.ok()?;
        is_refused(&stage, true).await?;
        seen.push(versions(&stage).await?);
    }
    assert_eq!(seen[1], seen[0]);
    assert_eq!(seen[2], seen[0]);
    stage.uninstall().await
}

/// What webhooks of this release have said for a reason.
async fn said(stage: &Stage, reason: &str) -> Result<Vec<Value>> {
    let webhook = ListParams::default().labels("app.kubernetes.io/component=webhook");
    let pods = stage.here.api::<Pod>().list(&webhook).await?;
    let pods: Vec<_> = pods.iter().map(ResourceExt::name_any).collect();
    let reason = format!("--field-selector=reason={reason}");
    let get = ["get", "events", "--all-namespaces", &reason];
    let get = [&get[..], &["--output=json"]].concat();
    let found: Value = serde_json::from_str(&stage.lab.kubectl().run(&get).await?.ok()?)?;
    let all = found["items"].as_array().context("a list")?.iter();
    let own = |event: &&Value| {
        let who = event["reportingInstance"].as_str();
        who.is_some_and(|who| pods.iter().any(|pod| pod == who))
    };
    Ok(all.filter(own).cloned().collect())
}

/// As docs/install.md says: whoever takes the right away brings `ca.crt` of the Secret there.
#[tokio::test]
async fn a_rotator_that_may_not_write_says_so_and_a_person_can_do_it() -> Result<()> {
    support::node_lab!();
    let mut stage = Stage::enter().await?;
    // It shows no certificate that nobody trusts yet, so it is ready only once a person has been there.
    stage.wait = "--wait=hookOnly";
    stage.put("install", &rotated(false)).await?;
    wait::retry("word of the rotator", DEADLINE, || async {
        let said = said(&stage, "CertificateRotationFailed").await?;
        ensure!(!said.is_empty(), "nothing is said");
        Ok(())
    })
    .await?;
    let get = ["get", "secret", "agents-webhook-rotator"];
    let get = [&get[..], &[r"--output=jsonpath={.data.ca\.crt}"]].concat();
    let authority = stage.here.kubectl.run(&get).await?.ok()?;
    for kind in [
        "mutatingwebhookconfiguration",
        "validatingwebhookconfiguration",
    ] {
        let found = stage.configuration(kind).await?;
        let hooks = found["webhooks"].as_array().context("webhooks")?;
        let path = |index| format!("/webhooks/{index}/clientConfig/caBundle");
        let write = |index| json!({"op": "add", "path": path(index), "value": authority});
        let patch: Vec<_> = (0..hooks.len()).map(write).collect();
        let patch = json!(patch).to_string();
        let words = ["patch", kind, "agents-webhook", "--type=json", "--patch"];
        let words = [&words[..], &[&patch]].concat();
        stage.lab.kubectl().run(&words).await?.ok()?;
    }
    is_refused(&stage, true).await?;
    stage.uninstall().await
}
