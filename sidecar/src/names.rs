//! Names between OTLP and Prometheus: what a metric, its unit and its labels are called.
//!
//! First the strategy, when a metric comes in ([`metric`], [`label`], [`unit`]); then the escaping that a scraper asks
//! for, when the page is written ([`escape`]). Results equal those of Prometheus' own translator and of the Collector,
//! also where these differ from the text of the specification, since users compare with them.

mod escape;
mod label;
mod metric;
mod unit;

use std::{fmt, str::FromStr};

pub use escape::{Escaping, escape, escape_label, is_label, is_metric};
pub use label::{LabelOptions, label};
pub use metric::metric;
pub use unit::unit;

/// What OTLP says a metric is; decides about suffixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MetricType {
    /// A value that goes up and down.
    Gauge,
    /// A sum that only grows.
    Counter,
    /// A sum that can fall.
    UpDown,
    /// Counts between fixed bounds.
    Histogram,
    /// Counts between powers of a base.
    Exponential,
    /// Quantiles.
    Summary,
    /// Nobody said.
    Unknown,
}

/// How names of OTLP become names of Prometheus; the words are those of Prometheus and the Collector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Letters, digits, underscores and colons only; unit and type at the end.
    #[default]
    UnderscoreEscapingWithSuffixes,
    /// Letters, digits, underscores and colons only.
    UnderscoreEscapingWithoutSuffixes,
    /// Any UTF-8; unit and type at the end.
    NoUtf8EscapingWithSuffixes,
    /// As it came.
    NoTranslation,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::UnderscoreEscapingWithSuffixes,
        Self::UnderscoreEscapingWithoutSuffixes,
        Self::NoUtf8EscapingWithSuffixes,
        Self::NoTranslation,
    ];

    /// As settings spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnderscoreEscapingWithSuffixes => "UnderscoreEscapingWithSuffixes",
            Self::UnderscoreEscapingWithoutSuffixes => "UnderscoreEscapingWithoutSuffixes",
            Self::NoUtf8EscapingWithSuffixes => "NoUTF8EscapingWithSuffixes",
            Self::NoTranslation => "NoTranslation",
        }
    }

    /// Whether names keep only what every version of Prometheus knows.
    pub fn escapes(self) -> bool {
        match self {
            Self::UnderscoreEscapingWithSuffixes | Self::UnderscoreEscapingWithoutSuffixes => true,
            Self::NoUtf8EscapingWithSuffixes | Self::NoTranslation => false,
        }
    }

    /// Whether unit and type are put at the end.
    pub fn adds_suffixes(self) -> bool {
        match self {
            Self::UnderscoreEscapingWithSuffixes | Self::NoUtf8EscapingWithSuffixes => true,
            Self::UnderscoreEscapingWithoutSuffixes | Self::NoTranslation => false,
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A strategy that does not exist.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("must be one of {}", Strategy::ALL.map(Strategy::as_str).join(", "))]
pub struct UnknownStrategy;

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(given: &str) -> Result<Self, UnknownStrategy> {
        let found = Self::ALL.into_iter().find(|known| known.as_str() == given);
        found.ok_or(UnknownStrategy)
    }
}

/// Why a name cannot be used.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq, Hash)]
pub enum NameError {
    /// Nothing is left of it.
    #[error("the name is empty, or none of its characters may be kept")]
    Empty,
    /// Only underscores are left of it.
    #[error("only underscores would be left of the name")]
    Underscores,
    /// It would change which metric this is.
    #[error("the label __name__ is the name of the metric")]
    Reserved,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strategy_is_read_as_it_is_written() {
        for strategy in Strategy::ALL {
            assert_eq!(strategy.to_string().parse(), Ok(strategy));
        }
        let error = "nothing".parse::<Strategy>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "must be one of UnderscoreEscapingWithSuffixes, UnderscoreEscapingWithoutSuffixes, \
             NoUTF8EscapingWithSuffixes, NoTranslation"
        );
    }
}
