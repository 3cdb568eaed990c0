//! The files and folders that documents name: each is there.

use std::{fs, path::PathBuf};

use support::fixtures::repository;

/// Folders that a path begins with, and nothing else does.
const TOPS: &[&str] = &[
    "src",
    "webhook",
    "sidecar",
    "tests",
    "docs",
    "crds",
    "examples",
    "charts",
    "dashboards",
];

/// The README, every document and every runbook.
fn documents() -> Vec<PathBuf> {
    let folders = ["docs", "docs/runbooks"].map(|folder| repository().join(folder));
    let entries = folders
        .into_iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap());
    let files = entries.map(|entry| entry.unwrap().path());
    let mut found = vec![repository().join("README.md")];
    found.extend(files.filter(|file| file.extension().is_some_and(|ending| ending == "md")));
    found
}

/// What stands between backticks and looks like a path of this repository.
fn named(text: &str) -> Vec<String> {
    let words = text.split('`').skip(1).step_by(2);
    let paths = words.filter(|word| {
        let top = word.split_once('/').map(|(top, _)| top);
        top.is_some_and(|top| TOPS.contains(&top)) && !word.contains(['<', '*', ' ', '\n'])
    });
    paths.flat_map(spelt_out).collect()
}

/// `a/{b,c}.rs` is `a/b.rs` and `a/c.rs`.
fn spelt_out(path: &str) -> Vec<String> {
    let Some((head, rest)) = path.split_once('{') else {
        return vec![path.to_owned()];
    };
    let (mut depth, mut starts, mut parts) = (0, 0, Vec::new());
    for (at, letter) in rest.char_indices() {
        match letter {
            '{' => depth += 1,
            ',' if depth == 0 => {
                parts.push(&rest[starts..at]);
                starts = at + 1;
            }
            '}' if depth == 0 => {
                parts.push(&rest[starts..at]);
                let whole = |part: &&str| format!("{head}{part}{}", &rest[at + 1..]);
                let paths: Vec<_> = parts.iter().map(whole).collect();
                return paths.iter().flat_map(|path| spelt_out(path)).collect();
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    vec![path.to_owned()]
}

/// Where the links of a text lead, except out of the repository and into the text itself.
fn linked(text: &str) -> Vec<String> {
    let targets = text.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split([')', '#']).next());
    let inside = targets.filter(|target| !target.is_empty() && !target.contains("://"));
    inside.map(str::to_owned).collect()
}

#[test]
fn every_file_that_a_document_names_is_there() {
    let (mut looked_at, mut missing) = (0, Vec::new());
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        let named = named(&text).into_iter().map(|path| repository().join(path));
        let folder = document.parent().unwrap();
        let linked = linked(&text).into_iter().map(|path| folder.join(path));
        for path in named.chain(linked) {
            looked_at += 1;
            if !path.exists() {
                missing.push(format!("{} names {}", document.display(), path.display()));
            }
        }
    }
    assert!(looked_at > 50, "found only {looked_at} paths");
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn paths_are_found_and_spelt_out() {
    let text = "See `src/a/{b,c/{d,e}}.rs` and `make test`, `src/<x>` or [there](docs/x.md#y), [here](#z).";
    let expected = ["src/a/b.rs", "src/a/c/d.rs", "src/a/c/e.rs"];
    assert_eq!(named(text), expected);
    assert_eq!(linked(text), ["docs/x.md"]);
}
