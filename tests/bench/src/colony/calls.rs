//! Calls to the API server that one run takes, as the controllers themselves count them.

use crate::table::Table;
use agents::api::contract::metric;
use anyhow::Result;
use std::collections::BTreeMap;
use support::otlp::{Labels, Received, Receiver, read};

/// Where calls are counted.
pub struct Counted {
    receiver: Receiver,
    before: BTreeMap<Labels, f64>,
}

impl Counted {
    /// Counts from now on.
    pub async fn from_now(mut receiver: Receiver) -> Result<Self> {
        let before = receiver.series(metric::API_CALLS).await?;
        Ok(Self { receiver, before })
    }

    /// What was added since, for each of so many runs.
    pub async fn per_run(self, runs: usize) -> Result<Calls> {
        let rest = self.receiver.end().await?.into_iter();
        let mut told = rest.filter_map(|received| match received {
            Received::Metric(metric) if metric.name == metric::API_CALLS => Some(read(&metric)),
            Received::Metric(_) | Received::Span(..) => None,
        });
        let last = told.next_back().unwrap_or_default();
        let added = last.into_iter().map(|(labels, count)| {
            let before = self.before.get(&labels).copied().unwrap_or_default();
            (labels, (count - before) / runs as f64)
        });
        Ok(Calls(added.filter(|(_, count)| *count > 0.0).collect()))
    }
}

/// Calls of one run, by what they do, to what, and how that went.
#[derive(Debug)]
pub struct Calls(BTreeMap<Labels, f64>);

impl Calls {
    /// Writes, those of Events aside.
    pub fn writes(&self) -> f64 {
        self.sum(|labels| is_write(labels) && !is_of(labels, "resource", &["events"]))
    }

    /// Writes of Events.
    pub fn events(&self) -> f64 {
        self.sum(|labels| is_write(labels) && is_of(labels, "resource", &["events"]))
    }

    fn sum(&self, wanted: impl Fn(&Labels) -> bool) -> f64 {
        let wanted = self.0.iter().filter(|(labels, _)| wanted(labels));
        wanted.map(|(_, count)| count).sum()
    }

    /// All of them.
    pub fn table(&self) -> Table {
        let mut table = Table::new(&["call", "of what", "answer", "per run"]);
        for (labels, count) in &self.0 {
            let cell = |name| value(labels, name).to_owned();
            let row = [cell("verb"), cell("resource"), cell("code")];
            table.row(row.into_iter().chain([format!("{count:.2}")]));
        }
        table
    }
}

fn is_write(labels: &Labels) -> bool {
    is_of(labels, "verb", &["create", "update", "patch", "delete"])
}

fn is_of(labels: &Labels, name: &str, values: &[&str]) -> bool {
    values.contains(&value(labels, name))
}

fn value<'a>(labels: &'a Labels, name: &str) -> &'a str {
    let mut pairs = labels.iter().filter_map(|label| label.split_once('='));
    let found = pairs.find(|(key, _)| *key == name);
    found.map_or("", |(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_no_writes_and_events_are_counted_apart() {
        let call = |verb: &str, resource: &str, count| {
            let labels = ["code=2xx".to_owned(), format!("resource={resource}")];
            let labels = labels.into_iter().chain([format!("verb={verb}")]);
            (labels.collect::<Labels>(), count)
        };
        let calls = Calls(BTreeMap::from([
            call("get", "jobs", 1.0),
            call("create", "jobs", 1.0),
            call("patch", "agentruns", 4.0),
            call("create", "events", 2.0),
        ]));
        assert_eq!((calls.writes(), calls.events()), (5.0, 2.0));
        assert!(
            calls
                .table()
                .text()
                .contains("| patch  | agentruns | 2xx    | 4.00    |")
        );
    }
}
