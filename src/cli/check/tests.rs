mod table;

use std::time::Instant;

use super::*;
use crate::cli::{Cli, Command};
use clap::Parser;

const FIXTURES: &str = "tests/fixtures/check";

/// The arguments as a shell would give them. Paths are those of the workspace, in which tests run.
fn args(words: &[&str]) -> Args {
    let line = ["agents", "check"].into_iter().chain(words.iter().copied());
    let Command::Check(args) = Cli::try_parse_from(line).unwrap().command else {
        panic!("another command");
    };
    args
}

fn checked(words: &[&str]) -> (String, Exit) {
    check(&args(words)).unwrap()
}

/// Compares with a file, which `GENERATE=1` writes.
fn bind(file: &str, said: &str) {
    let path = Path::new(FIXTURES).join(file);
    if std::env::var_os("GENERATE").is_some() {
        fs::write(&path, said).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        said == expected,
        "{file}: GENERATE=1 takes this over:\n{said}"
    );
}

#[test]
fn every_form_says_what_is_written_down() {
    let (policy, manifests) = (
        format!("{FIXTURES}/policy.yaml"),
        format!("{FIXTURES}/manifests"),
    );
    let known = format!("{FIXTURES}/known.yaml");
    let common = ["-f", &manifests, "--policy", &policy, "--known", &known];
    for (form, file) in [
        ("text", "expected.txt"),
        ("json", "expected.json"),
        ("sarif", "expected.sarif"),
        ("junit", "expected.xml"),
    ] {
        let (said, exit) = checked(&[&common[..], &["--output", form]].concat());
        bind(file, &said);
        assert_eq!(exit, Exit::Misused, "a document cannot be read");
    }
}

#[test]
fn two_policies_are_compared_object_by_object() {
    let runs = format!("{FIXTURES}/manifests/runs.yaml");
    let (old, new) = (
        format!("{FIXTURES}/policy.yaml"),
        format!("{FIXTURES}/looser.yaml"),
    );
    let common = ["-f", &runs, "--diff", &old, &new];
    bind("diff.txt", &checked(&common).0);
    let (json, _) = checked(&[&common[..], &["-o", "json"]].concat());
    bind("diff.json", &json);
    let refused = check(&args(&[&common[..], &["-o", "sarif"]].concat()));
    assert!(matches!(refused, Err(Error::NoSuchForm)));
}

const GOOD: &str = "
apiVersion: tools.proompteng.ai/v1alpha1
kind: Tool
metadata: {name: lint}
spec: {image: registry.example.com/lint:2, command: [lint]}
";

/// The exit code for a text in a file, by these further words.
fn exit_of(text: &str, words: &[&str]) -> Exit {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml");
    fs::write(&file, text).unwrap();
    checked(&[&["-f", file.to_str().unwrap()], words].concat()).1
}

#[test]
fn the_exit_code_says_how_grave_it_is() {
    let blank = GOOD.replace("[lint]", "[]").replace("command", "args");
    let unsure = "
apiVersion: tools.proompteng.ai/v1alpha1
kind: ToolRun
metadata: {name: lint}
spec: {toolRef: {name: lint}}
";
    let nothing = tempfile::tempdir().unwrap();
    let known = ["--known", nothing.path().to_str().unwrap()];
    let strict = ["--fail-on", "warning"];
    assert_eq!(exit_of(GOOD, &[]), Exit::Done);
    assert_eq!(exit_of("", &[]), Exit::Done);
    assert_eq!(exit_of(&blank, &[]), Exit::Found);
    assert_eq!(exit_of("a: [", &[]), Exit::Misused);
    assert_eq!(
        exit_of(unsure, &strict),
        Exit::Done,
        "nobody said what stands"
    );
    assert_eq!(exit_of(unsure, &known), Exit::Done);
    assert_eq!(
        exit_of(unsure, &[&known[..], &strict].concat()),
        Exit::Found
    );
    let unread = check(&args(&["-f", "no/such/file"])).unwrap_err();
    assert_eq!(unread.exit(), Exit::Misused);
    let policy = check(&args(&["-f", FIXTURES, "--policy", "no/such/policy"]));
    assert_eq!(policy.unwrap_err().exit(), Exit::Misused);
}

#[test]
fn what_stands_unchanged_is_no_fault_and_a_change_of_it_is_judged() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let old = GOOD.replace("[lint]", "[]");
    fs::write(at("old.yaml"), &old).unwrap();
    fs::write(at("new.yaml"), old.replace("lint:2", "lint 3")).unwrap();
    let known = at("old.yaml");
    let exit = |file: &str| checked(&["-f", &at(file), "--known", &known]).1;
    assert_eq!(exit("old.yaml"), Exit::Done);
    assert_eq!(exit("new.yaml"), Exit::Found);
}

#[test]
fn a_recording_replays_to_the_same_verdicts() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("reviews.jsonl").display().to_string();
    let runs = format!("{FIXTURES}/manifests/runs.yaml");
    checked(&["-f", &runs, "--record", &record]);
    let lines = fs::read_to_string(&record).unwrap();
    assert_eq!(lines.lines().count(), 2, "{lines}");
    assert!(
        lines
            .lines()
            .all(|line| line.contains("\"AdmissionReview\""))
    );
}

#[test]
fn a_thousand_manifests_are_judged_and_the_time_is_told() {
    let manifest = fs::read_to_string(format!("{FIXTURES}/manifests/runs.yaml")).unwrap();
    let wrong = manifest.split("---\n").nth(1).unwrap();
    let many: String = (0..1000)
        .map(|index| {
            format!(
                "---\n{}",
                wrong.replace("name: wrong", &format!("name: run-{index}"))
            )
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("many.yaml").display().to_string();
    fs::write(&file, &many).unwrap();
    let started = Instant::now();
    let (said, exit) = checked(&["-f", &file, "--policy", &format!("{FIXTURES}/policy.yaml")]);
    let took = started.elapsed();
    println!("1000 manifests, {} bytes, checked in {took:?}", many.len());
    assert_eq!(exit, Exit::Found);
    assert!(said.contains("1000 would be refused"), "{}", &said[..200]);
}
