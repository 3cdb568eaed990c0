//! Packages for Python, pinned by `requirements.txt` in a folder of `tests/tools` and kept beside the built programs.
//!
//! They go into a folder that Python is told of, so nothing of the system changes. Only built packages are taken: none
//! runs anything while it is installed.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use tokio::{process::Command, time::timeout};

use super::{Cache, first_in};
use crate::{lab::report::Report, left_out};

/// An index that does not answer in this time is not there.
const DEADLINE: Duration = Duration::from_secs(300);

/// Python with the pinned packages.
#[derive(Clone, Debug)]
pub struct Python {
    program: PathBuf,
    packages: PathBuf,
}

impl Python {
    /// The packages that a folder pins, installed if they are not there yet; fails where there is no Python or no index of packages.
    pub async fn with_packages(report: Report, folder: &str) -> Result<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        let program =
            first_in(env::split_paths(&path), "python3").context("there is no python3")?;
        let version = run(Command::new(&program).args(["-c", VERSION])).await?;
        let cache = Cache::from_env()?;
        let packages = cache.named(folder, &pins(folder), &version)?;
        if !packages.is_dir() {
            let _lock = cache.lock(report, DEADLINE).await?;
            if !packages.is_dir() {
                report.line("installing packages for Python");
                install(&program, &cache, &pins(folder), &packages).await?;
            }
        }
        Ok(Self { program, packages })
    }

    /// A program that came with the packages, to which its arguments can be added.
    pub fn module(&self, name: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["-m", name]);
        self.prepared(command)
    }

    /// A script that may use the packages, to which its arguments can be added.
    pub fn script(&self, text: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["-c", text]);
        self.prepared(command)
    }

    fn prepared(&self, mut command: Command) -> Command {
        command
            .env_clear()
            .env("PYTHONPATH", &self.packages)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }
}

/// Python for a test; none, noted as left out, where there can be none. Call it through [`crate::python!`], which knows
/// the test's name.
pub async fn of_test(test: &str, folder: &str) -> Result<Option<Python>> {
    match Python::with_packages(Report::start(), folder).await {
        Ok(python) => Ok(Some(python)),
        Err(error) => {
            let reason = format!("the packages for Python cannot be had: {error:#}");
            left_out::note(&left_out::test_name(test), &reason)?;
            Ok(None)
        }
    }
}

/// Python with the pinned packages for the calling test; the test returns, noted as left out, where there can be none.
#[macro_export]
macro_rules! python {
    () => {
        $crate::python!($crate::lab::tools::PYTHON)
    };
    ($folder:expr) => {{
        fn here() {}
        let test = ::std::any::type_name_of_val(&here);
        match $crate::lab::tools::build::python::of_test(test, $folder).await? {
            Some(python) => python,
            None => return Ok(()),
        }
    }};
}

/// Packages hold compiled code, which is for one version on one machine.
const VERSION: &str = "import sys, sysconfig; print(sys.version, sysconfig.get_platform())";

async fn install(program: &Path, cache: &Cache, pins: &Path, packages: &Path) -> Result<()> {
    let fresh = cache.scratch()?;
    let mut pip = Command::new(program);
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps"])
        .args(["--only-binary", ":all:", "--no-input"])
        .args(["--retries", "1", "--timeout", "20"])
        .arg("--target")
        .arg(fresh.path())
        .arg("--requirement")
        .arg(pins.join("requirements.txt"));
    run(&mut pip).await?;
    fs::rename(fresh.keep(), packages)?;
    Ok(())
}

async fn run(command: &mut Command) -> Result<String> {
    let command = command.stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(DEADLINE, command.output()).await??;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{}", said.lines().last().unwrap_or("it failed"));
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn pins(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tools")
        .join(folder)
}
