//! What a series takes of the memory, about. Pure.

use super::{Data, Metric, Point, Scaled, Scope};
use crate::model::{Exemplar, Labels, Value};

/// What one series takes beside its texts: slot, keys, tables.
pub(super) const OVERHEAD: usize = 320;
/// What a value with lists takes beside them.
const LISTS: usize = 128;
/// What an observation to look at takes beside its labels.
const EXAMPLE: usize = 64;

/// What a target, a scope or a metric takes beside its texts, and how often it keeps them.
const SOURCE: usize = 640;
const COPIES: usize = 4;

/// Of a target or a scope that describes itself by these bytes.
pub(super) fn of_described(described: &[u8]) -> usize {
    SOURCE + COPIES * described.len()
}

/// Of a metric of a scope, without its series.
pub(super) fn of_metric(metric: &Metric<'_>, scope: &Scope) -> usize {
    let labels = scope.labels.iter();
    let labels: usize = labels.map(|pair| pair.name.len() + pair.value.len()).sum();
    SOURCE + COPIES * (metric.name.len() + metric.unit.len()) + metric.description.len() + labels
}

/// Of a series that is found by these attributes, without its value.
pub(super) fn of_series(labels: &Labels, attributes: &[u8]) -> usize {
    OVERHEAD + labels.as_str().len() + attributes.len()
}

/// Of a value, beside what every series has.
pub(super) fn of_value(value: &Value) -> usize {
    match value {
        Value::Number(_) | Value::Total(_, None) => 0,
        Value::Total(_, Some(exemplar)) => of_exemplars(std::slice::from_ref(exemplar)),
        Value::Histogram(histogram) => {
            let numbers = histogram.bounds.len() + histogram.counts.len();
            LISTS + 8 * numbers + of_exemplars(&histogram.exemplars)
        }
        Value::Exponential(histogram) => {
            let numbers = histogram.positive.counts.len() + histogram.negative.counts.len();
            LISTS + 8 * numbers + of_exemplars(&histogram.exemplars)
        }
        Value::Summary(summary) => LISTS + 16 * summary.quantiles.len(),
    }
}

fn of_exemplars(exemplars: &[Exemplar]) -> usize {
    let one = |exemplar: &Exemplar| EXAMPLE + exemplar.labels.as_str().len();
    exemplars.iter().map(one).sum()
}

/// Of what a point will be once it is stored, at most, without observations to look at.
pub(super) fn of_point(point: &Point<'_>) -> usize {
    match point.data {
        Data::None | Data::Number(_) => 0,
        Data::Histogram { counts, bounds, .. } => LISTS + 8 * (counts.len() + bounds.len()),
        Data::Exponential(Scaled {
            positive, negative, ..
        }) => LISTS + 8 * (positive.1.len() + negative.1.len()),
        Data::Summary { quantiles, .. } => LISTS + 16 * quantiles.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Histogram, Number};
    use std::sync::Arc;

    #[test]
    fn lists_and_examples_have_a_weight_and_numbers_have_none() {
        let exemplar = || Exemplar {
            labels: Labels::of([("a", "b")]),
            value: 1.0,
            time: 1,
        };
        let histogram = |exemplars| {
            Value::Histogram(Box::new(Histogram {
                bounds: Arc::from([1.0, 2.0]),
                counts: Box::from([1, 2, 3]),
                count: 6,
                sum: None,
                exemplars,
            }))
        };
        let number = Number::Integer(1);
        for (value, expected) in [
            (Value::Number(number), 0),
            (Value::Total(number, None), 0),
            (Value::Total(number, Some(Box::new(exemplar()))), 64 + 5),
            (histogram(vec![]), 128 + 40),
            (histogram(vec![exemplar()]), 128 + 40 + 64 + 5),
        ] {
            assert_eq!(of_value(&value), expected, "{value:?}");
        }
    }
}
