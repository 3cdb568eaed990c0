//! `make bench-check`: the release build of `agents check` on a thousand manifests, as files and as one stream, and whether it
//! takes less than a second. Takes some seconds once it is built.

use agents_bench::{
    program::release_build,
    table::{Table, at_most},
};
use anyhow::{Context, Result, ensure};
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;

const MANIFESTS: usize = 1_000;
/// The middle one counts.
const ROUNDS: usize = 5;
/// Milliseconds for all of them.
const BAR: f64 = 1_000.0;
const FORMS: [&str; 4] = ["text", "json", "sarif", "junit"];

/// One object of each kind with every field set, as in the tests of the schemas.
const FULL: &str = "tests/fixtures/full";
/// A run with several faults.
const WRONG: &str = "tests/fixtures/check/manifests/runs.yaml";
/// A policy with something to say about it.
const POLICY: &str = "tests/fixtures/check/policy.yaml";

fn main() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = TempDir::new()?;
    let size = write(&root, folder.path())?;
    let stream = folder.path().join("stream.yaml");
    let files = folder.path().join("files");
    println!("{MANIFESTS} manifests of all kinds, {} KiB\n", size / 1024);
    let mut table = Table::new(&["agents check", "wall time", "bar", ""]);
    for form in FORMS {
        for (what, path) in [("a file each", &files), ("one stream", &stream)] {
            let time = middle(|| judge(&root, path, form))?.as_secs_f64() * 1e3;
            table.row(at_most(&format!("{what}, {form}"), time, "ms", Some(BAR)));
        }
    }
    println!("{}", table.text());
    Ok(())
}

/// Writes the manifests as files and as one stream; returns their size in bytes.
fn write(root: &Path, folder: &Path) -> Result<usize> {
    let mut kinds = Vec::new();
    for entry in fs::read_dir(root.join(FULL))? {
        kinds.push(fs::read_to_string(entry?.path())?);
    }
    kinds.sort_unstable();
    let wrong = fs::read_to_string(root.join(WRONG))?;
    let wrong = wrong.split("---\n").nth(1).context("a second document")?;
    // Every other one is a run with faults, which costs most.
    fs::create_dir(folder.join("files"))?;
    let mut stream = String::new();
    for (number, kind) in kinds.iter().cycle().take(MANIFESTS).enumerate() {
        let text = match number % 2 {
            0 => wrong.replace("name: wrong", &format!("name: run-{number}")),
            _ => kind.clone(),
        };
        fs::write(folder.join(format!("files/{number:04}.yaml")), &text)?;
        stream += &format!("---\n{text}\n");
    }
    fs::write(folder.join("stream.yaml"), &stream)?;
    Ok(stream.len())
}

/// One run of the program, from its start to its end.
fn judge(root: &Path, path: &Path, form: &str) -> Result<Duration> {
    let started = Instant::now();
    let status = Command::new(release_build("agents")?)
        .args(["check", "--output", form, "--policy"])
        .arg(root.join(POLICY))
        .arg("--filename")
        .arg(path)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    let took = started.elapsed();
    ensure!(status.code() == Some(5), "faults should be found: {status}");
    Ok(took)
}

fn middle(run: impl Fn() -> Result<Duration>) -> Result<Duration> {
    let mut times = (0..ROUNDS).map(|_| run()).collect::<Result<Vec<_>>>()?;
    times.sort_unstable();
    times.get(ROUNDS / 2).copied().context("there are rounds")
}
