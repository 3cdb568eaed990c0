//! Requests of OTLP that are made to take as much memory as they can, each about as large as one may be.

use std::{io::Write, net::SocketAddr, time::Duration};

use agents_sidecar::otlp::write::Writer;
use anyhow::{Context, Result};
use flate2::{Compression, write::GzEncoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// What a request may have by default, and so about what each of these has once it is unpacked.
const BYTES: usize = 4 << 20;
/// Room for what is around a list.
const AROUND: usize = 4 << 10;
const DEADLINE: Duration = Duration::from_secs(60);

/// A way to take memory.
pub struct Shape {
    /// What it does, in a few words.
    pub name: &'static str,
    kind: &'static str,
    packing: &'static str,
    body: Vec<u8>,
}

/// All of them.
pub fn shapes() -> Vec<Shape> {
    let shape = |name, kind, packing, body| Shape {
        name,
        kind,
        packing,
        body,
    };
    let protobuf = |name, body| shape(name, "application/x-protobuf", "identity", body);
    let json = |name, body: &str| shape(name, "application/json", "identity", body.into());
    let counts = list("bucketCounts", "1,");
    vec![
        protobuf("gauges, each of a new series", gauges(1, 8)),
        protobuf("gauges with as many labels as allowed", gauges(64, 24)),
        protobuf("gauges with labels as long as allowed", gauges(16, 2_000)),
        protobuf("histograms of 4,000 buckets", histograms()),
        protobuf("metrics of one point", metrics(8)),
        protobuf("metrics of one point with long names", metrics(300)),
        protobuf("targets of one point", targets()),
        protobuf("scopes of one point", scopes()),
        json("JSON, a list of counts", &counts),
        json("JSON, a list of bounds", &list("explicitBounds", "1,")),
        json("JSON, points with nothing in them", &points("{},")),
        json("JSON, one text of escapes", &text("\\u00e9")),
        shape(
            "JSON, a list of counts, gzip",
            "application/json",
            "gzip",
            gzip(counts.as_bytes()),
        ),
        shape(
            "gauges, zstd",
            "application/x-protobuf",
            "zstd",
            zstd(&gauges(1, 8)),
        ),
        shape(
            "64 MiB of nothing, zstd",
            "application/x-protobuf",
            "zstd",
            zstd(&vec![0; 64 << 20]),
        ),
        shape(
            "64 MiB of nothing, gzip",
            "application/json",
            "gzip",
            gzip(&vec![b' '; 64 << 20]),
        ),
    ]
}

impl Shape {
    /// Sends it by HTTP. Says how it was answered.
    pub async fn send(&self, address: SocketAddr) -> Result<u16> {
        let Self {
            kind,
            packing,
            body,
            ..
        } = self;
        let length = body.len();
        let head = format!(
            "POST /v1/metrics HTTP/1.1\r\nHost: test\r\nContent-Type: {kind}\r\nContent-Encoding: {packing}\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        let asked = async {
            let mut stream = TcpStream::connect(address).await?;
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(body).await?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await?;
            anyhow::Ok(String::from_utf8_lossy(&answer).into_owned())
        };
        let answer = timeout(DEADLINE, asked).await.context(self.name)??;
        let status = answer.split(' ').nth(1).context("a status")?;
        Ok(status.parse()?)
    }
}

/// One thing after the other, until the request is as large as it may be.
fn repeated(mut write: impl FnMut(usize, &mut Writer)) -> Vec<u8> {
    let mut all = Vec::new();
    for number in 0.. {
        let mut writer = Writer::default();
        write(number, &mut writer);
        let written = writer.into_bytes();
        if all.len() + written.len() > BYTES - AROUND {
            break;
        }
        all.extend(written);
    }
    all
}

/// Metrics of one scope.
fn request(mut metric: impl FnMut(usize, &mut Writer)) -> Vec<u8> {
    let metrics = repeated(|number, scope| scope.message(2, |message| metric(number, message)));
    let mut request = Writer::default();
    request.message(1, |target| target.bytes(2, &metrics));
    request.into_bytes()
}

fn labels(point: &mut Writer, field: u32, labels: usize, bytes: usize, number: usize) {
    for label in 0..labels {
        point.message(field, |pair| {
            pair.bytes(1, format!("l{label}").as_bytes());
            let value = format!("{number:0bytes$}");
            pair.message(2, |any| any.bytes(1, value.as_bytes()));
        });
    }
}

/// Ten points of each metric.
fn gauges(count: usize, bytes: usize) -> Vec<u8> {
    request(|number, metric| {
        metric.bytes(1, format!("gauge_{}", number / 900).as_bytes());
        metric.message(5, |gauge| {
            for point in 0..10 {
                gauge.message(1, |message| {
                    message.fixed64(3, 1);
                    message.double(4, 1.0);
                    labels(message, 7, count, bytes, number * 10 + point);
                });
            }
        });
    })
}

fn histograms() -> Vec<u8> {
    let counts: Vec<u8> = (0..4_001).flat_map(|_| 1_u64.to_le_bytes()).collect();
    let bounds: Vec<u8> = (0..4_000)
        .flat_map(|bound| f64::from(bound).to_le_bytes())
        .collect();
    request(|number, metric| {
        metric.bytes(1, b"histogram");
        metric.message(9, |histogram| {
            histogram.varint(2, 2);
            histogram.message(1, |point| {
                point.fixed64(2, 1);
                point.fixed64(3, 2);
                point.fixed64(4, 4_001);
                point.double(5, 1.0);
                point.bytes(6, &counts);
                point.bytes(7, &bounds);
                labels(point, 9, 1, 8, number);
            });
        });
    })
}

/// Each metric has a name of its own, of so many digits.
fn metrics(digits: usize) -> Vec<u8> {
    request(|number, metric| one_point(metric, &format!("metric_{number:0digits$}")))
}

fn one_point(metric: &mut Writer, name: &str) {
    metric.bytes(1, name.as_bytes());
    metric.message(5, |gauge| {
        gauge.message(1, |point| {
            point.fixed64(3, 1);
            point.double(4, 1.0);
        });
    });
}

/// Each target describes itself otherwise.
fn targets() -> Vec<u8> {
    repeated(|number, request| {
        request.message(1, |target| {
            target.message(1, |resource| labels(resource, 1, 1, 300, number));
            target.message(2, |scope| scope.message(2, |metric| one_point(metric, "x")));
        });
    })
}

/// Each scope does.
fn scopes() -> Vec<u8> {
    let scopes = repeated(|number, target| {
        target.message(2, |scope| {
            scope.message(1, |about| {
                about.bytes(1, format!("{number:0300}").as_bytes())
            });
            scope.message(2, |metric| one_point(metric, "x"));
        });
    });
    let mut request = Writer::default();
    request.bytes(1, &scopes);
    request.into_bytes()
}

/// Something in JSON that is repeated within something else.
fn filled(before: &str, each: &str, after: &str) -> String {
    let inner = each.repeat((BYTES - AROUND) / each.len());
    let inner = inner.trim_end_matches(',');
    format!(
        r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{{before}{inner}{after}}}]}}]}}]}}"#
    )
}

fn list(field: &str, each: &str) -> String {
    let before = format!(
        r#""name":"x","histogram":{{"aggregationTemporality":2,"dataPoints":[{{"timeUnixNano":"1","{field}":["#
    );
    filled(&before, each, "]}]}")
}

fn points(each: &str) -> String {
    filled(r#""name":"x","gauge":{"dataPoints":["#, each, "]}")
}

fn text(each: &str) -> String {
    filled(r#""name":""#, each, "\"")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let packed = encoder.write_all(bytes).and_then(|()| encoder.finish());
    // Memory takes all that is written; were it not so, nothing is no gzip and the answer would say so.
    packed.unwrap_or_default()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}
