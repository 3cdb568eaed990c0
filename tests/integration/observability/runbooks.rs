//! `docs/runbooks`: one for each alert and one for each feature, with what is looked for in them, and only names that there are.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use agents::events::Reason;
use support::fixtures::repository;

use super::{names, rules};

const FOLDER: &str = "docs/runbooks";
const INDEX: &str = "README";
/// What is switched on and off, apart from the alerts.
const FEATURES: [&str; 5] = [
    "events",
    "job-retention",
    "metrics-and-sidecar",
    "rollouts",
    "webhook",
];
/// What is read in the runbook of an alert, in this order.
const OF_ALERTS: [&str; 4] = ["Meaning", "Impact", "Diagnosis", "Mitigation"];
/// The same for a feature.
const OF_FEATURES: [&str; 5] = [
    "Enable",
    "Disable",
    "Roll back",
    "What can go wrong",
    "Events",
];

/// Every runbook by its name.
fn runbooks() -> BTreeMap<String, String> {
    let entries = fs::read_dir(repository().join(FOLDER)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let read = paths.map(|path| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, fs::read_to_string(path).unwrap())
    });
    read.collect()
}

/// Queries that runbooks tell people to ask.
pub(super) fn queries() -> Vec<String> {
    let mut queries = Vec::new();
    for text in runbooks().values() {
        let blocks = text.split("```promql\n").skip(1);
        let blocks = blocks.filter_map(|rest| rest.split("```").next());
        queries.extend(blocks.flat_map(str::lines).map(str::to_owned));
    }
    assert!(queries.len() > 40, "found only {}", queries.len());
    queries
}

fn sections(text: &str) -> Vec<&str> {
    text.lines()
        .filter_map(|line| line.strip_prefix("## "))
        .collect()
}

#[test]
fn every_alert_has_its_runbook_and_every_runbook_its_alert_or_feature() {
    let found: BTreeSet<_> = runbooks().into_keys().collect();
    let mut wanted = rules::alerts();
    wanted.extend(FEATURES.map(str::to_owned));
    wanted.insert(INDEX.to_owned());
    assert_eq!(found, wanted);
}

#[test]
fn runbooks_have_what_is_looked_for_in_them() {
    for (name, text) in runbooks() {
        let first = text.lines().next().unwrap_or_default();
        if name == INDEX {
            continue;
        }
        if FEATURES.contains(&&*name) {
            assert_eq!(sections(&text), OF_FEATURES, "{name}");
        } else {
            assert_eq!(first, format!("# {name}"));
            assert_eq!(sections(&text), OF_ALERTS, "{name}");
            let diagnosis = text.split("## Diagnosis").nth(1).unwrap();
            let diagnosis = diagnosis.split("\n## ").next().unwrap();
            assert!(diagnosis.contains("```"), "{name} has no command");
        }
    }
}

#[test]
fn the_index_leads_to_every_runbook() {
    let runbooks = runbooks();
    let index = &runbooks[INDEX];
    for name in runbooks.keys().filter(|name| *name != INDEX) {
        assert!(index.contains(&format!("({name}.md)")), "{name}");
    }
}

#[test]
fn runbooks_name_only_metrics_that_there_are() {
    let known = &names::shown() | &rules::recorded();
    let mut unknown = BTreeSet::new();
    for (runbook, text) in runbooks() {
        let words =
            text.split(|letter: char| !(letter.is_ascii_alphanumeric() || "_:".contains(letter)));
        let words = words.map(|word| word.trim_end_matches(':'));
        let starts = ["agents_", "agents:", "workqueue_", "apiserver_admission_"];
        let metrics = words.filter(|word| starts.iter().any(|start| word.starts_with(start)));
        let missing = metrics.filter(|word| !known.contains(*word));
        unknown.extend(missing.map(|word| format!("{runbook}: {word}")));
    }
    assert_eq!(unknown, BTreeSet::new());
}

#[test]
fn runbooks_of_features_name_only_reasons_of_events_that_there_are() {
    let reasons: BTreeSet<_> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    for feature in FEATURES {
        let runbooks = runbooks();
        let table = runbooks[feature].split("## Events").nth(1).unwrap();
        let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
        let named: Vec<_> = rows.filter_map(|row| row.split('`').next()).collect();
        assert!(!named.is_empty(), "{feature} names no reason");
        for reason in named {
            assert!(reasons.contains(reason), "{feature}: {reason}");
        }
    }
}

/// A heading as links name it.
pub(crate) fn anchor(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = words
        .chars()
        .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.collect::<String>().replace(' ', "-")
}

#[test]
fn links_of_runbooks_into_documents_lead_to_a_heading() {
    let mut looked_at = 0;
    for (runbook, text) in runbooks() {
        let targets = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        for (file, wanted) in targets.filter_map(|target| target.split_once('#')) {
            let path = repository().join(FOLDER).join(file);
            let document = fs::read_to_string(path).unwrap();
            let headings = document.lines().filter(|line| line.starts_with('#'));
            let found = headings.map(anchor).any(|heading| heading == wanted);
            assert!(found, "{runbook}: {file} has no heading {wanted}");
            looked_at += 1;
        }
    }
    assert!(looked_at > 10, "found only {looked_at} links");
}
