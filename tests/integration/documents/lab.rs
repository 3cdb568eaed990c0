//! The settings of the lab: each that the sources read is in `lab --help` and in `docs/lab.md`.

use std::{collections::BTreeSet, fs, path::Path};

use support::fixtures::repository;

/// Words that begin with `LAB_` in a text.
fn settings(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let ours = words.filter(|word| word.starts_with("LAB_"));
    ours.map(str::to_owned).collect()
}

fn read(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.extend(settings(&fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn every_setting_of_the_lab_is_in_its_help_and_its_document() {
    let mut used = BTreeSet::new();
    for folder in ["tests/support", "tests/lab"] {
        read(&repository().join(folder), &mut used);
    }
    assert!(used.contains("LAB_CACHE"), "found only {used:?}");
    for file in ["tests/lab/arguments.rs", "docs/lab.md"] {
        let told = settings(&fs::read_to_string(repository().join(file)).unwrap());
        let missing: Vec<_> = used.difference(&told).collect();
        assert!(missing.is_empty(), "{file} does not tell {missing:?}");
    }
}
