//! Packages of the system that tests need: where they are missing and the tests run as root, they are installed, which is
//! said.

use anyhow::{Context, Result, bail, ensure};
use nix::unistd::Uid;
use std::{process::Stdio, time::Duration};
use tokio::{process::Command, time::timeout};

/// No package takes longer.
const DEADLINE: Duration = Duration::from_secs(600);

/// Installs packages, or says why that cannot be.
pub async fn install(packages: &[&str]) -> Result<()> {
    let named = packages.join(" ");
    ensure!(
        Uid::effective().is_root(),
        "{named}: not installed, and only root can do that"
    );
    eprintln!("installing for the tests: {named}");
    get(packages).await
}

/// Installs packages, saying nothing.
pub(crate) async fn get(packages: &[&str]) -> Result<()> {
    let words = [
        "install",
        "--yes",
        "--quiet",
        "--no-install-recommends",
        "--option=Dpkg::Options::=--force-confold",
    ];
    let install = [&words[..], packages].concat();
    // Without package lists, as on a fresh machine, the first attempt fails.
    if apt_get(&install).await.is_err() {
        apt_get(&["update", "--quiet"]).await?;
        apt_get(&install).await?;
    }
    Ok(())
}

async fn apt_get(words: &[&str]) -> Result<()> {
    let output = Command::new("apt-get")
        .args(words)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(DEADLINE, output)
        .await
        .context("apt-get takes too long")??;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.trim().lines().last().unwrap_or_default().to_owned();
        bail!("`apt-get {}` failed: {last}", words.join(" "));
    }
    Ok(())
}
