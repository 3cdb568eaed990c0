//! Metrics pages as values that can be compared.
//!
//! Reads the Prometheus text format and OpenMetrics; keeps values, types and help, not timestamps and exemplars.

use crate::http;
use agents::api::contract::path;
use anyhow::{Context, Result, bail};
use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt,
};

/// One series: a name and its labels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Series {
    /// The sample's name, with suffixes such as `_bucket`.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

impl Series {
    /// A series by name and labels.
    pub fn new(name: &str, labels: &[(&str, &str)]) -> Self {
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        Self {
            name: name.to_owned(),
            labels: labels.iter().map(owned).collect(),
        }
    }
}

impl fmt::Display for Series {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)?;
        formatter.debug_map().entries(&self.labels).finish()
    }
}

/// A metrics page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// Type of each family.
    pub types: BTreeMap<String, String>,
    /// Help text of each family.
    pub help: BTreeMap<String, String>,
    /// Value of each series.
    pub samples: BTreeMap<Series, f64>,
}

impl Page {
    /// Gets `/metrics` from `host:port`.
    pub async fn scrape(authority: &str) -> Result<Self> {
        http::get(authority, path::METRICS).await?.parse()
    }

    /// The value of one series.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.samples.get(&Series::new(name, labels)).copied()
    }

    /// All series of one name.
    pub fn series(&self, name: &str) -> BTreeMap<&Series, f64> {
        let named = self
            .samples
            .iter()
            .filter(|(series, _)| series.name == name);
        named.map(|(series, value)| (series, *value)).collect()
    }

    /// What was added since an earlier page; series that did not change are left out.
    pub fn since(&self, earlier: &Self) -> BTreeMap<Series, f64> {
        let added = self.samples.iter().map(|(series, now)| {
            let before = earlier.samples.get(series).copied().unwrap_or_default();
            (series.clone(), now - before)
        });
        added.filter(|(_, added)| *added != 0.0).collect()
    }
}

impl std::str::FromStr for Page {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut page = Self::default();
        for (number, line) in text.lines().enumerate() {
            page.take(line)
                .with_context(|| format!("line {} of the metrics page: {line}", number + 1))?;
        }
        Ok(page)
    }
}

impl Page {
    fn take(&mut self, line: &str) -> Result<()> {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            match (words.next(), words.next(), words.next()) {
                (Some("TYPE"), Some(name), Some(kind)) => {
                    self.types.insert(name.to_owned(), kind.to_owned());
                }
                (Some("HELP"), Some(name), text) => {
                    self.help
                        .insert(name.to_owned(), text.unwrap_or_default().to_owned());
                }
                _ => {}
            }
        } else if !line.trim().is_empty() && !line.starts_with('#') {
            let (series, value) = sample(line)?;
            match self.samples.entry(series) {
                Entry::Vacant(place) => {
                    place.insert(value);
                }
                Entry::Occupied(known) => bail!("{} is there twice", known.key()),
            }
        }
        Ok(())
    }
}

/// `name{label="value",...} value [timestamp] [# exemplar]`
fn sample(line: &str) -> Result<(Series, f64)> {
    let end = line.find(['{', ' ']).context("there is no value")?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (BTreeMap::new(), rest),
    };
    let word = rest
        .split_ascii_whitespace()
        .next()
        .context("there is no value")?;
    let value = word
        .parse()
        .with_context(|| format!("`{word}` is not a number"))?;
    let name = name.to_owned();
    Ok((Series { name, labels }, value))
}

/// Labels up to the closing brace, and what follows it.
fn labels(mut rest: &str) -> Result<(BTreeMap<String, String>, &str)> {
    let mut labels = BTreeMap::new();
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(after) = rest.strip_prefix('}') {
            return Ok((labels, after));
        }
        let (name, after) = rest.split_once("=\"").context("a label has no value")?;
        let (value, after) = quoted(after)?;
        if labels.insert(name.to_owned(), value).is_some() {
            bail!("label {name} is there twice");
        }
        rest = after;
    }
}

/// A label's value up to its closing quote, unescaped, and what follows.
fn quoted(text: &str) -> Result<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Ok((value, &text[at + 1..])),
            '\\' => match characters.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, other)) => value.push(other),
                None => break,
            },
            other => value.push(other),
        }
    }
    bail!("a label's value has no closing quote")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_with_all_its_oddities() {
        let page: Page = "\
# HELP requests_total Requests by \"outcome\".
# TYPE requests_total counter
requests_total{outcome=\"ok\",path=\"a\\\\b\\\"c\\nd\"} 3 1700000000
requests_total{outcome=\"bad\",path=\"}\"} +Inf # {trace_id=\"x\"} 1

# a comment
# TYPE up gauge
up 1
# EOF
"
        .parse()
        .unwrap();
        assert_eq!(
            page,
            Page {
                types: [("requests_total", "counter"), ("up", "gauge")]
                    .map(|(name, kind)| (name.to_owned(), kind.to_owned()))
                    .into(),
                help: [(
                    "requests_total".to_owned(),
                    "Requests by \"outcome\".".to_owned()
                )]
                .into(),
                samples: [
                    (
                        Series::new(
                            "requests_total",
                            &[("outcome", "ok"), ("path", "a\\b\"c\nd")]
                        ),
                        3.0
                    ),
                    (
                        Series::new("requests_total", &[("outcome", "bad"), ("path", "}")]),
                        f64::INFINITY
                    ),
                    (Series::new("up", &[]), 1.0),
                ]
                .into(),
            }
        );
    }

    #[test]
    fn a_faulty_page_is_refused_with_its_line() {
        for (page, complaint) in [
            ("up", "line 1 of the metrics page: up"),
            ("a 1\na 2", "line 2 of the metrics page: a 2"),
            ("a{b=\"c} 1", "line 1"),
            ("a x", "line 1"),
        ] {
            let error = page.parse::<Page>().unwrap_err().to_string();
            assert!(error.starts_with(complaint), "{page}: {error}");
        }
    }

    #[test]
    fn only_what_changed_is_counted_as_added() {
        let before: Page = "a 1\nb 2\n".parse().unwrap();
        let after: Page = "a 1\nb 5\nc 1\n".parse().unwrap();
        assert_eq!(
            after.since(&before),
            [(Series::new("b", &[]), 3.0), (Series::new("c", &[]), 1.0)].into()
        );
    }
}
