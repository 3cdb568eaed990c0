//! Where labs keep their files, who holds them, and what is written down about them.
//!
//! Starts and stops nothing; [`super::up`] and [`super::down`] do.

use super::process::Identity;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::{
    env, fmt,
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    str::FromStr,
};

const RECORD: &str = "lab.json";
const LOCK: &str = "lock";

/// What a lab consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tier {
    /// etcd, API server and controller manager; needs no rights.
    ControlPlane,
    /// The same and a node that runs real pods; needs root on Linux.
    Node,
}

impl Tier {
    /// The number `lab up --tier` takes.
    pub fn number(self) -> &'static str {
        match self {
            Self::ControlPlane => "1",
            Self::Node => "2",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::ControlPlane => "tier 1 (control plane)",
            Self::Node => "tier 2 (control plane and node)",
        })
    }
}

/// The name of a lab: a DNS label of at most 32 characters, since it becomes part of paths and of a cgroup's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LabName(String);

impl FromStr for LabName {
    type Err = anyhow::Error;

    fn from_str(given: &str) -> Result<Self> {
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let fits = (1..=32).contains(&given.len())
            && given.bytes().all(allowed)
            && !given.starts_with('-')
            && !given.ends_with('-');
        if !fits {
            bail!(
                "`{given}` cannot name a lab: use 1 to 32 small letters, digits and inner dashes"
            );
        }
        Ok(Self(given.to_owned()))
    }
}

impl fmt::Display for LabName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// How far a lab has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Programs are being built; this may take minutes the first time.
    Building,
    /// Processes are starting.
    Starting,
    /// Usable.
    Ready,
    /// The start went wrong; logs are kept until the next start or `lab down`.
    Failed,
}

/// A part of the lab that was started, to find it again after a crash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartRecord {
    /// Its name, which is also the name of its log.
    pub name: String,
    /// Its process.
    pub process: Identity,
}

/// What is written down about a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its name.
    pub name: LabName,
    /// What it consists of.
    pub tier: Tier,
    /// Why it is not what was asked for, if so.
    pub note: Option<String>,
    /// How far it has come.
    pub phase: Phase,
    /// The `lab up` process.
    pub owner: Identity,
    /// What it started.
    pub parts: Vec<PartRecord>,
    /// Process 1 of the node's namespaces.
    pub node: Option<Identity>,
    /// Name of its control groups.
    pub cgroup: Option<String>,
    /// Address of the API server on this machine's loopback.
    pub server: Option<String>,
}

/// All labs of one user.
#[derive(Clone, Debug)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    /// `$LAB_STATE`, else `$XDG_RUNTIME_DIR/agents-lab`, else `/tmp/agents-lab-<uid>`; made if missing, private to this user.
    pub fn from_env() -> Result<Self> {
        let set = |name| env::var_os(name).filter(|value| !value.is_empty());
        let uid = nix::unistd::getuid();
        let root = set("LAB_STATE").map_or_else(
            || {
                set("XDG_RUNTIME_DIR").map_or_else(
                    || PathBuf::from(format!("/tmp/agents-lab-{uid}")),
                    |runtime| PathBuf::from(runtime).join("agents-lab"),
                )
            },
            PathBuf::from,
        );
        Self::at(&root)
    }

    /// The labs whose files are below `root`.
    pub fn at(root: &Path) -> Result<Self> {
        let root = std::path::absolute(root)?;
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&root)
            .with_context(|| format!("could not make {}", root.display()))?;
        let found = fs::symlink_metadata(&root)?;
        if !found.is_dir() || found.uid() != nix::unistd::getuid().as_raw() {
            bail!(
                "{} is not a folder of this user; set LAB_STATE to one that is",
                root.display()
            );
        }
        Ok(Self { root })
    }

    /// The folder of one lab.
    pub fn folder(&self, name: &LabName) -> PathBuf {
        self.root.join(&name.0)
    }

    /// Every lab that has files here, running or not.
    pub fn names(&self) -> Result<Vec<LabName>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.root)? {
            if let Some(Ok(name)) = entry?.file_name().to_str().map(str::parse) {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// What is written down about a lab; nothing if it has no files or a start had only just begun.
    pub fn record(&self, name: &LabName) -> Result<Option<Record>> {
        read_record(&self.folder(name))
    }

    /// Takes a lab's folder for this process, or nothing if another process holds it.
    ///
    /// The hold ends with the process, however it ends.
    pub fn claim(&self, name: &LabName) -> Result<Option<Claim>> {
        let folder = self.folder(name);
        let path = folder.join(LOCK);
        loop {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&folder)?;
            let lock = match OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&path)
            {
                Ok(lock) => lock,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    return Err(error).context(format!("could not open {}", path.display()));
                }
            };
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
            // The former holder may have removed the file between our opening and our locking it.
            let same = fs::metadata(&path)
                .is_ok_and(|now| lock.metadata().is_ok_and(|ours| ours.ino() == now.ino()));
            if same {
                return Ok(Some(Claim {
                    folder,
                    _lock: lock,
                }));
            }
        }
    }

    /// Removes the root when no lab is left in it.
    pub fn tidy(&self) {
        // Fails while another lab has files here, which is the point.
        let _ = fs::remove_dir(&self.root);
    }
}

/// The right to use a lab's folder.
#[derive(Debug)]
pub struct Claim {
    folder: PathBuf,
    _lock: File,
}

impl Claim {
    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What an earlier holder wrote down.
    pub fn record(&self) -> Result<Option<Record>> {
        read_record(&self.folder)
    }

    /// Writes the record so that readers see the old one or the new one, never half of it.
    pub fn write(&self, record: &Record) -> Result<()> {
        let temporary = self.folder.join(".lab.json");
        fs::write(&temporary, serde_json::to_vec_pretty(record)?)?;
        fs::rename(&temporary, self.folder.join(RECORD))?;
        Ok(())
    }

    /// Removes everything in the folder except the lock.
    pub fn empty(&self) -> Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_name() == LOCK {
                continue;
            }
            let path = entry.path();
            let removed = if entry.file_type()?.is_dir() {
                fs::remove_dir_all(&path)
            } else {
                fs::remove_file(&path)
            };
            removed.with_context(|| format!("could not remove {}", path.display()))?;
        }
        Ok(())
    }

    /// Removes the folder and gives it up.
    pub fn remove(self) -> Result<()> {
        self.empty()?;
        fs::remove_dir_all(&self.folder)
            .with_context(|| format!("could not remove {}", self.folder.display()))
    }
}

fn read_record(folder: &Path) -> Result<Option<Record>> {
    let path = folder.join(RECORD);
    match fs::read(&path) {
        Ok(bytes) => {
            Ok(Some(serde_json::from_slice(&bytes).with_context(|| {
                format!("{} is not readable", path.display())
            })?))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context(format!("could not read {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_leave_the_folder_are_refused() {
        for bad in ["", "..", "a/b", "-a", "a-", "A", "a b", &"x".repeat(33)] {
            assert!(bad.parse::<LabName>().is_err(), "{bad}");
        }
        for good in ["a", "default", "test-1234", &"x".repeat(32)] {
            assert!(good.parse::<LabName>().is_ok(), "{good}");
        }
    }

    #[test]
    fn a_folder_has_one_holder_at_a_time_and_none_after_removal() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::at(root.path()).unwrap();
        let name: LabName = "one".parse().unwrap();
        let claim = home.claim(&name).unwrap().unwrap();
        assert!(home.claim(&name).unwrap().is_none());
        fs::write(claim.folder().join("x"), "y").unwrap();
        claim.remove().unwrap();
        assert_eq!(home.names().unwrap(), []);
        assert!(home.claim(&name).unwrap().is_some());
    }

    #[test]
    fn a_record_is_read_back_as_it_was_written() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::at(root.path()).unwrap();
        let name: LabName = "one".parse().unwrap();
        let claim = home.claim(&name).unwrap().unwrap();
        assert_eq!(home.record(&name).unwrap(), None);
        let record = Record {
            name: name.clone(),
            tier: Tier::Node,
            note: None,
            phase: Phase::Starting,
            owner: Identity::of_this_process().unwrap(),
            parts: vec![],
            node: None,
            cgroup: None,
            server: None,
        };
        claim.write(&record).unwrap();
        assert_eq!(home.record(&name).unwrap(), Some(record));
    }
}
