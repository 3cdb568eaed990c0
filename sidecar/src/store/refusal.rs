//! Why a point is not taken.

use std::fmt;

/// Why a point is not taken. Each is a label value of the metric that counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// The name has nothing that a metric name can hold.
    Name,
    /// The name, a label or their number is over a limit.
    TooLong,
    /// An attribute has a name that no label can have.
    LabelName,
    /// Text that is not UTF-8.
    Text,
    /// Another metric has the name with another type.
    TypeConflict,
    /// Another metric has the name and the labels.
    Collision,
    /// The name is one of ours.
    Reserved,
    /// The temporality is not said, or cannot be turned into a total.
    Temporality,
    /// There is no value, or one that the type cannot have.
    Value,
    /// Bounds and counts contradict each other.
    Buckets,
    /// The time is not said.
    Time,
    /// Older than what is known.
    OutOfOrder,
    /// Covers time that was covered already: two writers, or a writer that went back.
    Overlap,
    /// The metric has too many series.
    MetricLimit,
    /// There are too many series in all.
    SeriesLimit,
    /// The request brings more new series than one may.
    RequestLimit,
}

impl Refusal {
    /// All of them, in the order of their names above.
    pub const ALL: [Self; 16] = [
        Self::Name,
        Self::TooLong,
        Self::LabelName,
        Self::Text,
        Self::TypeConflict,
        Self::Collision,
        Self::Reserved,
        Self::Temporality,
        Self::Value,
        Self::Buckets,
        Self::Time,
        Self::OutOfOrder,
        Self::Overlap,
        Self::MetricLimit,
        Self::SeriesLimit,
        Self::RequestLimit,
    ];

    /// As a label value.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::TooLong => "too_long",
            Self::LabelName => "label_name",
            Self::Text => "text",
            Self::TypeConflict => "type_conflict",
            Self::Collision => "collision",
            Self::Reserved => "reserved",
            Self::Temporality => "temporality",
            Self::Value => "value",
            Self::Buckets => "buckets",
            Self::Time => "time",
            Self::OutOfOrder => "out_of_order",
            Self::Overlap => "overlap",
            Self::MetricLimit => "metric_limit",
            Self::SeriesLimit => "series_limit",
            Self::RequestLimit => "request_limit",
        }
    }

    /// For whoever sent it.
    pub fn explain(self) -> &'static str {
        match self {
            Self::Name => "the name has no letter or digit that Prometheus allows",
            Self::TooLong => "a name, a label or the number of labels is over a limit",
            Self::LabelName => "an attribute has a name that cannot be a label",
            Self::Text => "a text is not UTF-8",
            Self::TypeConflict => "another metric has this name with another type",
            Self::Collision => "another metric has this name with the same labels",
            Self::Reserved => "the name belongs to the sidecar itself",
            Self::Temporality => {
                "the temporality is missing, or it is delta of a sum that may fall"
            }
            Self::Value => "there is no value, or one that its type cannot have",
            Self::Buckets => "bounds and counts of the histogram contradict each other",
            Self::Time => "the time is missing",
            Self::OutOfOrder => "it is older than what is known",
            Self::Overlap => "it covers time that was covered before: two writers",
            Self::MetricLimit => "the metric has too many series",
            Self::SeriesLimit => "there are too many series",
            Self::RequestLimit => "the request brings too many new series at once",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.explain())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_reason_has_a_name_of_its_own() {
        let names: BTreeSet<_> = Refusal::ALL.map(Refusal::as_str).into();
        assert_eq!(names.len(), Refusal::ALL.len());
    }
}
