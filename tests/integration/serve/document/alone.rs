//! The running server is sent all sorts of requests by its description. Generating them takes a processor, so nothing else runs
//! beside.

use std::time::Duration;

use agents::api::kinds::{AgentRun, ApprovalPolicy};
use agents::serve::{openapi, variable};
use anyhow::{Result, ensure};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use support::lab::tools::SCHEMATHESIS;
use tokio::time::timeout;

use crate::serve::scene::{ALL, Plane};

/// It takes half a minute; this only ends what hangs.
const TRYING: Duration = Duration::from_secs(240);

/// Without the streams, which do not end, and what only a leader can tell, which there is none of.
const LEFT_OUT: &str = "stream$|/v1/queue|/v1/sidecar";

/// Ends well if a file is a document as the specification of OpenAPI 3.1 wants it.
const VALIDATE: &str =
    "import schemathesis, sys; schemathesis.openapi.from_path(sys.argv[1]).validate()";

#[tokio::test]
async fn the_document_is_as_the_specification_wants_it() -> Result<()> {
    let python = support::python!(SCHEMATHESIS);
    let folder = tempfile::tempdir()?;
    let mut spoiled = openapi::document();
    spoiled["paths"]["/v1/whoami"]["get"]["responses"] = json!([]);
    for (document, is_right) in [(openapi::document(), true), (spoiled, false)] {
        let file = folder.path().join("openapi.json");
        std::fs::write(&file, document.to_string())?;
        let mut validate = python.script(VALIDATE);
        validate
            .current_dir(folder.path())
            .env("HOME", folder.path());
        let output = timeout(TRYING, validate.arg(&file).output()).await??;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success() == is_right, "{complaint}");
        ensure!(
            is_right || complaint.contains("ValidationError"),
            "{complaint}"
        );
    }
    Ok(())
}

/// Makes requests find something: a run that waits, one that has ended, an approval and a signal.
async fn furnish(plane: &Plane, token: &str) -> Result<()> {
    let scene = &plane.scene;
    for name in ["waiting", "ended"] {
        scene.run(name, json!({})).await?;
    }
    let ended = json!({"status": {"phase": "Succeeded", "finishedAt": "2026-01-01T00:01:00Z"}});
    let runs = scene.here.api::<AgentRun>();
    runs.patch_status("ended", &PatchParams::default(), &Patch::Merge(ended))
        .await?;
    let approval: ApprovalPolicy = serde_json::from_value(json!({
        "apiVersion": "approvals.proompteng.ai/v1alpha1", "kind": "ApprovalPolicy",
        "metadata": {"name": "waiting"}, "spec": {"mode": "manual"},
    }))?;
    let approvals = scene.here.api::<ApprovalPolicy>();
    approvals.create(&PostParams::default(), &approval).await?;
    let signals = format!("/v1/signals?namespace={}", plane.namespace());
    let signal = json!({"name": "waiting"});
    plane
        .expect(("POST", &signals), token, Some(&signal), 201)
        .await?;
    Ok(())
}

/// What most requests name, so that few of them are about nothing. Nobody waits for a run that does not end.
fn settings(namespace: &str) -> String {
    format!(
        r#"
dictionaries.namespaces.values = ["{namespace}"]
dictionaries.names.values = ["waiting", "ended"]
dictionaries.ended.values = ["ended"]
parameters."path.namespace" = {{ dictionary = "namespaces", probability = 0.8 }}
parameters."query.namespace" = {{ dictionary = "namespaces", probability = 0.8 }}
parameters."path.name" = {{ dictionary = "names", probability = 0.8 }}

[[operations]]
include-operation-id = ["waitForRun", "runLogs"]
parameters."path.name" = {{ dictionary = "ended" }}
"#
    )
}

#[tokio::test]
async fn the_running_server_keeps_to_the_document_whatever_it_is_sent() -> Result<()> {
    support::kinds!();
    let python = support::python!(SCHEMATHESIS);
    let plane = Plane::start(&[(variable::DELIVERIES, "true")]).await?;
    let boss = plane.person("boss", ALL).await?;
    furnish(&plane, &boss).await?;
    let folder = tempfile::tempdir()?;
    let (document, set) = (
        folder.path().join("openapi.json"),
        folder.path().join("set.toml"),
    );
    std::fs::write(&document, openapi::document().to_string())?;
    std::fs::write(&set, settings(plane.namespace()))?;
    let mut trial = python.module("schemathesis.cli");
    trial
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .arg("--config-file")
        .arg(&set)
        .arg("run")
        .arg(&document)
        .args(["--url", &format!("http://{}", plane.address)])
        .args(["--header", &format!("Authorization: Bearer {boss}")])
        .args(["--exclude-path-regex", LEFT_OUT])
        .args(["--checks", "all", "--phases", "coverage,fuzzing"])
        // The document does not say all that a spec or a selector must be; refusals say the rest.
        .args(["--exclude-checks", "positive_data_acceptance"])
        .args(["--max-examples", "20", "--generation-deterministic"])
        // One at a time: Python 3.11 cannot read sources in several threads, which generating needs.
        .args(["--workers", "1", "--request-timeout", "10", "--no-shrink"])
        .args(["--continue-on-failure", "--no-color", "--warnings", "off"]);
    let output = timeout(TRYING, trial.output()).await??;
    let said = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}{complaint}");
    Ok(())
}
