//! All that a run left to be seen, as one value: its final status, every Event about it, and what was counted. What differs
//! from one time to the next is replaced by words, so that the whole can be compared with what is agreed.

use anyhow::{Result, bail};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, fs};

use crate::{
    events::Said,
    fixtures::repository,
    otlp::{Received, read},
};

/// Where what is agreed is, one file for each case.
const AGREED: &str = "tests/fixtures/lifecycle";

/// What a run left to be seen.
pub struct Outcome {
    /// Its final status; null if the run is gone.
    pub status: Value,
    /// All Events about it.
    pub events: Vec<Said>,
    /// The last value of each series of the metrics that count runs and Jobs.
    pub metrics: Value,
}

/// The last value of every series of some metrics that is not zero.
pub fn counted(received: &[Received], names: &[&str]) -> Value {
    let mut metrics: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for one in received {
        let Received::Metric(metric) = one else {
            continue;
        };
        if !names.contains(&&*metric.name) {
            continue;
        }
        let series = read(metric).into_iter();
        let series = series.filter(|(_, value)| *value != 0.0);
        let series = series.map(|(labels, value)| (labels.join(" "), json!(value)));
        metrics.insert(&metric.name, series.collect());
    }
    metrics.retain(|_, series| !series.is_empty());
    json!(metrics)
}

impl Outcome {
    /// The whole as one value. `known` are texts that differ each time, and the words in their place.
    pub fn whole(&self, known: &[(&str, &str)]) -> Value {
        let events = self.events.iter().map(|said| {
            let Said {
                kind,
                reason,
                action,
                note,
                count,
            } = said;
            json!({"type": kind, "reason": reason, "action": action, "note": note, "count": count})
        });
        let events: Vec<_> = events.collect();
        let mut whole = json!({"status": self.status, "events": events, "metrics": self.metrics});
        replace(&mut whole, known);
        whole
    }

    /// Compares the whole with what is agreed for a case.
    pub fn is_agreed(&self, case: &str, known: &[(&str, &str)]) -> Result<()> {
        let seen = self.whole(known);
        let file = repository().join(AGREED).join(format!("{case}.yaml"));
        let agreed = fs::read_to_string(&file).unwrap_or_default();
        let agreed: Value = match agreed.is_empty() {
            true => Value::Null,
            false => serde_saphyr::from_str(&agreed)?,
        };
        if seen != agreed {
            bail!(
                "{case} is not as agreed in {AGREED}/{case}.yaml, but:\n{}",
                serde_json::to_string_pretty(&seen)?
            );
        }
        Ok(())
    }
}

/// Puts words in place of times, hashes and what is known to differ.
fn replace(value: &mut Value, known: &[(&str, &str)]) {
    match value {
        Value::String(text) => {
            for (differs, word) in known {
                *text = text.replace(differs, word);
            }
            if text.parse::<jiff::Timestamp>().is_ok() {
                *text = "a time".to_owned();
            }
            if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                *text = "a hash".to_owned();
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(|entry| replace(entry, known)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace(field, known)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_each_time_is_replaced() {
        let outcome = Outcome {
            status: json!({"phase": "Failed", "at": "2026-01-01T00:00:00Z", "uid": "u-1",
                "hash": "0".repeat(64), "count": 3, "note": "of u-1"}),
            events: vec![],
            metrics: json!({}),
        };
        let expected = json!({"events": [], "metrics": {}, "status": {"phase": "Failed", "at": "a time",
            "uid": "its uid", "hash": "a hash", "count": 3, "note": "of its uid"}});
        assert_eq!(outcome.whole(&[("u-1", "its uid")]), expected);
    }
}
