//! Tier 2: a node that runs real pods, in network, mount and process namespaces of its own.
//!
//! Killing the first process of the namespaces ends every process, mount, interface and packet rule in them;
//! control groups are outside and are removed by name.

mod cgroup;
mod files;
pub mod inside;
mod machine;
mod plan;

use super::{
    control_plane::{self, Layout},
    pki::Authority,
    process::{Identity, Part, Readiness, Step},
    relay::Relay,
    report::Report,
    state::{PartRecord, Tier},
};
use crate::image::Image;
use anyhow::{Context, Result, bail};
use cgroup::Hierarchies;
use nix::unistd::Pid;
use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// Ports inside the namespaces, where nobody else is.
pub(super) const ETCD_PORT: u16 = 2379;
pub(super) const API_PORT: u16 = 6443;
/// The kernel takes socket paths of 107 bytes; the kubelet's longest adds 40 to the folder.
const LONGEST_FOLDER: usize = 64;
/// How long the namespaces may take to appear.
const DEADLINE: Duration = Duration::from_secs(20);

/// Why this machine cannot run a node, if so. Installs missing packages where that is possible.
pub(super) async fn obstacle(report: Report) -> Result<Option<String>> {
    machine::obstacle(report).await
}

/// The highest tier that this machine can run; what stands against a node is said in a line. To be asked before anything
/// is built: runc compiles only with the packages that this installs.
pub async fn usable_tier(report: Report) -> Result<Tier> {
    let Some(reason) = obstacle(report).await? else {
        return Ok(Tier::Node);
    };
    report.line(format!(
        "tier 2 is not possible here: {reason}; tier 1 is built"
    ));
    Ok(Tier::ControlPlane)
}

/// Makes control groups for a node.
pub(super) fn make_cgroup(name: &str) -> Result<()> {
    Hierarchies::of_this_machine()?.make(name)
}

/// Removes a node's control groups; those that are not there are no error.
pub(super) fn remove_cgroup(name: &str) -> Result<()> {
    Hierarchies::of_this_machine()?.remove(name)
}

/// Writes all that the node reads, and says how to start it and who signs for it.
pub(super) fn prepare(layout: &Layout<'_>, cgroup: &str, dns: bool) -> Result<(Part, Authority)> {
    let folder = layout.folder;
    let length = folder.as_os_str().len();
    if length > LONGEST_FOLDER {
        bail!(
            "{} is too long for the sockets in it; set LAB_STATE to a shorter path",
            folder.display()
        );
    }
    let pause = folder.join("pause.tar");
    Image::of_program(files::PAUSE_IMAGE, layout.programs.path("pause")?)?.write(&pause)?;
    let authority = control_plane::write_files(layout, Some(files::NODE_ADDRESS))?;
    let node = plan::Node {
        layout,
        cgroup,
        pause: &pause,
        dns,
    };
    node.write_credentials(&authority)?;
    node.write_files()?;
    node.plan()?.write(folder)?;
    let folder = folder.display().to_string();
    let words = ["stage", "namespaces", "--folder", &folder];
    Ok((Part::new("node", "/proc/self/exe").words(words), authority))
}

/// What makes a started node usable, seen from outside.
pub(super) fn steps(layout: &Layout<'_>) -> Vec<Step> {
    vec![
        Step::Await(Readiness::ApiServer(layout.admin())),
        Step::Await(Readiness::Node(layout.admin())),
        Step::Await(Readiness::Usable(layout.admin())),
    ]
}

/// Waits until the namespaces are there and says which their first process is.
pub(super) async fn first_process(folder: &Path) -> Result<Identity> {
    let path = inside::first_process(folder);
    let end = Instant::now() + DEADLINE;
    while !path.exists() {
        if Instant::now() >= end {
            bail!("the node's namespaces are not there after {DEADLINE:?}; see the log of `node`");
        }
        sleep(Duration::from_millis(5)).await;
    }
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

/// The network namespace of a node.
pub fn network_of(first: &Identity) -> PathBuf {
    PathBuf::from(format!("/proc/{}/ns/net", first.pid))
}

/// The administrator's kubeconfig that is right inside the node's network, given the one that is right outside.
pub(super) fn admin_inside(outside: &Path) -> PathBuf {
    outside.with_file_name("admin.kubeconfig")
}

/// The parts inside a running node, under the numbers they have outside.
pub fn parts(folder: &Path, first: &Identity) -> Result<Vec<PartRecord>> {
    let known: Vec<PartRecord> = match fs::read(inside::parts(folder)) {
        Ok(bytes) => serde_json::from_slice(&bytes)?,
        Err(_) => return Ok(Vec::new()), // not yet written
    };
    let same = fs::read_link(format!("/proc/{}/ns/pid", first.pid))?;
    let mut parts = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        // Processes come and go while we look.
        let Ok(status) = fs::read_to_string(path.join("status")) else {
            continue;
        };
        if fs::read_link(path.join("ns/pid")).is_ok_and(|namespace| namespace == same) {
            let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
            let mut numbers = numbers.unwrap_or_default().split_ascii_whitespace();
            let outside = numbers.next().and_then(|number| number.parse().ok());
            let inside = numbers.last().and_then(|number| number.parse::<i32>().ok());
            let part = known.iter().find(|part| Some(part.process.pid) == inside);
            if let (Some(pid), Some(part)) = (outside, part) {
                let process = Identity::of(Pid::from_raw(pid))?;
                parts.push(PartRecord {
                    process,
                    name: part.name.clone(),
                });
            }
        }
    }
    Ok(parts)
}

/// Brings the API server to this machine's loopback.
pub(super) fn relay_api_server(first: &Identity) -> Result<Relay> {
    let inside = SocketAddr::from(([127, 0, 0, 1], API_PORT));
    Relay::start(&network_of(first), inside).context("could not reach into the node")
}

/// containerd's socket, reached from outside through the first process's view of the file system.
pub(super) fn containerd_socket(first: &Identity) -> PathBuf {
    PathBuf::from(format!(
        "/proc/{}/root{}",
        first.pid,
        files::CONTAINERD_SOCKET
    ))
}

/// The words with which `ctr` imports an archive.
pub(super) fn import_words(socket: &Path, archive: &Path) -> Vec<String> {
    let [socket, archive] = [socket, archive].map(|path| path.display().to_string());
    [
        "--address",
        &socket,
        "--namespace",
        "k8s.io",
        "images",
        "import",
        "--local",
        &archive,
    ]
    .map(str::to_owned)
    .into()
}
