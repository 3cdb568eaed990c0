//! Points, read from their messages without a copy; lists go to a scratch that is used again.

use super::wire::{Content, Field, Fields, Malformed, packed64, varint};
use crate::model::Number;
use crate::store::{Data, Example, Point, Scaled, Sort};

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

/// Which field is what, for each sort of point.
struct Numbers {
    attributes: u32,
    examples: u32,
    flags: u32,
}

impl Numbers {
    fn of(sort: Sort) -> Self {
        let (attributes, examples, flags) = match sort {
            Sort::Gauge | Sort::Sum { .. } => (7, 5, 8),
            Sort::Histogram(_) => (9, 8, 10),
            Sort::Exponential(_) => (1, 11, 10),
            Sort::Summary => (7, 0, 8), // has no examples, and no field has the number 0
        };
        Self {
            attributes,
            examples,
            flags,
        }
    }
}

/// Reads a point and gives it to `take`.
pub(super) fn read<'a, T>(
    message: &'a [u8],
    sort: Sort,
    scratch: &mut Scratch<'a>,
    take: impl FnOnce(Point<'_>) -> T,
) -> Result<T, Unread> {
    scratch.clear();
    let Scratch {
        counts,
        negative,
        bounds,
        quantiles,
        examples,
        attributes: scattered,
    } = scratch;
    let numbers = Numbers::of(sort);
    let mut values = Values::default();
    let (mut start, mut time, mut flags) = (0, 0, 0);
    let mut row = (0, 0);
    let mut fields = Fields::of(message);
    while let Some(field) = fields.read()? {
        match field.number {
            number if number == numbers.attributes => {
                gather(message, &mut row, field.place, scattered);
            }
            number if number == numbers.examples => {
                if examples.len() < MOST_EXAMPLES {
                    examples.push(example(field.content.bytes()?)?);
                }
            }
            number if number == numbers.flags => flags = field.content.varint()?,
            2 => start = field.content.fixed64()?,
            3 => time = field.content.fixed64()?,
            _ => match sort {
                Sort::Gauge | Sort::Sum { .. } => values.number(field)?,
                Sort::Histogram(_) => values.histogram(field, counts, bounds)?,
                Sort::Exponential(_) => values.exponential(field, counts, negative)?,
                Sort::Summary => values.summary(field, quantiles)?,
            },
        }
    }
    let attributes = match scattered.is_empty() {
        true => slice(message, row),
        false => scattered,
    };
    let lists = Lists {
        counts,
        negative,
        bounds,
        quantiles,
    };
    Ok(take(Point {
        attributes,
        start,
        time,
        is_absent: flags & 1 == 1,
        data: values.data(sort, lists),
        exemplars: examples,
    }))
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

/// Values of a point that are lists.
struct Lists<'s> {
    counts: &'s [u64],
    negative: &'s [u64],
    bounds: &'s [f64],
    quantiles: &'s [(f64, f64)],
}

/// Values of a point that are not lists.
#[derive(Default)]
struct Values {
    number: Option<Number>,
    count: u64,
    sum: Option<f64>,
    scale: i32,
    zero_count: u64,
    zero_threshold: f64,
    positive_from: i32,
    negative_from: i32,
}

impl Values {
    fn number(&mut self, field: Field<'_>) -> Result<(), Unread> {
        match field.number {
            4 => self.number = Some(Number::Float(field.content.double()?)),
            6 => self.number = Some(Number::Integer(field.content.fixed64()?.cast_signed())),
            _ => {}
        }
        Ok(())
    }

    fn histogram(
        &mut self,
        field: Field<'_>,
        counts: &mut Vec<u64>,
        bounds: &mut Vec<f64>,
    ) -> Result<(), Unread> {
        match field.number {
            4 => self.count = field.content.fixed64()?,
            5 => self.sum = Some(field.content.double()?),
            6 => fixed_list(field.content, counts, |bits| bits)?,
            7 => fixed_list(field.content, bounds, f64::from_bits)?,
            _ => {}
        }
        Ok(())
    }

    fn exponential(
        &mut self,
        field: Field<'_>,
        positive: &mut Vec<u64>,
        negative: &mut Vec<u64>,
    ) -> Result<(), Unread> {
        match field.number {
            4 => self.count = field.content.fixed64()?,
            5 => self.sum = Some(field.content.double()?),
            6 => self.scale = field.content.sint32()?,
            7 => self.zero_count = field.content.fixed64()?,
            8 => buckets(field.content.bytes()?, &mut self.positive_from, positive)?,
            9 => buckets(field.content.bytes()?, &mut self.negative_from, negative)?,
            14 => self.zero_threshold = field.content.double()?,
            _ => {}
        }
        Ok(())
    }

    fn summary(&mut self, field: Field<'_>, quantiles: &mut Vec<(f64, f64)>) -> Result<(), Unread> {
        match field.number {
            4 => self.count = field.content.fixed64()?,
            5 => self.sum = Some(field.content.double()?),
            6 => {
                let (mut quantile, mut value) = (0.0, 0.0);
                let mut fields = Fields::of(field.content.bytes()?);
                while let Some(field) = fields.read()? {
                    match field.number {
                        1 => quantile = field.content.double()?,
                        2 => value = field.content.double()?,
                        _ => {}
                    }
                }
                push(quantiles, (quantile, value))?;
            }
            _ => {}
        }
        Ok(())
    }

    fn data<'s>(self, sort: Sort, lists: Lists<'s>) -> Data<'s> {
        let Lists {
            counts,
            negative,
            bounds,
            quantiles,
        } = lists;
        match sort {
            Sort::Gauge | Sort::Sum { .. } => self.number.map_or(Data::None, Data::Number),
            Sort::Histogram(_) => Data::Histogram {
                count: self.count,
                sum: self.sum,
                counts,
                bounds,
            },
            Sort::Exponential(_) => Data::Exponential(Scaled {
                scale: self.scale,
                count: self.count,
                sum: self.sum,
                zero_threshold: self.zero_threshold,
                zero_count: self.zero_count,
                positive: (self.positive_from, counts),
                negative: (self.negative_from, negative),
            }),
            Sort::Summary => Data::Summary {
                count: self.count,
                sum: self.sum.unwrap_or_default(),
                quantiles,
            },
        }
    }
}

fn push<T>(list: &mut Vec<T>, item: T) -> Result<(), Unread> {
    if list.len() >= MOST_BUCKETS {
        return Err(Unread::TooManyBuckets);
    }
    list.push(item);
    Ok(())
}

/// Numbers of eight bytes, packed or one by one.
fn fixed_list<T>(
    content: Content<'_>,
    list: &mut Vec<T>,
    convert: impl Fn(u64) -> T,
) -> Result<(), Unread> {
    match content {
        Content::Bytes(packed) => {
            let numbers = packed64(packed)?;
            if list.len() + packed.len() / 8 > MOST_BUCKETS {
                return Err(Unread::TooManyBuckets);
            }
            list.extend(numbers.map(convert));
            Ok(())
        }
        Content::Varint(_) | Content::Fixed64(_) | Content::Fixed32(_) => {
            push(list, convert(content.fixed64()?))
        }
    }
}

/// Buckets of one side of an exponential histogram.
fn buckets(message: &[u8], from: &mut i32, counts: &mut Vec<u64>) -> Result<(), Unread> {
    let mut fields = Fields::of(message);
    while let Some(field) = fields.read()? {
        match (field.number, field.content) {
            (1, content) => *from = content.sint32()?,
            (2, Content::Bytes(mut packed)) => {
                while !packed.is_empty() {
                    push(counts, varint(&mut packed)?)?;
                }
            }
            (2, content) => push(counts, content.varint()?)?,
            _ => {}
        }
    }
    Ok(())
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
