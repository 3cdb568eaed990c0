//! Inside a node's namespaces: what its first process does before and while the parts run.
//!
//! Runs in the `lab` program's stages `namespaces` and `node`, never in the process a person started.

use super::plan::Plan;
use crate::lab::{
    process::{Identity, supervisor::Supervisor},
    report::Report,
};
use anyhow::{Context, Result, bail};
use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, unshare},
    sys::{prctl::set_pdeathsig, signal::Signal},
    unistd::Pid,
};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Folders in which the programs of a node have fixed places; each is replaced by an empty one.
const HIDDEN: &[&str] = &["/run", "/tmp", "/var/lib", "/var/log"];
/// Settings of the kernel that the kubelet insists on; it sees and may write these copies, not the machine's.
const KERNEL_SETTINGS: &[(&str, &str)] = &[
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
];

fn namespaces_of_a_node() -> CloneFlags {
    CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWPID
}

/// Finds out whether namespaces can be made.
pub fn trial() -> Result<()> {
    Ok(unshare(namespaces_of_a_node())?)
}

/// Makes the namespaces, starts their first process and waits for its end.
pub fn namespaces(folder: &Path) -> Result<()> {
    unshare(namespaces_of_a_node()).context("could not make namespaces")?;
    let mut child = Command::new("/proc/self/exe")
        .args(["stage", "node", "--folder"])
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (Some(mut stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) else {
        bail!("the node's first process has no pipes");
    };
    let identity = Identity::of(Pid::from_raw(i32::try_from(child.id())?))?;
    let temporary = folder.join(".first-process.json");
    fs::write(&temporary, serde_json::to_vec(&identity)?)?;
    fs::rename(&temporary, first_process(folder))?;
    // See `wait_for_parent`.
    stdout.read_exact(&mut [0])?;
    stdin.write_all(b"!")?;
    let status = child.wait()?;
    bail!("the node's first process ended with {status}")
}

/// The file that says which process is the first one.
pub(super) fn first_process(folder: &Path) -> PathBuf {
    folder.join("first-process.json")
}

/// The file that lists the parts with their numbers inside.
pub(super) fn parts(folder: &Path) -> PathBuf {
    folder.join("parts.json")
}

/// Is the first process of the namespaces; returns only when something went wrong.
pub fn node(folder: &Path) -> Result<()> {
    wait_for_parent()?;
    let report = Report::start();
    let plan = Plan::read(folder)?;
    mounts(folder, &plan)?;
    network(&plan)?;
    report.line("mounts and network are made");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut supervisor = Supervisor::new(folder)?;
        supervisor.execute(&plan.steps, report).await?;
        report.line("all parts are started");
        fs::write(parts(folder), serde_json::to_vec(&supervisor.parts())?)?;
        let exit = supervisor.exited().await?;
        Err(supervisor.complaint(&exit))
    })
}

/// Has the kernel kill this process, and with it the whole node, when its parent is gone.
///
/// The parent is in another namespace, so its number cannot be compared; instead it must answer after the line
/// that binds the two lives.
fn wait_for_parent() -> Result<()> {
    set_pdeathsig(Signal::SIGKILL)?;
    io::stdout().write_all(b"!")?;
    io::stdout().flush()?;
    io::stdin().read_exact(&mut [0]).context("the lab has gone")
}

fn mounts(folder: &Path, plan: &Plan) -> Result<()> {
    let none = None::<&str>;
    // From here on nothing that is mounted shows outside.
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .context("could not keep mounts private")?;
    mount(Some("proc"), "/proc", Some("proc"), MsFlags::empty(), none)
        .context("could not mount /proc")?;
    for hidden in HIDDEN {
        hide(Path::new(hidden), &plan.visible)?;
    }
    let settings = folder.join("kernel-settings");
    fs::create_dir_all(&settings)?;
    for (setting, value) in KERNEL_SETTINGS {
        let copy = settings.join(setting.replace('/', "."));
        fs::write(&copy, format!("{value}\n"))?;
        let place = Path::new("/proc/sys").join(setting);
        bind(&copy, &place)?;
    }
    // Mounts that the kubelet makes must show in containers that were started before.
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SHARED, none)
        .context("could not share mounts")?;
    Ok(())
}

/// Puts an empty file system over a folder; of what was in it only `visible` stays.
fn hide(hidden: &Path, visible: &[PathBuf]) -> Result<()> {
    let mut kept = Vec::new();
    for path in visible.iter().filter(|path| path.starts_with(hidden)) {
        kept.push((path, open_path(path)?));
    }
    mount(
        Some("tmpfs"),
        hidden,
        Some("tmpfs"),
        MsFlags::empty(),
        Some("mode=1777"),
    )
    .with_context(|| format!("could not hide {}", hidden.display()))?;
    for (path, open) in kept {
        fs::create_dir_all(path)?;
        bind(
            Path::new(&format!("/proc/self/fd/{}", open.as_raw_fd())),
            path,
        )?;
    }
    Ok(())
}

fn open_path(path: &Path) -> Result<File> {
    let flags = nix::fcntl::OFlag::O_PATH | nix::fcntl::OFlag::O_DIRECTORY;
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)
        .with_context(|| format!("could not open {}", path.display()))
}

fn bind(from: &Path, to: &Path) -> Result<()> {
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    mount(Some(from), to, None::<&str>, flags, None::<&str>)
        .with_context(|| format!("could not mount {} at {}", from.display(), to.display()))
}

fn network(plan: &Plan) -> Result<()> {
    for command in &plan.network {
        let words = command.split(' ');
        let status = Command::new("ip")
            .args(words)
            .stdout(Stdio::null())
            .status();
        if !status.context("could not run ip")?.success() {
            bail!("`ip {command}` failed");
        }
    }
    fs::write("/proc/sys/net/ipv4/ip_forward", "1").context("could not allow forwarding")
}
