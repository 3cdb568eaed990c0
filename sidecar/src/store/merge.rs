//! What a point makes of a series: replaced, added to, or refused. Pure.

use std::sync::Arc;

use super::{Data, Point, Refusal, Sort, Temporality, exponential};
use crate::model::{Histogram, Number, Series, Summary, Value};

/// How a point was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// As what is known now.
    Stored,
    /// Sent again; nothing changed.
    Again,
    /// Added, though something before it never came.
    AfterGap,
}

/// The first value of a series.
pub(super) fn first(sort: Sort, point: &Point<'_>) -> Result<Value, Refusal> {
    if point.time == 0 {
        return Err(Refusal::Time);
    }
    let value = value(sort, point)?;
    match temporality(sort) {
        Some(Temporality::Unspecified) => Err(Refusal::Temporality),
        Some(Temporality::Delta) if !is_rising(sort) => Err(Refusal::Temporality),
        Some(Temporality::Delta | Temporality::Cumulative) | None => Ok(value),
    }
}

/// A further point of a series.
pub(super) fn next(known: &mut Series, sort: Sort, point: &Point<'_>) -> Result<Taken, Refusal> {
    if temporality(sort) == Some(Temporality::Delta) {
        let new = first(sort, point)?;
        return add(known, new, point);
    }
    let follows = follows(known, sort, point);
    if follows.is_err() || !write_over(&mut known.value, sort, point) {
        let new = first(sort, point)?;
        follows?;
        known.value = new;
    }
    known.time = point.time;
    known.start = start(sort, point);
    Ok(Taken::Stored)
}

fn follows(known: &Series, sort: Sort, point: &Point<'_>) -> Result<(), Refusal> {
    if point.time < known.time {
        return Err(Refusal::OutOfOrder);
    }
    let has_start = sort != Sort::Gauge && point.start != 0;
    match has_start && point.start < known.start {
        true => Err(Refusal::Overlap),
        false => Ok(()),
    }
}

/// Writes a value over the one before if it is right and of the same shape; else nothing changes. Most of what a histogram
/// costs otherwise is to allocate it.
#[inline]
fn write_over(known: &mut Value, sort: Sort, point: &Point<'_>) -> bool {
    use Temporality::Cumulative;
    if point.time == 0 {
        return false;
    }
    match (known, sort, point.data) {
        (Value::Number(known), Sort::Gauge, Data::Number(number)) => {
            *known = number;
            true
        }
        (
            Value::Total(known, exemplar),
            Sort::Sum {
                temporality: Cumulative,
                is_monotonic: true,
            },
            Data::Number(number),
        ) if number.as_f64() >= 0.0 => {
            *known = number;
            *exemplar = None;
            true
        }
        (
            Value::Histogram(known),
            Sort::Histogram(Cumulative),
            Data::Histogram {
                count,
                sum,
                counts,
                bounds,
            },
        ) if known.counts.len() == counts.len()
            && *known.bounds == *bounds
            && all(counts) == Some(count) =>
        {
            known.counts.copy_from_slice(counts);
            known.count = count;
            known.sum = sum.filter(|sum| !sum.is_nan());
            known.exemplars.clear();
            true
        }
        _ => false,
    }
}

/// Adds to a series without looking at time: points of many series have it together.
pub(super) fn pour(known: &mut Series, sort: Sort, point: &Point<'_>) -> Result<Taken, Refusal> {
    let new = first(sort, point)?;
    sum_up(&mut known.value, new)?;
    known.time = known.time.max(point.time);
    Ok(Taken::Stored)
}

/// Since when a point counts, if that is known and means something.
pub(super) fn start(sort: Sort, point: &Point<'_>) -> u64 {
    let is_counted = is_rising(sort) || matches!(sort, Sort::Summary);
    // A start that is the time itself stands for one that nobody knows.
    match is_counted && point.start < point.time {
        true => point.start,
        false => 0,
    }
}

/// Whether points of many series can be poured into one.
pub(super) fn can_pour(sort: Sort) -> bool {
    temporality(sort) == Some(Temporality::Delta) && is_rising(sort)
}

fn temporality(sort: Sort) -> Option<Temporality> {
    match sort {
        Sort::Gauge | Sort::Summary => None,
        Sort::Sum { temporality, .. }
        | Sort::Histogram(temporality)
        | Sort::Exponential(temporality) => Some(temporality),
    }
}

fn is_rising(sort: Sort) -> bool {
    match sort {
        Sort::Gauge | Sort::Summary => false,
        Sort::Sum { is_monotonic, .. } => is_monotonic,
        Sort::Histogram(_) | Sort::Exponential(_) => true,
    }
}

fn add(known: &mut Series, new: Value, point: &Point<'_>) -> Result<Taken, Refusal> {
    let Point { start, time, .. } = *point;
    if time == known.time && start != 0 && start < time {
        return Ok(Taken::Again);
    }
    if time <= known.time {
        return Err(Refusal::OutOfOrder);
    }
    if start != 0 && start < known.start {
        return Err(Refusal::OutOfOrder);
    }
    if start != 0 && start < known.time {
        return Err(Refusal::Overlap);
    }
    if !has_same_shape(&known.value, &new) {
        known.value = new;
        known.start = start;
        known.time = time;
        return Ok(Taken::Stored);
    }
    sum_up(&mut known.value, new)?;
    let is_gap = start > known.time;
    known.time = time;
    Ok(if is_gap {
        Taken::AfterGap
    } else {
        Taken::Stored
    })
}

/// Whether two can be added: totals always, histograms with the same bounds.
fn has_same_shape(known: &Value, new: &Value) -> bool {
    match (known, new) {
        (Value::Histogram(known), Value::Histogram(new)) => known.bounds == new.bounds,
        (Value::Total(..), Value::Total(..)) | (Value::Exponential(_), Value::Exponential(_)) => {
            true
        }
        _ => false,
    }
}

fn sum_up(known: &mut Value, new: Value) -> Result<(), Refusal> {
    match (known, new) {
        (Value::Total(total, exemplar), Value::Total(more, newer)) => {
            *total = plus(*total, more);
            if newer.is_some() {
                *exemplar = newer;
            }
        }
        (Value::Histogram(known), Value::Histogram(new)) if known.bounds == new.bounds => {
            let mut counts = known.counts.clone();
            for (count, more) in counts.iter_mut().zip(&new.counts) {
                *count = count.checked_add(*more).ok_or(Refusal::Value)?;
            }
            known.count = known.count.checked_add(new.count).ok_or(Refusal::Value)?;
            known.counts = counts;
            known.sum = known.sum.zip(new.sum).map(|(one, other)| one + other);
            known.exemplars = new.exemplars;
        }
        (Value::Exponential(known), Value::Exponential(new)) => exponential::add(known, *new)?,
        _ => return Err(Refusal::Buckets),
    }
    Ok(())
}

/// Whole numbers stay whole until they do not fit.
fn plus(one: Number, other: Number) -> Number {
    match (one, other) {
        (Number::Integer(one), Number::Integer(other)) => match one.checked_add(other) {
            Some(sum) => Number::Integer(sum),
            None => Number::Float(Number::Integer(one).as_f64() + Number::Integer(other).as_f64()),
        },
        _ => Number::Float(one.as_f64() + other.as_f64()),
    }
}

/// The value of a point, if its type can have it.
fn value(sort: Sort, point: &Point<'_>) -> Result<Value, Refusal> {
    match (sort, point.data) {
        (
            Sort::Sum {
                is_monotonic: true, ..
            },
            Data::Number(number),
        ) => {
            // A total is a number, and never below zero.
            match number.as_f64() >= 0.0 {
                true => Ok(Value::Total(number, None)),
                false => Err(Refusal::Value),
            }
        }
        (Sort::Gauge | Sort::Sum { .. }, Data::Number(number)) => Ok(Value::Number(number)),
        (
            Sort::Histogram(_),
            Data::Histogram {
                count,
                sum,
                counts,
                bounds,
            },
        ) => histogram(count, sum, counts, bounds),
        (Sort::Exponential(_), Data::Exponential(scaled)) => {
            Ok(Value::Exponential(Box::new(exponential::of(&scaled)?)))
        }
        (
            Sort::Summary,
            Data::Summary {
                count,
                sum,
                quantiles,
            },
        ) => summary(count, sum, quantiles),
        _ => Err(Refusal::Value),
    }
}

fn histogram(
    count: u64,
    sum: Option<f64>,
    counts: &[u64],
    bounds: &[f64],
) -> Result<Value, Refusal> {
    let one = [count];
    // Neither bounds nor counts: everything is in one bucket.
    let counts = match counts.is_empty() && bounds.is_empty() {
        true => &one[..],
        false => counts,
    };
    let is_rising = bounds.is_sorted_by(|one, other| one < other);
    let has_nan = bounds.iter().any(|bound| bound.is_nan());
    if counts.len() != bounds.len() + 1 || !is_rising || has_nan || all(counts) != Some(count) {
        return Err(Refusal::Buckets);
    }
    let mut counts: Box<[u64]> = counts.into();
    let mut bounds = bounds;
    if let Some((last, before)) = bounds.split_last()
        && *last == f64::INFINITY
    {
        bounds = before;
        counts = folded(&counts);
    }
    Ok(Value::Histogram(Box::new(Histogram {
        bounds: Arc::from(bounds),
        counts,
        count,
        sum: sum.filter(|sum| !sum.is_nan()),
        exemplars: Vec::new(),
    })))
}

fn all(counts: &[u64]) -> Option<u64> {
    let mut counts = counts.iter();
    counts.try_fold(0_u64, |all, count| all.checked_add(*count))
}

/// The two last in one: both end at infinity.
fn folded(counts: &[u64]) -> Box<[u64]> {
    match counts {
        [before @ .., one, other] => {
            let last = one.saturating_add(*other);
            before.iter().copied().chain([last]).collect()
        }
        few => few.into(),
    }
}

fn summary(count: u64, sum: f64, quantiles: &[(f64, f64)]) -> Result<Value, Refusal> {
    let is_right = |(quantile, _): &(f64, f64)| (0.0..=1.0).contains(quantile);
    if !quantiles.iter().all(is_right) {
        return Err(Refusal::Value);
    }
    let mut quantiles: Box<[_]> = quantiles.into();
    quantiles.sort_by(|one, other| one.0.total_cmp(&other.0));
    if quantiles.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err(Refusal::Value);
    }
    Ok(Value::Summary(Box::new(Summary {
        count,
        sum,
        quantiles,
    })))
}
