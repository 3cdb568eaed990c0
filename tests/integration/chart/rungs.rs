//! The chart registers the webhook as the programs themselves would, on every rung.

use agents::api::registration::rung::Rung;
use agents::api::registration::{Reach, Registration};
use anyhow::Result;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use serde_json::{Value, json};
use support::helm::{Helm, NAMESPACE};

/// The rung as the chart calls it: its name says what happens while the webhook does not answer.
pub(super) fn in_values(rung: Rung) -> &'static str {
    match rung {
        Rung::Deny => "deny-ignore",
        Rung::Audit | Rung::Warn | Rung::FailLabelled | Rung::Fail => rung.as_str(),
    }
}

fn expected(rung: Rung, name: &str, port: i32, ca: Option<&str>) -> Registration {
    Registration {
        name: name.to_owned(),
        rung,
        reach: Reach::Service {
            namespace: NAMESPACE.to_owned(),
            name: name.to_owned(),
            port,
        },
        ca: ca.map(|pem| pem.as_bytes().to_vec()),
    }
}

#[tokio::test]
async fn every_rung_renders_what_the_program_would_print() -> Result<()> {
    let helm = Helm::new().await?;
    for rung in Rung::ALL {
        let rendered = helm
            .render(&json!({"webhook": {"rung": in_values(rung)}}), &[])
            .await?;
        let wanted = expected(rung, "agents-webhook", 443, None);
        let mutating = rendered.get("MutatingWebhookConfiguration/agents-webhook")?;
        let validating = rendered.get("ValidatingWebhookConfiguration/agents-webhook")?;
        for configuration in [mutating, validating] {
            let annotations = &configuration["metadata"]["annotations"];
            assert_eq!(annotations["agents.proompteng.ai/rung"], rung.as_str());
            let from = &annotations["cert-manager.io/inject-ca-from"];
            assert_eq!(from, &format!("{NAMESPACE}/agents-webhook"));
        }
        let mutating: MutatingWebhookConfiguration = serde_json::from_value(mutating.clone())?;
        let validating: ValidatingWebhookConfiguration =
            serde_json::from_value(validating.clone())?;
        assert_eq!(mutating.webhooks, wanted.mutating().webhooks, "{rung}");
        assert_eq!(validating.webhooks, wanted.validating().webhooks, "{rung}");
        let told = rendered.variables("webhook")?;
        assert_eq!(told["AGENTS_WEBHOOK_RUNG"], rung.as_str());
    }
    Ok(())
}

#[tokio::test]
async fn a_certificate_of_ones_own_comes_with_its_authority() -> Result<()> {
    let pem = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";
    let values = json!({
        "fullnameOverride": "other",
        "webhook": {"service": {"port": 8443}, "tls": {"source": "secret", "secretName": "mine", "caBundle": pem}},
    });
    let rendered = Helm::new().await?.render(&values, &[]).await?;
    let wanted = expected(Rung::Deny, "other-webhook", 8443, Some(pem));
    let found = rendered.get("MutatingWebhookConfiguration/other-webhook")?;
    let annotations = found["metadata"]["annotations"].as_object();
    let keys: Vec<_> = annotations
        .into_iter()
        .flatten()
        .map(|(key, _)| key)
        .collect();
    assert_eq!(
        keys,
        ["admissions.enforcer/disabled", "agents.proompteng.ai/rung"]
    );
    let found: MutatingWebhookConfiguration = serde_json::from_value(found.clone())?;
    assert_eq!(found.webhooks, wanted.mutating().webhooks);
    assert_eq!(rendered.all("Certificate").count(), 0);
    let volume = rendered.get("Deployment/other-webhook")?;
    let secret = volume.pointer("/spec/template/spec/volumes/0/secret/secretName");
    assert_eq!(secret, Some(&Value::from("mine")));
    Ok(())
}

#[tokio::test]
async fn a_certificate_of_the_webhooks_own_needs_no_mount_and_no_authority_from_outside()
-> Result<()> {
    let values = json!({"webhook": {"tls": {"source": "rotator"}, "rotator": {"settle": "7s"}}});
    let rendered = Helm::new().await?.render(&values, &[]).await?;
    let wanted = expected(Rung::Deny, "agents-webhook", 443, None);
    let found = rendered.get("ValidatingWebhookConfiguration/agents-webhook")?;
    let annotations = &found["metadata"]["annotations"];
    assert!(annotations.get("cert-manager.io/inject-ca-from").is_none());
    let found: ValidatingWebhookConfiguration = serde_json::from_value(found.clone())?;
    assert_eq!(found.webhooks, wanted.validating().webhooks);
    assert_eq!(rendered.all("Certificate").count(), 0);
    let pod = rendered.get("Deployment/agents-webhook")?;
    let volume = pod.pointer("/spec/template/spec/volumes/0/emptyDir");
    assert_eq!(
        volume,
        Some(&json!({"medium": "Memory", "sizeLimit": "1Mi"}))
    );
    let told = rendered.variables("webhook")?;
    assert_eq!(
        told["AGENTS_WEBHOOK_ROTATOR_SECRET"],
        "agents-webhook-rotator"
    );
    assert_eq!(told["AGENTS_WEBHOOK_ROTATOR_SETTLE"], "7s");
    super::variables::starts::<agents_webhook::Config>(&rendered, "webhook")
}
