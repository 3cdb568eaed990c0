//! A page of metrics, line by line; all but a few families of the sidecar itself is passed over. Pure.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::api::contract::sidecar_metric as metric;

/// Entries of one sort that are kept.
const MOST: usize = 64;

/// What all names begin with that matter here.
const OURS: [&str; 2] = ["agents_sidecar_source_", "agents_sidecar_job_"];

/// A stream that the sidecar follows.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SidecarSource")]
pub(super) struct Source {
    /// Its name in the settings.
    name: String,
    /// Whether it is followed now.
    up: bool,
    /// Whether the source holds the lease, where it says so.
    leader: Option<bool>,
    /// Whether there is nothing to follow.
    stopped: bool,
    /// Seconds since the last event.
    last_event_age_seconds: Option<f64>,
    /// Times that it was opened.
    connections: f64,
    /// Times that it ended or could not be opened.
    disconnects: f64,
    /// Events that the source could not keep.
    dropped: f64,
    /// Times that it could not go on from the last event.
    gaps: f64,
}

/// How Jobs stand.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SidecarJobs")]
pub(super) struct Jobs {
    /// How the watch of Jobs stands: on, waiting, unfit or off.
    watch: Option<String>,
    /// How many there are, by state.
    known: BTreeMap<String, f64>,
    /// How many have ended without a stored outcome.
    unrecorded: f64,
    /// Seconds since the first of those ended.
    oldest_unrecorded_seconds: f64,
    /// Pods that no Job looks after.
    orphaned_pods: f64,
    /// How many went before their outcome was stored, by class.
    premature_deletions: BTreeMap<String, f64>,
    /// What endangered an outcome.
    hazards: BTreeMap<String, f64>,
}

/// A page, as far as it was read.
#[derive(Debug, Default)]
pub(super) struct Page {
    sources: BTreeMap<String, Source>,
    jobs: Jobs,
}

impl Page {
    /// Reads one line.
    pub(super) fn take(&mut self, line: &str) {
        if !OURS.iter().any(|ours| line.starts_with(ours)) {
            return;
        }
        if let Some((name, labels, value)) = sample(line) {
            self.keep(name, &labels, value);
        }
    }

    pub(super) fn told(self) -> (Vec<Source>, Jobs) {
        (self.sources.into_values().collect(), self.jobs)
    }

    fn keep(&mut self, name: &str, labels: &BTreeMap<&str, String>, value: f64) {
        let label = |name: &str| labels.get(name).cloned();
        let jobs = &mut self.jobs;
        match name {
            metric::JOB_WATCH_MODE if value == 1.0 => jobs.watch = label("mode"),
            metric::JOB_KNOWN => add(&mut jobs.known, label("state"), value),
            metric::JOB_UNRECORDED => jobs.unrecorded = value,
            metric::JOB_OLDEST_UNRECORDED => jobs.oldest_unrecorded_seconds = value,
            metric::JOB_ORPHANED_PODS => jobs.orphaned_pods = value,
            metric::JOB_HAZARDS if value > 0.0 => add(&mut jobs.hazards, label("hazard"), value),
            // What was only asked for is not gone yet.
            metric::JOB_PREMATURE_DELETIONS
                if value > 0.0 && label("stage").as_deref() == Some("gone") =>
            {
                add(&mut jobs.premature_deletions, label("class"), value);
            }
            _ => self.keep_source(name, label("source"), value),
        }
    }

    fn keep_source(&mut self, metric: &str, name: Option<String>, value: f64) {
        let Some(name) = name else { return };
        if !self.sources.contains_key(&name) && self.sources.len() >= MOST {
            return;
        }
        let source = self.sources.entry(name.clone()).or_default();
        source.name = name;
        let is_so = value == 1.0;
        match metric {
            metric::SOURCE_UP => source.up = is_so,
            metric::SOURCE_LEADER => source.leader = Some(is_so),
            metric::SOURCE_STOPPED => source.stopped = is_so,
            metric::SOURCE_LAST_EVENT_AGE => source.last_event_age_seconds = Some(value),
            metric::SOURCE_CONNECTIONS => source.connections = value,
            metric::SOURCE_DISCONNECTS => source.disconnects += value,
            metric::SOURCE_DROPPED => source.dropped = value,
            metric::SOURCE_GAPS => source.gaps = value,
            _ => {}
        }
    }
}

fn add(to: &mut BTreeMap<String, f64>, key: Option<String>, value: f64) {
    let Some(key) = key else { return };
    if to.contains_key(&key) || to.len() < MOST {
        *to.entry(key).or_default() += value;
    }
}

/// Name, labels and value of a line; none if it is no sample, or no number that can be told.
fn sample(line: &str) -> Option<(&str, BTreeMap<&str, String>, f64)> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, after) = rest.trim_start_matches([',', ' ']).split_once("=\"")?;
            let (value, after) = quoted(after)?;
            labels.insert(label, value);
            rest = after;
        }
        rest = rest.strip_prefix('}')?;
    }
    let value: f64 = rest.split_whitespace().next()?.parse().ok()?;
    value.is_finite().then_some((name, labels, value))
}

/// A text up to its closing quote, and what comes after.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut found = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((found, text.get(at + 1..)?)),
            '\\' => match letters.next()?.1 {
                'n' => found.push('\n'),
                other => found.push(other),
            },
            other => found.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<Source>, Jobs) {
        let mut page = Page::default();
        text.lines().for_each(|line| page.take(line));
        page.told()
    }

    #[test]
    fn sources_and_jobs_are_found_among_everything_else() {
        let (sources, jobs) = read(
            r#"# TYPE agents_sidecar_source_up gauge
agents_sidecar_source_up{source="controller"} 1
agents_sidecar_source_leader{source="controller"} 0
agents_sidecar_source_last_event_age_seconds{source="controller"} 1.5
agents_sidecar_source_connections_total{source="controller"} 2
agents_sidecar_source_disconnects_total{source="controller",cause="ended"} 3
agents_sidecar_source_disconnects_total{source="controller",cause="silent"} 4 1700000000000
agents_sidecar_source_up{source="up \"stream\"\\\n"} 0
agents_sidecar_job_watch_mode{mode="off"} 0
agents_sidecar_job_watch_mode{mode="on"} 1
agents_sidecar_job_known{state="running"} 7
agents_sidecar_job_unrecorded 2
agents_sidecar_job_oldest_unrecorded_seconds 12.5
agents_sidecar_job_premature_deletions_total{class="JobDeletedByActor",stage="asked"} 5
agents_sidecar_job_premature_deletions_total{class="JobDeletedByActor",stage="gone"} 1
agents_sidecar_job_premature_deletions_total{class="JobTtlExpired",stage="gone"} 0
agents_sidecar_job_hazards_total{hazard="ttl_injected"} 1
other_metric{source="controller"} 9
"#,
        );
        let expected = Source {
            name: "controller".to_owned(),
            up: true,
            leader: Some(false),
            last_event_age_seconds: Some(1.5),
            connections: 2.0,
            disconnects: 7.0,
            ..Source::default()
        };
        assert_eq!(sources[0], expected);
        assert_eq!(
            (&*sources[1].name, sources[1].up),
            ("up \"stream\"\\\n", false)
        );
        assert_eq!(jobs.watch.as_deref(), Some("on"));
        assert_eq!(
            (jobs.unrecorded, jobs.oldest_unrecorded_seconds),
            (2.0, 12.5)
        );
        assert_eq!(jobs.known, [("running".to_owned(), 7.0)].into());
        let gone = [("JobDeletedByActor".to_owned(), 1.0)];
        assert_eq!(jobs.premature_deletions, gone.into());
        assert_eq!(jobs.hazards, [("ttl_injected".to_owned(), 1.0)].into());
    }

    #[test]
    fn odd_lines_are_passed_over_and_there_is_a_bound() {
        let odd = [
            "agents_sidecar_source_up",
            "agents_sidecar_source_up{",
            "agents_sidecar_source_up{source=\"a",
            "agents_sidecar_source_up{source=\"a\\",
            "agents_sidecar_source_up{source=\"a\"",
            "agents_sidecar_source_up{source=\"a\"}",
            "agents_sidecar_source_up{source=\"a\"} x",
            "agents_sidecar_source_up{source=\"a\"} NaN",
            "agents_sidecar_source_up{source} 1",
            "agents_sidecar_source_up 1",
        ];
        assert_eq!(read(&odd.join("\n")).0, []);
        let many = (0..1000).map(|at| format!("agents_sidecar_source_up{{source=\"{at}\"}} 1\n"));
        assert_eq!(read(&many.collect::<String>()).0.len(), MOST);
    }
}
