//! Builds this workspace's own programs as static binaries, fit for an image that holds nothing else.

use super::Image;
use crate::cargo;
use crate::fixtures::repository;
use crate::lab::report::{Report, spoken};
use anyhow::{Context, Result, bail};
use std::{
    path::PathBuf,
    process::Stdio,
    time::{Duration, Instant},
};
use tokio::{process::Command, time::timeout};

const DEADLINE: Duration = Duration::from_secs(1800);
/// All are built together, always: cargo would otherwise choose other features of shared crates for each.
const PROGRAMS: &[&str] = &["agents", "agents-webhook", "agents-sidecar", PROBE];
/// Proves the lab; no part of the product.
const PROBE: &str = "probe";

/// Where the static programs are.
#[derive(Clone, Debug)]
pub struct StaticPrograms {
    folder: PathBuf,
}

impl StaticPrograms {
    /// The file of one program.
    pub fn path(&self, name: &str) -> Result<PathBuf> {
        if !PROGRAMS.contains(&name) {
            bail!("`{name}` is not one of {}", PROGRAMS.join(", "));
        }
        Ok(self.folder.join(name))
    }

    /// The image of one program, called `localhost/<name>:lab`.
    pub fn image(&self, name: &str) -> Result<Image> {
        Image::of_program(&format!("localhost/{name}:lab"), &self.path(name)?)
    }

    /// The images of the product's three programs.
    pub fn product_images(&self) -> Result<Vec<Image>> {
        let product = PROGRAMS.iter().filter(|name| **name != PROBE);
        product.map(|name| self.image(name)).collect()
    }
}

/// Builds the programs and the probe; cargo does nothing if they are up to date.
pub async fn build_static(report: Report) -> Result<StaticPrograms> {
    let started = Instant::now();
    report.line(format!(
        "building {} as static programs",
        PROGRAMS.join(", ")
    ));
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut command = Command::from(cargo::command());
    command
        .args(["build", "--quiet", "--workspace", "--target", &target])
        .args(PROGRAMS.iter().flat_map(|name| ["--bin", name]))
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        // As in the Makefile, so that one build serves the tests, the images and `make run`.
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let status = timeout(DEADLINE, command.status())
        .await
        .context("cargo takes too long")?
        .context("could not run cargo")?;
    if !status.success() {
        bail!("the static programs could not be built; cargo said why above");
    }
    report.line(format!(
        "built the static programs in {}",
        spoken(started.elapsed())
    ));
    let target_folder = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| repository().join("target"), PathBuf::from);
    Ok(StaticPrograms {
        folder: target_folder.join(target).join("debug"),
    })
}
