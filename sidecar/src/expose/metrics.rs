//! What is counted about pages.

use agents::{closed_labels, kit::labels::start_at_zero};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use super::{accept::Format, render::Tally};

closed_labels! {
    /// How a page was written.
    enum Written {
        /// The older text.
        Text004 = "text-0.0.4",
        /// The newer text.
        Text100 = "text-1.0.0",
        /// OpenMetrics.
        OpenMetrics1 = "openmetrics-1.0.0",
        /// Its successor.
        OpenMetrics2 = "openmetrics-2.0.0",
        /// Messages.
        Protobuf = "protobuf",
    }
}

closed_labels! {
    /// Why a scrape got no page, or not all of it.
    pub(super) enum Cut {
        /// It took longer than it may.
        Deadline = "deadline",
        /// It kept another from going on.
        Stalled = "stalled",
        /// Too many pages were being written.
        Busy = "busy",
    }
}

closed_labels! {
    /// Why something is not on a page.
    enum LeftOut {
        /// Another family has its name.
        Family = "family-collision",
        /// Another series has its labels.
        Series = "series-collision",
        /// The format cannot say it.
        Unsayable = "format",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FormatLabel {
    format: Written,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CutLabel {
    cause: Cut,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LeftOutLabel {
    reason: LeftOut,
}

/// Handles of the metrics about pages.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pages: Family<FormatLabel, Counter>,
    shared: Counter,
    cut: Family<CutLabel, Counter>,
    left_out: Family<LeftOutLabel, Counter>,
    series: Gauge,
}

impl Metrics {
    /// Registers them; the caller chooses the prefix.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let Self {
            pages,
            shared,
            cut,
            left_out,
            series,
        } = &metrics; // a metric left out here does not compile
        registry.register(
            "pages",
            "Pages of metrics written, by format",
            pages.clone(),
        );
        registry.register(
            "page_shared",
            "Scrapes that shared the page of another",
            shared.clone(),
        );
        registry.register(
            "page_cut",
            "Scrapes that got no page or not all of it, by cause",
            cut.clone(),
        );
        registry.register(
            "page_left_out",
            "Families and series that were not on a page, added up over all pages, by reason",
            left_out.clone(),
        );
        registry.register("page_series", "Series on the last page", series.clone());
        start_at_zero(
            pages,
            Written::ALL.iter().map(|&format| FormatLabel { format }),
        );
        start_at_zero(cut, Cut::ALL.iter().map(|&cause| CutLabel { cause }));
        start_at_zero(
            left_out,
            LeftOut::ALL.iter().map(|&reason| LeftOutLabel { reason }),
        );
        metrics
    }

    /// Counts a page that was written to its end.
    pub(super) fn written(&self, format: Format, tally: Tally) {
        let format = match format {
            Format::Text004 => Written::Text004,
            Format::Text100 => Written::Text100,
            Format::OpenMetrics1 => Written::OpenMetrics1,
            Format::OpenMetrics2 => Written::OpenMetrics2,
            Format::Protobuf => Written::Protobuf,
        };
        self.pages.get_or_create(&FormatLabel { format }).inc();
        self.series
            .set(i64::try_from(tally.series).unwrap_or(i64::MAX));
        for (reason, count) in [
            (LeftOut::Family, tally.collisions),
            (LeftOut::Series, tally.duplicates),
            (LeftOut::Unsayable, tally.omitted),
        ] {
            self.left_out
                .get_or_create(&LeftOutLabel { reason })
                .inc_by(count);
        }
    }

    /// Counts a scrape that takes part in a page that was waiting to be written.
    pub(super) fn shared(&self) {
        self.shared.inc();
    }

    /// Counts a scrape that got no page or not all of it.
    pub(super) fn cut(&self, cause: Cut) {
        self.cut.get_or_create(&CutLabel { cause }).inc();
    }
}
