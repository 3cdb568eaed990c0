//! Both versions of the text format, and OpenMetrics 1.0, which differ in what they say about families, in how a double
//! looks and in what they can say beside a value.

use std::sync::Arc;

use super::{
    super::{
        accept::{Format, Style},
        plan::{Heading, Name},
    },
    Ladder, brief, comment, escaped,
    labels::LabelText,
    number::{Whole, float, integer, number, seconds},
    open_metrics_head, sample, start, take_up_to,
};
use crate::model::{Exemplar, Kind, Number, Series, Summary, Value};

/// Writes lines of text.
#[derive(Debug)]
pub(in super::super) struct Text {
    is_open: bool,
    created: bool,
    labels: LabelText,
    exemplar_labels: LabelText,
    ladder: Option<(Ladder, Steps)>,
    steps: Option<(Arc<[f64]>, Steps)>,
    counts: Vec<u64>,
}

/// Bounds, and what is written for each.
#[derive(Debug, Default)]
struct Steps {
    bounds: Vec<f64>,
    labels: Vec<Box<str>>,
}

impl Steps {
    fn of(bounds: &[f64], whole: Whole) -> Self {
        let finite = bounds
            .iter()
            .copied()
            .filter(|bound| *bound < f64::INFINITY);
        let bounds: Vec<f64> = finite.chain([f64::INFINITY]).collect();
        let label = |bound: &f64| labelled("le", *bound, whole);
        Self {
            labels: bounds.iter().map(label).collect(),
            bounds,
        }
    }
}

fn labelled(name: &str, value: f64, whole: Whole) -> Box<str> {
    let mut text = Vec::with_capacity(24);
    text.extend_from_slice(name.as_bytes());
    text.extend_from_slice(b"=\"");
    float(value, whole, &mut text);
    text.push(b'"');
    String::from_utf8(text).unwrap_or_default().into()
}

/// What is added up of a histogram.
struct Totals<'a> {
    counts: &'a [u64],
    count: u64,
    sum: Option<f64>,
    exemplars: &'a [Exemplar],
}

impl Text {
    pub(in super::super) fn new(style: Style, created: bool) -> Self {
        let is_open = style.format == Format::OpenMetrics1;
        Self {
            is_open,
            created: created && is_open,
            labels: LabelText::new(style.escaping),
            exemplar_labels: LabelText::new(style.escaping.of_exemplars()),
            ladder: None,
            steps: None,
            counts: Vec::new(),
        }
    }

    fn whole(&self) -> Whole {
        match self.is_open {
            true => Whole::Pointed,
            false => Whole::Bare,
        }
    }

    pub(in super::super) fn begin(
        &mut self,
        heading: &Heading,
        ladder: Option<Ladder>,
        is_first: bool,
        page: &mut Vec<u8>,
    ) {
        if self.ladder.as_ref().map(|(known, _)| *known) != ladder {
            let whole = self.whole();
            self.ladder = ladder.map(|ladder| (ladder, Steps::of(&ladder.bounds(), whole)));
        }
        match (is_first, self.is_open) {
            (false, _) => {}
            (true, true) => open_metrics_head(heading, page),
            (true, false) => text_head(heading, page),
        }
    }

    pub(in super::super) fn series(
        &mut self,
        heading: &Heading,
        series: &Series,
        page: &mut Vec<u8>,
    ) -> bool {
        match (heading.kind, &series.value) {
            (Kind::Gauge | Kind::Unknown, Value::Number(value) | Value::Total(value, _)) => {
                self.line(heading, series, *value, page);
                page.push(b'\n');
                true
            }
            (Kind::Info, Value::Number(_) | Value::Total(..)) => {
                self.line(heading, series, Number::Integer(1), page);
                page.push(b'\n');
                true
            }
            (Kind::StateSet, Value::Number(value)) => {
                let is_state = self
                    .labels
                    .is_state(&series.labels, &heading.family.text, *value);
                if is_state {
                    self.line(heading, series, *value, page);
                    page.push(b'\n');
                }
                is_state
            }
            (Kind::Counter, Value::Number(value)) => {
                self.counter(heading, series, (*value, None), page)
            }
            (Kind::Counter, Value::Total(value, exemplar)) => {
                self.counter(heading, series, (*value, exemplar.as_deref()), page)
            }
            (Kind::Histogram, Value::Histogram(_) | Value::Exponential(_)) => {
                self.histogram(heading, series, page)
            }
            (Kind::Summary, Value::Summary(summary)) => {
                self.summary(heading, series, summary, page);
                true
            }
            (
                Kind::Gauge | Kind::Unknown | Kind::Info | Kind::StateSet | Kind::Counter,
                Value::Histogram(_) | Value::Exponential(_) | Value::Summary(_),
            )
            | (Kind::StateSet, Value::Total(..))
            | (Kind::Histogram, Value::Number(_) | Value::Total(..) | Value::Summary(_))
            | (
                Kind::Summary,
                Value::Number(_) | Value::Total(..) | Value::Histogram(_) | Value::Exponential(_),
            ) => false,
        }
    }

    /// A sample without its end.
    fn line(&mut self, heading: &Heading, series: &Series, value: Number, page: &mut Vec<u8>) {
        let whole = self.whole();
        sample(
            &heading.sample,
            "",
            self.labels.of(&series.labels, None),
            "",
            page,
        );
        number(value, whole, page);
    }

    fn counter(
        &mut self,
        heading: &Heading,
        series: &Series,
        (value, exemplar): (Number, Option<&Exemplar>),
        page: &mut Vec<u8>,
    ) -> bool {
        let as_double = value.as_f64();
        if self.is_open && (as_double.is_nan() || as_double < 0.0) {
            return false;
        }
        self.line(heading, series, value, page);
        if let Some(exemplar) = exemplar {
            example(exemplar, self.is_open, &mut self.exemplar_labels, page);
        }
        page.push(b'\n');
        self.created(&heading.family, series, None, page);
        true
    }

    fn histogram(&mut self, heading: &Heading, series: &Series, page: &mut Vec<u8>) -> bool {
        let whole = self.whole();
        match &series.value {
            Value::Histogram(given) => {
                let mut steps = self.steps.take();
                if steps
                    .as_ref()
                    .is_none_or(|(known, _)| !Arc::ptr_eq(known, &given.bounds))
                {
                    steps = Some((Arc::clone(&given.bounds), Steps::of(&given.bounds, whole)));
                }
                let totals = Totals {
                    counts: &given.counts,
                    count: given.count,
                    sum: given.sum,
                    exemplars: &given.exemplars,
                };
                if let Some((_, steps)) = &steps {
                    self.buckets(heading, series, (steps, &totals), page);
                }
                self.steps = steps;
                true
            }
            Value::Exponential(given) => {
                let Some((ladder, steps)) = self.ladder.take() else {
                    return false;
                };
                let mut counts = std::mem::take(&mut self.counts);
                ladder.counts(given, &mut counts);
                let totals = Totals {
                    counts: &counts,
                    count: given.count,
                    sum: given.sum,
                    exemplars: &given.exemplars,
                };
                self.buckets(heading, series, (&steps, &totals), page);
                self.counts = counts;
                self.ladder = Some((ladder, steps));
                true
            }
            Value::Number(_) | Value::Total(..) | Value::Summary(_) => false,
        }
    }

    fn buckets(
        &mut self,
        heading: &Heading,
        series: &Series,
        (steps, totals): (&Steps, &Totals<'_>),
        page: &mut Vec<u8>,
    ) {
        let (name, is_open, whole) = (&heading.sample, self.is_open, self.whole());
        let labels = self.labels.of(&series.labels, Some("le"));
        let mut exemplars = totals.exemplars;
        let mut sum = 0_u64;
        let last = steps.bounds.len().saturating_sub(1);
        for (at, (bound, label)) in steps.bounds.iter().zip(&steps.labels).enumerate() {
            sum = match at == last {
                true => totals.count, // also what lies above an infinite bound that was sent as one
                false => sum.saturating_add(totals.counts.get(at).copied().unwrap_or_default()),
            };
            sample(name, "_bucket", labels, label, page);
            integer(sum, page);
            if let Some(exemplar) = take_up_to(&mut exemplars, *bound) {
                example(exemplar, is_open, &mut self.exemplar_labels, page);
            }
            page.push(b'\n');
        }
        // OpenMetrics wants both or neither, and a sum only if it can but grow.
        let grows =
            |sum: &f64| *sum >= 0.0 && steps.bounds.first().is_none_or(|bound| *bound >= 0.0);
        let sum = totals.sum.filter(|sum| !is_open || grows(sum));
        if let Some(sum) = sum {
            sample(name, "_sum", labels, "", page);
            float(sum, whole, page);
            page.push(b'\n');
        }
        if sum.is_some() || !is_open {
            sample(name, "_count", labels, "", page);
            integer(totals.count, page);
            page.push(b'\n');
        }
        self.created(name, series, Some("le"), page);
    }

    fn summary(
        &mut self,
        heading: &Heading,
        series: &Series,
        summary: &Summary,
        page: &mut Vec<u8>,
    ) {
        let (whole, is_open) = (self.whole(), self.is_open);
        let name = &heading.sample;
        let labels = self.labels.of(&series.labels, Some("quantile"));
        let is_said = |value: f64| !is_open || value.is_nan() || value >= 0.0;
        for (quantile, value) in &summary.quantiles {
            if is_said(*value) {
                sample(
                    name,
                    "",
                    labels,
                    &labelled("quantile", *quantile, whole),
                    page,
                );
                float(*value, whole, page);
                page.push(b'\n');
            }
        }
        if is_said(summary.sum) && !(is_open && summary.sum.is_nan()) {
            sample(name, "_sum", labels, "", page);
            float(summary.sum, whole, page);
            page.push(b'\n');
        }
        sample(name, "_count", labels, "", page);
        integer(summary.count, page);
        page.push(b'\n');
        self.created(name, series, Some("quantile"), page);
    }

    /// When the series began, in a line of its own, if that was asked for.
    fn created(
        &mut self,
        name: &Name,
        series: &Series,
        reserved: Option<&str>,
        page: &mut Vec<u8>,
    ) {
        if let Some(start) = start(series).filter(|_| self.created) {
            let labels = self.labels.of(&series.labels, reserved);
            sample(name, "_created", labels, "", page);
            seconds(start, page);
            page.push(b'\n');
        }
    }

    pub(in super::super) fn finish(&self, page: &mut Vec<u8>) {
        if self.is_open {
            page.extend_from_slice(b"# EOF\n");
        }
    }
}

/// An example at the end of a line, where the format has room for it.
fn example(exemplar: &Exemplar, is_open: bool, text: &mut LabelText, page: &mut Vec<u8>) {
    let Some(labels) = brief(&exemplar.labels).filter(|_| is_open) else {
        return;
    };
    page.extend_from_slice(b" # {");
    page.extend_from_slice(text.of(&labels, None).as_bytes());
    page.extend_from_slice(b"} ");
    float(exemplar.value, Whole::Pointed, page);
    if exemplar.time != 0 {
        page.push(b' ');
        seconds(exemplar.time, page);
    }
}

fn text_head(heading: &Heading, page: &mut Vec<u8>) {
    if !heading.help.is_empty() {
        comment("# HELP ", &heading.family, page);
        escaped(&heading.help, false, page);
        page.push(b'\n');
    }
    comment("# TYPE ", &heading.family, page);
    page.extend_from_slice(match heading.kind {
        Kind::Gauge | Kind::Info | Kind::StateSet => b"gauge\n" as &[u8],
        Kind::Counter => b"counter\n",
        Kind::Histogram => b"histogram\n",
        Kind::Summary => b"summary\n",
        Kind::Unknown => b"untyped\n",
    });
}
