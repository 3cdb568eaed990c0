//! What promtool says of the rules, and the tests in `tests/fixtures/rules`: each alert fires in its fault and is silent
//! without it.

use std::{collections::BTreeSet, fs, path::PathBuf};

use anyhow::Result;
use serde_json::Value;
use support::{fixtures::repository, prometheus::promtool};

use super::rules;

/// The files with tests of rules.
fn tests() -> Vec<PathBuf> {
    let entries = fs::read_dir(repository().join("tests/fixtures/rules")).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn texts(files: &[PathBuf]) -> Vec<&str> {
    let texts = files.iter().map(|file| file.to_str().expect("UTF-8"));
    texts.collect()
}

#[tokio::test]
async fn promtool_finds_the_rules_in_order() -> Result<()> {
    let files = rules::files();
    let arguments = [
        vec!["check", "rules", "--lint=all", "--lint-fatal"],
        texts(&files),
    ];
    let (code, said) = promtool(&arguments.concat()).await?;
    assert_eq!(code, Some(0), "{said}");
    Ok(())
}

#[tokio::test]
async fn every_alert_fires_in_its_fault_and_is_silent_without() -> Result<()> {
    let files = tests();
    let arguments = [vec!["test", "rules"], texts(&files)];
    let (code, said) = promtool(&arguments.concat()).await?;
    assert_eq!(code, Some(0), "{said}");
    Ok(())
}

/// What a test asks to see which alerts fire.
const FIRING: &str = "count by (alertname) (ALERTS{alertstate=\"firing\"})";

/// The alerts that fire at each moment that a case looks at.
fn moments(case: &Value) -> Vec<BTreeSet<String>> {
    let looks = case["promql_expr_test"].as_array().into_iter().flatten();
    let looks = looks.filter(|look| look["expr"] == FIRING);
    let firing = looks.map(|look| {
        let samples = look["exp_samples"].as_array().into_iter().flatten();
        let labels = samples.filter_map(|sample| sample["labels"].as_str());
        let names = labels.filter_map(|labels| labels.split('"').nth(1));
        names.map(str::to_owned).collect()
    });
    firing.collect()
}

#[test]
fn every_alert_is_tested_both_ways() {
    let mut tested = BTreeSet::new();
    for file in tests() {
        let text = fs::read_to_string(&file).unwrap();
        let test: Value = serde_saphyr::from_str(&text).unwrap();
        for case in test["tests"].as_array().unwrap() {
            let moments = moments(case);
            let ever: BTreeSet<_> = moments.iter().flatten().cloned().collect();
            let is_silent = |alert: &String| moments.iter().any(|firing| !firing.contains(alert));
            tested.extend(ever.into_iter().filter(is_silent));
        }
    }
    assert_eq!(tested, rules::alerts());
}
