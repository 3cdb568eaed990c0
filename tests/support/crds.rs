//! The CRDs of this workspace in the shared control plane.

use crate::fixtures::repository;
use crate::lab::{self, Lab};
use anyhow::{Context, Result, ensure};
use tokio::sync::OnceCell;

/// What `kubectl` warned about when it installed the CRDs into the shared control plane, once per test run.
pub async fn install_once() -> Result<&'static str> {
    static WARNINGS: OnceCell<String> = OnceCell::const_new();
    let warnings = WARNINGS.get_or_try_init(|| async { install(lab::shared().await?).await });
    Ok(warnings.await?.as_str())
}

/// Installs `crds/` and waits until the API server serves every kind; returns what `kubectl` warned about.
pub async fn install(lab: &Lab) -> Result<String> {
    let folder = repository().join("crds");
    let folder = folder.to_str().context("the path of crds/ is not UTF-8")?;
    let kubectl = lab.kubectl();
    let applied = kubectl
        .run(&["apply", "--server-side", "--filename", folder])
        .await?;
    ensure!(
        applied.code == Some(0),
        "the CRDs were refused: {}",
        applied.stderr
    );
    kubectl
        .run(&[
            "wait",
            "--for=condition=Established",
            "--timeout=30s",
            "--filename",
            folder,
        ])
        .await?
        .ok()?;
    Ok(applied.stderr)
}
