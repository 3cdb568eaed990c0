//! Builds the pinned Go programs once and keeps them in a cache keyed by everything that went into them.
//!
//! Which programs there are is in [`super`].

mod cache;
mod progress;

use super::{CONTROL_PLANE, Programs, RECIPES, Recipe, Tool};
use crate::lab::report::{Report, spoken};
use anyhow::{Context, Result, bail};
use cache::Cache;
use progress::Progress;
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

/// A build that takes longer than this hangs.
const DEADLINE: Duration = Duration::from_secs(3600);
/// What is kept of the compiler's words, to be shown if it fails.
const KEPT_LINES: usize = 40;

/// Gives the asked-for programs, building those that are not yet in the cache.
pub async fn programs(names: &[&'static str], report: Report) -> Result<Programs> {
    let mut programs = Programs::default();
    let mut wanted = Vec::new();
    for name in names {
        match asset(name) {
            Some(path) => drop(programs.0.insert(name, path)),
            None => wanted.push(*name),
        }
    }
    if wanted.is_empty() {
        return Ok(programs);
    }
    let go = Go::find(&wanted)?;
    let cache = Cache::from_env()?;
    let jobs = jobs(&go, &cache, &wanted).await?;
    let missing = |jobs: &[Job]| jobs.iter().any(|job| !job.missing().is_empty());
    if missing(&jobs) {
        let _lock = cache.lock(report).await?;
        let pending: Vec<&Job> = jobs
            .iter()
            .filter(|job| !job.missing().is_empty())
            .collect();
        for (index, job) in pending.iter().enumerate() {
            let place = format!("{} of {}", index + 1, pending.len());
            go.build(job, &cache, &place, report).await?;
        }
    }
    for job in jobs {
        programs
            .0
            .extend(job.tools.iter().map(|tool| (tool.name, job.file(tool))));
    }
    Ok(programs)
}

/// Whether a program is in the cache already (or provided), so that nothing would be built.
pub async fn is_built(name: &'static str) -> Result<bool> {
    if asset(name).is_some() {
        return Ok(true);
    }
    let go = Go::find(&[name])?;
    let jobs = jobs(&go, &Cache::from_env()?, &[name]).await?;
    Ok(jobs.iter().all(|job| job.missing().is_empty()))
}

/// The sources of a module that a tool is made of, for the manifests that come with it; fetched if need be.
pub async fn module_folder(tool: &'static str, module: &str) -> Result<PathBuf> {
    let go = Go::find(&[tool])?;
    let has_tool = |recipe: &&Recipe| recipe.tools.iter().any(|one| one.name == tool);
    let recipe = RECIPES
        .iter()
        .find(has_tool)
        .context("there is no such tool")?;
    go.ask(&pins(recipe), &["mod", "download", module]).await?;
    let words = ["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module];
    let folder = go.ask(&pins(recipe), &words).await?;
    Ok(PathBuf::from(folder.trim()))
}

/// A control-plane program from the folder other tools of this kind use, too.
fn asset(name: &str) -> Option<PathBuf> {
    let folder = env::var_os("KUBEBUILDER_ASSETS").filter(|folder| !folder.is_empty())?;
    let path = PathBuf::from(folder).join(name);
    (CONTROL_PLANE.contains(&name) && path.is_file()).then_some(path)
}

/// What is wanted of one recipe.
struct Job {
    recipe: &'static Recipe,
    tools: Vec<&'static Tool>,
    /// Where its programs are or will be.
    folder: PathBuf,
}

impl Job {
    fn file(&self, tool: &Tool) -> PathBuf {
        self.folder.join(tool.name)
    }

    fn missing(&self) -> Vec<&'static Tool> {
        let missing = |tool: &&&'static Tool| !self.file(tool).is_file();
        self.tools.iter().filter(missing).copied().collect()
    }
}

async fn jobs(go: &Go, cache: &Cache, wanted: &[&str]) -> Result<Vec<Job>> {
    let mut jobs = Vec::new();
    for recipe in RECIPES {
        let of_recipe = recipe.tools.iter();
        let tools: Vec<_> = of_recipe
            .filter(|tool| wanted.contains(&tool.name))
            .collect();
        if !tools.is_empty() {
            let version = go.version(&pins(recipe)).await?;
            let folder = cache.folder(recipe, &pins(recipe), &version)?;
            jobs.push(Job {
                recipe,
                tools,
                folder,
            });
        }
    }
    Ok(jobs)
}

fn pins(recipe: &Recipe) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tools")
        .join(recipe.folder)
}

/// The Go command.
struct Go(PathBuf);

impl Go {
    fn find(wanted: &[&str]) -> Result<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        let usual = ["/usr/local/go/bin", "/usr/lib/go/bin"].map(PathBuf::from);
        let places = env::split_paths(&path).chain(usual);
        match places
            .map(|folder| folder.join("go"))
            .find(|go| go.is_file())
        {
            Some(go) => Ok(Self(go)),
            None => bail!(
                "building {} needs Go 1.26 or newer, and there is no `go` in PATH: install it from https://go.dev/dl, \
                 or set KUBEBUILDER_ASSETS to a folder with {}, \
                 or set LAB_USE_EXISTING_CLUSTER=1 and KUBECONFIG to use a cluster you have",
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
    async fn version(&self, folder: &Path) -> Result<String> {
        self.ask(folder, &["env", "GOVERSION", "GOOS", "GOARCH"])
            .await
    }

    /// How many packages the tools consist of; an upper bound, since some may be compiled already.
    async fn packages(&self, job: &Job, tools: &[&Tool]) -> Result<usize> {
        let mut words = vec!["list", "-mod=readonly", "-deps", "-tags", job.recipe.tags];
        words.extend(tools.iter().map(|tool| tool.package));
        let listed = self.ask(&pins(job.recipe), &words).await?;
        Ok(listed.lines().count())
    }

    async fn build(&self, job: &Job, cache: &Cache, place: &str, report: Report) -> Result<()> {
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
