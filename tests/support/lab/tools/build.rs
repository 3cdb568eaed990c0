//! Builds the pinned Go programs once and keeps them in a cache keyed by everything that went into them.
//!
//! Which programs there are is in [`super`].

mod cache;
mod go;
mod progress;
pub mod python;

use super::{CONTROL_PLANE, Programs, RECIPES, Recipe, Tool};
use crate::lab::report::Report;
use anyhow::{Context, Result};
use cache::Cache;
use go::Go;
use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

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
    let go = Go::of_person(&wanted)?;
    let cache = Cache::from_env()?;
    let jobs = jobs(&go, &cache, &wanted).await?;
    let missing = |jobs: &[Job]| jobs.iter().any(|job| !job.missing().is_empty());
    if missing(&jobs) {
        let _lock = cache.lock(report, go::DEADLINE).await?;
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
    let go = Go::of_person(&[name])?;
    let jobs = jobs(&go, &Cache::from_env()?, &[name]).await?;
    Ok(jobs.iter().all(|job| job.missing().is_empty()))
}

/// The sources of a module that a recipe is pinned to, as its `go.sum` says: some of what they hold is not compiled.
pub async fn module(folder: &str, name: &str) -> Result<PathBuf> {
    let recipe = RECIPES.iter().find(|recipe| recipe.folder == folder);
    let recipe = recipe.with_context(|| format!("there is no recipe `{folder}`"))?;
    let go = Go::of_person(&[folder])?;
    go.module(&pins(recipe), name).await
}

/// The `kubectl` for a cluster that is not a lab: the person's own, so that nothing need be built.
pub async fn kubectl_of_person() -> Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let own = asset("kubectl").or_else(|| first_in(env::split_paths(&path), "kubectl"));
    match own {
        Some(kubectl) => Ok(kubectl),
        None => programs(&["kubectl"], Report::start())
            .await?
            .path("kubectl")
            .cloned(),
    }
}

/// The first file of this name in some folders.
fn first_in(folders: impl IntoIterator<Item = PathBuf>, name: &str) -> Option<PathBuf> {
    let mut files = folders.into_iter().map(|folder| folder.join(name));
    files.find(|file| file.is_file())
}

/// A program from the folder that other tools of this kind use, too.
fn asset(name: &str) -> Option<PathBuf> {
    asset_of(env::var_os("KUBEBUILDER_ASSETS"), name)
}

/// The folder may hold more than the control plane; of that, versions are ours to choose.
fn asset_of(assets: Option<OsString>, name: &str) -> Option<PathBuf> {
    let folder = assets.filter(|folder| !folder.is_empty())?;
    first_in([folder.into()], name).filter(|_| CONTROL_PLANE.contains(&name))
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_folder_of_assets_gives_the_programs_of_the_control_plane_that_are_in_it() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["kubectl", "kubelet"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let asset = |name| asset_of(Some(folder.path().into()), name);
        assert_eq!(asset("kubectl"), Some(folder.path().join("kubectl")));
        assert_eq!(asset("etcd"), None, "it is not there");
        assert_eq!(asset("kubelet"), None, "it is none of the control plane");
        assert_eq!(asset_of(Some("".into()), "kubectl"), None);
    }
}
