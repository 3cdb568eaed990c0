//! One request of OTLP with every type of metric, and when it was measured.

use std::time::{Duration, SystemTime};

use anyhow::Result;
use serde_json::{Value, json};

/// When what is pushed began, and when it was measured; in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) start: u64,
    pub(super) now: u64,
}

impl Times {
    /// A start two minutes ago: Prometheus takes what is not much older than the rest that it has.
    pub(super) fn of_now() -> Result<Self> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let start = Duration::from_secs(now.as_secs()) - Duration::from_secs(120);
        Ok(Self {
            start: start.as_nanos().try_into()?,
            now: now.as_nanos().try_into()?,
        })
    }
}

/// What an example of a request says of its trace.
pub(super) const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
pub(super) const SPAN: &str = "b7ad6b7169203331";

/// A further label of it, with what must be escaped.
pub(super) const USER: &str = "\"one\" \\";

/// A request with every type of metric, of an instance.
pub(super) fn request(times: Times, instance: &str) -> Value {
    let resource = [
        text("service.name", "shop"),
        text("service.namespace", "mall"),
        text("service.instance.id", instance),
        json!({"key": "host.cpus", "value": {"intValue": "4"}}),
    ];
    let scope = json!({"name": "till", "version": "1.2", "attributes": [
        json!({"key": "side.door", "value": {"boolValue": true}}),
    ]});
    json!({"resourceMetrics": [{
        "resource": {"attributes": resource},
        "scopeMetrics": [{"scope": scope, "metrics": metrics(times)}],
    }]})
}

/// How many they are.
pub(super) const METRICS: usize = 10;

fn metrics(times: Times) -> Vec<Value> {
    [numbers(times), fixed(times), exponential(times)].concat()
}

#[test]
fn a_request_has_as_many_metrics_as_are_counted() {
    let times = Times { start: 1, now: 2 };
    assert_eq!(metrics(times).len(), METRICS);
}

fn numbers(times: Times) -> Vec<Value> {
    let oven = |name, value| point(times, &[text("oven", name)], json!({"asDouble": value}));
    let route = text("http.route", "/pay \"now\"\n\\");
    let requests = json!({"asInt": "3", "exemplars": [exemplar(times, 1.0)]});
    let quantile = |quantile: f64, value: f64| json!({"quantile": quantile, "value": value});
    let size = json!({"count": "5", "sum": 12.5,
        "quantileValues": [quantile(0.5, 2.0), quantile(0.99, 4.5)]});
    vec![
        json!({"name": "oven.temperature", "unit": "Cel", "description": "How \\ hot\nit is", "gauge": {"dataPoints": [
            oven("a", json!(21.5)), oven("b", json!(-3)), oven("c", json!("NaN")), oven("d", json!("Infinity")),
        ]}}),
        json!({"name": "größe", "gauge": {"dataPoints": [point(times, &[text("küche", "süd")], json!({"asInt": "9"}))]}}),
        json!({"name": "http.requests", "unit": "{request}", "sum": {"aggregationTemporality": 2, "isMonotonic": true,
            "dataPoints": [point(times, &[route], requests)]}}),
        json!({"name": "queue.depth", "sum": {"aggregationTemporality": 2,
            "dataPoints": [point(times, &[], json!({"asInt": "7"}))]}}),
        json!({"name": "legacy.size", "unit": "By", "summary": {"dataPoints": [point(times, &[], size)]}}),
    ]
}

/// Histograms with bounds: an ordinary one, one without a sum, and one with a bound below zero.
fn fixed(times: Times) -> Vec<Value> {
    let metric = |name: &str, values: Value| {
        let points = [point(times, &[], values)];
        json!({"name": name, "unit": "s",
            "histogram": {"aggregationTemporality": 2, "dataPoints": points}})
    };
    vec![
        metric(
            "wait",
            json!({"count": "7", "sum": 1_000_010.5, "bucketCounts": ["1", "2", "3", "1"],
                "explicitBounds": [0.25, 1, 1_000_000], "exemplars": [exemplar(times, 0.75)]}),
        ),
        metric(
            "wait.blind",
            json!({"count": "3", "bucketCounts": ["1", "2"], "explicitBounds": [1]}),
        ),
        metric(
            "drift",
            json!({"count": "4", "sum": -2.5, "bucketCounts": ["2", "1", "1"], "explicitBounds": [-1, 1]}),
        ),
    ]
}

/// Exponential histograms: one with all parts, and one that is finer than native ones can be.
fn exponential(times: Times) -> Vec<Value> {
    let metric = |name: &str, values: Value| {
        let points = [point(times, &[], values)];
        json!({"name": name, "unit": "By",
            "exponentialHistogram": {"aggregationTemporality": 2, "dataPoints": points}})
    };
    vec![
        metric(
            "body.size",
            json!({"count": "10", "sum": 100.5, "scale": 1, "zeroCount": "2",
                "positive": {"offset": 2, "bucketCounts": ["1", "0", "0", "0", "5"]},
                "negative": {"offset": -1, "bucketCounts": ["2"]}, "exemplars": [exemplar(times, 10.0)]}),
        ),
        metric(
            "body.fine",
            json!({"count": "15", "sum": 16.25, "scale": 10,
                "positive": {"offset": 100, "bucketCounts": ["1", "2", "3", "4", "5"]}}),
        ),
    ]
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// A point of these values.
fn point(times: Times, attributes: &[Value], mut values: Value) -> Value {
    values["attributes"] = attributes.into();
    values["startTimeUnixNano"] = times.start.to_string().into();
    values["timeUnixNano"] = times.now.to_string().into();
    values
}

fn exemplar(times: Times, value: f64) -> Value {
    json!({"timeUnixNano": times.now.to_string(), "asDouble": value, "traceId": TRACE, "spanId": SPAN,
        "filteredAttributes": [text("user", USER)]})
}
