//! The folder of built programs: names from content, one builder at a time.

use super::{Recipe, Report};
use crate::lab::report::spoken;
use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use std::{
    env,
    fs::{self, File, OpenOptions, TryLockError},
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

const SCRATCH: &str = "building-";

/// Built programs of this user.
pub(super) struct Cache {
    root: PathBuf,
}

impl Cache {
    /// `$LAB_CACHE`, else `$XDG_CACHE_HOME/agents-lab`, else `~/.cache/agents-lab`.
    pub(super) fn from_env() -> Result<Self> {
        let set = |name| {
            env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let root = set("LAB_CACHE")
            .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("agents-lab")))
            .or_else(|| set("HOME").map(|home| home.join(".cache/agents-lab")))
            .context("set LAB_CACHE to a folder for the built programs: neither XDG_CACHE_HOME nor HOME is set")?;
        let root = std::path::absolute(root)?;
        fs::create_dir_all(&root).with_context(|| format!("could not make {}", root.display()))?;
        Ok(Self { root })
    }

    /// The folder of what a recipe makes, named after all that goes into it.
    pub(super) fn folder(&self, recipe: &Recipe, pins: &Path, version: &str) -> Result<PathBuf> {
        let flags = format!(
            "{}\n{}\n{}\n{version}",
            recipe.cgo, recipe.tags, recipe.ldflags
        );
        self.named(recipe.folder, pins, &flags)
    }

    /// A folder that is named after the files of `pins` and what else goes into it.
    pub(super) fn named(&self, name: &str, pins: &Path, rest: &str) -> Result<PathBuf> {
        let mut sources: Vec<PathBuf> = fs::read_dir(pins)
            .with_context(|| format!("could not read {}", pins.display()))?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        sources.sort();
        let mut hash = Sha256::new();
        for source in sources {
            let content = fs::read(&source)?;
            hash.update(source.file_name().unwrap_or_default().as_encoded_bytes());
            hash.update((content.len() as u64).to_le_bytes());
            hash.update(content);
        }
        hash.update(rest);
        let digest = format!("{:x}", hash.finalize());
        Ok(self.root.join(format!("{name}-{}", &digest[..16])))
    }

    /// A folder on the same file system to build into, so that the finished file can be renamed into place.
    pub(super) fn scratch(&self) -> Result<TempDir> {
        Ok(tempfile::Builder::new()
            .prefix(SCRATCH)
            .tempdir_in(&self.root)?)
    }

    /// Waits until no other lab builds, which the kernel says of a killed one as well. What that left behind is removed.
    pub(super) async fn lock(&self, report: Report, deadline: Duration) -> Result<File> {
        let path = self.root.join("lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)?;
        let end = Instant::now() + deadline;
        let mut told = false;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(error.into()),
                Err(TryLockError::WouldBlock) => {}
            }
            if !told {
                report.line("another lab is building; waiting for it");
                told = true;
            }
            if Instant::now() >= end {
                let waited = spoken(deadline);
                bail!(
                    "another lab is building in {} since {waited}",
                    self.root.display()
                );
            }
            sleep(Duration::from_millis(200)).await;
        }
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(SCRATCH) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::tools::RECIPES;

    fn cache() -> (TempDir, Cache) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_owned();
        (folder, Cache { root })
    }

    #[test]
    fn a_folder_is_named_after_all_that_goes_into_it() {
        let (_folder, cache) = cache();
        let pins = tempfile::tempdir().unwrap();
        let write = |text: &str| fs::write(pins.path().join("go.mod"), text).unwrap();
        let name = |recipe: &Recipe, version| cache.folder(recipe, pins.path(), version).unwrap();
        let recipe = &RECIPES[0];
        let other_flags = Recipe {
            ldflags: "-s",
            ..*recipe
        };
        write("one");
        let first = name(recipe, "go1.26");
        let mut seen = vec![
            first.clone(),
            name(recipe, "go1.27"),
            name(&other_flags, "go1.26"),
        ];
        write("two");
        seen.push(name(recipe, "go1.26"));
        write("one");
        fs::write(pins.path().join("go.sum"), "sum").unwrap();
        seen.push(name(recipe, "go1.26"));
        fs::remove_file(pins.path().join("go.sum")).unwrap();
        assert_eq!(name(recipe, "go1.26"), first, "the same again is the same");
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 5, "{seen:?}");
    }

    #[tokio::test]
    async fn one_builds_at_a_time_and_clears_up_after_a_killed_one() {
        let (_folder, cache) = cache();
        let report = Report::start();
        fs::create_dir(cache.root.join("building-killed")).unwrap();
        let first = cache.lock(report, Duration::ZERO).await.unwrap();
        assert!(!cache.root.join("building-killed").exists());
        let second = cache.lock(report, Duration::ZERO).await;
        let said = second.unwrap_err().to_string();
        assert!(said.starts_with("another lab is building in "), "{said}");
        drop(first);
        cache.lock(report, Duration::ZERO).await.unwrap();
    }
}
