//! A real cert-manager beside a lab: its controllers and its injector of CA bundles in one process, ended with its handle.

use std::{fs::File, path::PathBuf, process::Stdio};

use anyhow::{Context, Result};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::lab::{
    Lab,
    report::Report,
    tools::build::{module, programs},
};

/// The module that the program is made from; its definitions are in it.
const MODULE: &str = "github.com/cert-manager/cert-manager";

/// The folder with the definitions of its kinds.
pub async fn definitions() -> Result<PathBuf> {
    Ok(module("cert-manager", MODULE).await?.join("deploy/crds"))
}

/// A cert-manager that runs, until it is dropped.
pub struct CertManager {
    _process: Child,
    log: PathBuf,
    _folder: TempDir,
}

impl CertManager {
    /// Brings its definitions into the cluster and starts it.
    pub async fn start(lab: &Lab) -> Result<Self> {
        let programs = programs(&["cert-manager"], Report::start()).await?;
        let definitions = definitions().await?;
        let definitions = definitions.to_str().context("a path that is UTF-8")?;
        let kubectl = lab.kubectl();
        let apply = ["apply", "--server-side", "--filename", definitions];
        kubectl.run(&apply).await?.ok()?;
        let wait = [
            "wait",
            "--for=condition=Established",
            "--timeout=60s",
            "--filename",
            definitions,
        ];
        kubectl.run(&wait).await?.ok()?;
        let folder = TempDir::new()?;
        let log = folder.path().join("log");
        let process = Command::new(programs.path("cert-manager")?)
            .arg(lab.kubeconfig())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .kill_on_drop(true)
            .spawn()
            .context("could not run cert-manager")?;
        Ok(Self {
            _process: process,
            log,
            _folder: folder,
        })
    }

    /// What it has logged so far.
    pub fn logged(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}
