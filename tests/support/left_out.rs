//! Tests that could not run here: named, counted, and compared with an agreed list, so that none is lost in silence.
//!
//! `tests/left-out.txt` holds the agreed names, one per line; lines that begin with `#` are comments, and one that ends
//! in `::` agrees to a whole module, where an existing cluster is used.

use crate::{cargo, lab};
use anyhow::{Context, Result, bail};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, OpenOptions},
    io::{self, Write},
    path::PathBuf,
};

/// Where the names of left-out tests are collected.
pub fn file() -> PathBuf {
    cargo::target_folder().join("left-out-tests.txt")
}

/// Notes that a test was left out, and why.
pub fn note(test: &str, reason: &str) -> Result<()> {
    eprintln!("left out: {test}: {reason}");
    let path = file();
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
    // One write, since tests run side by side.
    let line = format!("{test}\t{}\n", reason.replace(['\n', '\t'], " "));
    file.write_all(line.as_bytes())
        .with_context(|| format!("could not write {}", path.display()))
}

/// Forgets what earlier runs left out.
pub fn forget() -> Result<()> {
    match fs::remove_file(file()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Prints the left-out tests and their number; fails if one of them is not agreed.
pub fn summary() -> Result<()> {
    let noted = match fs::read_to_string(file()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        other => other?,
    };
    let agreed = include_str!("../left-out.txt");
    let (left_out, surprising) = compare(&noted, agreed, lab::use_existing_cluster());
    for (test, reason) in &left_out {
        println!("left out: {test}: {reason}");
    }
    println!("{} tests were left out", left_out.len());
    if !surprising.is_empty() {
        let names: Vec<&str> = surprising.into_iter().collect();
        bail!("not agreed in tests/left-out.txt: {}", names.join(", "));
    }
    Ok(())
}

/// The left-out tests with their reasons, and those of them that are not agreed.
fn compare<'a>(
    noted: &'a str,
    agreed: &str,
    existing_cluster: bool,
) -> (BTreeMap<&'a str, &'a str>, BTreeSet<&'a str>) {
    let left_out: BTreeMap<_, _> = noted
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .collect();
    let agreed: BTreeSet<_> = agreed
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    let in_agreed_module = |test: &str| {
        let mut lines = agreed.iter();
        existing_cluster && lines.any(|line| line.ends_with("::") && test.starts_with(line))
    };
    let surprising = left_out
        .keys()
        .copied()
        .filter(|test| !agreed.contains(test) && !in_agreed_module(test))
        .collect();
    (left_out, surprising)
}

/// The name of a test from the full path of something inside it.
pub fn test_name(path: &str) -> String {
    let inner = path.split("::").skip(1); // the crate
    let parts: Vec<&str> = inner.take_while(|part| !part.starts_with("{{")).collect();
    parts.join("::")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_left_out_test_that_nobody_agreed_to_is_a_surprise() {
        let (left_out, surprising) = compare(
            "a::b\tno root\nc\tno root\na::b\tno root\n",
            "# why\n\na::b\nd\n",
            false,
        );
        assert_eq!(left_out, [("a::b", "no root"), ("c", "no root")].into());
        assert_eq!(surprising, ["c"].into());
    }

    #[test]
    fn a_whole_module_is_agreed_only_where_an_existing_cluster_is_used() {
        let surprising = |existing| compare("a::b\tno\naa::b\tno\n", "a::\n", existing).1;
        assert_eq!(surprising(true), ["aa::b"].into());
        assert_eq!(surprising(false), ["a::b", "aa::b"].into());
    }

    #[test]
    fn a_test_is_named_without_its_crate_and_its_inside() {
        let path = "integration::lab::node::a_job_succeeds::{{closure}}::here";
        assert_eq!(test_name(path), "lab::node::a_job_succeeds");
    }
}
