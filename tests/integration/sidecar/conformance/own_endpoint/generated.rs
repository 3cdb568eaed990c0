//! Odd names and many histograms, the same on every run.

use std::{collections::BTreeMap, ops::RangeInclusive};

use fastrand::Rng;
use serde_json::{Value, json};

use super::super::data::Times;

/// How many histograms of each type there are.
pub(super) const HISTOGRAMS: usize = 60;

/// The exponential ones that are finer than native ones can be.
pub(super) const FINE: &str = "random_fine";

/// Type, name and unit of metrics that are not called as Prometheus calls things.
#[rustfmt::skip]
pub(super) const NAMES: &[(&str, &str, &str)] = &[
    ("gauge", "simple_metric", ""), ("gauge", "metric@with#special$chars", ""), ("gauge", "123metric", ""),
    ("gauge", "a__b", "s"), ("gauge", "a._c", ""), ("gauge", "_leading", ""), ("gauge", "trailing_", ""),
    ("gauge", "col:on.name", ""), ("gauge", "cpu.utilization", "1"), ("gauge", "ratio.foo", "1"),
    ("gauge", "queue.rate", "{item}/s"), ("gauge", "speed", "m/s"), ("gauge", "fast", "km/h"),
    ("gauge", "half", "By/"), ("gauge", "full", "%"), ("gauge", "by.the.minute", "1/min"), ("gauge", "custom", "custom_unit"),
    ("gauge", "odd.unit", "unit@with#special/chars"), ("gauge", "seconds_before_birthday", "s"),
    ("gauge", "x_custom_unit", "custom_unit"), ("gauge", "foo_per_second", "1/s"), ("gauge", "braces", "{a}By"),
    ("gauge", "storage", "TiBy"), ("gauge", "métric_with_ñ", "ms"), ("gauge", "with space", ""),
    ("counter", "requests.total.count", ""), ("counter", "total", ""), ("counter", "process.cpu.time", "s"),
    ("counter", "io", "By/s"), ("counter", "(lambda).function.executions(#)", ""), ("counter", "2xx.responses", ""),
    ("counter", "already_total", ""), ("counter", "subtotal", ""), ("counter", "items", "1"), ("counter", "requêsts", ""),
    ("sum", "balance", "1"), ("sum", "connections.active", "{connection}"),
];

/// Attributes that are not called as Prometheus calls labels, and values that are no texts.
fn attributes() -> Value {
    let pair = |key: &str, value: Value| json!({"key": key, "value": value});
    let text = |key: &str, value: &str| pair(key, json!({"stringValue": value}));
    let list = json!({"arrayValue": {"values": [{"stringValue": "a"}, {"intValue": "1"}, {"boolValue": true}]}});
    let map = json!({"kvlistValue": {"values": [pair("z", json!({"intValue": "1"})), pair("a", json!({"doubleValue": 0.5}))]}});
    json!([
        text("hello_world", "c"),
        text("hello-world", "a"),
        text("hello.world", "b"),
        text("label.with.dots", "1"),
        text("label:with:colons", "2"),
        text("123label", "3"),
        text("_private", "4"),
        text("a__b", "5"),
        text("with&&special##chars", "6"),
        text("trailing___", "7"),
        text("ünicode", "8"),
        text("empty", ""),
        text("lines", "one\ntwo\t\"three\" \\"),
        pair("truth", json!({"boolValue": true})),
        pair("whole", json!({"intValue": "-7"})),
        pair("part", json!({"doubleValue": 2.5})),
        pair("list", list),
        pair("map", map),
    ])
}

/// A request with some metrics.
pub(super) fn of_metrics(metrics: &[Value]) -> Value {
    let resource = json!({"attributes": [
        {"key": "service.name", "value": {"stringValue": "shop"}},
        {"key": "service.namespace", "value": {"stringValue": "mall"}},
        {"key": "service.instance.id", "value": {"stringValue": "the-instance"}},
        {"key": "host.cpus", "value": {"intValue": "4"}},
    ]});
    json!({"resourceMetrics": [{"resource": resource, "scopeMetrics": [{"metrics": metrics}]}]})
}

/// A metric for each name, each with another value.
pub(super) fn names(times: Times) -> Value {
    let metric = |(number, (kind, name, unit)): (usize, &(&str, &str, &str))| {
        let point = point(
            times,
            json!({"asDouble": number as f64 + 0.5, "attributes": attributes()}),
        );
        let data = match *kind {
            "gauge" => ("gauge", json!({"dataPoints": [point]})),
            kind => (
                "sum",
                json!({"aggregationTemporality": 2, "isMonotonic": kind == "counter", "dataPoints": [point]}),
            ),
        };
        let mut metric = json!({"name": name, "unit": unit});
        metric[data.0] = data.1;
        metric
    };
    let metrics: Vec<Value> = NAMES.iter().enumerate().map(metric).collect();
    of_metrics(&metrics)
}

/// Many histograms of both types, from coarse to finer than native ones can be.
pub(super) fn histograms(times: Times) -> Value {
    let mut random = Rng::with_seed(6);
    let points = |data: Vec<Value>| json!({"aggregationTemporality": 2, "dataPoints": data});
    let number = |number: usize, mut values: Value| {
        values["attributes"] =
            json!([{"key": "number", "value": {"intValue": number.to_string()}}]);
        point(times, values)
    };
    let some = |scales: RangeInclusive<i32>, random: &mut Rng| {
        let all = (0..HISTOGRAMS).map(|at| number(at, exponential(scales.clone(), random)));
        points(all.collect())
    };
    let native = some(-4..=8, &mut random);
    let fine = some(9..=12, &mut random);
    let fixed = (0..HISTOGRAMS).map(|at| number(at, fixed(&mut random)));
    let fixed = points(fixed.collect());
    of_metrics(&[
        json!({"name": "random.native", "exponentialHistogram": native}),
        json!({"name": "random.fine", "exponentialHistogram": fine}),
        json!({"name": "random.fixed", "unit": "ms", "histogram": fixed}),
    ])
}

/// Buckets with gaps of all lengths, and their sum.
fn buckets(random: &mut Rng) -> (Vec<u64>, u64) {
    let length = random.usize(0..30);
    let counts: Vec<u64> = (0..length)
        .map(|_| {
            if random.u8(0..3) == 0 {
                random.u64(1..1_000)
            } else {
                0
            }
        })
        .collect();
    let sum = counts.iter().sum();
    (counts, sum)
}

fn exponential(scales: RangeInclusive<i32>, random: &mut Rng) -> Value {
    let (positive, above) = buckets(random);
    let (negative, below) = buckets(random);
    let zero = random.u64(0..5);
    let side = |counts: Vec<u64>, offset: i32| {
        let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
        json!({"offset": offset, "bucketCounts": counts})
    };
    let scale = random.i32(scales);
    // So that bounds stay far from the largest and the smallest numbers at every scale.
    let reach = 8 << (scale + 4).min(6);
    json!({
        "scale": scale, "count": (above + below + zero).to_string(), "zeroCount": zero.to_string(),
        "sum": random.i32(-1_000..1_000),
        "positive": side(positive, random.i32(-reach..reach)),
        "negative": side(negative, random.i32(-reach..reach)),
    })
}

/// How much is in each bucket of an exponential histogram as a native one, from below, by the rule of the specification:
/// the index is shifted by as much as the scale is above 8.
pub(super) fn native_counts(point: &Value) -> Vec<u64> {
    let number = |value: &Value| value.as_str().and_then(|text| text.parse::<u64>().ok());
    let shift = (point["scale"].as_i64().unwrap_or_default() - 8).max(0);
    let side = |side: &Value| {
        let offset = side["offset"].as_i64().unwrap_or_default();
        let mut merged = BTreeMap::new();
        for (at, count) in (offset..).zip(side["bucketCounts"].as_array().into_iter().flatten()) {
            *merged.entry(at >> shift).or_default() += number(count).unwrap_or_default();
        }
        merged.into_values().collect::<Vec<u64>>()
    };
    let mut counts = side(&point["negative"]);
    counts.reverse();
    counts.extend(number(&point["zeroCount"]));
    counts.extend(side(&point["positive"]));
    counts.retain(|count| *count > 0);
    counts
}

fn fixed(random: &mut Rng) -> Value {
    let bounds = random.usize(0..12);
    let mut bound = random.i32(-20..20);
    let bounds: Vec<f64> = (0..bounds)
        .map(|_| {
            bound += random.i32(1..1_000);
            f64::from(bound) / 8.0
        })
        .collect();
    let counts: Vec<u64> = (0..=bounds.len()).map(|_| random.u64(0..1_000)).collect();
    let count: u64 = counts.iter().sum();
    let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
    let mut values =
        json!({"count": count.to_string(), "bucketCounts": counts, "explicitBounds": bounds});
    // Nobody has to know the sum.
    if random.bool() {
        values["sum"] = random.i32(-1_000..1_000).into();
    }
    values
}

fn point(times: Times, mut values: Value) -> Value {
    values["startTimeUnixNano"] = times.start.to_string().into();
    values["timeUnixNano"] = times.now.to_string().into();
    values
}
