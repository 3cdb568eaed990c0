//! The Go command: found, asked, and followed while it compiles.

use super::{Job, cache::Cache, first_in, pins, progress::Progress};
use crate::lab::{
    report::{Report, spoken},
    tools::{CONTROL_PLANE, Recipe, Tool},
};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::{
    collections::VecDeque,
    env, fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    time::{interval, timeout},
};

/// The oldest Go that builds everything.
const GO: &str = "1.26.1";
/// A build that takes longer than this hangs.
pub(super) const DEADLINE: Duration = Duration::from_secs(3600);
/// What is kept of the compiler's words, to be shown if it fails.
const KEPT_LINES: usize = 40;

/// The Go command.
pub(super) struct Go(PathBuf);

impl Go {
    /// The person's Go, which the wanted programs need.
    pub(super) fn of_person(wanted: &[&str]) -> Result<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        let usual = ["/usr/local/go/bin", "/usr/lib/go/bin"].map(PathBuf::from);
        Self::find(env::split_paths(&path).chain(usual), wanted)
    }

    fn find(folders: impl IntoIterator<Item = PathBuf>, wanted: &[&str]) -> Result<Self> {
        match first_in(folders, "go") {
            Some(go) => Ok(Self(go)),
            None => bail!(
                "building {} needs Go {GO} or newer, and there is no `go` in PATH: install it from https://go.dev/dl, \
                 or set KUBEBUILDER_ASSETS to a folder with {}, \
                 or set LAB_USE_EXISTING_CLUSTER=1 and KUBECONFIG to use a cluster you have, with `kubectl` in PATH",
                wanted.join(", "),
                CONTROL_PLANE.join(", ")
            ),
        }
    }

    fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.0);
        command
            .current_dir(folder)
            .env("GOWORK", "off")
            .kill_on_drop(true)
            .stdin(Stdio::null());
        command
    }

    /// What the command says.
    async fn ask(&self, folder: &Path, words: &[&str]) -> Result<String> {
        let output = timeout(DEADLINE, self.command(folder).args(words).output()).await??;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("`go {}` failed: {}", words.join(" "), said.trim());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Version and platform, as chosen for the module in `folder`.
    pub(super) async fn version(&self, folder: &Path) -> Result<String> {
        self.ask(folder, &["env", "GOVERSION", "GOOS", "GOARCH"])
            .await
    }

    /// The folder with the sources of a module that the one in `folder` needs, brought where it is not there yet.
    pub(super) async fn module(&self, folder: &Path, name: &str) -> Result<PathBuf> {
        let said = self
            .ask(folder, &["mod", "download", "-json", name])
            .await?;
        let said: Value = serde_json::from_str(&said)?;
        let found = said["Dir"].as_str();
        found
            .map(PathBuf::from)
            .with_context(|| format!("`go` does not say where {name} is: {said}"))
    }

    /// How many packages the tools consist of; an upper bound, since some may be compiled already.
    async fn packages(&self, job: &Job, tools: &[&Tool]) -> Result<usize> {
        let mut words = vec!["list", "-mod=readonly", "-deps", "-tags", job.recipe.tags];
        words.extend(tools.iter().map(|tool| tool.package));
        let listed = self.ask(&pins(job.recipe), &words).await?;
        Ok(listed.lines().count())
    }

    pub(super) async fn build(
        &self,
        job: &Job,
        cache: &Cache,
        place: &str,
        report: Report,
    ) -> Result<()> {
        let recipe = job.recipe;
        let tools = job.missing();
        let names = tools
            .iter()
            .map(|tool| tool.name)
            .collect::<Vec<_>>()
            .join(", ");
        report.line(format!(
            "building {names} ({place}); from nothing this usually takes {}",
            spoken(recipe.usual)
        ));
        let started = Instant::now();
        let fresh = cache.scratch()?;
        let mut command = self.command(&pins(recipe));
        command
            .env("CGO_ENABLED", if recipe.cgo { "1" } else { "0" })
            .args([
                "build",
                "-v",
                "-mod=readonly",
                "-trimpath",
                "-buildvcs=false",
            ])
            .args(["-tags", recipe.tags, "-ldflags", recipe.ldflags, "-o"])
            .arg(format!("{}/", fresh.path().display()))
            .args(tools.iter().map(|tool| tool.package));
        let progress = Progress::new(report, &names, self.packages(job, &tools).await?);
        timeout(DEADLINE, follow(command, progress))
            .await
            .with_context(|| format!("building {names} took over {}", spoken(DEADLINE)))?
            .with_context(|| format!("could not build {names}"))?;
        fs::create_dir_all(&job.folder)?;
        for tool in tools {
            fs::rename(fresh.path().join(executable(recipe, tool)), job.file(tool))
                .with_context(|| format!("`go build` did not leave {}", tool.name))?;
        }
        report.line(format!("built {names} in {}", spoken(started.elapsed())));
        Ok(())
    }
}

/// The name the Go command gives the program of a package: the last part of its path that is not a major version.
fn executable(recipe: &Recipe, tool: &Tool) -> String {
    if tool.package == "." {
        return recipe.folder.to_owned();
    }
    let is_version = |part: &&str| {
        part.strip_prefix('v')
            .is_some_and(|rest| rest.parse::<u32>().is_ok())
    };
    let last = tool.package.rsplit('/').find(|part| !is_version(part));
    last.unwrap_or(tool.name).to_owned()
}

/// Runs the compiler to its end, telling how far it is.
async fn follow(mut command: Command, mut progress: Progress) -> Result<()> {
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let stderr = child
        .stderr
        .take()
        .context("the compiler has no standard error")?;
    let mut lines = BufReader::new(stderr).lines();
    let mut kept = VecDeque::with_capacity(KEPT_LINES);
    let mut tick = interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            line = lines.next_line() => match line? {
                Some(line) => {
                    progress.saw(&line);
                    if kept.len() == KEPT_LINES {
                        kept.pop_front();
                    }
                    kept.push_back(line);
                }
                None => break,
            },
            _ = tick.tick() => progress.show(),
        }
    }
    progress.clear();
    let status = child.wait().await?;
    if !status.success() {
        let said = Vec::from(kept).join("\n");
        bail!("the Go compiler ended with {status} and said:\n{said}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::tools::RECIPES;

    #[test]
    fn without_go_one_sentence_says_the_ways_out() {
        let nowhere = tempfile::tempdir().unwrap();
        let folders = [nowhere.path().to_owned()];
        let found = Go::find(folders, &["etcd", "kubectl"]).err().unwrap();
        assert_eq!(
            found.to_string(),
            "building etcd, kubectl needs Go 1.26.1 or newer, and there is no `go` in PATH: install it from \
             https://go.dev/dl, or set KUBEBUILDER_ASSETS to a folder with kube-apiserver, kube-controller-manager, \
             kubectl, etcd, or set LAB_USE_EXISTING_CLUSTER=1 and KUBECONFIG to use a cluster you have, with `kubectl` \
             in PATH"
        );
    }

    #[test]
    fn the_oldest_go_is_the_newest_that_a_module_asks_for() {
        let numbers = |version: &str| -> Vec<u32> {
            let parts = version.trim().split('.');
            parts.map(|part| part.parse().unwrap()).collect()
        };
        let asked = RECIPES.iter().map(|recipe| {
            let module = fs::read_to_string(pins(recipe).join("go.mod")).unwrap();
            let line = module.lines().find_map(|line| line.strip_prefix("go "));
            numbers(line.unwrap())
        });
        assert_eq!(asked.max(), Some(numbers(GO)));
        let readme = include_str!("../../../../../README.md");
        assert!(readme.contains(&format!("Go {GO} or newer")));
    }

    #[test]
    fn programs_are_found_under_the_names_the_go_command_gives_them() {
        let named = |name: &str| {
            let of = |recipe: &&Recipe| recipe.tools.iter().any(|tool| tool.name == name);
            let recipe = RECIPES.iter().find(of).unwrap();
            let tool = recipe.tools.iter().find(|tool| tool.name == name).unwrap();
            executable(recipe, tool)
        };
        assert_eq!(
            [
                "etcd",
                "kubectl",
                "helm3",
                "coredns",
                "containerd-shim-runc-v2"
            ]
            .map(named),
            [
                "server",
                "kubectl",
                "helm",
                "coredns",
                "containerd-shim-runc-v2"
            ]
        );
    }
}
