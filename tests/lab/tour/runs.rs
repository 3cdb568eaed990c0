//! The runs among the examples, carried out by pods.

use super::EXAMPLES;
use agents::api::kinds::AgentRun;
use anyhow::Result;
use kube::Api;
use std::time::Duration;
use support::{lab::Lab, wait};

/// One that is one Job, and one that has steps.
const RUNS: [&str; 2] = ["add-health-endpoint", "review-dependencies"];

const DEADLINE: Duration = Duration::from_secs(90);

/// Waits until the runs have ended well and returns what kubectl prints about them.
pub(super) async fn finish(lab: &Lab) -> Result<String> {
    let runs: Api<AgentRun> = Api::namespaced(lab.client().await?, EXAMPLES);
    for run in RUNS {
        wait::until(&runs, run, DEADLINE, has_succeeded).await?;
    }
    let kubectl = lab.kubectl().in_namespace(EXAMPLES);
    kubectl.run(&["get", "agentruns"]).await?.ok()
}

fn has_succeeded(run: &AgentRun) -> bool {
    let status = run.status.as_ref();
    status.and_then(|status| status.phase.as_deref()) == Some("Succeeded")
}
