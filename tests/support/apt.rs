//! Packages of the system that tests need: where they are missing and the tests run as root, they are installed, which is
//! said.

use anyhow::{Context, Result, bail, ensure};
use nix::unistd::Uid;
use std::{process::Stdio, time::Duration};
use tokio::{process::Command, time::timeout};

/// No package takes longer.
const DEADLINE: Duration = Duration::from_secs(300);

/// Installs packages, or says why that cannot be.
pub async fn install(packages: &[&str]) -> Result<()> {
    let named = packages.join(" ");
    ensure!(
        Uid::effective().is_root(),
        "{named}: not installed, and only root can do that"
    );
    eprintln!("installing for the tests: {named}");
    let mut wanted = vec![
        "install",
        "--yes",
        "--no-install-recommends",
        "--option=Dpkg::Options::=--force-confold",
    ];
    wanted.extend(packages);
    if apt(&wanted).await.is_ok() {
        return Ok(());
    }
    apt(&["update"]).await?;
    apt(&wanted)
        .await
        .with_context(|| format!("apt-get install {named}"))
}

async fn apt(words: &[&str]) -> Result<()> {
    let mut apt = Command::new("apt-get");
    apt.args(words)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .kill_on_drop(true)
        .stdin(Stdio::null());
    let output = timeout(DEADLINE, apt.output()).await??;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{}: {}", output.status, said.trim());
    }
    Ok(())
}
