//! Families as messages of Prometheus, each after its length, with native histograms.
//!
//! A message has at most as many series as are read under one lock, so that a large family is several messages of the
//! same name: Prometheus reads them as one, and no page has to be held as a whole.

use super::{
    super::plan::Heading,
    Ladder,
    labels::{is_kept, merged},
    native::{Layout, SCALES, ZERO_THRESHOLD},
    start, take_up_to,
};
use crate::{
    model::{Exemplar, Exponential, Kind, Labels, Series, Summary, Value},
    names::Escaping,
};

/// Writes messages.
#[derive(Debug)]
pub(in super::super) struct Protobuf {
    escaping: Escaping,
    ladder: Option<(Ladder, Vec<f64>)>,
    counts: Vec<u64>,
    /// Where the message that is being written begins.
    message: usize,
}

/// Classic buckets: bounds without the infinite one, and what is between and beyond them.
struct Classic<'a> {
    bounds: &'a [f64],
    counts: &'a [u64],
    exemplars: &'a [Exemplar],
}

impl Protobuf {
    pub(in super::super) fn new(escaping: Escaping) -> Self {
        Self {
            escaping,
            ladder: None,
            counts: Vec::new(),
            message: 0,
        }
    }

    pub(in super::super) fn begin(
        &mut self,
        heading: &Heading,
        ladder: Option<Ladder>,
        page: &mut Vec<u8>,
    ) {
        self.ladder = ladder.map(|ladder| (ladder, ladder.bounds()));
        self.message = page.len();
        page.push(0);
        text(1, &heading.family.text, page);
        text(2, &heading.help, page);
        let kind = match heading.kind {
            Kind::Counter => 0,
            Kind::Gauge | Kind::Info | Kind::StateSet => 1,
            Kind::Summary => 2,
            Kind::Unknown => 3,
            Kind::Histogram => 4,
        };
        uint(3, kind, page);
        text(5, heading.unit.as_deref().unwrap_or_default(), page);
    }

    pub(in super::super) fn end(&mut self, page: &mut Vec<u8>) {
        insert_length(self.message, page);
    }

    pub(in super::super) fn series(
        &mut self,
        heading: &Heading,
        series: &Series,
        page: &mut Vec<u8>,
    ) -> bool {
        let begin = page.len();
        let mut written = true;
        message(4, page, |page| {
            let reserved = match heading.kind {
                Kind::Histogram => Some("le"),
                Kind::Summary => Some("quantile"),
                Kind::Gauge | Kind::Counter | Kind::Unknown | Kind::Info | Kind::StateSet => None,
            };
            labels(&series.labels, self.escaping, reserved, page);
            written = self.value(heading, series, page);
        });
        if !written {
            page.truncate(begin);
        }
        written
    }

    fn value(&mut self, heading: &Heading, series: &Series, page: &mut Vec<u8>) -> bool {
        match (heading.kind, &series.value) {
            (Kind::Info, Value::Number(_) | Value::Total(..)) => {
                message(2, page, |page| double(1, 1.0, page))
            }
            (Kind::Gauge | Kind::StateSet, Value::Number(value) | Value::Total(value, _)) => {
                message(2, page, |page| double(1, value.as_f64(), page));
            }
            (Kind::Unknown, Value::Number(value) | Value::Total(value, _)) => {
                message(5, page, |page| double(1, value.as_f64(), page));
            }
            (Kind::Counter, Value::Number(value)) => message(3, page, |page| {
                double(1, value.as_f64(), page);
                timestamp(3, start(series), page);
            }),
            (Kind::Counter, Value::Total(value, exemplar)) => message(3, page, |page| {
                double(1, value.as_f64(), page);
                if let Some(exemplar) = exemplar {
                    self.exemplar(2, exemplar, page);
                }
                timestamp(3, start(series), page);
            }),
            (Kind::Summary, Value::Summary(value)) => summary(series, value, page),
            (Kind::Histogram, Value::Histogram(value)) => {
                // The format has no word for a sum that nobody said; zero would be a lie.
                let sum = value.sum.unwrap_or(f64::NAN);
                let finite = value
                    .bounds
                    .iter()
                    .take_while(|bound| **bound < f64::INFINITY)
                    .count();
                let classic = Classic {
                    bounds: value.bounds.get(..finite).unwrap_or_default(),
                    counts: &value.counts,
                    exemplars: &value.exemplars,
                };
                message(7, page, |page| {
                    self.classic(value.count, sum, &classic, page);
                    timestamp(15, start(series), page);
                });
            }
            (Kind::Histogram, Value::Exponential(value)) => {
                return self.exponential(series, value, page);
            }
            (
                Kind::Gauge | Kind::Unknown | Kind::Info | Kind::StateSet | Kind::Counter,
                Value::Histogram(_) | Value::Exponential(_) | Value::Summary(_),
            )
            | (Kind::Histogram, Value::Number(_) | Value::Total(..) | Value::Summary(_))
            | (
                Kind::Summary,
                Value::Number(_) | Value::Total(..) | Value::Histogram(_) | Value::Exponential(_),
            ) => return false,
        }
        true
    }

    /// Native, and classic for a Prometheus that asks for this format but stores no native histograms. Without a sum the
    /// specification wants it left out.
    fn exponential(&mut self, series: &Series, value: &Exponential, page: &mut Vec<u8>) -> bool {
        let Some(sum) = value.sum.filter(|_| SCALES.contains(&value.scale)) else {
            return false;
        };
        let mut counts = std::mem::take(&mut self.counts);
        let mut bounds: &[f64] = &[];
        if let Some((ladder, known)) = &self.ladder {
            ladder.counts(value, &mut counts);
            bounds = known;
        }
        let classic = Classic {
            bounds,
            counts: &counts,
            exemplars: &value.exemplars,
        };
        message(7, page, |page| {
            self.classic(value.count, sum, &classic, page);
            timestamp(15, start(series), page);
            native(value, page);
            for exemplar in value.exemplars.iter().filter(|exemplar| exemplar.time != 0) {
                self.exemplar(16, exemplar, page);
            }
        });
        self.counts = counts;
        true
    }

    fn classic(&self, count: u64, sum: f64, classic: &Classic<'_>, page: &mut Vec<u8>) {
        uint(1, count, page);
        double(2, sum, page);
        let mut exemplars = classic.exemplars;
        let mut cumulative = 0_u64;
        for (bound, count) in classic.bounds.iter().zip(classic.counts) {
            cumulative = cumulative.saturating_add(*count);
            self.bucket(*bound, cumulative, take_up_to(&mut exemplars, *bound), page);
        }
        // The infinite bucket is understood, unless it has something to show.
        if let Some(exemplar) = take_up_to(&mut exemplars, f64::INFINITY) {
            self.bucket(f64::INFINITY, count, Some(exemplar), page);
        }
    }

    fn bucket(&self, bound: f64, count: u64, exemplar: Option<&Exemplar>, page: &mut Vec<u8>) {
        message(3, page, |page| {
            uint(1, count, page);
            double(2, bound, page);
            if let Some(exemplar) = exemplar {
                self.exemplar(3, exemplar, page);
            }
        });
    }

    fn exemplar(&self, field: u32, exemplar: &Exemplar, page: &mut Vec<u8>) {
        message(field, page, |page| {
            let escaping = self.escaping.of_exemplars();
            labels(&exemplar.labels, escaping, None, page);
            double(2, exemplar.value, page);
            timestamp(3, Some(exemplar.time).filter(|time| *time != 0), page);
        });
    }
}

fn labels(labels: &Labels, escaping: Escaping, reserved: Option<&str>, page: &mut Vec<u8>) {
    if is_kept(labels, escaping, reserved) {
        labels
            .pairs()
            .for_each(|(name, value)| pair(&name, &value, page));
    } else {
        let pairs = merged(labels, escaping, reserved);
        pairs
            .iter()
            .for_each(|(name, value)| pair(name, value, page));
    }
}

/// One label.
fn pair(name: &str, value: &str, page: &mut Vec<u8>) {
    message(1, page, |page| {
        text(1, name, page);
        text(2, value, page);
    });
}

fn summary(series: &Series, summary: &Summary, page: &mut Vec<u8>) {
    message(4, page, |page| {
        uint(1, summary.count, page);
        double(2, summary.sum, page);
        for (quantile, value) in &summary.quantiles {
            message(3, page, |page| {
                double(1, *quantile, page);
                double(2, *value, page);
            });
        }
        timestamp(4, start(series), page);
    });
}

fn native(histogram: &Exponential, page: &mut Vec<u8>) {
    key(5, VARINT, page);
    varint(zigzag(i64::from(histogram.scale)), page);
    let threshold = Some(histogram.zero_threshold).filter(|threshold| *threshold > 0.0);
    double(6, threshold.unwrap_or(ZERO_THRESHOLD), page);
    uint(7, histogram.zero_count, page);
    for (field, buckets) in [(9, &histogram.negative), (12, &histogram.positive)] {
        let layout = Layout::of(buckets);
        for span in &layout.spans {
            message(field, page, |page| {
                key(1, VARINT, page);
                varint(zigzag(i64::from(span.offset)), page);
                uint(2, u64::from(span.length), page);
            });
        }
        if !layout.counts.is_empty() {
            message(field + 1, page, |page| {
                layout
                    .deltas()
                    .for_each(|delta| varint(zigzag(delta), page));
            });
        }
    }
}

const VARINT: u8 = 0;
const FIXED64: u8 = 1;
const LENGTH: u8 = 2;

fn key(field: u32, wire: u8, page: &mut Vec<u8>) {
    varint(u64::from(field << 3) | u64::from(wire), page);
}

fn varint(mut value: u64, page: &mut Vec<u8>) {
    while value >= 0x80 {
        page.push(low_bits(value) | 0x80);
        value >>= 7;
    }
    page.push(low_bits(value));
}

fn low_bits(value: u64) -> u8 {
    (value & 0x7f) as u8
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// Always written: Prometheus' fields are optional ones, and a value of zero is a value.
fn double(field: u32, value: f64, page: &mut Vec<u8>) {
    key(field, FIXED64, page);
    page.extend_from_slice(&value.to_le_bytes());
}

fn uint(field: u32, value: u64, page: &mut Vec<u8>) {
    key(field, VARINT, page);
    varint(value, page);
}

/// Nothing for an empty text.
fn text(field: u32, text: &str, page: &mut Vec<u8>) {
    if text.is_empty() {
        return;
    }
    key(field, LENGTH, page);
    varint(text.len() as u64, page);
    page.extend_from_slice(text.as_bytes());
}

fn timestamp(field: u32, nanoseconds: Option<u64>, page: &mut Vec<u8>) {
    const PER_SECOND: u64 = 1_000_000_000;
    let Some(nanoseconds) = nanoseconds else {
        return;
    };
    message(field, page, |page| {
        uint(1, nanoseconds / PER_SECOND, page);
        uint(2, nanoseconds % PER_SECOND, page);
    });
}

fn message(field: u32, page: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    key(field, LENGTH, page);
    let begin = page.len();
    page.push(0); // most lengths have one byte
    write(page);
    insert_length(begin, page);
}

/// Puts the length of what was written after the byte at `begin` into its place, and makes room if it needs more.
fn insert_length(begin: usize, page: &mut Vec<u8>) {
    let written = page.len();
    let length = (written - begin - 1) as u64;
    if length >= 0x80 {
        varint(length, page);
        let more = page.len() - written;
        if let Some(moved) = page.get_mut(begin..) {
            moved.rotate_right(more);
        }
        // The byte that held the place has moved to the front of what was written.
        page.remove(begin + more);
    } else if let Some(place) = page.get_mut(begin) {
        *place = low_bits(length);
    }
}

#[cfg(test)]
mod tests;
