//! Points, read from their messages without a copy; lists go to a scratch that is used again.

mod values;

use super::wire::{Field, Fields, Malformed};
use crate::model::Number;
use crate::store::{Example, Point, Sort};
use values::{Read, Values};

/// More buckets than anyone can read; a request is not to fill the memory with them.
pub(super) const MOST_BUCKETS: usize = 4_096;
/// More examples of one point than will be kept.
const MOST_EXAMPLES: usize = 64;

/// Lists of the point that is being read.
#[derive(Debug, Default)]
pub(super) struct Scratch<'a> {
    counts: Vec<u64>,
    negative: Vec<u64>,
    bounds: Vec<f64>,
    quantiles: Vec<(f64, f64)>,
    examples: Vec<Example<'a>>,
    attributes: Vec<u8>,
}

impl Scratch<'_> {
    fn clear(&mut self) {
        let Self {
            counts,
            negative,
            bounds,
            quantiles,
            examples,
            attributes,
        } = self;
        counts.clear();
        negative.clear();
        bounds.clear();
        quantiles.clear();
        examples.clear();
        attributes.clear();
    }
}

/// Why a point is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// The request is no protobuf.
    Malformed(Malformed),
    /// The point has more buckets than anyone can read.
    TooManyBuckets,
}

impl From<Malformed> for Unread {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

/// How points of a sort are written. Each has its own walk over the fields, in which no number is looked up.
trait Shape {
    /// The number of the field that is an attribute.
    const ATTRIBUTES: u32;
    /// That of an example; no field has the number 0.
    const EXAMPLES: u32;
    /// That of the flags.
    const FLAGS: u32;

    /// Takes any other field.
    fn take(field: Field<'_>, values: &mut Values, lists: &mut Read<'_>) -> Result<(), Unread>;
}

struct OfNumber;
impl Shape for OfNumber {
    const ATTRIBUTES: u32 = 7;
    const EXAMPLES: u32 = 5;
    const FLAGS: u32 = 8;

    #[inline(always)]
    fn take(field: Field<'_>, values: &mut Values, _: &mut Read<'_>) -> Result<(), Unread> {
        values.number(field)
    }
}

struct OfHistogram;
impl Shape for OfHistogram {
    const ATTRIBUTES: u32 = 9;
    const EXAMPLES: u32 = 8;
    const FLAGS: u32 = 10;

    #[inline(always)]
    fn take(field: Field<'_>, values: &mut Values, lists: &mut Read<'_>) -> Result<(), Unread> {
        values.histogram(field, lists.counts, lists.bounds)
    }
}

struct OfExponential;
impl Shape for OfExponential {
    const ATTRIBUTES: u32 = 1;
    const EXAMPLES: u32 = 11;
    const FLAGS: u32 = 10;

    fn take(field: Field<'_>, values: &mut Values, lists: &mut Read<'_>) -> Result<(), Unread> {
        values.exponential(field, lists.counts, lists.negative)
    }
}

struct OfSummary;
impl Shape for OfSummary {
    const ATTRIBUTES: u32 = 7;
    const EXAMPLES: u32 = 0;
    const FLAGS: u32 = 8;

    fn take(field: Field<'_>, values: &mut Values, lists: &mut Read<'_>) -> Result<(), Unread> {
        values.summary(field, lists.quantiles)
    }
}

/// Reads a point.
pub(super) fn read<'s, 'a: 's>(
    message: &'a [u8],
    sort: Sort,
    scratch: &'s mut Scratch<'a>,
) -> Result<Point<'s>, Unread> {
    match sort {
        Sort::Gauge | Sort::Sum { .. } => read_as::<OfNumber>(message, sort, scratch),
        Sort::Histogram(_) => read_as::<OfHistogram>(message, sort, scratch),
        Sort::Exponential(_) => read_as::<OfExponential>(message, sort, scratch),
        Sort::Summary => read_as::<OfSummary>(message, sort, scratch),
    }
}

fn read_as<'s, 'a: 's, S: Shape>(
    message: &'a [u8],
    sort: Sort,
    scratch: &'s mut Scratch<'a>,
) -> Result<Point<'s>, Unread> {
    scratch.clear();
    let Scratch {
        counts,
        negative,
        bounds,
        quantiles,
        examples,
        attributes: scattered,
    } = scratch;
    let mut lists = Read {
        counts,
        negative,
        bounds,
        quantiles,
    };
    let mut values = Values::default();
    let (mut start, mut time, mut flags) = (0, 0, 0);
    let mut row = (0, 0);
    let mut fields = Fields::of(message);
    while let Some(field) = fields.read()? {
        match field.number {
            number if number == S::ATTRIBUTES => {
                // Most of a point is attributes, and they come in a row.
                let end = fields.skip(S::ATTRIBUTES);
                gather(message, &mut row, (field.place.0, end), scattered);
            }
            number if number == S::EXAMPLES => {
                if examples.len() < MOST_EXAMPLES {
                    examples.push(example(field.content.bytes()?)?);
                }
            }
            number if number == S::FLAGS => flags = field.content.varint()?,
            2 => start = field.content.fixed64()?,
            3 => time = field.content.fixed64()?,
            _ => S::take(field, &mut values, &mut lists)?,
        }
    }
    let attributes = match scattered.is_empty() {
        true => slice(message, row),
        false => scattered,
    };
    Ok(Point {
        attributes,
        start,
        time,
        is_absent: flags & 1 == 1,
        data: values.data(sort, lists),
        exemplars: examples,
    })
}

/// Adds a field to a row of them. One that is not next to the others has them all copied, which no encoder makes necessary.
fn gather(
    message: &[u8],
    row: &mut (usize, usize),
    place: (usize, usize),
    scattered: &mut Vec<u8>,
) {
    if joins(row, place) {
        return;
    }
    if scattered.is_empty() {
        scattered.extend_from_slice(slice(message, *row));
    }
    scattered.extend_from_slice(slice(message, place));
    *row = (0, usize::MAX); // nothing is next to it
}

/// Makes a row longer by a field, if that is the first or next to the others.
fn joins(row: &mut (usize, usize), (from, to): (usize, usize)) -> bool {
    match *row {
        (_, 0) => *row = (from, to),
        (first, end) if end == from => *row = (first, to),
        _ => return false,
    }
    true
}

fn slice(message: &[u8], (from, to): (usize, usize)) -> &[u8] {
    message.get(from..to).unwrap_or_default()
}

fn example(message: &[u8]) -> Result<Example<'_>, Malformed> {
    let mut example = Example {
        time: 0,
        value: Number::Float(0.0),
        trace: &[],
        span: &[],
        attributes: &[],
    };
    let mut attributes = (0, 0);
    let mut fields = Fields::of(message);
    while let Some(field) = fields.read()? {
        match field.number {
            2 => example.time = field.content.fixed64()?,
            3 => example.value = Number::Float(field.content.double()?),
            4 => example.span = field.content.bytes()?,
            5 => example.trace = field.content.bytes()?,
            6 => example.value = Number::Integer(field.content.fixed64()?.cast_signed()),
            // Only those in a row are kept, which is all that anyone sends.
            7 => {
                joins(&mut attributes, field.place);
            }
            _ => {}
        }
    }
    example.attributes = slice(message, attributes);
    Ok(example)
}
