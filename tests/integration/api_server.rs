//! The CRDs on the real API server: what it takes, what it refuses, and what it keeps by itself.

mod contract;
mod install;
mod refusals;
mod round_trip;

use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use support::crds;

/// A fixture of `tests/fixtures`, sorted by name.
fn fixtures(folder: &str) -> Vec<PathBuf> {
    let folder = crds::workspace().join("tests/fixtures").join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

/// One YAML document as JSON.
fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}
