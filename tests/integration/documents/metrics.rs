//! The metrics of the programs that have a page of them, as a scrape of each shows them.

use std::collections::BTreeSet;

use agents::{
    api::{contract::env, registration::rung::Rung},
    kit::args::variable as common,
    serve::variable as serve,
};
use agents_webhook::args::variable as webhook;
use anyhow::Result;
use support::{lab, metrics::Page, wait};

use crate::kit::{
    client::DEADLINE,
    process::{Process, product},
};
use crate::sidecar::{
    jobs::with_a_time_to_live,
    streams::full::{Full, is_shown},
};

/// Shown only where a Job has a time to live.
const HEADROOM: &str = "agents_sidecar_job_ttl_headroom_seconds";

/// One family of metrics.
pub(super) struct Family {
    /// Its name, as samples and queries write it.
    pub(super) name: String,
    /// Names of its labels, in order.
    pub(super) labels: Vec<String>,
    /// Its type.
    pub(super) kind: String,
    /// What it says.
    pub(super) help: String,
}

/// Starts a program in a cluster that has our kinds and reads its metrics page. Streams tell the sidecar all there is, and a Job
/// has all that one can have, so that every series is there.
pub(super) async fn families(program: &str) -> Vec<Family> {
    let streams = Full::start().await.unwrap();
    let mut settings: Vec<_> = streams.settings().into();
    let is_sidecar = program == "agents-sidecar";
    let watched = match is_sidecar {
        true => Some(with_a_time_to_live().await.unwrap()),
        false => None,
    };
    let namespaces = watched.iter().map(|scene| scene.here.name.clone());
    settings.extend(namespaces.map(|name| (env::NAMESPACES, name)));
    let cluster = lab::shared().await.unwrap().environment();
    let cluster = cluster
        .iter()
        .map(|(name, path)| (*name, path.to_str().expect("UTF-8")));
    let environment: Vec<_> = [
        (common::ADMIN_LISTEN, "127.0.0.1:0"),
        (webhook::LISTEN, "127.0.0.1:0"),
        (serve::LISTEN, "127.0.0.1:0"),
    ]
    .into_iter()
    .chain(cluster)
    .chain(settings.iter().map(|(name, value)| (*name, value.as_str())))
    .collect();
    let mut words = program.split(' ');
    let name = words.next().unwrap_or_default();
    let command: Vec<_> = words.collect();
    let mut process = Process::start(&product(name), &command, &environment);
    let admin = process.address("admin").await.to_string();
    let page = wait::retry("a full page", DEADLINE, || async {
        let page = Page::scrape(&admin).await?;
        let is_full = !is_sidecar || is_shown(&page) && page.value(HEADROOM, &[]).is_some();
        anyhow::ensure!(is_full, "{page:?}");
        Ok(page)
    });
    read(&page.await.unwrap())
}

/// What a running program shows about itself, as a table.
pub(super) async fn table(program: &str, prefix: &str) -> String {
    let mut text = "| Metric | Type | Labels | What it says |\n|---|---|---|---|\n".to_owned();
    let families = families(program).await.into_iter();
    for family in families.filter(|family| family.name.starts_with(prefix)) {
        let labels = family.labels.iter().map(|label| format!("`{label}`"));
        let labels: Vec<_> = labels.collect();
        text += &format!(
            "| `{}` | {} | {} | {} |\n",
            family.name,
            family.kind,
            labels.join(", "),
            family.help.replace('|', "\\|")
        );
    }
    text
}

/// The families of a page, by name.
fn read(page: &Page) -> Vec<Family> {
    let families = page.types.iter().map(|(name, kind)| Family {
        name: name.clone(),
        labels: labels(page, name),
        kind: kind.clone(),
        help: page.help.get(name).cloned().unwrap_or_default(),
    });
    families.collect()
}

/// Names of all labels of a family but the bounds of its buckets.
fn labels(page: &Page, family: &str) -> Vec<String> {
    let samples = ["", "_bucket", "_sum", "_count"].map(|end| format!("{family}{end}"));
    let of_family = |name: &String| samples.contains(name);
    let found: BTreeSet<_> = page
        .samples
        .keys()
        .filter(|series| of_family(&series.name))
        .flat_map(|series| series.labels.keys())
        .filter(|label| *label != "le")
        .collect();
    found.into_iter().cloned().collect()
}

#[tokio::test]
async fn every_gate_of_the_ladder_is_a_metric_that_there_is() -> Result<()> {
    support::kinds!();
    let families = families("agents-webhook").await;
    let there: BTreeSet<_> = families.iter().map(|family| &*family.name).collect();
    let gates = Rung::ALL.into_iter().flat_map(|rung| rung.gates());
    let ours = gates.filter(|gate| gate.metric.starts_with("agents_"));
    let missing: Vec<_> = ours
        .filter(|gate| !there.contains(gate.metric))
        .map(|gate| gate.metric)
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
    Ok(())
}
