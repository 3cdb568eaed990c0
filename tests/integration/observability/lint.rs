//! What makes a dashboard load everywhere and say what it means, held on the files that Grafana loads.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use serde_json::Value;
use support::fixtures::repository;

use super::{dashboards::SCHEMA, names, rules};

/// Variables that every dashboard has, in this order.
const VARIABLES: [&str; 4] = ["datasource", "namespace", "job", "instance"];
/// Units that are in use, as Grafana knows them.
const UNITS: [&str; 9] = [
    "short",
    "s",
    "bytes",
    "Bps",
    "ops",
    "reqps",
    "percentunit",
    "dateTimeAsIso",
    "none",
];
/// Of the API server, which has no namespace and is no target of ours.
const FOREIGN: &str = "apiserver_";
/// Of the API server too, so that it has no namespace.
const WITHOUT_NAMESPACE: [&str; 1] = ["agents:webhook_slow_calls:ratio_rate1h"];

/// A query of a panel, and where it stands.
pub(super) struct Asked {
    pub(super) place: String,
    pub(super) expr: String,
}

/// The files that Grafana loads, by name.
pub(super) fn files() -> BTreeMap<String, Value> {
    let entries = fs::read_dir(repository().join("dashboards")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let files = paths.filter(|path| path.extension().is_some_and(|end| end == "json"));
    let read = files.map(|path| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(path).unwrap();
        (name, serde_json::from_str(&text).unwrap())
    });
    read.collect()
}

fn list<'a>(of: &'a Value, name: &str) -> &'a [Value] {
    of[name].as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(of: &'a Value, name: &str) -> &'a str {
    of[name].as_str().unwrap_or_default()
}

/// Panels that show something, with the dashboard that they are on.
fn panels() -> Vec<(String, Value)> {
    let mut panels = Vec::new();
    for (name, board) in files() {
        let shown = list(&board, "panels").iter();
        let shown = shown.filter(|panel| text(panel, "type") != "row");
        panels.extend(
            shown.map(|panel| (format!("{name}: {}", text(panel, "title")), panel.clone())),
        );
    }
    assert!(panels.len() > 60, "found only {} panels", panels.len());
    panels
}

/// Every query of every panel.
pub(super) fn queries() -> Vec<Asked> {
    let mut queries = Vec::new();
    for (place, panel) in panels() {
        let targets = list(&panel, "targets").iter();
        queries.extend(targets.map(|target| Asked {
            place: place.clone(),
            expr: text(target, "expr").to_owned(),
        }));
    }
    queries
}

#[test]
fn a_dashboard_loads_everywhere_and_is_known_by_its_uid() {
    let mut uids = BTreeSet::new();
    for (name, board) in files() {
        assert_eq!(board["schemaVersion"], SCHEMA, "{name}");
        assert_eq!(board["uid"], format!("agents-{name}"));
        assert!(uids.insert(text(&board, "uid").to_owned()), "{name}");
        assert_eq!(board["editable"], false, "{name}");
        assert!(text(&board, "title").starts_with("Agents / "), "{name}");
        assert!(board.get("__inputs").is_none() && board.get("id").is_none());
        let variables = list(&board["templating"], "list");
        let found: Vec<_> = variables.iter().map(|one| text(one, "name")).collect();
        assert_eq!(found, VARIABLES, "{name}");
        for variable in &variables[1..] {
            assert_eq!(variable["multi"], true);
            assert_eq!(variable["allValue"], ".*");
            assert_eq!(variable["refresh"], 2, "with every change of the time");
            assert_eq!(variable["datasource"]["uid"], "${datasource}");
        }
    }
    assert_eq!(uids.len(), 6);
}

#[test]
fn every_panel_says_what_it_shows_in_which_unit_and_asks_for_something() {
    let mut titles = BTreeSet::new();
    for (place, panel) in panels() {
        assert!(!text(&panel, "title").is_empty(), "{place}");
        assert!(text(&panel, "description").ends_with('.'), "{place}");
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{place}");
        let defaults = &panel["fieldConfig"]["defaults"];
        assert!(UNITS.contains(&text(defaults, "unit")), "{place}");
        let steps = list(&defaults["thresholds"], "steps");
        let bounds: Vec<_> = steps.iter().map(|step| step["value"].as_f64()).collect();
        assert!(
            !bounds.is_empty() && bounds.is_sorted(),
            "{place}: {bounds:?}"
        );
        let targets = list(&panel, "targets");
        assert!(!targets.is_empty(), "{place}");
        for target in targets {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{place}");
            let is_stat = text(&panel, "type") == "stat";
            assert!(
                is_stat || !text(target, "legendFormat").is_empty(),
                "{place}"
            );
        }
        titles.insert(place);
    }
    assert_eq!(titles.len(), panels().len(), "two panels have one title");
}

#[test]
fn panels_do_not_cover_each_other() {
    for (name, board) in files() {
        let mut taken = BTreeSet::new();
        for panel in list(&board, "panels") {
            let side = |side: &str| panel["gridPos"][side].as_u64().unwrap();
            for x in side("x")..side("x") + side("w") {
                assert!(x < 24, "{name}: {}", panel["title"]);
                for y in side("y")..side("y") + side("h") {
                    assert!(taken.insert((x, y)), "{name}: {}", panel["title"]);
                }
            }
        }
    }
}

#[test]
fn every_query_asks_for_metrics_that_there_are() {
    let known = &names::shown() | &rules::recorded();
    let mut unknown = BTreeSet::new();
    for Asked { place, expr } in queries() {
        let asked = names::asked(&expr);
        assert!(!asked.is_empty(), "{place} asks for nothing");
        let missing = asked.difference(&known);
        unknown.extend(missing.map(|name| format!("{place}: {name}")));
    }
    assert_eq!(unknown, BTreeSet::new());
}

#[test]
fn every_query_follows_the_variables() {
    for Asked { place, expr } in queries() {
        for name in names::asked(&expr) {
            let is_recorded = name.contains(':');
            let is_chosen = |label: &str| expr.contains(&format!("{label}=~\"${label}"));
            let needed: &[&str] = match is_recorded {
                _ if name.starts_with(FOREIGN) || WITHOUT_NAMESPACE.contains(&&*name) => &[],
                true => &["namespace"],
                false => &VARIABLES[1..],
            };
            assert!(
                needed.iter().all(|label| is_chosen(label)),
                "{place}: {expr}"
            );
        }
    }
}

#[test]
fn counters_are_shown_as_they_grow_and_jobs_by_their_maximum() {
    for Asked { place, expr } in queries() {
        for name in names::asked(&expr) {
            let ends = ["_total", "_bucket", "_count", "_sum"];
            let is_counter = !name.contains(':') && ends.iter().any(|end| name.ends_with(end));
            let grows = ["rate(", "increase("].map(|call| format!("{call}{name}"));
            let is_grown = grows.iter().any(|call| expr.contains(call));
            assert_eq!(is_counter, is_grown, "{place}: {expr}");
            let is_of_jobs =
                name.starts_with("agents_sidecar_job_") || name.starts_with("agents:job_");
            assert!(!is_of_jobs || !expr.contains("sum"), "{place}: {expr}");
        }
    }
}

#[test]
fn every_recording_rule_is_used() {
    let mut used: BTreeSet<_> = queries()
        .iter()
        .flat_map(|asked| names::asked(&asked.expr))
        .collect();
    used.extend(
        rules::all()
            .iter()
            .flat_map(|rule| names::asked(&rule.expr)),
    );
    let unused: Vec<_> = rules::recorded().difference(&used).cloned().collect();
    assert_eq!(unused, Vec::<String>::new());
}
