//! The control groups of a node: the only thing it has outside its namespaces, hence made and removed by name.
//!
//! Knows both layouts: version 1 (one hierarchy per controller, possibly with a unified one beside) and version 2.

use anyhow::{Context, Result, bail};
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Controllers without which the kubelet does not start.
const NEEDED: &[&str] = &["cpu", "cpuset", "memory", "pids"];
/// Controllers a version 2 node hands down if the machine has them.
const HANDED_DOWN: &[&str] = &["cpuset", "cpu", "io", "memory", "pids", "hugetlb"];
const REMOVE_DEADLINE: Duration = Duration::from_secs(10);

/// The machine's control group hierarchies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hierarchies {
    /// Mount point of each version 1 hierarchy and what it controls.
    first: Vec<(PathBuf, Vec<String>)>,
    /// Mount point of the unified hierarchy.
    second: Option<PathBuf>,
}

impl Hierarchies {
    /// What this machine has.
    pub(super) fn of_this_machine() -> Result<Self> {
        Ok(Self::parse(&fs::read_to_string("/proc/self/mountinfo")?))
    }

    fn parse(mountinfo: &str) -> Self {
        let mut found = Self {
            first: Vec::new(),
            second: None,
        };
        for line in mountinfo.lines() {
            let Some((left, right)) = line.split_once(" - ") else {
                continue;
            };
            let Some(mount) = left.split(' ').nth(4).map(PathBuf::from) else {
                continue;
            };
            let mut right = right.split(' ');
            match right.next() {
                Some("cgroup") => {
                    let options = right.nth(1).unwrap_or_default().split(',');
                    found
                        .first
                        .push((mount, options.map(str::to_owned).collect()));
                }
                Some("cgroup2") => found.second = Some(mount),
                Some(_) | None => {}
            }
        }
        found
    }

    /// Why no node can run with these, if so.
    pub(super) fn obstacle(&self) -> Option<String> {
        let available: Vec<String> = if self.first.is_empty() {
            let Some(root) = &self.second else {
                return Some("no control groups are mounted".to_owned());
            };
            let controllers =
                fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
            controllers
                .split_ascii_whitespace()
                .map(str::to_owned)
                .collect()
        } else {
            self.first
                .iter()
                .flat_map(|(_, controls)| controls.clone())
                .collect()
        };
        let missing: Vec<&str> = NEEDED
            .iter()
            .copied()
            .filter(|needed| !available.iter().any(|one| one == needed))
            .collect();
        (!missing.is_empty()).then(|| {
            format!(
                "the control group controllers {} are missing",
                missing.join(", ")
            )
        })
    }

    /// Makes a group of this name in every hierarchy that counts.
    pub(super) fn make(&self, name: &str) -> Result<()> {
        for (mount, controls) in &self.first {
            let group = mount.join(name);
            make(&group)?;
            if controls.iter().any(|one| one == "cpuset") {
                // A version 1 cpuset is empty, and so useless, until it is told otherwise.
                for file in ["cpuset.cpus", "cpuset.mems"] {
                    fs::copy(mount.join(file), group.join(file))?;
                }
            }
        }
        match &self.second {
            Some(root) if self.first.is_empty() => make_unified(root, name),
            Some(_) | None => Ok(()),
        }
    }

    /// Removes the groups of this name, deepest first; they must be empty of processes or about to be.
    pub(super) fn remove(&self, name: &str) -> Result<()> {
        let first = self.first.iter().map(|(mount, _)| mount);
        let end = Instant::now() + REMOVE_DEADLINE;
        for group in first.chain(&self.second).map(|mount| mount.join(name)) {
            while let Err(error) = remove(&group) {
                if Instant::now() >= end {
                    return Err(error).context(format!("could not remove {}", group.display()));
                }
                // The kernel frees a group a moment after its last process is gone and tells nobody.
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    }
}

fn make(group: &Path) -> Result<()> {
    fs::create_dir(group).with_context(|| format!("could not make {}", group.display()))
}

fn make_unified(root: &Path, name: &str) -> Result<()> {
    let group = root.join(name);
    make(&group)?;
    for folder in [root, &group] {
        let available = fs::read_to_string(folder.join("cgroup.controllers"))?;
        for controller in HANDED_DOWN {
            if available
                .split_ascii_whitespace()
                .any(|one| one == *controller)
            {
                let switch = folder.join("cgroup.subtree_control");
                let given = fs::write(&switch, format!("+{controller}"));
                if let (Err(error), true) = (given, NEEDED.contains(controller)) {
                    bail!(
                        "could not hand down {controller} in {}: {error}",
                        switch.display()
                    );
                }
            }
        }
    }
    Ok(())
}

fn remove(group: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(group) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        }
    }
    fs::remove_dir(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
25 20 0:21 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
26 25 0:22 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
27 25 0:23 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
28 25 0:24 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
29 25 0:25 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
30 25 0:26 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    #[test]
    fn a_hybrid_machine_has_both_kinds_of_hierarchy() {
        let found = Hierarchies::parse(HYBRID);
        let mounts: Vec<_> = found
            .first
            .iter()
            .map(|(mount, _)| mount.to_str().unwrap())
            .collect();
        assert_eq!(
            mounts,
            ["cpu,cpuacct", "cpuset", "memory", "systemd"]
                .map(|one| format!("/sys/fs/cgroup/{one}"))
        );
        assert_eq!(found.second, Some(PathBuf::from("/sys/fs/cgroup/unified")));
    }

    #[test]
    fn a_missing_controller_is_named() {
        assert_eq!(
            Hierarchies::parse(HYBRID).obstacle(),
            Some("the control group controllers pids are missing".to_owned())
        );
    }

    #[test]
    fn a_machine_without_control_groups_can_run_no_node() {
        let bare = "25 20 0:21 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n";
        let reason = "no control groups are mounted".to_owned();
        assert_eq!(Hierarchies::parse(bare).obstacle(), Some(reason));
    }

    #[test]
    fn a_machine_with_version_2_only_needs_the_controllers_in_its_root() {
        let root = tempfile::tempdir().unwrap();
        let mount = root.path().display();
        let found = Hierarchies::parse(&format!("30 25 0:26 / {mount} rw - cgroup2 cgroup2 rw\n"));
        assert_eq!(found.first, []);
        for folder in ["", "lab"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        fs::write(
            root.path().join("cgroup.controllers"),
            "cpuset cpu io memory pids\n",
        )
        .unwrap();
        assert_eq!(found.obstacle(), None);
        fs::write(root.path().join("cgroup.controllers"), "cpu\n").unwrap();
        let missing = "the control group controllers cpuset, memory, pids are missing";
        assert_eq!(found.obstacle(), Some(missing.to_owned()));
    }
}
