//! A real Kubernetes on this machine, built from pinned sources.
//!
//! [`shared`] is what nearly every test wants; the modules below are the machinery, which the `lab` program drives.

pub mod control_plane;
pub mod down;
mod hold;
pub mod node;
pub mod pki;
pub mod process;
pub mod relay;
pub mod report;
pub mod state;
pub mod tools;
pub mod up;

use crate::{cluster, image::Image, kubectl::Kubectl, left_out};
use anyhow::{Context, Result, bail};
use hold::Held;
pub use hold::detach;
use nix::sched::{CloneFlags, setns};
use process::Identity;
use relay::Relay;
use report::Report;
use state::{Home, LabName, Phase, Record, Tier};
use std::{
    env,
    fs::File,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tokio::{process::Command, sync::OnceCell, time::timeout};

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
        Kubectl::new(&self.kubectl, self.environment())
    }

    /// Whether this is an existing cluster, in which tests touch only their own namespaces.
    pub fn is_foreign(&self) -> bool {
        self.record.is_none()
    }

    /// Refuses where the cluster is not ours; to be asked before anything is changed outside a namespace.
    pub fn ensure_ours(&self) -> Result<()> {
        if self.is_foreign() {
            bail!("tests change nothing in an existing cluster but in their own namespaces");
        }
        Ok(())
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

    /// What the API server wrote down about writes; none for a cluster that is not ours.
    pub fn audit_log(&self) -> Option<PathBuf> {
        self.record.as_ref()?;
        Some(control_plane::audit_log(self.kubeconfig.parent()?))
    }

    /// Variables with which a command reaches the lab, and keeps what it remembers of it in the lab's own folder.
    pub fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        let mut environment = vec![
            ("KUBECONFIG", self.kubeconfig.clone()),
            ("NO_PROXY", "127.0.0.1,localhost".into()),
        ];
        if let (Some(_), Some(folder)) = (&self.record, self.kubeconfig.parent()) {
            environment.push(("KUBECACHEDIR", folder.join("kubectl")));
        }
        environment
    }

    /// Moves the calling thread into the lab's network, and returns the variables that are right there.
    pub fn enter_network(&self) -> Result<Vec<(&'static str, PathBuf)>> {
        let mut environment = self.environment();
        if let Some(first) = self.record.as_ref().and_then(|record| record.node.as_ref()) {
            let network = File::open(node::network_of(first))?;
            setns(network, CloneFlags::CLONE_NEWNET)
                .context("could not enter the lab's network")?;
            environment.push(("KUBECONFIG", self.kubeconfig_inside()));
        }
        Ok(environment)
    }

    /// The administrator's kubeconfig for a program in the lab's network.
    pub fn kubeconfig_inside(&self) -> PathBuf {
        node::admin_inside(&self.kubeconfig)
    }

    /// Brings an image into the node, for pods to use with `imagePullPolicy: Never` or `IfNotPresent`.
    pub async fn import(&self, image: &Image) -> Result<()> {
        let (record, first) = self.node()?;
        let folder = Home::from_env()?.folder(&record.name);
        let archive = tempfile::Builder::new()
            .prefix("image-")
            .tempfile_in(folder)?;
        image.write(archive.path())?;
        let programs = tools::build::programs(&["ctr"], Report::start()).await?;
        let import = Command::new(programs.path("ctr")?)
            .args(node::import_words(
                &node::containerd_socket(first),
                archive.path(),
            ))
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = timeout(Duration::from_secs(60), import)
            .await
            .context("ctr takes too long")??;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("{} could not be imported: {}", image.name(), said.trim());
        }
        Ok(())
    }

    /// Makes an address of the lab's network, such as a pod's or a service's, reachable from this machine.
    pub fn reach(&self, inside: SocketAddr) -> Result<Relay> {
        Relay::start(&node::network_of(self.node()?.1), inside)
    }

    fn node(&self) -> Result<(&Record, &Identity)> {
        let record = self.record.as_ref();
        match record.and_then(|record| Some((record, record.node.as_ref()?))) {
            Some(found) => Ok(found),
            None => bail!("this lab has no node"),
        }
    }

    /// Starts a lab that ends when the value is dropped or this process is gone, however it goes.
    pub async fn start(name: &LabName, tier: Tier) -> Result<Self> {
        Self::start_with(name, tier, &[]).await
    }

    /// The same, with further flags of `lab up`.
    pub async fn start_with(name: &LabName, tier: Tier, flags: &[&str]) -> Result<Self> {
        let held = Held::start(name, tier, flags).await?;
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

/// The one lab with a node of the whole test run, or nothing where no node can run: the test is then noted as left
/// out and shall return. Call it through [`crate::node_lab!`], which knows the test's name.
pub async fn node(test: &str) -> Result<Option<&'static Lab>> {
    static NODE: OnceCell<Result<Lab, String>> = OnceCell::const_new();
    match NODE.get_or_try_init(start_node).await? {
        Ok(lab) => Ok(Some(lab)),
        Err(reason) if env::var("LAB_REQUIRE_TIER2").is_ok_and(|value| value == "1") => {
            bail!("LAB_REQUIRE_TIER2=1, but no node can run here: {reason}")
        }
        Err(reason) => {
            left_out::note(&left_out::test_name(test), reason)?;
            Ok(None)
        }
    }
}

/// The shared control plane if it is ours; in an existing cluster the test is noted as left out and shall return. Call
/// it through [`crate::own_lab!`], which knows the test's name.
pub async fn own(test: &str) -> Result<Option<&'static Lab>> {
    const REASON: &str =
        "it changes more than its own namespace, which nothing does in an existing cluster";
    let lab = shared().await?;
    if lab.is_foreign() {
        left_out::note(&left_out::test_name(test), REASON)?;
        return Ok(None);
    }
    Ok(Some(lab))
}

/// Whether a test may start labs of its own; where an existing cluster is to be used it may not, is noted as left out and
/// shall return. Call it through [`crate::starts_labs!`], which knows the test's name.
pub fn may_start(test: &str) -> Result<bool> {
    const REASON: &str =
        "it starts labs of its own, which nothing does where an existing cluster is to be used";
    if use_existing_cluster() {
        left_out::note(&left_out::test_name(test), REASON)?;
    }
    Ok(!use_existing_cluster())
}

/// A lab with a node, or the reason why there is none.
async fn start_node() -> Result<Result<Lab, String>> {
    if use_existing_cluster() {
        return Ok(Err(
            "our images cannot be brought into an existing cluster".to_owned()
        ));
    }
    let lab = match env::var("LAB_REUSE") {
        Ok(name) => Lab::running(&name.parse()?).await?,
        Err(_) => Lab::start(&own_name("tests-node")?, Tier::Node).await?,
    };
    Ok(match lab.record() {
        Some(record) if record.node.is_none() => Err(record
            .note
            .clone()
            .unwrap_or_else(|| "the lab was started without".to_owned())),
        Some(_) | None => Ok(lab),
    })
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
        kubectl: tools::build::kubectl_of_person().await?,
        record: None,
        _held: None,
    })
}

async fn kubectl_program() -> Result<PathBuf> {
    let programs = tools::build::programs(&["kubectl"], Report::start()).await?;
    programs.path("kubectl").cloned()
}

/// A name that no other process uses.
pub fn own_name(purpose: &str) -> Result<LabName> {
    format!("{purpose}-{}", std::process::id()).parse()
}

/// The lab with a node for the calling test; the test returns, noted as left out, where there is none.
#[macro_export]
macro_rules! node_lab {
    () => {{
        fn here() {}
        match $crate::lab::node(::std::any::type_name_of_val(&here)).await? {
            Some(lab) => lab,
            None => return Ok(()),
        }
    }};
}

/// The shared control plane for the calling test, which changes more in it than its own namespace; the test returns,
/// noted as left out, in an existing cluster.
#[macro_export]
macro_rules! own_lab {
    () => {{
        fn here() {}
        match $crate::lab::own(::std::any::type_name_of_val(&here)).await? {
            Some(lab) => lab,
            None => return Ok(()),
        }
    }};
}

/// The calling test starts labs of its own; it returns, noted as left out, where an existing cluster is to be used.
#[macro_export]
macro_rules! starts_labs {
    () => {{
        fn here() {}
        if !$crate::lab::may_start(::std::any::type_name_of_val(&here))? {
            return Ok(());
        }
    }};
}
