//! Whether this machine can run a node, and the few Debian packages that takes.

use super::cgroup::Hierarchies;
use crate::{
    apt,
    image::lacks_library,
    lab::{report::Report, tools::build},
};
use anyhow::Result;
use std::{env, fs, path::Path, time::Duration};
use tokio::{process::Command, time::timeout};

/// Something the node needs from the system, and the Debian package that has it.
struct Need {
    what: &'static str,
    package: &'static str,
    is_there: fn() -> bool,
    /// Needed only to compile runc.
    to_build: bool,
}

const NEEDS: &[Need] = &[
    Need {
        what: "nft",
        package: "nftables",
        is_there: || in_path("nft"),
        to_build: false,
    },
    Need {
        what: "ip",
        package: "iproute2",
        is_there: || in_path("ip"),
        to_build: false,
    },
    Need {
        what: "gcc",
        package: "gcc",
        is_there: || in_path("gcc"),
        to_build: true,
    },
    Need {
        what: "the C library's headers and libc.a",
        package: "libc6-dev",
        is_there: || Path::new("/usr/include/stdlib.h").exists() && !lacks_library("libc.a"),
        to_build: true,
    },
    Need {
        what: "pkg-config",
        package: "pkg-config",
        is_there: || in_path("pkg-config"),
        to_build: true,
    },
    Need {
        what: "libseccomp's headers and libseccomp.a",
        package: "libseccomp-dev",
        is_there: || Path::new("/usr/include/seccomp.h").exists() && !lacks_library("libseccomp.a"),
        to_build: true,
    },
];

/// Why this machine cannot run a node, if so. Installs missing packages where that is possible.
pub(super) async fn obstacle(report: Report) -> Result<Option<String>> {
    if let Some(reason) = lasting_obstacle().await? {
        return Ok(Some(reason));
    }
    let runc_is_built = match build::is_built("runc").await {
        Ok(is_built) => is_built,
        // Without Go there is no node, but there may be a control plane that was provided.
        Err(error) => return Ok(Some(format!("{error:#}"))),
    };
    let needs = NEEDS.iter().filter(|need| !need.to_build || !runc_is_built);
    let needs: Vec<&Need> = needs.collect();
    let missing = missing(&needs);
    match verdict(&missing, in_path("apt-get")) {
        Verdict::Fine => Ok(None),
        Verdict::Impossible(reason) => Ok(Some(reason)),
        Verdict::Install(packages) => {
            report.line(format!(
                "installing the Debian packages {}",
                packages.join(", ")
            ));
            let failed = apt::get(&packages).await.err();
            let failed =
                failed.map(|error| format!("{} not found, and {error:#}", whats(&missing)));
            Ok(failed.or_else(|| still_missing(&needs)))
        }
    }
}

fn missing<'a>(needs: &[&'a Need]) -> Vec<&'a Need> {
    let mut missing = needs.to_vec();
    missing.retain(|need| !(need.is_there)());
    missing
}

/// What the packages did not bring, so that it need not be found out by a build that fails.
fn still_missing(needs: &[&Need]) -> Option<String> {
    let missing = missing(needs);
    (!missing.is_empty()).then(|| {
        format!(
            "{} not found, with every package installed",
            whats(&missing)
        )
    })
}

/// What to do about needs that are not met.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Fine,
    /// These packages.
    Install(Vec<&'static str>),
    /// For this reason.
    Impossible(String),
}

fn verdict(missing: &[&Need], has_apt: bool) -> Verdict {
    let packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    match (missing, has_apt) {
        ([], _) => Verdict::Fine,
        (_, true) => Verdict::Install(packages),
        (_, false) => Verdict::Impossible(format!(
            "{} not found; install them with the system's package manager (on Debian: {})",
            whats(missing),
            packages.join(" ")
        )),
    }
}

fn whats(needs: &[&Need]) -> String {
    let whats: Vec<&str> = needs.iter().map(|need| need.what).collect();
    whats.join(", ")
}

/// Whether the kernel has the file system of images. Where it is a module, nobody may have asked for it yet.
async fn has_overlay() -> Result<bool> {
    let is_there = || Ok(fs::read_to_string("/proc/filesystems")?.contains("\toverlay\n"));
    if is_there()? {
        return Ok(true);
    }
    let load = Command::new("modprobe").arg("overlay").output();
    // What came of it is seen in the list; a machine may also have no modprobe.
    drop(timeout(Duration::from_secs(10), load).await);
    is_there()
}

/// What no package can mend.
async fn lasting_obstacle() -> Result<Option<String>> {
    if !cfg!(target_os = "linux") {
        return Ok(Some("it needs Linux".to_owned()));
    }
    if !nix::unistd::geteuid().is_root() {
        return Ok(Some("it needs root".to_owned()));
    }
    if !has_overlay().await? {
        return Ok(Some("the kernel has no overlay file system".to_owned()));
    }
    if !Path::new("/dev/kmsg").exists() {
        return Ok(Some("there is no /dev/kmsg".to_owned()));
    }
    if let Some(reason) = Hierarchies::of_this_machine()?.obstacle() {
        return Ok(Some(reason));
    }
    let trial = Command::new("/proc/self/exe")
        .args(["stage", "trial"])
        .output();
    let trial = timeout(Duration::from_secs(10), trial).await??;
    Ok((!trial.status.success()).then(|| {
        let said = String::from_utf8_lossy(&trial.stderr);
        format!("namespaces cannot be made: {}", said.trim())
    }))
}

fn in_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(Into::into);
    env::split_paths(&path)
        .chain(system)
        .any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_installed_or_named() {
        let need = |package| NEEDS.iter().find(|need| need.package == package).unwrap();
        let (nft, seccomp) = (need("nftables"), need("libseccomp-dev"));
        let cases = [
            (vec![], false, Verdict::Fine),
            (vec![], true, Verdict::Fine),
            (vec![seccomp], true, Verdict::Install(vec!["libseccomp-dev"])),
            (
                vec![nft, seccomp],
                true,
                Verdict::Install(vec!["nftables", "libseccomp-dev"]),
            ),
            (
                vec![nft, seccomp],
                false,
                Verdict::Impossible(
                    "nft, libseccomp's headers and libseccomp.a not found; install them with the system's package manager \
                     (on Debian: nftables libseccomp-dev)"
                        .to_owned(),
                ),
            ),
        ];
        for (missing, has_apt, expected) in cases {
            assert_eq!(verdict(&missing, has_apt), expected);
        }
    }

    #[test]
    fn what_no_package_brought_stands_against_a_node() {
        let need = |is_there| Need {
            what: "libc.a",
            package: "libc6-dev",
            is_there,
            to_build: true,
        };
        assert_eq!(still_missing(&[&need(|| true)]), None);
        assert_eq!(
            still_missing(&[&need(|| true), &need(|| false)]).as_deref(),
            Some("libc.a not found, with every package installed")
        );
    }

    #[test]
    fn every_package_that_may_be_installed_is_in_the_document() {
        let document = include_str!("../../../../docs/lab.md");
        for need in NEEDS {
            let named = format!("`{}`", need.package);
            assert!(
                document.contains(&named),
                "docs/lab.md does not name {named}"
            );
        }
    }
}
