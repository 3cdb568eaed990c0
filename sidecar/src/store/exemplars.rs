//! Observations to look at: the latest of a counter, and of each bucket of a histogram.

use std::fmt::Write as _;

use super::{Example, Point, ReadAttributes};
use crate::{
    model::{Exemplar, Labels, Value},
    names::{LabelOptions, label},
};

/// Characters of all names and values together, as OpenMetrics has it.
const MOST_CHARACTERS: usize = 128;
/// Of an exponential histogram.
const MOST: usize = 10;

/// Takes the examples of a point over, or those of the value before it where it has none.
pub(super) fn attach(
    value: &mut Value,
    before: Option<Value>,
    point: &Point<'_>,
    read: ReadAttributes,
    options: LabelOptions,
) {
    if point.exemplars.is_empty() {
        return keep(value, before);
    }
    let made = point.exemplars.iter().filter(|example| example.time != 0);
    let made = made.map(|example| exemplar(example, read, options));
    match value {
        Value::Total(_, place) => *place = made.max_by_key(|one| one.time).map(Box::new),
        Value::Histogram(histogram) => {
            let bounds = &histogram.bounds;
            let bucket = |value: f64| bounds.partition_point(|bound| *bound < value);
            histogram.exemplars = latest(made.filter(|one| !one.value.is_nan()), |one| {
                bucket(one.value)
            });
        }
        Value::Exponential(histogram) => {
            let mut all: Vec<_> = made.filter(|one| !one.value.is_nan()).collect();
            all.sort_by_key(|one| std::cmp::Reverse(one.time));
            all.truncate(MOST);
            all.sort_by(|one, other| one.value.total_cmp(&other.value));
            histogram.exemplars = all;
        }
        Value::Number(_) | Value::Summary(_) => {}
    }
}

fn keep(value: &mut Value, before: Option<Value>) {
    match (value, before) {
        (Value::Total(_, place), Some(Value::Total(_, before))) => *place = before,
        (Value::Histogram(now), Some(Value::Histogram(before))) if now.bounds == before.bounds => {
            now.exemplars = before.exemplars;
        }
        (Value::Exponential(now), Some(Value::Exponential(before))) => {
            now.exemplars = before.exemplars;
        }
        _ => {}
    }
}

/// The latest of each bucket, rising.
fn latest(
    all: impl Iterator<Item = Exemplar>,
    bucket: impl Fn(&Exemplar) -> usize,
) -> Vec<Exemplar> {
    let mut latest: std::collections::BTreeMap<usize, Exemplar> = Default::default();
    for one in all {
        let at = bucket(&one);
        if latest.get(&at).is_none_or(|known| known.time <= one.time) {
            latest.insert(at, one);
        }
    }
    latest.into_values().collect()
}

fn exemplar(example: &Example<'_>, read: ReadAttributes, options: LabelOptions) -> Exemplar {
    let mut labels: std::collections::BTreeMap<String, String> = Default::default();
    for pair in read(example.attributes).unwrap_or_default() {
        if let Ok(name) = label(&pair.name, options) {
            labels.insert(name.into_owned(), pair.value);
        }
    }
    let mut ids = Vec::new();
    for (name, id, length) in [
        ("span_id", example.span, 8),
        ("trace_id", example.trace, 16),
    ] {
        labels.remove(name);
        if id.len() == length && id.iter().any(|byte| *byte != 0) {
            ids.push((name.to_owned(), hex(id)));
        }
    }
    let characters =
        |(name, value): (&String, &String)| name.chars().count() + value.chars().count();
    let all: usize = labels.iter().map(characters).sum::<usize>()
        + ids
            .iter()
            .map(|(name, id)| name.len() + id.len())
            .sum::<usize>();
    if all > MOST_CHARACTERS {
        labels.clear();
    }
    labels.extend(ids);
    Exemplar {
        labels: Labels::of(labels.iter().map(|(name, value)| (&**name, &**value))),
        value: example.value.as_f64(),
        time: example.time,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
