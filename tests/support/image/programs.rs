//! Builds this workspace's own programs: static ones, fit for an image that holds nothing else, or such as this machine
//! runs.

use super::Image;
use crate::cargo;
use crate::lab::report::{Report, spoken};
use anyhow::{Context, Result, bail};
use std::{
    env,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};
use tokio::{process::Command, time::timeout};

const DEADLINE: Duration = Duration::from_secs(1800);
/// All are built together, always: cargo would otherwise choose other features of shared crates for each.
const PROGRAMS: &[&str] = &["agents", "agents-webhook", "agents-sidecar", PROBE];
/// Proves the lab; no part of the product.
const PROBE: &str = "probe";

/// Where the programs are.
#[derive(Clone, Debug)]
pub struct OwnPrograms {
    folder: PathBuf,
}

impl OwnPrograms {
    /// The file of one program.
    pub fn path(&self, name: &str) -> Result<PathBuf> {
        if !PROGRAMS.contains(&name) {
            bail!("`{name}` is not one of {}", PROGRAMS.join(", "));
        }
        Ok(self.folder.join(name))
    }

    /// The image of one program, called `localhost/<name>:lab`; for static programs only.
    pub fn image(&self, name: &str) -> Result<Image> {
        let (image, program) = (format!("localhost/{name}:lab"), self.path(name)?);
        match name {
            PROBE => Image::of_program(&image, &program),
            _ => Image::of_product(&image, &program),
        }
    }

    /// The images of the product's three programs.
    pub fn product_images(&self) -> Result<Vec<Image>> {
        let product = PROGRAMS.iter().filter(|name| **name != PROBE);
        product.map(|name| self.image(name)).collect()
    }
}

/// Why no static program can be built here, if so.
pub fn static_obstacle() -> Option<String> {
    let printed = printed_by_compiler("libc.a").unwrap_or_default();
    (!is_library(&printed)).then(|| {
        "there is no libc.a to build static programs with (on Debian: libc6-dev)".to_owned()
    })
}

/// Whether the compiler says that it has no such library. Without a compiler nobody knows.
pub fn lacks_library(name: &str) -> bool {
    printed_by_compiler(name).is_some_and(|printed| !is_library(&printed))
}

/// Where the C compiler finds a library; none if there is no compiler.
fn printed_by_compiler(library: &str) -> Option<String> {
    let mut ask = std::process::Command::new("cc");
    let output = ask.arg(format!("-print-file-name={library}")).output();
    let output = output.ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A compiler that does not know where a library is prints its bare name.
fn is_library(printed: &str) -> bool {
    let path = Path::new(printed);
    path.is_absolute() && path.is_file()
}

/// Builds static programs; cargo does nothing if they are up to date.
pub async fn build_static(report: Report) -> Result<OwnPrograms> {
    if let Some(reason) = static_obstacle() {
        bail!("no images can be made: {reason}");
    }
    let target = format!("{}-unknown-linux-gnu", env::consts::ARCH);
    let mut command = Command::from(cargo::command());
    command
        .args(["build", "--target", &target])
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        // As in the Makefile, so that one build serves the tests, the images and `make run`.
        .env("RUSTFLAGS", "-C target-feature=+crt-static");
    build(command, "static programs", report).await?;
    let folder = cargo::target_folder().join(target).join("debug");
    Ok(OwnPrograms { folder })
}

/// Builds programs that run on this machine, linked as cargo was told to.
pub async fn build_local(report: Report) -> Result<OwnPrograms> {
    let mut command = Command::from(cargo::command());
    command.arg("build");
    build(command, "programs", report).await?;
    let target = env::var_os("CARGO_BUILD_TARGET").unwrap_or_default();
    let folder = cargo::target_folder().join(target).join("debug");
    Ok(OwnPrograms { folder })
}

async fn build(mut command: Command, what: &str, report: Report) -> Result<()> {
    let started = Instant::now();
    report.line(format!("building the {what} {}", PROGRAMS.join(", ")));
    command
        .args(["--quiet", "--workspace"])
        .args(PROGRAMS.iter().flat_map(|name| ["--bin", name]))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let status = timeout(DEADLINE, command.status())
        .await
        .context("cargo takes too long")?
        .context("could not run cargo")?;
    if !status.success() {
        bail!("the {what} could not be built; cargo said why above");
    }
    report.line(format!("built the {what} in {}", spoken(started.elapsed())));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_where_the_compiler_says_it_is() {
        let library = tempfile::NamedTempFile::new().unwrap();
        assert!(is_library(library.path().to_str().unwrap()));
        for printed in ["libc.a", "", "/nowhere/libc.a"] {
            assert!(!is_library(printed), "{printed}");
        }
        assert!(lacks_library("libno-such-thing.a"));
    }
}
