//! What one source may take.

use super::{Refusal, Rules};

/// What one source may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Series of one metric.
    pub series_per_metric: usize,
    /// Series in all.
    pub series: usize,
    /// What all series may take of the memory, about.
    pub bytes: usize,
    /// What one request may add to it.
    pub bytes_per_request: usize,
    /// Targets, scopes and metrics, each.
    pub sources: usize,
    /// Labels of one series.
    pub labels: usize,
    /// Bytes of a name.
    pub name_bytes: usize,
    /// Bytes of a value of a label.
    pub value_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            series_per_metric: 10_000,
            series: 100_000,
            bytes: 96 << 20,
            bytes_per_request: 8 << 20,
            sources: 10_000,
            labels: 64,
            name_bytes: 512,
            value_bytes: 2_048,
        }
    }
}

/// By which rules something comes in, and when.
#[derive(Clone, Copy)]
pub(super) struct At<'r> {
    pub(super) rules: &'r Rules,
    pub(super) now: u64,
    /// Whether no further series fits.
    pub(super) is_full: bool,
    /// Whether the request may still take what a source weighs that is new.
    pub(super) has_room: bool,
}

impl At<'_> {
    /// Whether one more target, scope or metric may be known beside so many.
    pub(super) fn admits(&self, known: usize) -> Result<(), Refusal> {
        if known >= self.rules.limits.sources {
            Err(Refusal::SeriesLimit)
        } else if !self.has_room {
            Err(Refusal::RequestLimit)
        } else {
            Ok(())
        }
    }
}
