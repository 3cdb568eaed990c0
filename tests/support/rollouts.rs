//! The real Argo Rollouts: its kinds, its controller beside a cluster, and the plugin of kubectl that people drive it with.

use anyhow::{Context, Result};
use std::{
    fs::{self, File},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;

use crate::{
    http,
    kubectl::{Kubectl, Said},
    lab::{
        Lab,
        report::Report,
        tools::build::{self, programs},
    },
    ports::free_addresses,
    wait,
};

/// Nothing that is waited for takes longer, also where everything else is busy.
const DEADLINE: Duration = Duration::from_secs(60);
/// The folder of what is pinned.
const RECIPE: &str = "argo-rollouts";
/// The module that the programs are made from; the definitions of the kinds are in it.
const MODULE: &str = "github.com/argoproj/argo-rollouts";
const CONTROLLER: &str = "rollouts-controller";
const PLUGIN: &str = "kubectl-argo-rollouts";

/// The folder with the definitions of its kinds.
pub async fn definitions() -> Result<PathBuf> {
    Ok(build::module(RECIPE, MODULE).await?.join("manifests/crds"))
}

/// Makes the kinds known to a cluster.
pub async fn install_kinds(lab: &Lab) -> Result<()> {
    let kinds = definitions().await?;
    let mut words = vec!["apply".to_owned(), "--server-side".to_owned()];
    for file in fs::read_dir(&kinds)? {
        let name = file?.file_name().into_string().ok().context("a name")?;
        if name.ends_with("-crd.yaml") {
            words.push(format!("--filename={}", kinds.join(name).display()));
        }
    }
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    lab.kubectl().run(&words).await?.ok()?;
    let established = [
        "wait",
        "--for=condition=Established",
        "crd/rollouts.argoproj.io",
        "crd/analysisruns.argoproj.io",
        "crd/analysistemplates.argoproj.io",
    ];
    lab.kubectl().run(&established).await?.ok().map(drop)
}

/// A controller that runs, until it is dropped.
pub struct Rollouts {
    plugin: PathBuf,
    environment: Vec<(&'static str, PathBuf)>,
    folder: TempDir,
    controller: Child,
}

impl Rollouts {
    /// One that works for one namespace of a cluster that has the kinds.
    pub async fn start(lab: &Lab, namespace: &str) -> Result<Self> {
        let built = programs(&[CONTROLLER, PLUGIN], Report::start()).await?;
        let folder = tempfile::tempdir()?;
        let log = File::create(folder.path().join("log"))?;
        let [health, metrics] = free_addresses()?;
        let controller = Command::new(built.path(CONTROLLER)?)
            .args(["--leader-elect=false", "--namespaced", "--namespace"])
            .arg(namespace)
            .arg(format!("--kubeconfig={}", lab.kubeconfig().display()))
            .arg(format!("--healthzPort={}", health.port()))
            .arg(format!("--metricsPort={}", metrics.port()))
            .current_dir(folder.path())
            .env_clear()
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let running = Self {
            plugin: built.path(PLUGIN)?.clone(),
            environment: lab.environment(),
            folder,
            controller,
        };
        let authority = health.to_string();
        let healthy = || http::get(&authority, "/healthz");
        let waited = wait::retry("a healthy Argo Rollouts", DEADLINE, healthy).await;
        waited.with_context(|| running.log())?;
        Ok(running)
    }

    /// What it has said so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// What the plugin says, as `kubectl argo rollouts` in a namespace.
    pub async fn say(&self, namespace: &str, words: &[&str]) -> Result<Said> {
        let plugin = Kubectl::new(&self.plugin, self.environment.clone());
        plugin.in_namespace(namespace).run(words).await
    }
}

impl Drop for Rollouts {
    fn drop(&mut self) {
        // At once: whatever it was about is gone with its namespace.
        drop(self.controller.kill());
        drop(self.controller.wait());
    }
}
