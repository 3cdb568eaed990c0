//! A real Prometheus that scrapes the pages of the programs.

use super::Up;
use anyhow::{Result, ensure};
use support::{
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

/// Starts it and waits until it has something to tell.
pub(super) async fn start(programs: &[Up]) -> Result<Scraper> {
    let pages = programs.iter().filter(|up| up.has_page());
    let jobs: Vec<Job> = pages
        .map(|up| Job {
            name: up.name.to_owned(),
            target: up.admin,
            protocol: "PrometheusProto",
            escaping: "underscores",
        })
        .collect();
    let prometheus = Prometheus::start(&Settings {
        jobs,
        strategy: "UnderscoreEscapingWithSuffixes",
    })
    .await?;
    let rows = wait::retry("what the controllers count", DEADLINE, || async {
        let rows = prometheus.query(QUERY).await?;
        ensure!(!rows.is_empty(), "Prometheus has none of it yet");
        Ok(rows)
    })
    .await?;
    let line = |(series, value): (&support::metrics::Series, &String)| {
        let label = |name| series.labels.get(name).map(String::as_str);
        let [kind, result] = ["kind", "result"].map(|name| label(name).unwrap_or_default());
        format!("{kind:<24} {result:<12} {value}\n")
    };
    let answer = rows.iter().map(line).collect();
    Ok(Scraper { prometheus, answer })
}
