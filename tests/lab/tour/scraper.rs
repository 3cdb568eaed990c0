//! A real Prometheus that scrapes the pages of the programs.

use super::Up;
use anyhow::{Context, Result, ensure};
use support::{
    lab::Lab,
    metrics::Series,
    prometheus::{DEADLINE, Job, Prometheus, Settings},
    wait,
};

/// What people may ask it first: how often each kind was looked at, and how that went.
pub(super) const QUERY: &str = "sum by (kind, result) (agents_reconciles_total) > 0";

/// The Prometheus, and what it answered to [`QUERY`], a line per row.
pub(super) struct Scraper {
    pub(super) prometheus: Prometheus,
    pub(super) answer: String,
}

/// Starts it and waits until it can tell of runs: the examples make some, but the first export may be older than they are.
pub(super) async fn start(lab: &Lab, programs: &[Up]) -> Result<Scraper> {
    let pages = programs.iter().filter(|up| up.has_page());
    let jobs: Vec<Job> = pages
        .map(|up| Job {
            name: up.name.to_owned(),
            target: up.admin,
            protocol: "PrometheusProto",
            escaping: "underscores",
        })
        .collect();
    let settings = Settings {
        jobs,
        strategy: "UnderscoreEscapingWithSuffixes",
    };
    let folder = lab.kubeconfig().parent().context("the lab has no folder")?;
    let prometheus = Prometheus::bound(&settings, folder).await?;
    let rows = wait::retry("what the controllers count", DEADLINE, || async {
        let rows = prometheus.query(QUERY).await?;
        let runs = rows
            .keys()
            .any(|series| label(series, "kind") == "AgentRun");
        ensure!(runs, "Prometheus knows of no run yet: {rows:?}");
        Ok(rows)
    })
    .await?;
    let line = |(series, value): (&Series, &String)| {
        let [kind, result] = ["kind", "result"].map(|name| label(series, name));
        format!("{kind:<24} {result:<12} {value}\n")
    };
    let answer = rows.iter().map(line).collect();
    Ok(Scraper { prometheus, answer })
}

fn label<'a>(series: &'a Series, name: &str) -> &'a str {
    series
        .labels
        .get(name)
        .map(String::as_str)
        .unwrap_or_default()
}
