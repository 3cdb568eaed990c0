//! OpenMetrics 2.0: one line for each series, whole histograms and summaries included, starts and examples at its end.
//!
//! The format is a draft, so this is only for those who ask for exactly this version.

use super::{
    super::plan::Heading,
    labels::LabelText,
    native::{Layout, SCALES, ZERO_THRESHOLD},
    number::{Whole, float, integer, number, seconds},
    open_metrics_head, sample, start,
};
use crate::{
    model::{Exemplar, Exponential, Histogram, Kind, Series, Summary, Value},
    names::Escaping,
};

/// Writes lines of OpenMetrics 2.0.
#[derive(Debug)]
pub(in super::super) struct OpenMetrics2 {
    labels: LabelText,
    exemplar_labels: LabelText,
}

impl OpenMetrics2 {
    pub(in super::super) fn new(escaping: Escaping) -> Self {
        Self {
            labels: LabelText::new(escaping),
            exemplar_labels: LabelText::new(escaping.of_exemplars()),
        }
    }

    #[expect(clippy::unused_self, reason = "as the other writers")]
    pub(in super::super) fn begin(
        &mut self,
        heading: &Heading,
        is_first: bool,
        page: &mut Vec<u8>,
    ) {
        if is_first {
            open_metrics_head(heading, page);
        }
    }

    pub(in super::super) fn series(
        &mut self,
        heading: &Heading,
        series: &Series,
        page: &mut Vec<u8>,
    ) -> bool {
        let begin = page.len();
        let (reserved, starts) = match heading.kind {
            Kind::Histogram => (Some("le"), true),
            Kind::Summary => (Some("quantile"), true),
            Kind::Counter => (None, true),
            Kind::Gauge | Kind::Unknown | Kind::Info | Kind::StateSet => (None, false),
        };
        sample(
            &heading.sample,
            "",
            self.labels.of(&series.labels, reserved),
            "",
            page,
        );
        if !self.value(heading, series, page) {
            page.truncate(begin);
            return false;
        }
        if let Some(start) = start(series).filter(|_| starts) {
            page.extend_from_slice(b" st@");
            seconds(start, page);
        }
        let exemplars = match &series.value {
            Value::Total(_, Some(exemplar)) if heading.kind == Kind::Counter => {
                std::slice::from_ref(&**exemplar)
            }
            Value::Histogram(histogram) => &histogram.exemplars,
            Value::Exponential(histogram) => &histogram.exemplars,
            Value::Total(..) | Value::Number(_) | Value::Summary(_) => &[],
        };
        for exemplar in exemplars {
            self.exemplar(exemplar, page);
        }
        page.push(b'\n');
        true
    }

    /// What the series says; nothing if that cannot be said of its kind.
    fn value(&self, heading: &Heading, series: &Series, page: &mut Vec<u8>) -> bool {
        match (heading.kind, &series.value) {
            (Kind::Info, Value::Number(_) | Value::Total(..)) => page.push(b'1'),
            (Kind::StateSet, Value::Number(value)) => {
                if !self
                    .labels
                    .is_state(&series.labels, &heading.family.text, *value)
                {
                    return false;
                }
                number(*value, Whole::Pointed, page);
            }
            (Kind::Counter, Value::Number(value) | Value::Total(value, _)) => {
                if value.as_f64().is_nan() || value.as_f64() < 0.0 {
                    return false;
                }
                number(*value, Whole::Pointed, page);
            }
            (Kind::Gauge | Kind::Unknown, Value::Number(value) | Value::Total(value, _)) => {
                number(*value, Whole::Pointed, page);
            }
            (Kind::Histogram, Value::Histogram(value)) => histogram(value, page),
            (Kind::Histogram, Value::Exponential(value)) => return exponential(value, page),
            (Kind::Summary, Value::Summary(value)) => summary(value, page),
            (
                Kind::Gauge | Kind::Unknown | Kind::Info | Kind::StateSet | Kind::Counter,
                Value::Histogram(_) | Value::Exponential(_) | Value::Summary(_),
            )
            | (Kind::StateSet, Value::Total(..))
            | (Kind::Histogram, Value::Number(_) | Value::Total(..) | Value::Summary(_))
            | (
                Kind::Summary,
                Value::Number(_) | Value::Total(..) | Value::Histogram(_) | Value::Exponential(_),
            ) => return false,
        }
        true
    }

    /// An example must say when it was.
    fn exemplar(&mut self, exemplar: &Exemplar, page: &mut Vec<u8>) {
        if exemplar.time == 0 {
            return;
        }
        page.extend_from_slice(b" # {");
        let labels = self.exemplar_labels.of(&exemplar.labels, None);
        page.extend_from_slice(labels.as_bytes());
        page.extend_from_slice(b"} ");
        float(exemplar.value, Whole::Pointed, page);
        page.push(b' ');
        seconds(exemplar.time, page);
    }
}

/// Count and sum. The format has no word for a sum that nobody said; no number is the nearest.
fn totals(count: u64, sum: Option<f64>, page: &mut Vec<u8>) {
    page.extend_from_slice(b"{count:");
    integer(count, page);
    page.extend_from_slice(b",sum:");
    float(sum.unwrap_or(f64::NAN), Whole::Pointed, page);
}

fn histogram(histogram: &Histogram, page: &mut Vec<u8>) {
    totals(histogram.count, histogram.sum, page);
    page.extend_from_slice(b",bucket:[");
    let mut sum = 0_u64;
    let finite = histogram
        .bounds
        .iter()
        .filter(|bound| **bound < f64::INFINITY);
    for (bound, count) in finite.zip(&histogram.counts) {
        sum = sum.saturating_add(*count);
        float(*bound, Whole::Pointed, page);
        page.push(b':');
        integer(sum, page);
        page.push(b',');
    }
    page.extend_from_slice(b"+Inf:");
    integer(histogram.count, page);
    page.extend_from_slice(b"]}");
}

fn exponential(histogram: &Exponential, page: &mut Vec<u8>) -> bool {
    if !SCALES.contains(&histogram.scale) {
        return false;
    }
    totals(histogram.count, histogram.sum, page);
    page.extend_from_slice(b",schema:");
    integer(histogram.scale, page);
    page.extend_from_slice(b",zero_threshold:");
    let threshold = Some(histogram.zero_threshold).filter(|threshold| *threshold > 0.0);
    float(threshold.unwrap_or(ZERO_THRESHOLD), Whole::Pointed, page);
    page.extend_from_slice(b",zero_count:");
    integer(histogram.zero_count, page);
    for (name, buckets) in [
        ("negative", &histogram.negative),
        ("positive", &histogram.positive),
    ] {
        let Layout { spans, counts } = Layout::of(buckets);
        if spans.is_empty() {
            continue;
        }
        list(name, "_spans", spans.iter(), page, |span, page| {
            integer(span.offset, page);
            page.push(b':');
            integer(span.length, page);
        });
        list(name, "_buckets", counts.iter(), page, |count, page| {
            integer(*count, page)
        });
    }
    page.push(b'}');
    true
}

fn summary(summary: &Summary, page: &mut Vec<u8>) {
    let sum = Some(summary.sum).filter(|sum| *sum >= 0.0);
    totals(summary.count, sum, page);
    let quantiles = summary
        .quantiles
        .iter()
        .filter(|(_, value)| value.is_nan() || *value >= 0.0);
    list(
        "quantile",
        "",
        quantiles,
        page,
        |(quantile, value), page| {
            float(*quantile, Whole::Pointed, page);
            page.push(b':');
            float(*value, Whole::Pointed, page);
        },
    );
    page.push(b'}');
}

fn list<T>(
    name: &str,
    suffix: &str,
    items: impl Iterator<Item = T>,
    page: &mut Vec<u8>,
    mut write: impl FnMut(T, &mut Vec<u8>),
) {
    page.push(b',');
    page.extend_from_slice(name.as_bytes());
    page.extend_from_slice(suffix.as_bytes());
    page.extend_from_slice(b":[");
    for (at, item) in items.enumerate() {
        if at > 0 {
            page.push(b',');
        }
        write(item, page);
    }
    page.push(b']');
}
