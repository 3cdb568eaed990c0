//! What a point says of its value, field by field, by its sort.

use super::{
    super::wire::{Content, Field, Fields, packed64, varint},
    MOST_BUCKETS, Unread,
};
use crate::model::Number;
use crate::store::{Data, Scaled, Sort};

/// Lists as they are read.
pub(super) struct Read<'s> {
    pub(super) counts: &'s mut Vec<u64>,
    pub(super) negative: &'s mut Vec<u64>,
    pub(super) bounds: &'s mut Vec<f64>,
    pub(super) quantiles: &'s mut Vec<(f64, f64)>,
}

/// Values of a point that are not lists.
#[derive(Default)]
pub(super) struct Values {
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
    #[inline(always)]
    pub(super) fn number(&mut self, field: Field<'_>) -> Result<(), Unread> {
        match field.number {
            4 => self.number = Some(Number::Float(field.content.double()?)),
            6 => self.number = Some(Number::Integer(field.content.fixed64()?.cast_signed())),
            _ => {}
        }
        Ok(())
    }

    #[inline(always)]
    pub(super) fn histogram(
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

    pub(super) fn exponential(
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

    pub(super) fn summary(
        &mut self,
        field: Field<'_>,
        quantiles: &mut Vec<(f64, f64)>,
    ) -> Result<(), Unread> {
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

    pub(super) fn data<'s>(self, sort: Sort, lists: Read<'s>) -> Data<'s> {
        let Read {
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
