//! What one source may take.

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
