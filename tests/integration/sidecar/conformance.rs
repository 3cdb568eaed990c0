//! What others make of the sidecar: a real Prometheus in every format that it can ask for, other parsers, and the SDKs of
//! OpenTelemetry. `docs/conformance.md` counts it.

mod clients;
mod data;
pub(crate) mod document;
mod formats;
mod open_metrics;
mod own_endpoint;
mod parsers;

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use serde_json::Value;
use support::{
    http,
    metrics::Series,
    prometheus::{DEADLINE, Prometheus},
    wait,
};

use super::otlp::Sidecar;

/// The four ways to make names, as they are called everywhere.
const STRATEGIES: [&str; 4] = [
    "UnderscoreEscapingWithSuffixes",
    "UnderscoreEscapingWithoutSuffixes",
    "NoUTF8EscapingWithSuffixes",
    "NoTranslation",
];

/// Pushes JSON to a sidecar, which must take all of it.
async fn push(sidecar: &Sidecar, request: &Value) -> Result<()> {
    let body = request.to_string().into_bytes();
    let authority = sidecar.http.to_string();
    let answer = http::post(&authority, "/v1/metrics", "application/json", body).await?;
    ensure!(answer == "{}", "{answer}");
    Ok(())
}

/// What a Prometheus has stored of a target, without the labels that say which target that is: neither what it measures
/// of its own scrapes nor what the sidecar says of itself.
async fn of_target(
    prometheus: &Prometheus,
    label: &str,
    value: &str,
) -> Result<BTreeMap<Series, String>> {
    const OWN: &str = "up|scrape_.*|process_.*|agents_.*|process__.*|agents__.*";
    let selector = format!("{{{label}=\"{value}\", __name__!~\"{OWN}\"}}");
    // A scrape that came too late hides all of a target until the next one.
    let stored = wait::retry("what a target has", DEADLINE, || async {
        let stored = prometheus.query(&selector).await?;
        ensure!(!stored.is_empty(), "nothing of {label} {value}");
        Ok(stored)
    });
    let stored = stored.await?.into_iter();
    let stored = stored.map(|(mut series, value)| {
        series
            .labels
            .retain(|name, _| name != "job" && name != "instance");
        (series, value)
    });
    Ok(stored.collect())
}
