//! `make bench-sidecar`: what the release build of the sidecar costs per point, per series and per scrape, and whether it grows.
//! `make bench-sidecar PARTS='rates jobs'` measures only some of it.

use agents_bench::{
    cpu::{Side, beside},
    points::Sort,
    program::Program,
    sidecar::{Sender, Sidecar, Told, Way, kept},
    table::{Table, at_most, thousands, verdict},
    watched,
};
use agents_sidecar::args::variable;
use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::{
    env,
    time::{Duration, Instant},
};
use support::{
    hostile::{Shape, shapes},
    metrics::Page,
};
use tokio::{
    net::TcpStream,
    runtime::{Builder, Runtime},
    task::JoinSet,
    time::interval,
};

/// Time for each rate.
const ROUND: Duration = Duration::from_secs(4);

/// Room for everything that is sent.
const ROOMY: &[(&str, &str)] = &[
    (variable::OTLP_REQUEST_BYTES, "16777216"),
    (variable::METRIC_SERIES, "100000"),
    (variable::SERIES, "200000"),
];

/// What tables of single numbers have.
const TITLES: &[&str] = &["what", "measured", "bar", ""];

/// Something that is measured: its name, and how.
type Part = (&'static str, fn() -> Result<Table>);

/// All of them.
const PARTS: [Part; 4] = [
    ("rates", rates),
    ("sizes", sizes),
    ("growth", growth),
    ("jobs", watched::table),
];

fn main() -> Result<()> {
    let wanted = env::var("PARTS").unwrap_or_default();
    let wanted: Vec<_> = wanted.split_whitespace().collect();
    for (name, measure) in PARTS {
        if wanted.is_empty() || wanted.contains(&name) {
            println!("{}", measure()?.text());
        }
    }
    Ok(())
}

fn runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
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
        (Way::Json, Sort::Gauge, 10_000, None),
    ];
    for (way, sort, batch, bar) in cases {
        let sidecar = Sidecar::start(ROOMY)?;
        let rate = beside(Side::Asking, || rate(&sidecar, way, sort, batch))?;
        table.row([
            way.name().to_owned(),
            format!("{sort:?}").to_lowercase(),
            thousands(batch as f64),
            thousands(rate),
            bar.map(thousands).unwrap_or_default(),
            bar.map(|bar| verdict(rate >= bar)).unwrap_or_default(),
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
    runtime()?.block_on(async {
        let body = way.body(sort, 0, batch);
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

/// Memory and scrapes, by the number of series.
fn sizes() -> Result<Table> {
    let mut table = Table::new(TITLES);
    let bytes = Program::size("agents-sidecar")? as f64;
    table.row(at_most("program, stripped", bytes / 1e6, "MB", Some(8.0)));
    let sidecar = Sidecar::start(ROOMY)?;
    let resident = || sidecar.program.resident_mib();
    let what = "RSS idle, without Jobs to watch";
    table.row(at_most(what, resident()?, "MiB", Some(10.0)));
    for (series, first, memory, plain, packed) in [
        (10_000, 0, 20.0, Some(5.0), None),
        (100_000, 10_000, 110.0, None, Some(150.0)),
    ] {
        fill(&sidecar, first, series - first)?;
        let shown = thousands(series as f64);
        let what = format!("RSS at {shown} series");
        table.row(at_most(&what, resident()?, "MiB", Some(memory)));
        for (encoding, bar) in [("identity", plain), ("gzip", packed)] {
            let scrape = scrape(&sidecar, encoding)?;
            let what = format!("scrape of {shown} series, {encoding}, processor time");
            table.row(at_most(&what, scrape.cpu, "ms", bar));
            let what = format!("scrape of {shown} series, {encoding}, until it is over");
            table.row(at_most(&what, scrape.wall, "ms", None));
        }
    }
    let what = "processor at 10,000 points per second over gRPC";
    table.row(at_most(what, steady()?, "%", None));
    for shape in shapes() {
        let what = format!("growth by 4 MiB at the most: {}", shape.name);
        table.row(at_most(&what, grown_by(&shape)?, "MiB", Some(16.0)));
    }
    Ok(table)
}

/// How much more a fresh program has in memory at any moment because of a request, in MiB.
fn grown_by(shape: &Shape) -> Result<f64> {
    let sidecar = Sidecar::start(&[])?;
    let before = sidecar.program.resident_mib()?;
    let status = runtime()?.block_on(shape.send(sidecar.http))?;
    let is_answered = [200, 413].contains(&status);
    ensure!(is_answered, "{} is answered by {status}", shape.name);
    Ok(sidecar.program.peak_mib()? - before)
}

fn fill(sidecar: &Sidecar, first: usize, series: usize) -> Result<()> {
    runtime()?.block_on(async {
        let mut sender = Sender::connect(sidecar, Way::Http).await?;
        for from in (first..first + series).step_by(10_000) {
            let body = Way::Http.body(Sort::Gauge, from, 10_000);
            sender.send(body).await?;
        }
        Ok(())
    })
}

/// What a scrape takes, in milliseconds.
struct Scrape {
    cpu: f64,
    wall: f64,
}

/// The middle of several.
fn scrape(sidecar: &Sidecar, encoding: &str) -> Result<Scrape> {
    const TIMES: usize = 9;
    let middle = |mut times: Vec<Duration>| {
        times.sort_unstable();
        let middle = times.get(TIMES / 2).context("a time")?;
        Ok::<_, anyhow::Error>(middle.as_secs_f64() * 1e3)
    };
    runtime()?.block_on(async {
        let (mut cpu, mut wall) = (Vec::new(), Vec::new());
        for _ in 0..TIMES {
            let stream = TokioIo::new(TcpStream::connect(sidecar.program.admin).await?);
            let (mut sender, connection) = http1::handshake(stream).await?;
            let _connection = kept(connection);
            let request = Request::get("/metrics")
                .header("host", "bench")
                .header("accept-encoding", encoding);
            let request = request.body(Full::<Bytes>::default())?;
            let (before, began) = (sidecar.program.cpu()?, Instant::now());
            let mut body = sender.send_request(request).await?.into_body();
            let mut bytes = 0;
            while let Some(frame) = body.frame().await {
                bytes += frame?.data_ref().map_or(0, Bytes::len);
            }
            if bytes < 10_000 {
                bail!("the page has only {bytes} bytes");
            }
            wall.push(began.elapsed());
            cpu.push(sidecar.program.cpu()? - before);
        }
        Ok(Scrape {
            cpu: middle(cpu)?,
            wall: middle(wall)?,
        })
    })
}

/// Of a hundred parts of a processor, those that ten requests of 1,000 points take each second.
fn steady() -> Result<f64> {
    const REQUESTS: u32 = 50;
    let sidecar = Sidecar::start(ROOMY)?;
    beside(Side::Asking, || {
        runtime()?.block_on(async {
            let body = Way::Grpc.body(Sort::Gauge, 0, 1_000);
            let mut sender = Sender::connect(&sidecar, Way::Grpc).await?;
            sender.send(body.clone()).await?;
            let mut ticks = interval(Duration::from_millis(100));
            ticks.tick().await;
            let (began, before) = (Instant::now(), sidecar.program.cpu()?);
            for _ in 0..REQUESTS {
                ticks.tick().await;
                sender.send(body.clone()).await?;
            }
            let cpu = sidecar.program.cpu()? - before;
            Ok(cpu.as_secs_f64() / began.elapsed().as_secs_f64() * 100.0)
        })
    })
}

/// Whether memory grows with what comes and goes.
fn growth() -> Result<Table> {
    let mut table = Table::new(TITLES);
    let (half, more) = churn()?;
    let what = "RSS after 5,000,000 points of series that come and go";
    table.row(at_most(what, half, "MiB", None));
    let what = "more after 5,000,000 further ones";
    table.row(at_most(what, more, "MiB", Some(1.0)));
    let (some, more) = invent()?;
    let what = "RSS after 1,000,000 series that one source invented";
    table.row(at_most(what, some, "MiB", None));
    let what = "more after 9,000,000 further ones";
    table.row(at_most(what, more, "MiB", Some(1.0)));
    Ok(table)
}

/// Each second other series, gauges and histograms by turns, while those of 20 seconds ago are forgotten.
fn churn() -> Result<(f64, f64)> {
    const SECONDS: usize = 80;
    const SERIES: usize = 3_000;
    const POINTS: usize = 10_000_000;
    const TIMES: usize = POINTS.div_ceil(SECONDS * SERIES);
    let settings = [ROOMY, &[(variable::EXPIRY, "10s")]].concat();
    let sidecar = Sidecar::start(&settings)?;
    beside(Side::Asking, || {
        runtime()?.block_on(async {
            let mut sender = Sender::connect(&sidecar, Way::Grpc).await?;
            let mut ticks = interval(Duration::from_secs(1));
            let mut half = 0.0;
            for second in 0..SECONDS {
                ticks.tick().await;
                if second == SECONDS / 2 {
                    half = sidecar.program.resident_mib()?;
                }
                let sort = match second % 2 {
                    0 => Sort::Gauge,
                    _ => Sort::Histogram,
                };
                let body = Way::Grpc.body(sort, second * SERIES, SERIES);
                for _ in 0..TIMES {
                    sender.send(body.clone()).await?;
                }
            }
            ticks.tick().await;
            Ok((half, sidecar.program.resident_mib()? - half))
        })
    })
}

/// Ten million series of one source, with limits as they are by default; what it may have is on the page, and the next one is
/// heard.
fn invent() -> Result<(f64, f64)> {
    const BATCH: usize = 10_000;
    let sidecar = Sidecar::start(&[])?;
    beside(Side::Asking, || {
        runtime()?.block_on(async {
            let mut sender = Sender::connect(&sidecar, Way::Http).await?;
            let (mut some, mut refused) = (0.0, 0);
            for first in (0..10_000_000).step_by(BATCH) {
                if first == 1_000_000 {
                    some = sidecar.program.resident_mib()?;
                }
                let body = Way::Http.body(Sort::Gauge, first, BATCH);
                refused += usize::from(sender.offer(body).await? == Told::Partial);
            }
            ensure!(refused > 0, "nothing was refused");
            let more = sidecar.program.resident_mib()? - some;
            let known = Way::Http.body(Sort::Gauge, 0, 1);
            sender.send(known).await.context("a series that is known")?;
            let page = Page::scrape(&sidecar.program.admin.to_string()).await?;
            let shown = page.series("bench_metric_0_seconds").len();
            ensure!(shown > 0, "the page has none of them");
            Ok((some, more))
        })
    })
}
