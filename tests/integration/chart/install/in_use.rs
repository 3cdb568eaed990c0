//! What a release goes through while people work: rungs, certificates and new versions.

mod ladder;
mod renewed;
mod rollouts;
mod traffic;

use agents::api::registration::rung::Rung;
use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::stage::Stage;

/// Both configurations are those of the rung, and every entry of them says whom to trust.
async fn is_registered(stage: &Stage, rung: Rung) -> Result<()> {
    for kind in [
        "mutatingwebhookconfiguration",
        "validatingwebhookconfiguration",
    ] {
        let found = stage.configuration(kind).await?;
        let annotations = &found["metadata"]["annotations"];
        ensure!(annotations["agents.proompteng.ai/rung"] == rung.as_str());
        let hooks = found["webhooks"].as_array().context("webhooks")?;
        let trusted = |hook: &Value| hook["clientConfig"]["caBundle"].is_string();
        ensure!(hooks.iter().all(trusted), "{kind} on {rung}: {found:#}");
    }
    Ok(())
}
