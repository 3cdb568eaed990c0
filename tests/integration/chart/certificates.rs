//! The manifests in `certs/` are what the chart renders, so that what is explained there is what runs.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use support::{fixtures::repository, helm::Helm};

/// What an object is, without the labels that tell of the release.
fn plain(object: &Value) -> Value {
    json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"],
        "name": object["metadata"]["name"], "namespace": object["metadata"]["namespace"],
        "spec": object["spec"],
    })
}

#[tokio::test]
async fn the_manifests_of_certs_are_those_of_the_chart() -> Result<()> {
    let mut written = Vec::new();
    for file in ["issuer.yaml", "certificate.yaml"] {
        let text = fs::read_to_string(repository().join("certs").join(file))
            .with_context(|| format!("certs/{file}"))?;
        let objects: Vec<Value> = serde_saphyr::from_multiple(&text)?;
        written.extend(objects.iter().map(plain));
    }
    let rendered = Helm::new().await?.render(&json!({}), &[]).await?;
    let kinds = rendered.all("Issuer").chain(rendered.all("Certificate"));
    let mut charts: Vec<_> = kinds.map(plain).collect();
    for list in [&mut written, &mut charts] {
        list.sort_by_key(Value::to_string);
    }
    assert_eq!(written, charts);
    Ok(())
}

#[tokio::test]
async fn another_issuer_takes_the_place_of_the_charts_own() -> Result<()> {
    let values = json!({"webhook": {"certManager": {"issuerRef": {"name": "company", "kind": "ClusterIssuer"}}}});
    let rendered = Helm::new().await?.render(&values, &[]).await?;
    assert_eq!(rendered.all("Issuer").count(), 0);
    let certificate = rendered.get("Certificate/agents-webhook")?;
    assert_eq!(
        certificate["spec"]["issuerRef"],
        json!({"name": "company", "kind": "ClusterIssuer", "group": "cert-manager.io"})
    );
    assert_eq!(rendered.all("Certificate").count(), 1);
    Ok(())
}
