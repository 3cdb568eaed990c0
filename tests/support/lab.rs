//! A real Kubernetes on this machine, built from pinned sources.
//!
//! [`shared`] is what nearly every test wants; the modules below are the machinery, which the `lab` program drives.

pub mod build;
pub mod control_plane;
pub mod down;
mod hold;
pub mod pki;
pub mod process;
mod readiness;
pub mod report;
pub mod stage;
pub mod state;
pub mod supervisor;
pub mod tools;
pub mod up;

use crate::{cluster, kubectl::Kubectl};
use anyhow::{Context, Result, bail};
use hold::Held;
pub use hold::detach;
use state::{Home, LabName, Phase, Record, Tier};
use std::{
    env,
    path::{Path, PathBuf},
};
use tokio::sync::OnceCell;

/// A cluster to test against.
pub struct Lab {
    kubeconfig: PathBuf,
    kubectl: PathBuf,
    /// None for a cluster that is not ours.
    record: Option<Record>,
    /// Keeps a lab alive that this process started.
    _held: Option<Held>,
}

impl Lab {
    /// A new client; make one per test, since its connections live on the calling test's runtime.
    pub async fn client(&self) -> Result<kube::Client> {
        cluster::client(&self.kubeconfig).await
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The `kubectl` program.
    pub fn kubectl_program(&self) -> &Path {
        &self.kubectl
    }

    /// `kubectl` as the administrator.
    pub fn kubectl(&self) -> Kubectl {
        Kubectl::new(&self.kubectl, &self.kubeconfig)
    }

    /// Whether this is an existing cluster, in which tests touch only their own namespaces.
    pub fn is_foreign(&self) -> bool {
        self.record.is_none()
    }

    /// What is written down about the lab; nothing for an existing cluster.
    pub fn record(&self) -> Option<&Record> {
        self.record.as_ref()
    }

    async fn of_record(record: Record, held: Option<Held>) -> Result<Self> {
        let folder = Home::from_env()?.folder(&record.name);
        Ok(Self {
            kubeconfig: control_plane::admin_kubeconfig(&folder),
            kubectl: kubectl_program().await?,
            record: Some(record),
            _held: held,
        })
    }

    /// A lab that someone else started and keeps running.
    pub async fn running(name: &LabName) -> Result<Self> {
        match Home::from_env()?.record(name)? {
            Some(record) if record.phase == Phase::Ready && record.owner.runs()? => {
                Self::of_record(record, None).await
            }
            Some(record) => bail!(
                "lab `{name}` is not usable: {:?}; see `lab status`",
                record.phase
            ),
            None => bail!("there is no lab `{name}`; start it with `lab up --name {name}`"),
        }
    }

    /// Starts a lab that ends when the value is dropped or this process is gone, however it goes.
    pub async fn start(name: &LabName, tier: Tier) -> Result<Self> {
        let held = Held::start(name, tier).await?;
        let record = held.record().clone();
        Self::of_record(record, Some(held)).await
    }
}

/// The one control plane of the whole test run: an existing cluster (`LAB_USE_EXISTING_CLUSTER=1`), a lab that
/// runs already (`LAB_REUSE=name`), or one that is started now and ends with this process.
pub async fn shared() -> Result<&'static Lab> {
    static SHARED: OnceCell<Lab> = OnceCell::const_new();
    SHARED.get_or_try_init(find_or_start).await
}

async fn find_or_start() -> Result<Lab> {
    if use_existing_cluster() {
        return existing().await;
    }
    if let Ok(name) = env::var("LAB_REUSE") {
        return Lab::running(&name.parse()?).await;
    }
    Lab::start(&own_name("tests")?, Tier::ControlPlane).await
}

/// Whether the person wants an existing cluster to be used.
pub fn use_existing_cluster() -> bool {
    env::var("LAB_USE_EXISTING_CLUSTER").is_ok_and(|value| value == "1")
}

async fn existing() -> Result<Lab> {
    let kubeconfig = env::var_os("KUBECONFIG")
        .context("LAB_USE_EXISTING_CLUSTER=1 needs KUBECONFIG to say which cluster")?;
    Ok(Lab {
        kubeconfig: kubeconfig.into(),
        kubectl: kubectl_program().await?,
        record: None,
        _held: None,
    })
}

async fn kubectl_program() -> Result<PathBuf> {
    let programs = build::programs(&["kubectl"], report::Report::start()).await?;
    programs.path("kubectl").cloned()
}

/// A name that no other process uses.
pub fn own_name(purpose: &str) -> Result<LabName> {
    format!("{purpose}-{}", std::process::id()).parse()
}
