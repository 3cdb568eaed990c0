//! What the kernel says: the limit of the container, and what this process takes.

use std::{fs, path::PathBuf};

/// Where control groups are, in either version.
const ROOT: &str = "/sys/fs/cgroup";
/// Bytes of a page of memory on every platform that we build for.
const PAGE: usize = 4_096;
/// Version 1 writes a huge number where there is no limit.
const NO_LIMIT: usize = 1 << 60;

/// The least limit of the groups that this process is in.
pub(super) fn limit() -> Option<usize> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let files = files(&groups).into_iter();
    let texts = files.filter_map(|file| fs::read_to_string(file).ok());
    least(texts)
}

/// Memory of this process that is resident.
pub(super) fn resident() -> Option<usize> {
    pages(&fs::read_to_string("/proc/self/statm").ok()?).map(|pages| pages * PAGE)
}

fn pages(statm: &str) -> Option<usize> {
    statm.split_whitespace().nth(1)?.parse().ok()
}

/// The files that may have a limit: of the group and of all above it, since each of them counts.
///
/// Within a container the group often is the root, or is named as on the node where no such folder is to be seen; the root is
/// looked at in any case.
fn files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let (folder, name) = match controllers {
            "" => (PathBuf::from(ROOT), "memory.max"),
            names if names.split(',').any(|name| name == "memory") => {
                (PathBuf::from(ROOT).join("memory"), "memory.limit_in_bytes")
            }
            _ => continue,
        };
        // A path that leaves the folder belongs to a group outside of what we may see.
        if path.split('/').any(|part| part == "..") {
            files.push(folder.join(name));
            continue;
        }
        let group = folder.join(path.trim_matches('/'));
        let groups = group
            .ancestors()
            .take_while(|group| group.starts_with(&folder));
        files.extend(groups.map(|group| group.join(name)));
    }
    files
}

fn least(texts: impl Iterator<Item = String>) -> Option<usize> {
    let limits = texts.filter_map(|text| text.trim().parse().ok());
    limits.filter(|limit| *limit < NO_LIMIT).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_and_all_above_it_are_looked_at() {
        let cases: &[(&str, &[&str])] = &[
            ("", &[]),
            ("nonsense\n", &[]),
            ("0::/\n", &["/sys/fs/cgroup/memory.max"]),
            (
                "0::/kubepods/pod1\n",
                &[
                    "/sys/fs/cgroup/kubepods/pod1/memory.max",
                    "/sys/fs/cgroup/kubepods/memory.max",
                    "/sys/fs/cgroup/memory.max",
                ],
            ),
            ("0::/../pod1\n", &["/sys/fs/cgroup/memory.max"]),
            (
                "5:cpu,cpuacct:/a\n4:memory:/a\n1:name=systemd:/a\n",
                &[
                    "/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
                    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                ],
            ),
        ];
        for (groups, expected) in cases {
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(files(groups), expected, "{groups:?}");
        }
    }

    #[test]
    fn the_least_limit_counts() {
        let cases: &[(&[&str], Option<usize>)] = &[
            (&[], None),
            (&["max\n"], None),
            (&["9223372036854771712\n"], None),
            (&["max\n", "67108864\n", "134217728\n"], Some(67_108_864)),
            (&["", "?", "1048576"], Some(1_048_576)),
        ];
        for (texts, expected) in cases {
            let texts = texts.iter().map(|text| (*text).to_owned());
            assert_eq!(least(texts), *expected);
        }
    }

    #[test]
    fn what_a_process_takes_is_read() {
        assert_eq!(pages("5000 1200 800 1 0 300 0\n"), Some(1_200));
        assert_eq!(pages("5000"), None);
        assert!(resident().is_some_and(|bytes| bytes > PAGE));
    }
}
