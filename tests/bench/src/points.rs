//! Requests of OTLP with many points, as exporters send them.

use agents_sidecar::otlp::write::Writer;

/// What sort of points a request has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// One value each.
    Gauge,
    /// Eleven buckets each.
    Histogram,
}

/// Attributes of each point, as many as a request of HTTP has.
const ATTRIBUTES: [(&str, &str); 4] = [
    ("http.request.method", "GET"),
    ("http.response.status_code", "200"),
    ("server.address", "cart.shop.svc"),
    ("url.scheme", "https"),
];

/// Points of one metric.
const PER_METRIC: usize = 1_000;

/// A message within another, with a length as short as exporters write it.
fn message(writer: &mut Writer, number: u32, write: impl FnOnce(&mut Writer)) {
    let mut inner = Writer::default();
    write(&mut inner);
    writer.bytes(number, &inner.into_bytes());
}

/// A request with this many points, each of a series of its own, numbered from `first` on.
pub fn request(sort: Sort, first: usize, points: usize, time: u64) -> Vec<u8> {
    let mut request = Writer::default();
    message(&mut request, 1, |target| {
        message(target, 1, |resource| {
            attribute(resource, 1, "service.name", "cart");
        });
        message(target, 2, |scope| {
            message(scope, 1, |scope| scope.bytes(1, b"bench"));
            let mut number = first;
            while number < first + points {
                let end = ((number / PER_METRIC + 1) * PER_METRIC).min(first + points);
                message(scope, 2, |metric| {
                    metric_of(metric, sort, number..end, time)
                });
                number = end;
            }
        });
    });
    request.into_bytes()
}

fn metric_of(metric: &mut Writer, sort: Sort, numbers: std::ops::Range<usize>, time: u64) {
    let name = format!("bench.metric.{}", numbers.start / PER_METRIC);
    metric.bytes(1, name.as_bytes());
    metric.bytes(3, b"s");
    match sort {
        Sort::Gauge => message(metric, 5, |gauge| {
            for number in numbers {
                message(gauge, 1, |point| {
                    point.fixed64(2, 1);
                    point.fixed64(3, time);
                    point.double(4, number as f64 + 0.5);
                    attributes(point, 7, number);
                });
            }
        }),
        Sort::Histogram => message(metric, 9, |histogram| {
            for number in numbers {
                message(histogram, 1, |point| {
                    point.fixed64(2, 1);
                    point.fixed64(3, time);
                    point.fixed64(4, 11);
                    point.double(5, 60.5);
                    let counts: Vec<u8> = (0..11).flat_map(|_| 1_u64.to_le_bytes()).collect();
                    point.bytes(6, &counts);
                    let bounds = (1..11).map(f64::from);
                    let bounds: Vec<u8> = bounds.flat_map(f64::to_le_bytes).collect();
                    point.bytes(7, &bounds);
                    attributes(point, 9, number);
                });
            }
            histogram.varint(2, 2);
        }),
    }
}

fn attributes(point: &mut Writer, field: u32, number: usize) {
    for (name, value) in ATTRIBUTES {
        attribute(point, field, name, value);
    }
    attribute(point, field, "http.route", &format!("/route/{number}"));
}

fn attribute(writer: &mut Writer, field: u32, name: &str, value: &str) {
    message(writer, field, |pair| {
        pair.bytes(1, name.as_bytes());
        message(pair, 2, |any| any.bytes(1, value.as_bytes()));
    });
}

/// The same in JSON; gauges only.
pub fn json(first: usize, points: usize, time: u64) -> Vec<u8> {
    let point = |number: usize| {
        let text = |(name, value): (&str, String)| serde_json::json!({"key": name, "value": {"stringValue": value}});
        let fixed = ATTRIBUTES.map(|(name, value)| (name, value.to_owned()));
        let own = ("http.route", format!("/route/{number}"));
        let attributes: Vec<_> = fixed.into_iter().chain([own]).map(text).collect();
        serde_json::json!({"attributes": attributes, "startTimeUnixNano": "1", "timeUnixNano": time.to_string(),
            "asDouble": number as f64 + 0.5})
    };
    let points: Vec<_> = (first..first + points).map(point).collect();
    let metric =
        serde_json::json!({"name": "bench.metric.0", "unit": "s", "gauge": {"dataPoints": points}});
    let target = serde_json::json!({"attributes": [{"key": "service.name", "value": {"stringValue": "cart"}}]});
    let request = serde_json::json!({"resourceMetrics": [{"resource": target,
        "scopeMetrics": [{"scope": {"name": "bench"}, "metrics": [metric]}]}]});
    request.to_string().into_bytes()
}
