use std::fs;

use super::*;
use crate::admission::question::question;
use crate::api::kind::Kind;
use crate::cli::{Cli, Command};
use clap::Parser;
use serde_json::json;

const CHECK: &str = "tests/fixtures/check";

fn replayed(lines: &str, words: &[&str]) -> (String, Exit) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("reviews.jsonl");
    fs::write(&file, lines).unwrap();
    let (old, new) = (
        format!("{CHECK}/policy.yaml"),
        format!("{CHECK}/looser.yaml"),
    );
    let common = [
        "agents",
        "replay",
        "-f",
        file.to_str().unwrap(),
        "--diff",
        &old,
        &new,
    ];
    let line = common.into_iter().chain(words.iter().copied());
    let Command::Replay(args) = Cli::try_parse_from(line).unwrap().command else {
        panic!("another command");
    };
    let (text, exit) = replay(&args).unwrap();
    (
        text.replace(&folder.path().display().to_string(), "FOLDER"),
        exit,
    )
}

fn tool(image: &str) -> String {
    let object = json!({
        "apiVersion": Kind::Tool.api_version(), "kind": "Tool",
        "metadata": {"name": "lint", "namespace": "team"}, "spec": {"image": image, "command": ["lint"]},
    });
    question(Kind::Tool, "team", &object, None).to_string()
}

#[test]
fn each_review_that_fares_otherwise_is_told() {
    let lines = [
        tool("registry.example.com/lint:2"),
        tool("registry.example.com/lint:latest"),
        tool("mirror.example.com/lint:2"),
    ];
    let (text, exit) = replayed(&lines.join("\n"), &[]);
    assert_eq!(exit, Exit::Found);
    let heads: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(
        heads,
        [
            "newly refused: CREATE Tool team/lint (FOLDER/reviews.jsonl:2)",
            "newly accepted: CREATE Tool team/lint (FOLDER/reviews.jsonl:3)",
            "3 objects under both policies: 1 newly refused, 1 newly accepted, 0 otherwise judged",
        ]
    );
    let (_, milder) = replayed(&lines[2], &[]);
    assert_eq!(milder, Exit::Done);
    let (_, any) = replayed(&lines[2], &["--fail-on", "warning"]);
    assert_eq!(any, Exit::Found);
    let (json, _) = replayed(&lines.join("\n"), &["-o", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["differences"][0]["fate"], "newlyRefused");
    assert_eq!(json["differences"][0]["line"], 2);
}

#[test]
fn a_line_that_is_no_review_is_told_and_hides_no_other() {
    let lines = format!("{{\"kind\": \"x\"}}\n\n{}\nnot JSON\n", tool("x"));
    let (text, exit) = replayed(&lines, &[]);
    assert_eq!(exit, Exit::Misused);
    assert!(
        text.contains("FOLDER/reviews.jsonl:1: cannot be read: "),
        "{text}"
    );
    assert!(
        text.contains("FOLDER/reviews.jsonl:4: cannot be read: "),
        "{text}"
    );
    assert!(text.contains("1 objects under both policies"), "{text}");
}
