//! Families and series as bytes, one writer for each format. Nothing here reads a store or a clock.

mod classic;
mod labels;
mod native;
mod number;
mod open_metrics2;
mod protobuf;
mod text;

use std::borrow::Cow;

use super::{
    accept::{Format, Style},
    plan::Heading,
};
use crate::model::{Exemplar, Labels, Series};

pub(super) use classic::{Ladder, Span};
pub(super) use labels::LabelText;

/// Writes a page in one of the formats.
#[derive(Debug)]
pub(super) enum Writer {
    /// Both versions of the text format, and OpenMetrics 1.0.
    Text(text::Text),
    /// OpenMetrics 2.0.
    OpenMetrics2(open_metrics2::OpenMetrics2),
    /// Protobuf.
    Protobuf(protobuf::Protobuf),
}

impl Writer {
    /// A writer for pages of a style; `created` adds a line with the start of each series where the format has no better
    /// place for it.
    pub(super) fn new(style: Style, created: bool) -> Self {
        match style.format {
            Format::Text004 | Format::Text100 | Format::OpenMetrics1 => {
                Self::Text(text::Text::new(style, created))
            }
            Format::OpenMetrics2 => {
                Self::OpenMetrics2(open_metrics2::OpenMetrics2::new(style.escaping))
            }
            Format::Protobuf => Self::Protobuf(protobuf::Protobuf::new(style.escaping)),
        }
    }

    /// Begins some series of a family. `ladder` is what exponential histograms of this family become.
    pub(super) fn begin(
        &mut self,
        heading: &Heading,
        ladder: Option<Ladder>,
        is_first: bool,
        page: &mut Vec<u8>,
    ) {
        match self {
            Self::Text(writer) => writer.begin(heading, ladder, is_first, page),
            Self::OpenMetrics2(writer) => writer.begin(heading, is_first, page),
            Self::Protobuf(writer) => writer.begin(heading, ladder, page),
        }
    }

    /// Writes one series. Says whether it could: what is not of the kind of its family, or what the format forbids, is
    /// left out.
    pub(super) fn series(
        &mut self,
        heading: &Heading,
        series: &Series,
        page: &mut Vec<u8>,
    ) -> bool {
        match self {
            Self::Text(writer) => writer.series(heading, series, page),
            Self::OpenMetrics2(writer) => writer.series(heading, series, page),
            Self::Protobuf(writer) => writer.series(heading, series, page),
        }
    }

    /// Ends what was begun.
    pub(super) fn end(&mut self, page: &mut Vec<u8>) {
        match self {
            Self::Text(_) | Self::OpenMetrics2(_) => {}
            Self::Protobuf(writer) => writer.end(page),
        }
    }

    /// Ends the page.
    pub(super) fn finish(&mut self, page: &mut Vec<u8>) {
        match self {
            Self::Text(writer) => writer.finish(page),
            Self::OpenMetrics2(_) => page.extend_from_slice(b"# EOF\n"),
            Self::Protobuf(_) => {}
        }
    }
}

/// When a series began to count, if that is known: a start that equals the time is said to mean that it is not.
fn start(series: &Series) -> Option<u64> {
    (series.start != 0 && series.start != series.time).then_some(series.start)
}

/// The last of the examples up to a bound. They rise, as do the bounds they are asked for.
fn take_up_to<'a>(exemplars: &mut &'a [Exemplar], bound: f64) -> Option<&'a Exemplar> {
    let count = exemplars
        .iter()
        .take_while(|exemplar| exemplar.value <= bound)
        .count();
    let (taken, rest) = exemplars.split_at(count);
    *exemplars = rest;
    taken.last()
}

/// The labels of an example for OpenMetrics 1.0, which has room for 128 characters of them: if they are more, those that
/// lead to the trace. Nothing if there are none.
fn brief(labels: &Labels) -> Option<Cow<'_, Labels>> {
    const MOST: usize = 128;
    let length = |labels: &Labels| -> usize {
        let pairs = labels.pairs();
        pairs
            .map(|(name, value)| name.chars().count() + value.chars().count())
            .sum()
    };
    let fits = |labels: &Labels| labels.as_str().len() <= MOST || length(labels) <= MOST;
    let labels = match fits(labels) {
        true => Cow::Borrowed(labels),
        false => {
            let mut pairs: Vec<_> = labels.pairs().collect();
            pairs.retain(|(name, _)| name == "trace_id" || name == "span_id");
            Cow::Owned(Labels::of(
                pairs.iter().map(|(name, value)| (&**name, &**value)),
            ))
        }
    };
    (!labels.as_str().is_empty() && fits(&labels)).then_some(labels)
}

/// Text in which a line end cannot be, and quotes neither where they end it.
fn escaped(text: &str, quotes: bool, page: &mut Vec<u8>) {
    for byte in text.bytes() {
        match byte {
            b'\\' => page.extend_from_slice(b"\\\\"),
            b'\n' => page.extend_from_slice(b"\\n"),
            b'"' if quotes => page.extend_from_slice(b"\\\""),
            other => page.push(other),
        }
    }
}

/// A name and the labels after it, up to the value. Further labels come last, as everyone writes them.
fn sample(name: &super::plan::Name, suffix: &str, labels: &str, more: &str, page: &mut Vec<u8>) {
    let parts = [labels, more];
    let mut parts = parts.iter().filter(|part| !part.is_empty());
    if name.is_plain {
        page.extend_from_slice(name.text.as_bytes());
        page.extend_from_slice(suffix.as_bytes());
        let Some(first) = parts.next() else {
            page.push(b' ');
            return;
        };
        page.push(b'{');
        page.extend_from_slice(first.as_bytes());
    } else {
        page.extend_from_slice(b"{\"");
        escaped(&name.text, true, page);
        page.extend_from_slice(suffix.as_bytes());
        page.push(b'"');
    }
    for part in parts {
        page.push(b',');
        page.extend_from_slice(part.as_bytes());
    }
    page.extend_from_slice(b"} ");
}

/// A line about a family.
fn comment(word: &str, name: &super::plan::Name, page: &mut Vec<u8>) {
    page.extend_from_slice(word.as_bytes());
    if name.is_plain {
        page.extend_from_slice(name.text.as_bytes());
    } else {
        page.push(b'"');
        escaped(&name.text, true, page);
        page.push(b'"');
    }
    page.push(b' ');
}

/// The lines about a family in the order of OpenMetrics.
fn open_metrics_head(heading: &Heading, page: &mut Vec<u8>) {
    use crate::model::Kind;
    comment("# TYPE ", &heading.family, page);
    page.extend_from_slice(match heading.kind {
        Kind::Gauge => b"gauge\n" as &[u8],
        Kind::Counter => b"counter\n",
        Kind::Histogram => b"histogram\n",
        Kind::Summary => b"summary\n",
        Kind::Unknown => b"unknown\n",
        Kind::Info => b"info\n",
        Kind::StateSet => b"stateset\n",
    });
    if let Some(unit) = &heading.unit {
        comment("# UNIT ", &heading.family, page);
        page.extend_from_slice(unit.as_bytes());
        page.push(b'\n');
    }
    if !heading.help.is_empty() {
        comment("# HELP ", &heading.family, page);
        escaped(&heading.help, true, page);
        page.push(b'\n');
    }
}

#[cfg(test)]
mod tests;
