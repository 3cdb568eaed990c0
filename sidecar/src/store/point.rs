//! What comes in: one metric and its points, borrowed from the bytes of a request.

use crate::model::Number;

/// A name and a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    /// As it was sent.
    pub name: String,
    /// Any value as text.
    pub value: String,
}

/// Whether a value counts from the start, or from the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Temporality {
    /// Nobody said.
    Unspecified,
    /// From the last one.
    Delta,
    /// From the start.
    Cumulative,
}

/// What sort of points a metric has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sort {
    /// Values as they are.
    Gauge,
    /// Values that add up.
    Sum {
        /// How they count.
        temporality: Temporality,
        /// Whether they never fall.
        is_monotonic: bool,
    },
    /// Counts by fixed bounds.
    Histogram(Temporality),
    /// Counts by exponential bounds.
    Exponential(Temporality),
    /// Quantiles.
    Summary,
}

/// What was said of the type beside that, for data that came from Prometheus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Hint {
    /// Nothing.
    #[default]
    None,
    /// Nobody knew.
    Unknown,
    /// Labels that describe.
    Info,
    /// One of several states.
    StateSet,
}

/// A metric without its points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric<'a> {
    /// As it was sent.
    pub name: &'a str,
    /// What it means.
    pub description: &'a str,
    /// As it was sent, such as `By/s`.
    pub unit: &'a str,
    /// What sort of points it has.
    pub sort: Sort,
    /// What was said beside that.
    pub hint: Hint,
}

/// One point.
#[derive(Clone, Copy, Debug)]
pub struct Point<'a> {
    /// Its attributes as they were sent, by which it is found again.
    pub attributes: &'a [u8],
    /// Since when it counts, in nanoseconds; 0 if nobody said.
    pub start: u64,
    /// When it was said.
    pub time: u64,
    /// Whether it only says that there is no value any more.
    pub is_absent: bool,
    /// What it says.
    pub data: Data<'a>,
    /// Observations to look at.
    pub exemplars: &'a [Example<'a>],
}

/// What a point says.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// Nothing.
    None,
    /// Of a gauge or a sum.
    Number(Number),
    /// Of a histogram.
    Histogram {
        /// All counts together.
        count: u64,
        /// All observations added up.
        sum: Option<f64>,
        /// For each bucket.
        counts: &'a [u64],
        /// Between the buckets.
        bounds: &'a [f64],
    },
    /// Of an exponential histogram.
    Exponential(Scaled<'a>),
    /// Of a summary.
    Summary {
        /// How many were observed.
        count: u64,
        /// All observations added up.
        sum: f64,
        /// Quantile and its value.
        quantiles: &'a [(f64, f64)],
    },
}

/// What a point of an exponential histogram says.
#[derive(Clone, Copy, Debug)]
pub struct Scaled<'a> {
    /// How fine the buckets are.
    pub scale: i32,
    /// All counts together.
    pub count: u64,
    /// All observations added up.
    pub sum: Option<f64>,
    /// What counts as zero.
    pub zero_threshold: f64,
    /// How many did.
    pub zero_count: u64,
    /// Index of the first bucket above zero, and the counts.
    pub positive: (i32, &'a [u64]),
    /// The same below zero.
    pub negative: (i32, &'a [u64]),
}

/// One observation, as it was sent.
#[derive(Clone, Copy, Debug)]
pub struct Example<'a> {
    /// When.
    pub time: u64,
    /// What.
    pub value: Number,
    /// 16 bytes, if it is a trace.
    pub trace: &'a [u8],
    /// 8 bytes, if it is a span.
    pub span: &'a [u8],
    /// Further attributes; rows of fields.
    pub attributes: &'a [u8],
}
