//! `make bench-sidecar`: what the release build of the sidecar costs per point, per series and per scrape.

use agents_bench::{
    cpu::{Side, beside},
    points::{Sort, json, request},
    program::{Program, free_address},
    table::Table,
    watched,
};
use agents_sidecar::args::variable;
use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::{
    ffi::{OsStr, OsString},
    net::SocketAddr,
    time::{Duration, Instant},
};
use tokio::{net::TcpStream, runtime::Builder, task::JoinSet};

/// Time for each rate.
const ROUND: Duration = Duration::from_secs(4);

const METRICS: &str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";

struct Sidecar {
    program: Program,
    grpc: SocketAddr,
    http: SocketAddr,
}

impl Sidecar {
    fn start() -> Result<Self> {
        let (grpc, http) = (free_address()?, free_address()?);
        let [grpc_text, http_text] =
            [grpc, http].map(|address| OsString::from(address.to_string()));
        let variables = [
            (variable::OTLP_GRPC_LISTEN, grpc_text.as_os_str()),
            (variable::OTLP_HTTP_LISTEN, http_text.as_os_str()),
            (variable::OTLP_REQUEST_BYTES, OsStr::new("16777216")),
            (variable::METRIC_SERIES, OsStr::new("100000")),
            (variable::SERIES, OsStr::new("200000")),
            (variable::QUEUE_STREAMS, OsStr::new("[]")),
            (variable::JOBS, OsStr::new("off")),
        ];
        let program = beside(Side::Serving, || {
            Program::start("agents-sidecar", &[], &variables)
        })?;
        Ok(Self {
            program,
            grpc,
            http,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Http,
    Grpc,
    Json,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Http => "HTTP, protobuf",
            Self::Grpc => "gRPC",
            Self::Json => "HTTP, JSON",
        }
    }
}

fn main() -> Result<()> {
    println!("{}", rates()?.text());
    println!("{}", sizes()?.text());
    println!("{}", watched::table()?.text());
    Ok(())
}

fn rates() -> Result<Table> {
    let mut table = Table::new(&["way", "points", "batch", "points per CPU-second", "bar", ""]);
    let cases = [
        (Way::Http, Sort::Gauge, 10, Some(500_000.0)),
        (Way::Http, Sort::Gauge, 1_000, Some(2_500_000.0)),
        (Way::Http, Sort::Gauge, 10_000, None),
        (Way::Http, Sort::Histogram, 1_000, Some(1_500_000.0)),
        (Way::Grpc, Sort::Gauge, 10, Some(250_000.0)),
        (Way::Grpc, Sort::Gauge, 1_000, Some(2_500_000.0)),
        (Way::Grpc, Sort::Gauge, 10_000, None),
        (Way::Grpc, Sort::Histogram, 1_000, Some(1_500_000.0)),
        (Way::Json, Sort::Gauge, 10, None),
        (Way::Json, Sort::Gauge, 1_000, Some(400_000.0)),
    ];
    for (way, sort, batch, bar) in cases {
        let sidecar = Sidecar::start()?;
        let rate = beside(Side::Asking, || rate(&sidecar, way, sort, batch))?;
        let verdict = bar.map_or("", |bar| if rate >= bar { "met" } else { "missed" });
        table.row([
            way.name().to_owned(),
            format!("{sort:?}").to_lowercase(),
            batch.to_string(),
            thousands(rate),
            bar.map(thousands).unwrap_or_default(),
            verdict.to_owned(),
        ]);
    }
    Ok(table)
}

/// Connections over which requests of this size are sent. With a small one only, who answers would be measured while it falls
/// asleep and is woken again.
fn connections(batch: usize) -> usize {
    if batch < 100 { 16 } else { 1 }
}

/// Points per second of processor time, sent one request after the other on each connection.
fn rate(sidecar: &Sidecar, way: Way, sort: Sort, batch: usize) -> Result<f64> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let body = body(way, sort, 0, batch);
        let mut senders = Vec::new();
        for _ in 0..connections(batch) {
            let mut sender = Sender::connect(sidecar, way).await?;
            sender.send(body.clone()).await?;
            senders.push(sender);
        }
        let (end, before) = (Instant::now() + ROUND, sidecar.program.cpu()?);
        let mut sending = JoinSet::new();
        for mut sender in senders {
            let body = body.clone();
            sending.spawn(async move {
                let mut requests = 0;
                while Instant::now() < end {
                    sender.send(body.clone()).await?;
                    requests += 1;
                }
                Ok::<_, anyhow::Error>(requests)
            });
        }
        let mut points = 0;
        while let Some(sent) = sending.join_next().await {
            points += batch * sent??;
        }
        let cpu = sidecar.program.cpu()? - before;
        Ok(points as f64 / cpu.as_secs_f64())
    })
}

/// The same time again is what a sender repeats, so that every request is taken.
fn body(way: Way, sort: Sort, first: usize, batch: usize) -> Bytes {
    const TIME: u64 = 1_700_000_000_000_000_000;
    match way {
        Way::Http => request(sort, first, batch, TIME).into(),
        Way::Json => json(first, batch, TIME).into(),
        Way::Grpc => {
            let message = request(sort, first, batch, TIME);
            let length = u32::try_from(message.len())
                .unwrap_or(u32::MAX)
                .to_be_bytes();
            [&[0][..], &length, &message].concat().into()
        }
    }
}

struct Sender {
    wire: Wire,
    _connection: JoinSet<()>,
}

enum Wire {
    One(http1::SendRequest<Full<Bytes>>, Way),
    Two(http2::SendRequest<Full<Bytes>>),
}

/// Drives a connection as long as the value lives.
fn kept<E>(connection: impl Future<Output = Result<(), E>> + Send + 'static) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    // How it ends is seen by whoever sends.
    tasks.spawn(async {
        let _ = connection.await;
    });
    tasks
}

impl Sender {
    async fn connect(sidecar: &Sidecar, way: Way) -> Result<Self> {
        let address = if way == Way::Grpc {
            sidecar.grpc
        } else {
            sidecar.http
        };
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let stream = TokioIo::new(stream);
        if way == Way::Grpc {
            let (sender, connection) = http2::Builder::new(TokioExecutor::new())
                .initial_stream_window_size(16 << 20)
                .initial_connection_window_size(16 << 20)
                .handshake(stream)
                .await?;
            return Ok(Self {
                wire: Wire::Two(sender),
                _connection: kept(connection),
            });
        }
        let (sender, connection) = http1::handshake(stream).await?;
        Ok(Self {
            wire: Wire::One(sender, way),
            _connection: kept(connection),
        })
    }

    async fn send(&mut self, body: Bytes) -> Result<()> {
        let (kind, path) = match &mut self.wire {
            Wire::Two(_) => ("application/grpc", format!("http://bench{METRICS}")),
            Wire::One(_, Way::Json) => ("application/json", "/v1/metrics".to_owned()),
            Wire::One(..) => ("application/x-protobuf", "/v1/metrics".to_owned()),
        };
        let request = Request::post(path)
            .header("content-type", kind)
            .header("host", "bench");
        let request = request.body(Full::new(body))?;
        let response = match &mut self.wire {
            Wire::One(sender, _) => sender.send_request(request).await?,
            Wire::Two(sender) => sender.send_request(request).await?,
        };
        let status = response.status();
        #[expect(
            clippy::disallowed_methods,
            reason = "an answer of a program of ours, a few bytes long"
        )]
        let answer = response.into_body().collect().await?;
        let trailers = answer.trailers().cloned();
        let code = trailers.and_then(|trailers| trailers.get("grpc-status").cloned());
        let answer = answer.to_bytes();
        let is_empty = match &mut self.wire {
            Wire::One(_, Way::Json) => &*answer == b"{}",
            Wire::One(..) => answer.is_empty(),
            Wire::Two(_) => code.is_some_and(|code| code == "0") && answer.len() == 5,
        };
        if !status.is_success() || !is_empty {
            bail!(
                "not all was taken: {status} {}",
                String::from_utf8_lossy(&answer)
            );
        }
        Ok(())
    }
}

/// Memory and scrapes, by the number of series.
fn sizes() -> Result<Table> {
    let mut table = Table::new(&["what", "measured", "bar", ""]);
    let mut add = |what: &str, measured: f64, unit: &str, bar: f64| {
        let verdict = if measured <= bar { "met" } else { "missed" };
        let row = [
            what.to_owned(),
            format!("{measured:.1} {unit}"),
            format!("{bar} {unit}"),
            verdict.to_owned(),
        ];
        table.row(row);
    };
    add(
        "program, stripped",
        Program::size("agents-sidecar")? as f64 / 1e6,
        "MB",
        8.0,
    );
    let sidecar = Sidecar::start()?;
    add(
        "RSS idle, without Jobs to watch",
        sidecar.program.resident_mib()?,
        "MiB",
        10.0,
    );
    fill(&sidecar, 0, 10_000)?;
    add(
        "RSS at 10,000 series",
        sidecar.program.resident_mib()?,
        "MiB",
        20.0,
    );
    add(
        "scrape of 10,000 series",
        scrape(&sidecar, "identity")?,
        "ms",
        5.0,
    );
    fill(&sidecar, 10_000, 90_000)?;
    add(
        "RSS at 100,000 series",
        sidecar.program.resident_mib()?,
        "MiB",
        110.0,
    );
    add(
        "scrape of 100,000 series, gzip",
        scrape(&sidecar, "gzip")?,
        "ms",
        150.0,
    );
    let hostile = Sidecar::start()?;
    let before = hostile.program.resident_mib()?;
    fill_once(&hostile, 4 << 20)?;
    add(
        "growth by a hostile request of 4 MiB",
        hostile.program.resident_mib()? - before,
        "MiB",
        16.0,
    );
    Ok(table)
}

fn fill(sidecar: &Sidecar, first: usize, series: usize) -> Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut sender = Sender::connect(sidecar, Way::Http).await?;
        for from in (first..first + series).step_by(10_000) {
            sender
                .send(body(Way::Http, Sort::Gauge, from, 10_000))
                .await?;
        }
        Ok(())
    })
}

/// As many series as fit into so many bytes; most are refused, so the answer is not looked at.
fn fill_once(sidecar: &Sidecar, bytes: usize) -> Result<()> {
    let per_point = request(Sort::Gauge, 0, 1_000, 1).len() / 1_000;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut sender = Sender::connect(sidecar, Way::Http).await?;
        let body = body(Way::Http, Sort::Gauge, 0, bytes / per_point);
        let told = sender.send(body).await;
        let is_partial = told
            .as_ref()
            .is_err_and(|error| error.to_string().contains("200 OK"));
        match is_partial {
            true => Ok(()),
            false => told.context("the hostile request"),
        }
    })
}

/// Processor time of a scrape, in milliseconds: the middle of several.
fn scrape(sidecar: &Sidecar, encoding: &str) -> Result<f64> {
    const TIMES: usize = 9;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut costs = Vec::new();
        for _ in 0..TIMES {
            let stream = TokioIo::new(TcpStream::connect(sidecar.program.admin).await?);
            let (mut sender, connection) = http1::handshake(stream).await?;
            let _connection = kept(connection);
            let request = Request::get("/metrics")
                .header("host", "bench")
                .header("accept-encoding", encoding);
            let request = request.body(Full::<Bytes>::default())?;
            let before = sidecar.program.cpu()?;
            let mut body = sender.send_request(request).await?.into_body();
            let mut bytes = 0;
            while let Some(frame) = body.frame().await {
                bytes += frame?.data_ref().map_or(0, Bytes::len);
            }
            if bytes < 10_000 {
                bail!("the page has only {bytes} bytes");
            }
            costs.push((sidecar.program.cpu()? - before).as_secs_f64() * 1e3);
        }
        costs.sort_by(f64::total_cmp);
        costs.get(TIMES / 2).copied().context("a cost")
    })
}

fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
