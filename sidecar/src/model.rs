//! One metric between what came in and what goes out: plain values, no input format and no output format.

use std::{borrow::Cow, sync::Arc};

/// What a family is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A value that goes up and down.
    Gauge,
    /// A total that only grows.
    Counter,
    /// Counts by bucket, with fixed or exponential bounds.
    Histogram,
    /// Quantiles that someone else computed.
    Summary,
    /// Nobody said.
    Unknown,
    /// Labels that describe; the value is 1.
    Info,
    /// One of several states.
    StateSet,
}

/// What all series of a name have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// The name by the strategy, suffixes included, such as `http_requests_total`. UTF-8 where the strategy keeps it.
    pub name: Box<str>,
    /// What it is.
    pub kind: Kind,
    /// What it means.
    pub help: Box<str>,
    /// Its unit in words, such as `seconds`; empty if it has none.
    pub unit: Box<str>,
}

/// One set of labels, and what was last said of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What tells it from the others of its family.
    pub labels: Labels,
    /// Since when it counts, in nanoseconds; 0 if nobody knows.
    pub start: u64,
    /// When it was said, in nanoseconds.
    pub time: u64,
    /// What was said.
    pub value: Value,
}

/// What a series says.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Of a gauge, or of what nobody said.
    Number(Number),
    /// Of a counter, with the latest example.
    Total(Number, Option<Box<Exemplar>>),
    /// Of a histogram with fixed bounds.
    Histogram(Box<Histogram>),
    /// Of a histogram with exponential bounds.
    Exponential(Box<Exponential>),
    /// Of a summary.
    Summary(Box<Summary>),
}

/// A number as it was sent: integers stay exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A double.
    Float(f64),
    /// A whole number.
    Integer(i64),
}

impl Number {
    /// As a double; beyond 2^53 the nearest one.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Float(value) => value,
            #[expect(
                clippy::cast_precision_loss,
                reason = "every format of Prometheus has doubles only"
            )]
            Self::Integer(value) => value as f64,
        }
    }
}

/// Counts between fixed bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// Upper bounds, rising, without the infinite one. Series with the same bounds share them.
    pub bounds: Arc<[f64]>,
    /// How many fell into each bucket, not added up; one more than bounds.
    pub counts: Box<[u64]>,
    /// All counts together.
    pub count: u64,
    /// All observations added up, if that was said.
    pub sum: Option<f64>,
    /// At most one for each bucket, rising.
    pub exemplars: Vec<Exemplar>,
}

/// Counts between powers of a base: bucket `i` ends at `2^((i+1) * 2^-scale)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Exponential {
    /// How fine the buckets are; -4 to 8 in what is exposed.
    pub scale: i32,
    /// What lies at most this far from zero counts as zero.
    pub zero_threshold: f64,
    /// How many did.
    pub zero_count: u64,
    /// Buckets above zero.
    pub positive: Buckets,
    /// Buckets below zero, by magnitude.
    pub negative: Buckets,
    /// All counts together.
    pub count: u64,
    /// All observations added up, if that was said.
    pub sum: Option<f64>,
    /// A few, rising.
    pub exemplars: Vec<Exemplar>,
}

/// Neighbouring buckets of an exponential histogram.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buckets {
    /// Index of the first.
    pub offset: i32,
    /// How many fell into each.
    pub counts: Vec<u64>,
}

/// Quantiles.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// How many were observed.
    pub count: u64,
    /// All observations added up.
    pub sum: f64,
    /// Quantile and its value, rising.
    pub quantiles: Box<[(f64, f64)]>,
}

/// One observation, to look at.
#[derive(Clone, Debug, PartialEq)]
pub struct Exemplar {
    /// What tells where it came from: `trace_id`, `span_id` and others.
    pub labels: Labels,
    /// What was observed.
    pub value: f64,
    /// When, in nanoseconds.
    pub time: u64,
}

/// Labels in order of their names, without empty values, kept as they are written on most pages:
/// `code="200","http.route"="/a\"b"`. One text is small, is compared at once, and is copied to a page as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels {
    text: Box<str>,
    /// Whether a name had to be quoted.
    has_quoted: bool,
}

impl Labels {
    /// Of pairs in order of their names, each name once; a pair with an empty value is the same as none.
    pub fn of<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut text = String::new();
        let mut has_quoted = false;
        for (name, value) in pairs {
            if value.is_empty() {
                continue;
            }
            if !text.is_empty() {
                text.push(',');
            }
            if is_plain(name) {
                text.push_str(name);
            } else {
                has_quoted = true;
                quote(name, &mut text);
            }
            text.push('=');
            quote(value, &mut text);
        }
        Self {
            text: text.into(),
            has_quoted,
        }
    }

    /// As written where names may be UTF-8; without braces, empty if there are none.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether every name is one that every version of Prometheus knows, so that the text fits every page but those that
    /// escape underscores.
    pub fn is_plain(&self) -> bool {
        !self.has_quoted
    }

    /// The pairs, unescaped.
    pub fn pairs(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
        let mut rest = &*self.text;
        std::iter::from_fn(move || {
            let name = if rest.starts_with('"') {
                unquote(&mut rest)?
            } else {
                let (name, after) = rest.split_at_checked(rest.find('=')?)?;
                rest = after;
                Cow::Borrowed(name)
            };
            rest = rest.strip_prefix('=')?;
            let value = unquote(&mut rest)?;
            rest = rest.strip_prefix(',').unwrap_or(rest);
            Some((name, value))
        })
    }
}

/// Whether a label name needs no quotes: letters, digits and underscores, no digit first.
pub fn is_plain(name: &str) -> bool {
    let bytes = name.as_bytes();
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    bytes.first().is_some_and(|byte| !byte.is_ascii_digit()) && bytes.iter().all(is_word)
}

/// Writes a text in quotes as pages have it.
pub fn quote(text: &str, into: &mut String) {
    into.push('"');
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '"', '\n']) {
        let (before, from) = rest.split_at(at);
        into.push_str(before);
        into.push_str(match from.as_bytes().first() {
            Some(b'\\') => "\\\\",
            Some(b'"') => "\\\"",
            _ => "\\n",
        });
        rest = from.get(1..).unwrap_or_default();
    }
    into.push_str(rest);
    into.push('"');
}

/// Takes a text in quotes off the front.
fn unquote<'a>(rest: &mut &'a str) -> Option<Cow<'a, str>> {
    let text = rest.strip_prefix('"')?;
    let end = text.find(['\\', '"'])?;
    if text.as_bytes().get(end) == Some(&b'"') {
        *rest = text.get(end + 1..)?;
        return Some(Cow::Borrowed(text.get(..end)?));
    }
    let mut plain = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => {
                *rest = text.get(at + 1..)?;
                return Some(Cow::Owned(plain));
            }
            '\\' => plain.push(match letters.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            other => plain.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn labels_are_kept_as_they_are_written() {
        let labels = Labels::of([
            ("a", "1"),
            ("empty", ""),
            ("http.route", "/a\"b\\c\nd"),
            ("z", "ü"),
        ]);
        assert_eq!(labels.as_str(), r#"a="1","http.route"="/a\"b\\c\nd",z="ü""#);
        assert!(!labels.is_plain());
        assert_eq!(Labels::of([]).as_str(), "");
    }

    proptest! {
        #[test]
        fn labels_come_back_as_they_were(pairs in proptest::collection::btree_map(".{0,8}", ".{1,8}", 0..5)) {
            let given = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let labels = Labels::of(given);
            let back: std::collections::BTreeMap<_, _> =
                labels.pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
            prop_assert_eq!(back, pairs);
        }
    }
}
