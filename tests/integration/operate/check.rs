//! `agents check` as forges use it: what it prints fits the schema of SARIF, which comes with a pinned package.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use support::{
    fixtures::repository,
    kubectl::Said,
    lab::{report::Report, tools::build::programs},
};
use tokio::{io::AsyncWriteExt, process::Command, time::timeout};

use super::{DEADLINE, agents};

/// The package that brings the schema, and where in it.
const PACKAGE: &str = "github.com/owenrumney/go-sarif/v3";
const SCHEMA: &str = "pkg/report/v210/sarif/schema.go";

/// What validates, and the schema that it validates by.
struct Validator {
    program: PathBuf,
    schema: PathBuf,
}

impl Validator {
    async fn make() -> Result<Self> {
        let programs = programs(&["sarif"], Report::start()).await?;
        // It was fetched for the build, by the sum in go.sum; this only says where it is.
        let asked = Command::new("go")
            .args(["mod", "download", "-json", PACKAGE])
            .current_dir(repository().join("tests/tools/sarif"))
            .kill_on_drop(true)
            .output();
        let said = timeout(DEADLINE, asked).await??;
        let told: Value = serde_json::from_slice(&said.stdout)
            .with_context(|| String::from_utf8_lossy(&said.stderr).into_owned())?;
        let folder = told["Dir"].as_str().context("a folder")?;
        Ok(Self {
            program: programs.path("sarif")?.clone(),
            schema: Path::new(folder).join(SCHEMA),
        })
    }
}

/// What the validator says to a report.
async fn validate(validator: &Validator, report: &str) -> Result<Said> {
    let mut child = Command::new(&validator.program)
        .arg(&validator.schema)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut stdin = child.stdin.take().context("the input is not ours")?;
    stdin.write_all(report.as_bytes()).await?;
    drop(stdin);
    Said::of(child.wait_with_output().await?)
}

fn fixture(name: &str) -> Result<String> {
    let path = repository().join("tests/fixtures/check").join(name);
    let path = path.into_os_string().into_string();
    path.ok().context("a path that is UTF-8")
}

/// Changes that make a report one that the schema refuses, so that a validator that lets everything pass is noticed.
fn spoiled(report: &Value) -> Vec<(&'static str, Value)> {
    let with = |at: &str, value: Value| {
        let mut report = report.clone();
        *report.pointer_mut(at).expect("a place in the report") = value;
        report
    };
    let without = |at: &str, field: &str| {
        let mut report = report.clone();
        let object = report.pointer_mut(at).and_then(Value::as_object_mut);
        object.expect("an object").remove(field).expect("a field");
        report
    };
    let first = "/runs/0/results/0";
    let region = format!("{first}/locations/0/physicalLocation/region");
    let mut foreign = report.clone();
    foreign["runs"][0]["colour"] = json!("red");
    vec![
        ("another version", with("/version", json!("2.0.0"))),
        ("no version", without("", "version")),
        (
            "a level that there is not",
            with(&format!("{first}/level"), json!("fatal")),
        ),
        ("no message", without(first, "message")),
        ("a line 0", with(&format!("{region}/startLine"), json!(0))),
        ("no tool", without("/runs/0", "tool")),
        ("a field that there is not", foreign),
    ]
}

#[tokio::test]
async fn sarif_fits_the_schema_of_its_standard() -> Result<()> {
    let validator = &Validator::make().await?;
    let (manifests, policy) = (fixture("manifests")?, fixture("policy.yaml")?);
    let nothing = tempfile::TempDir::new()?;
    let empty = nothing.path().to_str().context("a path that is UTF-8")?;
    for words in [
        vec!["--filename", &manifests, "--policy", &policy],
        vec!["--filename", empty],
    ] {
        let words = [&["check", "--output", "sarif"], &words[..]].concat();
        let said = agents(Path::new("/nowhere"), &words).await?;
        let judged = validate(validator, &said.stdout).await?;
        ensure!(judged.code == Some(0), "{words:?}: {}", judged.stderr);
    }
    let report = std::fs::read_to_string(fixture("expected.sarif")?)?;
    for (how, report) in spoiled(&serde_json::from_str(&report)?) {
        let judged = validate(validator, &report.to_string()).await?;
        ensure!(judged.code == Some(1), "{how} is let pass");
    }
    Ok(())
}
