//! The API server takes what the chart renders, without storing it. This needs no pods, so it is shown also where a cluster with
//! real ones cannot run.

use agents::api::registration::rung::Rung;
use anyhow::{Result, ensure};
use serde_json::json;
use support::{Namespace, helm::Helm, lab, namespace};

use super::rungs::in_values;

/// How the API server begins to say that a pod is not of the level.
const VIOLATION: &str = "would violate PodSecurity";

/// All that is said to some objects, with warnings, without storing them.
async fn tried(here: &Namespace, objects: &str) -> Result<String> {
    let apply = ["apply", "--server-side", "--dry-run=server"];
    let apply = [&apply[..], &["--filename", "-"]].concat();
    let said = here.kubectl.run_with_input(&apply, objects).await?;
    let warnings = said.stderr.clone();
    Ok(said.ok()? + &warnings)
}

#[tokio::test]
async fn the_api_server_takes_the_release_of_every_rung() -> Result<()> {
    support::kinds!();
    let here = namespace("chart-dry-run").await?;
    let level = "pod-security.kubernetes.io/warn=restricted";
    let label = ["label", "namespace", &here.name, level];
    lab::shared().await?.kubectl().run(&label).await?.ok()?;
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
        let said = tried(&here, &rendered).await?;
        ensure!(!said.contains(VIOLATION), "{rung}: {said}");
        for expected in [
            "deployment.apps/agents-controllers serverside-applied",
            "deployment.apps/agents-webhook serverside-applied",
            "validatingwebhookconfiguration.admissionregistration.k8s.io/agents-webhook serverside-applied",
        ] {
            ensure!(said.contains(expected), "{rung}: {said}");
        }
    }
    // Else the silence above would show nothing.
    let loose = json!({
        "namespaceOverride": here.name,
        "metrics": {"serviceMonitor": {"enabled": false}},
        "webhook": {"enabled": false},
        "containerSecurityContext": {"allowPrivilegeEscalation": true},
    });
    let said = tried(&here, &helm.template(&loose, &[]).await?.ok()?).await?;
    ensure!(said.contains(VIOLATION), "{said}");
    Ok(())
}
