//! Large and odd pages, read by the parsers of Prometheus, of `promtool`, and by two strict ones: that of the library for
//! Python, and our own.

use std::{
    collections::BTreeSet,
    fs::{self, File},
};

use agents::api::contract::path;
use agents_sidecar::args::variable;
use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use serde_json::{Value, json};
use support::{
    http,
    lab::tools::build::python::Python,
    open_metrics,
    prometheus::{self, Job, Prometheus, Settings},
    wait,
};
use tokio::time::timeout;

use super::{
    super::otlp::Sidecar,
    data::{Times, request},
    formats::FORMATS,
    push,
};

/// Series of the large page, of which a third each are gauges, counters and histograms.
pub(super) const SERIES: usize = 1_500;
/// The strategies under which it is read: names as they were always, and names as they were sent.
pub(super) const STRATEGIES: [&str; 2] = [super::STRATEGIES[0], super::STRATEGIES[3]];
/// Requests that bring them.
const REQUESTS: usize = 10;

/// The pages that are read: how they are asked for, which escaping they have, and how the parser calls the format.
pub(super) const PAGES: &[(&str, &str)] = &[
    ("application/openmetrics-text; version=1.0.0", "openmetrics"),
    (
        "application/openmetrics-text; version=1.0.0; escaping=allow-utf-8",
        "openmetrics",
    ),
    (
        "application/openmetrics-text; version=1.0.0; escaping=dots",
        "openmetrics",
    ),
    (
        "application/openmetrics-text; version=1.0.0; escaping=values",
        "openmetrics",
    ),
    ("text/plain; version=0.0.4", "text"),
    ("text/plain; version=1.0.0; escaping=allow-utf-8", "text"),
];

/// A text of letters that have to be escaped somewhere.
fn odd_text(random: &mut Rng) -> String {
    const LETTERS: [&str; 12] = [
        "a", "b", "\\", "\"", "\n", "{", "}", ",", "=", "#", " ", "é",
    ];
    (0..random.usize(1..12))
        .map(|_| LETTERS[random.usize(..LETTERS.len())])
        .collect()
}

/// Gauges, counters and histograms with odd texts, some of them with examples.
fn large(times: Times, part: usize, random: &mut Rng) -> Value {
    let of_part = SERIES / REQUESTS / 3;
    let mut points = |values: fn(&mut Rng) -> Value| {
        let points = (0..of_part).map(|at| {
            let mut point = values(random);
            let number = (part * of_part + at).to_string();
            point["attributes"] = json!([
                {"key": "number", "value": {"stringValue": number}},
                {"key": "odd.text", "value": {"stringValue": odd_text(random)}},
            ]);
            point["startTimeUnixNano"] = times.start.to_string().into();
            point["timeUnixNano"] = times.now.to_string().into();
            // Of an exemplar the parser for Python does not understand quotes that are escaped.
            let text = odd_text(random).replace('"', "'");
            let labels = json!([{"key": "odd", "value": {"stringValue": text}}]);
            point["exemplars"] = json!([{"timeUnixNano": times.now.to_string(), "asDouble": 1.5, "filteredAttributes": labels}]);
            point
        });
        points.collect::<Vec<_>>()
    };
    let gauges = points(|random| json!({"asDouble": random.f64() * 1e9 - 5e8}));
    let counters = points(|random| json!({"asInt": random.u32(..).to_string()}));
    let histograms = points(|random| {
        let counts = [0; 4].map(|_| random.u64(..1_000));
        let count: u64 = counts.iter().sum();
        json!({"count": count.to_string(), "sum": random.f64() * 1e6, "bucketCounts": counts.map(|count| count.to_string()),
            "explicitBounds": [1, 1.5, 1e21]})
    });
    let help = odd_text(random);
    json!({"resourceMetrics": [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "large"}}]},
    "scopeMetrics": [{"scope": {"name": "large"}, "metrics": [
        {"name": "große.zahl", "description": help, "unit": "s", "gauge": {"dataPoints": gauges}},
        {"name": "large.count", "description": help, "unit": "By",
            "sum": {"aggregationTemporality": 2, "isMonotonic": true, "dataPoints": counters}},
        {"name": "large.histogram", "description": help, "unit": "s",
            "histogram": {"aggregationTemporality": 2, "dataPoints": histograms}},
    ]}]}]})
}

/// How many families and samples a parser finds in a page.
async fn parsed(python: &Python, page: &[u8], format: &str) -> Result<(usize, usize)> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("page");
    fs::write(&file, page)?;
    let mut parser = python.script(include_str!("parse.py"));
    let parser = parser.arg(format).stdin(File::open(&file)?);
    let output = timeout(prometheus::DEADLINE, parser.output()).await??;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{format}: {said}");
    let counts = String::from_utf8(output.stdout)?;
    let (families, samples) = counts.trim().split_once(' ').context("two numbers")?;
    Ok((families.parse()?, samples.parse()?))
}

#[tokio::test]
async fn a_large_page_is_read_by_the_strict_parser_for_python() -> Result<()> {
    let python = support::python!();
    for strategy in STRATEGIES {
        let settings = [
            (variable::TRANSLATION, strategy),
            (variable::CREATED_LINES, "true"),
        ];
        let sidecar = Sidecar::start(&settings).await;
        let times = Times::of_now()?;
        let mut random = Rng::with_seed(6);
        push(&sidecar, &request(times, "1")).await?;
        for part in 0..REQUESTS {
            push(&sidecar, &large(times, part, &mut random)).await?;
        }
        for (accept, format) in PAGES {
            let authority = sidecar.admin.to_string();
            let page = http::get_as(&authority, path::METRICS, accept).await?;
            let (families, samples) = parsed(&python, &page, format)
                .await
                .with_context(|| format!("{strategy} as {accept}"))?;
            let text = String::from_utf8(page)?;
            let written = text.lines().filter(|line| !line.starts_with('#'));
            assert_eq!(samples, written.count(), "{strategy} as {accept}");
            let typed = text.lines().filter(|line| line.starts_with("# TYPE "));
            assert_eq!(families, typed.count(), "{strategy} as {accept}");
            if *format == "openmetrics" {
                let read = open_metrics::read(&text).context(*accept)?;
                assert_eq!((read.families, read.samples), (families, samples));
            }
            assert!(samples > SERIES * 2, "{samples} samples");
        }
    }
    Ok(())
}

/// Samples that Prometheus has to store of the large page: a histogram has three bounds, one without end, a sum and a count.
pub(super) const SAMPLES: usize = SERIES / 3 * (1 + 1 + 6);

#[tokio::test]
async fn a_large_page_is_stored_whole_in_every_format() -> Result<()> {
    // Without these lines Prometheus looks through the rest of a page of OpenMetrics 1.0 for them, again for each series.
    let sidecar = Sidecar::start(&[(variable::CREATED_LINES, "true")]).await;
    let times = Times::of_now()?;
    let mut random = Rng::with_seed(6);
    for part in 0..REQUESTS {
        push(&sidecar, &large(times, part, &mut random)).await?;
    }
    let job = |protocol: &'static str| Job {
        name: protocol.to_owned(),
        target: sidecar.admin,
        protocol,
        escaping: "allow-utf-8",
    };
    let settings = Settings {
        jobs: FORMATS.map(|(_, protocol, _)| job(protocol)).into(),
        strategy: super::STRATEGIES[0],
    };
    let prometheus = Prometheus::start(&settings).await?;
    prometheus.until_scraped(FORMATS.len()).await?;
    let of_large = r#"{__name__=~"large_.*|gro.*"}"#;
    let expected = SAMPLES.to_string();
    wait::retry(
        "a large page that is stored whole",
        prometheus::DEADLINE,
        || async {
            let counts = prometheus
                .query(&format!("count by (job) ({of_large})"))
                .await?;
            ensure!(counts.len() == FORMATS.len(), "{counts:#?}");
            ensure!(
                counts.values().all(|count| *count == expected),
                "{counts:#?}"
            );
            Ok(())
        },
    )
    .await?;
    // Which is the largest and which the smallest does not depend on the order in which they are looked at.
    for what in ["max", "min"] {
        let values = prometheus
            .query(&format!("{what} by (job) ({of_large})"))
            .await?;
        let values: BTreeSet<_> = values.into_values().collect();
        assert_eq!(values.len(), 1, "{what}: {values:?}");
    }
    Ok(())
}

#[tokio::test]
async fn promtool_finds_nothing_wrong_with_the_page() -> Result<()> {
    for strategy in super::STRATEGIES {
        let sidecar = Sidecar::start(&[(variable::TRANSLATION, strategy)]).await;
        push(&sidecar, &request(Times::of_now()?, "1")).await?;
        let page = http::get(&sidecar.admin.to_string(), path::METRICS).await?;
        let (code, said) = prometheus::check_metrics(&page).await?;
        eprintln!("{strategy}: {code:?}\n{said}");
        // How others call their metrics is theirs; that it can be read, and our own names, are ours.
        ensure!(matches!(code, Some(0 | 3)), "{code:?}: {said}");
        let ours = said
            .lines()
            .filter(|line| line.starts_with("agents_") || line.starts_with("process_"));
        assert_eq!(ours.collect::<Vec<_>>(), Vec::<&str>::new());
    }
    Ok(())
}
