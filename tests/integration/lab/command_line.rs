//! The `lab` program as a person uses it.

use super::life::ONE_AT_A_TIME;
use anyhow::{Context, Result};
use std::{
    env, fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use support::{
    kubectl::Said,
    lab::{
        own_name,
        report::Report,
        tools::{CONTROL_PLANE, Programs, build},
    },
};
use tempfile::TempDir;
use tokio::{process::Command, time::timeout};

const DEADLINE: Duration = Duration::from_secs(180);

async fn lab(words: &[&str]) -> Result<Said> {
    lab_with(words, &[]).await
}

async fn lab_with(words: &[&str], environment: &[(&str, PathBuf)]) -> Result<Said> {
    let output = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(words)
        .envs(environment.iter().cloned())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(DEADLINE, output)
        .await
        .with_context(|| format!("`lab {}` hangs", words.join(" ")))??;
    Said::of(output)
}

#[tokio::test]
async fn a_lab_in_the_background_is_shown_used_and_stopped_by_name() -> Result<()> {
    support::starts_labs!();
    let _turn = ONE_AT_A_TIME.lock().await;
    let name = &own_name("command-line")?.to_string();
    let up = lab(&["up", "--detach", "--tier", "1", "--name", name]).await?;
    assert!(
        up.code == Some(0) && up.stdout.contains("KUBECONFIG="),
        "{}{}",
        up.stdout,
        up.stderr
    );
    let again = lab(&["up", "--tier", "1", "--name", name]).await?;
    let complaint = format!("lab: lab `{name}` is already running");
    assert!(
        again.code == Some(1) && again.stderr.contains(&complaint),
        "{}",
        again.stderr
    );
    let status = lab(&["status"]).await?.stdout;
    assert!(
        status.contains(&format!("lab `{name}`, tier 1 (control plane): Ready")),
        "{status}"
    );
    let namespaces = lab(&[
        "kubectl",
        "--name",
        name,
        "--",
        "get",
        "namespace",
        "default",
        "--output=name",
    ])
    .await?;
    assert_eq!(namespaces.stdout, "namespace/default\n");
    let mut logs: Vec<String> = lab(&["logs", "--name", name])
        .await?
        .stdout
        .lines()
        .map(str::to_owned)
        .collect();
    logs.sort();
    assert_eq!(logs, ["etcd", "kube-apiserver", "kube-controller-manager"]);
    let log = lab(&["logs", "--name", name, "kube-apiserver"]).await?;
    assert!(log.code == Some(0) && !log.stdout.is_empty());
    let down = lab(&["down", "--name", name]).await?;
    assert_eq!(down.code, Some(0), "{}", down.stderr);
    let status = lab(&["status"]).await?.stdout;
    assert!(!status.contains(name), "{status}");
    Ok(())
}

#[tokio::test]
async fn a_command_runs_in_a_fresh_lab_which_stops_when_it_fails() -> Result<()> {
    support::starts_labs!();
    let _turn = ONE_AT_A_TIME.lock().await;
    let name = &own_name("command")?.to_string();
    let script =
        "kubectl get namespace default --output=name && echo tier $LAB_TIER of $LAB_NAME && exit 3";
    let up = lab(&[
        "up", "--tier", "1", "--name", name, "--", "sh", "-c", script,
    ])
    .await?;
    assert_eq!(up.code, Some(1));
    assert!(
        up.stdout
            .contains(&format!("namespace/default\ntier 1 of {name}\n")),
        "{}",
        up.stdout
    );
    assert!(
        up.stderr.contains("lab: `sh` ended (exit code 3)"),
        "{}",
        up.stderr
    );
    Ok(())
}

/// A machine on which nothing is built, and a folder of programs that others have built.
struct Assets {
    programs: Programs,
    folder: TempDir,
    cache: TempDir,
    compiler: TempDir,
}

impl Assets {
    async fn with(names: &[&str]) -> Result<Self> {
        let programs = build::programs(CONTROL_PLANE, Report::start()).await?;
        let folder = TempDir::new()?;
        for name in names {
            symlink(programs.path(name)?, folder.path().join(name))?;
        }
        let assets = Self {
            programs,
            folder,
            cache: TempDir::new()?,
            compiler: TempDir::new()?,
        };
        assets.replace_compiler()?;
        Ok(assets)
    }

    /// Compiling takes minutes, so what stands for the compiler notes what it is asked and gives what was built before.
    fn replace_compiler(&self) -> Result<()> {
        let built = self.programs.path("kube-controller-manager")?.display();
        let script = format!(
            "#!/bin/sh\n\
             echo \"$*\" >> '{}'\n\
             case $1 in\n\
             env) printf '%s\\n' go1.26.1 linux amd64;;\n\
             list) echo one/package;;\n\
             build) while [ \"$1\" != -o ]; do shift; done; ln -s '{built}' \"$2\";;\n\
             esac\n",
            self.asked().display()
        );
        let go = self.compiler.path().join("go");
        fs::write(&go, script)?;
        Ok(fs::set_permissions(&go, fs::Permissions::from_mode(0o755))?)
    }

    fn asked(&self) -> PathBuf {
        self.compiler.path().join("asked")
    }

    /// Starts a lab, and says what was built for it: the programs in the cache and what the compiler was asked for.
    async fn start(&self, name: &str) -> Result<(Vec<PathBuf>, Vec<String>)> {
        let name = &own_name(name)?.to_string();
        // It stays until it is stopped, or its command fails.
        let script = "command -v kubectl && kubectl get namespace default --output=name && exit 3";
        let up = [
            "up", "--tier", "1", "--name", name, "--", "sh", "-c", script,
        ];
        let compiler = self.compiler.path().to_owned();
        let path = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([compiler].into_iter().chain(env::split_paths(&path)))?;
        let environment = [
            ("KUBEBUILDER_ASSETS", self.folder.path().to_owned()),
            ("LAB_CACHE", self.cache.path().to_owned()),
            ("PATH", path.into()),
        ];
        let up = lab_with(&up, &environment).await?;
        let kubectl = self.folder.path().join("kubectl");
        let expected = format!("{}\nnamespace/default\n", kubectl.display());
        let Said { stdout, stderr, .. } = &up;
        assert!(stdout.contains(&expected), "{stdout}{stderr}");
        assert!(stderr.contains("lab: `sh` ended (exit code 3)"), "{stderr}");
        let asked = fs::read_to_string(self.asked()).unwrap_or_default();
        let built = asked.lines().filter(|line| line.starts_with("build "));
        Ok((
            in_folders(self.cache.path())?,
            built.map(str::to_owned).collect(),
        ))
    }
}

/// The files in the folders of a folder.
fn in_folders(path: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in fs::read_dir(path)? {
        let folder = folder?.path();
        if folder.is_dir() {
            for file in fs::read_dir(folder)? {
                found.push(file?.file_name().into());
            }
        }
    }
    Ok(found)
}

#[tokio::test]
async fn a_folder_with_the_whole_control_plane_is_used_and_nothing_is_built() -> Result<()> {
    support::starts_labs!();
    let _turn = ONE_AT_A_TIME.lock().await;
    let assets = Assets::with(CONTROL_PLANE).await?;
    assert_eq!(assets.start("assets").await?, (vec![], vec![]));
    Ok(())
}

/// As the tools of others fill such a folder: they have no use for the controllers of Kubernetes.
#[tokio::test]
async fn what_a_folder_of_programs_lacks_is_built_and_nothing_else() -> Result<()> {
    support::starts_labs!();
    let _turn = ONE_AT_A_TIME.lock().await;
    let assets = Assets::with(&["etcd", "kube-apiserver", "kubectl"]).await?;
    let (built, asked) = assets.start("few-assets").await?;
    assert_eq!(built, [PathBuf::from("kube-controller-manager")]);
    let [asked] = asked.as_slice() else {
        panic!("one build: {asked:?}");
    };
    let words: Vec<&str> = asked.split(" -o ").collect();
    let package = words.last().and_then(|words| words.split_once(' '));
    let package = package.map(|(_, package)| package);
    assert_eq!(
        package,
        Some("k8s.io/kubernetes/cmd/kube-controller-manager")
    );
    Ok(())
}
