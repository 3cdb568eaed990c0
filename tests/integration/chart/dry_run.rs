//! The API server takes what the chart renders, without storing it. This needs no pods, so it is shown also where a cluster with
//! real ones cannot run.

use agents::api::registration::rung::Rung;
use anyhow::{Result, ensure};
use serde_json::json;
use support::{helm::Helm, namespace};

use super::rungs::in_values;

#[tokio::test]
async fn the_api_server_takes_the_release_of_every_rung() -> Result<()> {
    support::kinds!();
    let here = namespace("chart-dry-run").await?;
    let helm = Helm::new().await?;
    for rung in Rung::ALL {
        // The kinds of others are not there, and nothing is lost of ours without them.
        let values = json!({
            "namespaceOverride": here.name,
            "metrics": {"serviceMonitor": {"enabled": false}},
            "networkPolicy": {"enabled": true},
            "webhook": {"rung": in_values(rung), "tls": {"source": "rotator"}},
        });
        let rendered = helm.template(&values, &[]).await?.ok()?;
        let apply = [
            "apply",
            "--server-side",
            "--dry-run=server",
            "--filename",
            "-",
        ];
        let said = here.kubectl.run_with_input(&apply, &rendered).await?.ok()?;
        for expected in [
            "deployment.apps/agents-controllers serverside-applied",
            "deployment.apps/agents-webhook serverside-applied",
            "validatingwebhookconfiguration.admissionregistration.k8s.io/agents-webhook serverside-applied",
        ] {
            ensure!(said.contains(expected), "{rung}: {said}");
        }
    }
    Ok(())
}
