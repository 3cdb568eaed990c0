//! The description of the API.

use std::time::Duration;

use agents::serve::{openapi, variable};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use support::lab::tools::SCHEMATHESIS;
use tokio::time::timeout;

use super::scene::{ALL, Plane};

/// Longest time for which the API is tried.
const TRYING: Duration = Duration::from_secs(240);

#[tokio::test]
async fn the_document_that_is_served_is_the_one_that_is_kept() -> Result<()> {
    support::kinds!();
    let plane = Plane::start(&[]).await?;
    let token = plane.person("someone", &[]).await?;
    let served: Value = plane
        .expect(("GET", "/openapi.json"), &token, None, 200)
        .await?;
    assert_eq!(served, openapi::document());
    Ok(())
}

/// Without the streams, which do not end, and what only a leader can tell, which there is none of.
const LEFT_OUT: &str = "stream$|/v1/queue|/v1/sidecar|/readyz";

#[tokio::test]
async fn the_running_server_keeps_to_the_document_whatever_it_is_sent() -> Result<()> {
    support::kinds!();
    let python = support::python!(SCHEMATHESIS);
    let plane = Plane::start(&[(variable::DELIVERIES, "true")]).await?;
    plane.scene.run("one", json!({})).await?;
    let boss = plane.person("boss", ALL).await?;
    let folder = tempfile::tempdir()?;
    let document = folder.path().join("openapi.json");
    std::fs::write(&document, openapi::document().to_string())?;
    let mut trial = python.module("schemathesis.cli");
    trial
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .arg("run")
        .arg(&document)
        .args(["--url", &format!("http://{}", plane.address)])
        .args(["--header", &format!("Authorization: Bearer {boss}")])
        .args(["--exclude-path-regex", LEFT_OUT])
        .args(["--checks", "all", "--phases", "examples,coverage,fuzzing"])
        // The document does not say all that a spec or a selector must be; refusals say the rest.
        .args(["--exclude-checks", "positive_data_acceptance"])
        .args([
            "--max-examples",
            "25",
            "--seed",
            "1",
            "--generation-deterministic",
        ])
        .args(["--request-timeout", "20", "--no-color"])
        .args(["--continue-on-failure", "--warnings", "off"]);
    let output = timeout(TRYING, trial.output()).await??;
    let said = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}{complaint}");
    Ok(())
}
