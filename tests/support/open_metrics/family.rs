//! One family: what its type allows, line by line and together.

use std::collections::{BTreeMap, BTreeSet};

use super::line::{Labels, Metadata, Sample, Sort, number};

/// A family being read.
pub(super) struct Family {
    pub(super) name: String,
    kind: String,
    described: BTreeMap<Sort, String>,
    /// The metrics in the order in which they came; the last one may go on.
    metrics: Vec<Metric>,
    seen: BTreeSet<Labels>,
}

/// Samples that have their labels in common.
#[derive(Default)]
struct Metric {
    labels: Labels,
    /// Names and labels of samples, and their times; several with times are allowed.
    points: BTreeMap<(String, Labels), Option<f64>>,
    buckets: Vec<(f64, f64)>,
    values: BTreeMap<&'static str, f64>,
}

/// The suffixes of samples by type, and which of them may have an exemplar.
const KINDS: [(&str, &[&str], &[&str]); 8] = [
    ("counter", &["_total", "_created"], &["_total"]),
    ("gauge", &[""], &[]),
    (
        "histogram",
        &["_bucket", "_count", "_sum", "_created"],
        &["_bucket"],
    ),
    (
        "gaugehistogram",
        &["_bucket", "_gcount", "_gsum"],
        &["_bucket"],
    ),
    ("summary", &["", "_count", "_sum", "_created"], &[]),
    ("info", &["_info"], &[]),
    ("stateset", &[""], &[]),
    ("unknown", &[""], &[]),
];

impl Family {
    pub(super) fn named(name: String) -> Self {
        Self {
            name,
            kind: "unknown".to_owned(),
            described: BTreeMap::new(),
            metrics: Vec::new(),
            seen: BTreeSet::new(),
        }
    }

    fn rules(&self) -> (&'static [&'static str], &'static [&'static str]) {
        let known = KINDS.iter().find(|(kind, ..)| *kind == self.kind);
        known.map_or((&[], &[]), |(_, suffixes, exemplars)| (suffixes, exemplars))
    }

    fn suffix(&self, sample: &str) -> Option<&'static str> {
        let suffix = sample.strip_prefix(&self.name)?;
        self.rules()
            .0
            .iter()
            .find(|known| **known == suffix)
            .copied()
    }

    /// Whether a sample of this name is one of its own.
    pub(super) fn has(&self, sample: &str) -> bool {
        self.suffix(sample).is_some()
    }

    /// Every name that is its own: of samples, and of the family itself.
    pub(super) fn names(&self) -> BTreeSet<String> {
        let samples = self.rules().0.iter();
        let samples = samples.map(|suffix| format!("{}{suffix}", self.name));
        samples.chain([self.name.clone()]).collect()
    }

    pub(super) fn describe(&mut self, metadata: Metadata) -> Result<(), String> {
        let Metadata { sort, name, text } = metadata;
        if !self.metrics.is_empty() {
            return Err(format!("{name} is described after its samples"));
        }
        match sort {
            Sort::Type if !KINDS.iter().any(|(kind, ..)| *kind == text) => {
                return Err(format!("`{text}` is no type"));
            }
            Sort::Type => self.kind.clone_from(&text),
            Sort::Unit if !text.is_empty() && !name.ends_with(&format!("_{text}")) => {
                return Err(format!("{name} does not end in its unit {text}"));
            }
            Sort::Unit | Sort::Help => {}
        }
        match self.described.insert(sort, text) {
            Some(_) => Err(format!("{name} is described twice by {sort:?}")),
            None => Ok(()),
        }
    }

    pub(super) fn take(&mut self, sample: Sample) -> Result<(), String> {
        let Some(suffix) = self.suffix(&sample.name) else {
            return Err(format!("{} is no sample of {}", sample.name, self.name));
        };
        if sample.exemplar.is_some() && !self.rules().1.contains(&suffix) {
            return Err(format!("{} may not have an exemplar", sample.name));
        }
        self.check(suffix, &sample)?;
        let own = match (&*self.kind, suffix) {
            ("histogram" | "gaugehistogram", "_bucket") => Some("le"),
            ("summary", "") => Some("quantile"),
            ("stateset", _) => Some(&*self.name),
            _ => None,
        };
        let mut labels = sample.labels.clone();
        if let Some(own) = own {
            labels.remove(own);
        }
        if self.metrics.last().is_none_or(|last| last.labels != labels) {
            if !self.seen.insert(labels.clone()) {
                return Err("samples with the same labels do not stand together".to_owned());
            }
            self.metrics.push(Metric {
                labels,
                ..Metric::default()
            });
        }
        let metric = self.metrics.last_mut().ok_or("a metric")?;
        metric.take(suffix, sample)
    }

    /// What the type says about a value.
    fn check(&self, suffix: &str, sample: &Sample) -> Result<(), String> {
        let Sample {
            name,
            labels,
            value,
            ..
        } = sample;
        let has = |label: &str| labels.get(label).map(|text| number(text));
        let wrong = |what: &str| Err(format!("{name} {value}: {what}"));
        let is_count = value.fract() == 0.0 && *value >= 0.0;
        match (&*self.kind, suffix) {
            ("counter", "_total") | ("summary" | "histogram", "_sum")
                if value.is_nan() || *value < 0.0 =>
            {
                wrong("a total is not below zero")
            }
            ("histogram" | "summary", "_count")
            | ("histogram" | "gaugehistogram", "_bucket")
            | ("gaugehistogram", "_gcount")
                if !is_count =>
            {
                wrong("a count is a whole number")
            }
            (_, "_bucket") => match has("le") {
                Some(Ok(bound)) if !bound.is_nan() => Ok(()),
                _ => wrong("a bucket has a bound"),
            },
            ("summary", "") => match has("quantile") {
                Some(Ok(quantile)) if (0.0..=1.0).contains(&quantile) => {
                    match value.is_nan() || *value >= 0.0 {
                        true => Ok(()),
                        false => wrong("a value of a quantile is not below zero"),
                    }
                }
                _ => wrong("a quantile is between 0 and 1"),
            },
            ("info", _) if *value != 1.0 => wrong("an info is 1"),
            ("stateset", _) if !labels.contains_key(&self.name) => wrong("a state has a name"),
            ("stateset", _) if *value != 0.0 && *value != 1.0 => wrong("a state is 0 or 1"),
            (_, "_created") if !value.is_finite() || *value < 0.0 => wrong("that is no time"),
            _ => Ok(()),
        }
    }

    pub(super) fn close(self) -> Result<(), String> {
        let unit = self.described.get(&Sort::Unit);
        let is_unitless = matches!(&*self.kind, "info" | "stateset");
        if is_unitless && unit.is_some_and(|unit| !unit.is_empty()) {
            return Err(format!(
                "{} has a unit, but is of type {}",
                self.name, self.kind
            ));
        }
        let name = &self.name;
        let mut metrics = self.metrics.iter();
        metrics.try_for_each(|metric| match &*self.kind {
            "histogram" => metric.is_whole(name, "_count", "_sum"),
            "gaugehistogram" => metric.is_whole(name, "_gcount", "_gsum"),
            _ => Ok(()),
        })
    }
}

impl Metric {
    fn take(&mut self, suffix: &'static str, sample: Sample) -> Result<(), String> {
        let Sample {
            name,
            labels,
            value,
            timestamp,
            ..
        } = sample;
        let mut times = self.points.values();
        if times.any(|known| known.is_some() != timestamp.is_some()) {
            return Err(format!("{name} has a time only at times"));
        }
        let bound = labels.get("le").map(|text| number(text)).transpose()?;
        let before = self.points.insert((name.clone(), labels), timestamp);
        match (before, timestamp) {
            (None, _) => {}
            (Some(Some(before)), Some(now)) if before <= now => {}
            (Some(_), _) => return Err(format!("{name} is there twice, or goes back in time")),
        }
        match (suffix, bound) {
            ("_bucket", Some(bound)) if before.is_none() => self.buckets.push((bound, value)),
            _ => drop(self.values.insert(suffix, value)),
        }
        Ok(())
    }

    /// Whether buckets, count and sum of a histogram are there and agree.
    fn is_whole(&self, name: &str, count: &str, sum: &str) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("{name}: {what}"));
        let mut pairs = self.buckets.windows(2);
        let is_rising = pairs.all(|pair| match pair {
            [(low, few), (high, many)] => low < high && few <= many,
            _ => false,
        });
        if !is_rising {
            return wrong("bounds and counts of buckets rise");
        }
        let Some((f64::INFINITY, all)) = self.buckets.last() else {
            return wrong("the last bucket is +Inf");
        };
        let (count, sum) = (self.values.get(count), self.values.get(sum));
        if count.is_some_and(|count| count != all) {
            return wrong("the count is that of the last bucket");
        }
        if count.is_some() != sum.is_some() {
            return wrong("count and sum come together");
        }
        let has_negative = self.buckets.first().is_some_and(|(bound, _)| *bound < 0.0);
        match has_negative && self.values.contains_key("_sum") {
            true => wrong("a histogram with bounds below zero has no sum"),
            false => Ok(()),
        }
    }
}
