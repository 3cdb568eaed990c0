//! The rules in `charts/agents/rules`: what a rule of either sort must say, and that it speaks of metrics that there are.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use agents::api::registration::rung::Rung;
use serde::Deserialize;
use support::fixtures::repository;

use super::names;

/// Where the rules are.
pub(super) const FOLDER: &str = "charts/agents/rules";
/// What `severity` may be.
const SEVERITIES: [&str; 2] = ["critical", "warning"];
/// Metrics that describe the cluster: every sidecar says the same, so a sum would count each Job several times.
const OF_THE_CLUSTER: &str = "agents_sidecar_job_";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    groups: Vec<Group>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    name: String,
    rules: Vec<Rule>,
}

/// One rule, as it stands in a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    pub(crate) record: Option<String>,
    pub(crate) alert: Option<String>,
    pub(crate) expr: String,
    #[serde(rename = "for")]
    duration: Option<String>,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// The files of rules.
pub(super) fn files() -> Vec<PathBuf> {
    let entries = fs::read_dir(repository().join(FOLDER)).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 4, "{files:?}");
    files
}

fn groups() -> Vec<Group> {
    let read = |file: PathBuf| {
        let text = fs::read_to_string(&file).unwrap();
        let read: Result<File, _> = serde_saphyr::from_str(&text);
        read.unwrap_or_else(|error| panic!("{}: {error}", file.display()))
            .groups
    };
    files().into_iter().flat_map(read).collect()
}

/// All rules of all files.
pub(crate) fn all() -> Vec<Rule> {
    groups().into_iter().flat_map(|group| group.rules).collect()
}

/// Names of what the rules record.
pub(super) fn recorded() -> BTreeSet<String> {
    all().into_iter().filter_map(|rule| rule.record).collect()
}

/// Names of the alerts.
pub(crate) fn alerts() -> BTreeSet<String> {
    all().into_iter().filter_map(|rule| rule.alert).collect()
}

#[test]
fn every_rule_speaks_of_metrics_that_there_are() {
    let known = &names::shown() | &recorded();
    let mut unknown = BTreeSet::new();
    for rule in all() {
        let asked = names::asked(&rule.expr);
        assert!(!asked.is_empty(), "{} asks for nothing", rule.expr);
        unknown.extend(asked.difference(&known).cloned());
    }
    assert_eq!(unknown, BTreeSet::new());
}

#[test]
fn every_alert_says_how_bad_it_is_what_it_means_and_where_to_read_on() {
    for rule in all() {
        let Some(alert) = rule.alert else {
            assert!(rule.annotations.is_empty() && rule.duration.is_none());
            continue;
        };
        assert!(alert.starts_with("Agents"), "{alert}");
        assert!(SEVERITIES.contains(&&*rule.labels["severity"]), "{alert}");
        let names: Vec<_> = rule.annotations.keys().map(String::as_str).collect();
        assert_eq!(names, ["description", "runbook_url", "summary"], "{alert}");
        let runbook = format!("docs/runbooks/{alert}.md");
        assert_eq!(rule.annotations["runbook_url"], runbook);
        for text in ["summary", "description"] {
            let text = &rule.annotations[text];
            assert!(text.ends_with(['.', '`']), "{alert}: {text}");
        }
    }
}

#[test]
fn names_of_groups_and_of_what_is_recorded_are_unique() {
    let mut seen = BTreeSet::new();
    for group in groups() {
        assert!(group.name.starts_with("agents-"), "{}", group.name);
        assert!(seen.insert(group.name.clone()), "{} twice", group.name);
    }
    let mut seen = BTreeSet::new();
    for rule in all() {
        let Some(name) = rule.record else { continue };
        // Level, metric and operation, as is the custom.
        assert_eq!(name.split(':').count(), 3, "{name}");
        assert!(seen.insert((name.clone(), rule.labels)), "{name} twice");
    }
}

#[test]
fn jobs_are_never_added_up() {
    let sums = ["sum", "count", "avg"];
    let offences: Vec<_> = all()
        .into_iter()
        .map(|rule| rule.expr)
        .filter(|expr| expr.contains(OF_THE_CLUSTER) && sums.iter().any(|sum| expr.contains(sum)))
        .collect();
    assert_eq!(offences, Vec::<String>::new());
}

#[test]
fn every_gate_of_the_ladder_is_asked_for_by_one_recording_rule() {
    let gates: Vec<_> = all()
        .into_iter()
        .filter(|rule| rule.record.as_deref() == Some("agents:webhook_gate:value"))
        .collect();
    let spelt_out = |rule: &Rule| {
        let mut asked = names::asked(&rule.expr);
        for other in all() {
            if other.record.is_some_and(|name| asked.contains(&name)) {
                asked.extend(names::asked(&other.expr));
            }
        }
        asked
    };
    let asked: Vec<_> = gates.iter().map(spelt_out).collect();
    let metrics: BTreeSet<_> = Rung::ALL
        .into_iter()
        .flat_map(|rung| rung.gates())
        .map(|gate| gate.metric)
        .collect();
    for metric in &metrics {
        let of_metric = |name: &String| name == metric || *name == format!("{metric}_bucket");
        let rules = asked.iter().filter(|asked| asked.iter().any(of_metric));
        assert_eq!(rules.count(), 1, "{metric}");
    }
    assert_eq!(gates.len(), metrics.len());
}
