//! Looks for anything a lab may have left on this machine.

use anyhow::Result;
use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};
use support::lab::state::Record;

/// What points to a lab.
pub(super) struct Suspect {
    folder: PathBuf,
    cgroup: Option<String>,
    interfaces_before: BTreeSet<String>,
}

impl Suspect {
    /// To be made while the lab runs.
    pub(super) fn new(folder: &Path, record: &Record, interfaces_before: BTreeSet<String>) -> Self {
        Self {
            folder: folder.to_owned(),
            cgroup: record.cgroup.clone(),
            interfaces_before,
        }
    }

    /// Everything found, in words; empty if the lab left no process, mount, control group, interface or file.
    pub(super) fn traces(&self) -> Result<Vec<String>> {
        let mut found = self.processes()?;
        let folder = self.folder.display().to_string();
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let of_lab = mounts.lines().filter(|line| line.contains(&folder));
        found.extend(of_lab.map(|line| format!("mount {line}")));
        if let Some(cgroup) = &self.cgroup {
            find_folders(Path::new("/sys/fs/cgroup"), cgroup, 3, &mut found)?;
        }
        let added = interfaces()?
            .difference(&self.interfaces_before)
            .cloned()
            .collect::<Vec<_>>();
        found.extend(added.into_iter().map(|name| format!("interface {name}")));
        if self.folder.exists() {
            found.push(format!("folder {folder}"));
        }
        Ok(found)
    }

    /// Living processes that work in the lab's folder, were given it, or are in its control groups.
    fn processes(&self) -> Result<Vec<String>> {
        let folder = self.folder.display().to_string();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let path = entry?.path();
            let read = |file| {
                fs::read(path.join(file)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            };
            let (Ok(command), Ok(cgroup), Ok(stat)) =
                (read("cmdline"), read("cgroup"), read("stat"))
            else {
                continue; // not a process, or one that just ended
            };
            let at = fs::read_link(path.join("cwd")).unwrap_or_default();
            let of_lab = at.starts_with(&self.folder)
                || command.contains(&format!("{folder}/"))
                || self
                    .cgroup
                    .as_ref()
                    .is_some_and(|name| cgroup.contains(name));
            let ended = stat
                .rsplit_once(") ")
                .is_some_and(|(_, rest)| rest.starts_with('Z'));
            if of_lab && !ended {
                found.push(format!(
                    "process {} {}",
                    path.display(),
                    command.replace('\0', " ")
                ));
            }
        }
        Ok(found)
    }
}

/// The network interfaces of this machine.
pub(super) fn interfaces() -> Result<BTreeSet<String>> {
    let names = fs::read_dir("/sys/class/net")?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    names.collect()
}

fn find_folders(root: &Path, name: &str, depth: usize, found: &mut Vec<String>) -> Result<()> {
    let entries = match fs::read_dir(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            if entry.file_name() == name {
                found.push(format!("control group {}", entry.path().display()));
            } else if depth > 1 {
                find_folders(&entry.path(), name, depth - 1, found)?;
            }
        }
    }
    Ok(())
}
