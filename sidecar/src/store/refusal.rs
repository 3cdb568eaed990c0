//! Why a point is not taken.

use std::fmt;

use agents::closed_labels;

closed_labels! {
    /// Why a point is not taken. Each is a label value of the metric that counts them.
    pub enum Refusal {
        /// The name has nothing that a metric name can hold.
        Name = "name",
        /// The name, a label or their number is over a limit.
        TooLong = "too_long",
        /// An attribute has a name that no label can have.
        LabelName = "label_name",
        /// Text that is not UTF-8.
        Text = "text",
        /// Another metric has the name with another type.
        TypeConflict = "type_conflict",
        /// Another metric has the name and the labels.
        Collision = "collision",
        /// The name is one of ours.
        Reserved = "reserved",
        /// The temporality is not said, or cannot be turned into a total.
        Temporality = "temporality",
        /// There is no value, or one that the type cannot have.
        Value = "value",
        /// Bounds and counts contradict each other.
        Buckets = "buckets",
        /// The time is not said.
        Time = "time",
        /// Older than what is known.
        OutOfOrder = "out_of_order",
        /// Covers time that was covered already: two writers, or a writer that went back.
        Overlap = "overlap",
        /// The metric has too many series.
        MetricLimit = "metric_limit",
        /// There are too many series in all.
        SeriesLimit = "series_limit",
        /// The request brings more new series than one may.
        RequestLimit = "request_limit",
    }
}

impl Refusal {
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
        let names: BTreeSet<_> = Refusal::ALL
            .iter()
            .map(|refusal| refusal.as_str())
            .collect();
        assert_eq!(names.len(), Refusal::ALL.len());
    }
}
