//! The same data through the sidecar and through Prometheus' own OTLP endpoint: Prometheus then has the same series with
//! the same values, but for the differences that are listed here.

mod generated;

use std::collections::BTreeMap;

use agents_sidecar::args::variable;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use support::{
    metrics::Series,
    prometheus::{Job, Prometheus, Settings},
};

use super::{
    super::otlp::Sidecar,
    STRATEGIES,
    data::{self, Times, request},
    of_target, push,
};
use generated::{HISTOGRAMS, NAMES};

/// What was stored, by series.
type Stored = BTreeMap<Series, String>;

/// Where both may differ, and why; each is shown by a test of this file.
pub(super) const DIFFERENCES: &[(&str, &str, &str)] = &[
    (
        "`le` of a bound of a million or more",
        "`1e+06`",
        "`1000000` (of what is scraped Prometheus makes `1e+06`)",
    ),
    (
        "zero threshold of an exponential histogram",
        "as sent",
        "always 1e-128",
    ),
    (
        "exponential histogram without a sum",
        "refused, as the specification wants",
        "stored with the sum 0",
    ),
    (
        "exponential histogram with a scale above 8",
        "merged by the rule of the specification",
        "after empty buckets, a count may end up in the bucket before",
    ),
    (
        "unit `kBy`",
        "`kilobytes`, as the specification wants",
        "`kBy`",
    ),
];

/// How many metrics and histograms are compared under each strategy: with bounds, native, and finer than native.
pub(super) fn compared() -> usize {
    data::METRICS + NAMES.len() + 3 * HISTOGRAMS
}

/// One way from the data into Prometheus, for each strategy.
struct Way {
    strategy: &'static str,
    sidecar: Sidecar,
}

impl Way {
    async fn start(strategy: &'static str) -> Self {
        let sidecar = Sidecar::start(&[(variable::TRANSLATION, strategy)]).await;
        Self { strategy, sidecar }
    }

    /// In text for names in UTF-8, and in protobuf for native histograms.
    fn jobs(&self) -> [Job; 2] {
        ["PrometheusText1.0.0", "PrometheusProto"].map(|protocol| Job {
            name: format!("{protocol} {}", self.strategy),
            target: self.sidecar.admin,
            protocol,
            escaping: "allow-utf-8",
        })
    }
}

/// A Prometheus that has got some requests both ways under each strategy.
async fn both_ways(requests: &[Value], ways: &[Way]) -> Result<Prometheus> {
    let jobs: Vec<Job> = ways.iter().flat_map(Way::jobs).collect();
    let settings = |strategy, jobs: &[Job]| Settings {
        strategy,
        jobs: jobs.to_vec(),
    };
    for way in ways {
        for request in requests {
            push(&way.sidecar, request).await?;
        }
    }
    let prometheus = Prometheus::start(&settings(STRATEGIES[0], &jobs)).await?;
    for way in ways {
        prometheus.change(&settings(way.strategy, &jobs)).await?;
        for request in requests {
            prometheus.push(&instance_of(request, way.strategy)).await?;
        }
    }
    prometheus.until_scraped(jobs.len()).await?;
    Ok(prometheus)
}

/// The request as of an instance that is named after the strategy, so that what is stored can be told apart.
fn instance_of(request: &Value, strategy: &str) -> Value {
    let text = request.to_string().replace("the-instance", strategy);
    serde_json::from_str(&text).unwrap_or_default()
}

/// What was stored both ways: through the sidecar, and directly.
async fn stored(prometheus: &Prometheus, way: &Way) -> Result<(Stored, Stored)> {
    let [text, protobuf] = way.jobs();
    let text = of_target(prometheus, "job", &text.name).await?;
    let native = of_target(prometheus, "job", &protobuf.name).await?;
    let direct = of_target(prometheus, "instance", way.strategy).await?;
    // Only native histograms are one value; in text they have fixed bounds instead.
    let is_native = |value: &String| value.starts_with("count ");
    let natives: Vec<_> = direct
        .iter()
        .filter(|(_, value)| is_native(value))
        .collect();
    let mut ours: Stored = text
        .into_iter()
        .filter(|(series, _)| {
            let part = |native: &Series| series.name.starts_with(&format!("{}_", native.name));
            !natives.iter().any(|(native, _)| part(native))
        })
        .collect();
    ours.extend(native.into_iter().filter(|(_, value)| is_native(value)));
    Ok((with_instance(ours, way.strategy), plain(direct)))
}

/// The sidecar was told another instance.
fn with_instance(stored: Stored, strategy: &str) -> Stored {
    let renamed = stored.into_iter().map(|(mut series, value)| {
        for text in series.labels.values_mut() {
            *text = text.replace("the-instance", strategy);
        }
        (series, value)
    });
    plain(renamed.collect())
}

/// With bounds that are written alike, and names as protobuf has them, in which Prometheus asks for no UTF-8.
fn plain(stored: Stored) -> Stored {
    let is_native = |value: &str| value.starts_with("count ");
    let plain = stored.into_iter().map(|(mut series, value)| {
        if let Some(bound) = series.labels.get_mut("le")
            && let Ok(number) = bound.parse::<f64>()
        {
            *bound = format!("{number:?}");
        }
        if is_native(&value) {
            series.name = legacy(&series.name);
            let labels = std::mem::take(&mut series.labels).into_iter();
            let labels = labels.map(|(name, value)| (legacy(&name), value));
            series.labels = labels.collect();
        }
        (series, value)
    });
    plain.collect()
}

fn legacy(name: &str) -> String {
    let letter = |letter: char| match letter.is_ascii_alphanumeric() {
        true => letter,
        false => '_',
    };
    name.chars().map(letter).collect()
}

/// What only one of two has, or has with another value.
fn difference(ours: &Stored, theirs: &Stored) -> Vec<String> {
    let only = |mark: &str, some: &Stored, others: &Stored| -> Vec<String> {
        let missing = some
            .iter()
            .filter(|(series, value)| others.get(series) != Some(value));
        missing
            .map(|(series, value)| format!("{mark} {series} {value}"))
            .collect()
    };
    [only("ours", ours, theirs), only("theirs", theirs, ours)].concat()
}

async fn ways() -> Vec<Way> {
    let mut ways = Vec::new();
    for strategy in STRATEGIES {
        ways.push(Way::start(strategy).await);
    }
    ways
}

#[tokio::test]
async fn the_same_is_stored_as_through_the_endpoint_of_prometheus() -> Result<()> {
    let times = Times::of_now()?;
    let requests = [
        request(times, "the-instance"),
        generated::names(times),
        generated::histograms(times),
    ];
    let ways = ways().await;
    let prometheus = both_ways(&requests, &ways).await?;
    for way in &ways {
        let (mut ours, mut theirs) = stored(&prometheus, way).await?;
        native_histograms_hold_what_was_sent(&requests[2], &ours)?;
        for stored in [&mut ours, &mut theirs] {
            stored.retain(|series, _| series.name != generated::FINE);
        }
        let least = HISTOGRAMS + NAMES.len();
        assert!(theirs.len() > least, "only {} series", theirs.len());
        assert_eq!(
            difference(&ours, &theirs),
            Vec::<String>::new(),
            "{}",
            way.strategy
        );
    }
    Ok(())
}

/// Counts of the buckets of a native histogram, from below.
fn counts(native: &str) -> Vec<u64> {
    let words = native.split([']', ')']).skip(1);
    let words = words.filter_map(|rest| rest.split_ascii_whitespace().next());
    words.filter_map(|word| word.parse().ok()).collect()
}

/// Also those of which Prometheus itself makes something else.
fn native_histograms_hold_what_was_sent(request: &Value, ours: &Stored) -> Result<()> {
    let metrics = &request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
    for (metric, name) in [(0, "random_native"), (1, generated::FINE)] {
        let points = metrics[metric]["exponentialHistogram"]["dataPoints"].as_array();
        let points = points.context("points")?;
        for (number, point) in points.iter().enumerate() {
            let series = Series::new(name, &[("number", &number.to_string())]);
            let native = ours.get(&series).with_context(|| series.to_string())?;
            assert_eq!(
                counts(native),
                generated::native_counts(point),
                "{series} {native}"
            );
        }
    }
    Ok(())
}

#[tokio::test]
async fn what_is_stored_differently_is_what_is_listed() -> Result<()> {
    let times = Times::of_now()?;
    let point = |values: Value| {
        let mut point = values;
        point["startTimeUnixNano"] = times.start.to_string().into();
        point["timeUnixNano"] = times.now.to_string().into();
        point
    };
    let exponential = |name: &str, values: Value| {
        json!({"name": name, "exponentialHistogram": {"aggregationTemporality": 2,
        "dataPoints": [point(values)]}})
    };
    let buckets = json!({"offset": 0, "bucketCounts": ["1"]});
    let wide = exponential(
        "wide",
        json!({"count": "3", "sum": 1.5, "scale": 0, "zeroCount": "2", "zeroThreshold": 0.25, "positive": buckets}),
    );
    let memory = json!({"name": "memory", "unit": "kBy", "gauge": {"dataPoints": [point(json!({"asInt": "1"}))]}});
    let large = json!({"name": "large", "histogram": {"aggregationTemporality": 2, "dataPoints": [
        point(json!({"count": "1", "sum": 1.0, "bucketCounts": ["1", "0"], "explicitBounds": [1_000_000]})),
    ]}});
    let merged = exponential(
        "merged",
        json!({"count": "2", "sum": 2, "scale": 9, "positive": {"offset": 0, "bucketCounts": ["0", "0", "1", "1"]}}),
    );
    let all = generated::of_metrics(&[wide, memory, large, merged]);
    let way = Way::start(STRATEGIES[0]).await;
    let ways = [way];
    let prometheus = both_ways(&[all], &ways).await?;
    let blind = exponential(
        "blind",
        json!({"count": "1", "scale": 0, "positive": buckets}),
    );
    let blind = generated::of_metrics(&[blind]);
    let refused = push(&ways[0].sidecar, &blind)
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains(r#""rejectedDataPoints":"1""#), "{refused}");
    prometheus.push(&instance_of(&blind, STRATEGIES[0])).await?;
    let [text, native] = ways[0].jobs();
    let mut ours = of_target(&prometheus, "job", &native.name).await?;
    ours.extend(of_target(&prometheus, "job", &text.name).await?);
    let theirs = of_target(&prometheus, "instance", STRATEGIES[0]).await?;
    let value = |stored: &Stored, name: &str, labels: &[(&str, &str)]| {
        stored.get(&Series::new(name, labels)).cloned()
    };
    let both = |name: &str, labels: &[(&str, &str)]| {
        [value(&ours, name, labels), value(&theirs, name, labels)]
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        both("wide", &[]),
        [
            some("count 3 sum 1.5 [-0.25, 0.25] 2 (1, 2] 1"),
            some("count 3 sum 1.5 [-1e-128, 1e-128] 2 (1, 2] 1")
        ]
    );
    assert_eq!(
        both("merged", &[]),
        [
            some("count 2 sum 2 (1.0027112750502025, 1.0054299011128027] 2"),
            some(
                "count 2 sum 2 (1, 1.0027112750502025] 1 (1.0027112750502025, 1.0054299011128027] 1"
            )
        ]
    );
    assert_eq!(both("blind", &[]), [None, some("count 1 sum 0 (1, 2] 1")]);
    assert_eq!(both("memory_kilobytes", &[]), [some("1"), None]);
    assert_eq!(both("memory_kBy", &[]), [None, some("1")]);
    assert_eq!(both("large_bucket", &[("le", "1e+06")]), [some("1"), None]);
    assert_eq!(
        both("large_bucket", &[("le", "1000000")]),
        [None, some("1")]
    );
    Ok(())
}
