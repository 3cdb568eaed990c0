//! Every format that Prometheus can ask for, with every escaping of names: what it stores is what was sent.

use std::collections::BTreeMap;

use agents_sidecar::args::variable;
use anyhow::{Context, Result, ensure};
use support::{
    metrics::Series,
    prometheus::{DEADLINE, Job, Prometheus, Settings},
    wait,
};

use super::{
    super::otlp::Sidecar,
    data::{SPAN, TRACE, Times, USER, request},
    of_target, push,
};

/// Formats with the letter that they have below, and the escapings that Prometheus asks for in each.
pub(super) const FORMATS: [(char, &str, &[&str]); 6] = [
    ('p', "PrometheusProto", &["underscores"]),
    ('2', "OpenMetricsText2.0.0", &["underscores"]),
    ('1', "OpenMetricsText1.0.0", &ESCAPINGS),
    ('1', "OpenMetricsText0.0.1", &["underscores"]),
    ('t', "PrometheusText1.0.0", &ESCAPINGS),
    ('t', "PrometheusText0.0.4", &["underscores"]),
];
const ESCAPINGS: [&str; 4] = ["allow-utf-8", "underscores", "dots", "values"];

/// A name and what the escapings make of it, in their order.
type Escaped = [&'static str; 4];

/// Names of metrics and labels. What needs no escaping has its underscores doubled by `dots` all the same.
#[rustfmt::skip]
const ESCAPED: &[Escaped] = &[
    ["body.fine", "body_fine", "body_dot_fine", "U__body_2e_fine"],
    ["body.size", "body_size", "body_dot_size", "U__body_2e_size"],
    ["drift", "drift", "drift", "drift"],
    ["größe", "gr__e", "gr____e", "U__gr_f6__df_e"],
    ["http.requests", "http_requests", "http_dot_requests", "U__http_2e_requests"],
    ["legacy.size", "legacy_size", "legacy_dot_size", "U__legacy_2e_size"],
    ["oven.temperature", "oven_temperature", "oven_dot_temperature", "U__oven_2e_temperature"],
    ["queue.depth", "queue_depth", "queue_dot_depth", "U__queue_2e_depth"],
    ["target_info", "target_info", "target__info", "target_info"],
    ["wait", "wait", "wait", "wait"],
    ["wait.blind", "wait_blind", "wait_dot_blind", "U__wait_2e_blind"],
    ["host.cpus", "host_cpus", "host_dot_cpus", "U__host_2e_cpus"],
    ["http.route", "http_route", "http_dot_route", "U__http_2e_route"],
    ["küche", "k_che", "k__che", "U__k_fc_che"],
    ["le", "le", "le", "le"],
    ["otel_scope_name", "otel_scope_name", "otel__scope__name", "otel_scope_name"],
    ["otel_scope_side.door", "otel_scope_side_door", "otel__scope__side_dot_door", "U__otel__scope__side_2e_door"],
    ["otel_scope_version", "otel_scope_version", "otel__scope__version", "otel_scope_version"],
    ["oven", "oven", "oven", "oven"],
    ["quantile", "quantile", "quantile", "quantile"],
    ["service.instance.id", "service_instance_id", "service_dot_instance_dot_id", "U__service_2e_instance_2e_id"],
    ["service.name", "service_name", "service_dot_name", "U__service_2e_name"],
    ["service.namespace", "service_namespace", "service_dot_namespace", "U__service_2e_namespace"],
];

/// The formats that have a sample, its family, what follows that in its name, its labels and its value.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

/// What is not allowed in OpenMetrics 1.0, and only there: a sum or a count where there is no sum, or a bound below zero.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("p21t", "oven.temperature", "", &[("oven", "a")], "21.5"),
    ("p21t", "oven.temperature", "", &[("oven", "b")], "-3"),
    ("p21t", "oven.temperature", "", &[("oven", "c")], "NaN"),
    ("p21t", "oven.temperature", "", &[("oven", "d")], "+Inf"),
    ("p21t", "größe", "", &[("küche", "süd")], "9"),
    ("p21t", "http.requests", "", &[("http.route", "/pay \"now\"\n\\")], "3"),
    ("p21t", "queue.depth", "", &[], "7"),
    ("p21t", "legacy.size", "", &[("quantile", "0.5")], "2"),
    ("p21t", "legacy.size", "", &[("quantile", "0.99")], "4.5"),
    ("p21t", "legacy.size", "_sum", &[], "12.5"),
    ("p21t", "legacy.size", "_count", &[], "5"),
    ("p21t", "wait", "_sum", &[], "1000010.5"),
    ("p21t", "wait", "_count", &[], "7"),
    ("p2", "wait.blind", "_sum", &[], "NaN"),
    ("p2t", "wait.blind", "_count", &[], "3"),
    ("p2t", "drift", "_sum", &[], "-2.5"),
    ("p2t", "drift", "_count", &[], "4"),
    ("t", "body.size", "_sum", &[], "100.5"),
    ("t", "body.size", "_count", &[], "10"),
    ("1t", "body.fine", "_sum", &[], "16.25"),
    ("1t", "body.fine", "_count", &[], "15"),
    ("p2", "body.size", "", &[], "count 10 sum 100.5 [-1, -0.7071067811865475) 2 [-1e-128, 1e-128] 2 (2, 2.82842712474619] 1 (8, 11.31370849898476] 5"),
    ("p2", "body.fine", "", &[], "count 15 sum 16.25 (1.0700337118202417, 1.0729348675259753] 10 (1.0729348675259753, 1.0758438890627908] 5"),
];

/// How many there are up to each bound.
type Bounds = &'static [(&'static str, &'static str)];

/// The same of buckets: formats, family, and its bounds.
#[rustfmt::skip]
const BUCKETS: &[(&str, &str, Bounds)] = &[
    ("p21t", "wait", &[("0.25", "1"), ("1.0", "3"), ("1e+06", "6"), ("+Inf", "7")]),
    ("p21t", "wait.blind", &[("1.0", "1"), ("+Inf", "3")]),
    ("p21t", "drift", &[("-1.0", "2"), ("1.0", "3"), ("+Inf", "4")]),
    ("1t", "body.fine", &[("1.0", "0"), ("2.0", "15"), ("4.0", "15"), ("8.0", "15"), ("16.0", "15"), ("+Inf", "15")]),
    ("1t", "body.size", &[
        ("-16.0", "0"), ("-8.0", "0"), ("-4.0", "0"), ("-2.0", "0"), ("-1.0", "0"),
        ("-0.5", "2"), ("-0.25", "2"), ("-0.125", "2"), ("-0.0625", "2"),
        ("0.0625", "4"), ("0.125", "4"), ("0.25", "4"), ("0.5", "4"), ("1.0", "4"), ("2.0", "4"),
        ("4.0", "5"), ("8.0", "5"), ("16.0", "10"), ("+Inf", "10"),
    ]),
];

/// A name under an escaping.
fn escaped(name: &str, escaping: &str) -> &'static str {
    let at = ESCAPINGS.iter().position(|known| *known == escaping);
    let row = ESCAPED.iter().find(|row| row[0] == name);
    row.unwrap_or_else(|| panic!("{name} is not in the table"))[at.expect("an escaping")]
}

/// What Prometheus has to store of a format with an escaping.
fn expected(format: char, escaping: &str) -> BTreeMap<Series, String> {
    let sample = |family: &str, suffix: &str, labels: &[(&str, &str)], value: &str| {
        let scope = [
            ("otel_scope_name", "till"),
            ("otel_scope_version", "1.2"),
            ("otel_scope_side.door", "true"),
        ];
        let labels = labels.iter().chain(&scope);
        let labels =
            labels.map(|(name, value)| (escaped(name, escaping).to_owned(), (*value).to_owned()));
        let series = Series {
            name: format!("{}{suffix}", escaped(family, escaping)),
            labels: labels.collect(),
        };
        (series, value.to_owned())
    };
    let rows = ROWS.iter().filter(|row| row.0.contains(format));
    let rows = rows.map(|(_, family, suffix, labels, value)| sample(family, suffix, labels, value));
    let buckets = BUCKETS.iter().filter(|row| row.0.contains(format));
    let buckets = buckets.flat_map(|(_, family, bounds)| {
        let bounds = bounds.iter();
        bounds.map(|(bound, count)| sample(family, "_bucket", &[("le", bound)], count))
    });
    let about = [
        ("service.name", "shop"),
        ("service.namespace", "mall"),
        ("service.instance.id", "1"),
        ("host.cpus", "4"),
    ];
    let about = about.map(|(name, value)| (escaped(name, escaping), value));
    let target = Series::new(escaped("target_info", escaping), &about);
    rows.chain(buckets)
        .chain([(target, "1".to_owned())])
        .collect()
}

/// One job for each format and escaping, of one page.
fn jobs(sidecar: &Sidecar) -> Vec<(char, Job)> {
    let job = |protocol: &'static str, escaping: &'static str| Job {
        name: format!("{protocol} {escaping}"),
        target: sidecar.admin,
        protocol,
        escaping,
    };
    let formats = FORMATS.iter();
    let jobs = formats.flat_map(|(letter, protocol, escapings)| {
        let escapings = escapings.iter();
        escapings.map(move |escaping| (*letter, job(protocol, escaping)))
    });
    jobs.collect()
}

/// How many formats with their escapings are scraped, and how many samples are compared in all of them.
pub(super) fn counts() -> (usize, usize) {
    let pairs = FORMATS.iter().flat_map(|(letter, _, escapings)| {
        escapings.iter().map(move |escaping| (*letter, *escaping))
    });
    let samples = pairs
        .clone()
        .map(|(letter, escaping)| expected(letter, escaping).len());
    (pairs.count(), samples.sum())
}

/// How many exemplars and starts of series are looked for on all pages.
pub(super) fn examples_and_starts() -> usize {
    let pages = FORMATS.iter().map(|(letter, _, escapings)| {
        let examples = EXAMPLES.iter().filter(|row| row.0.contains(*letter));
        let starts = STARTS.iter().filter(|row| row.0.contains(*letter));
        (examples.count() + starts.count()) * escapings.len()
    });
    pages.sum()
}

/// A Prometheus that has scraped all of them.
async fn scraped(jobs: &[(char, Job)]) -> Result<Prometheus> {
    let settings = Settings {
        jobs: jobs.iter().map(|(_, job)| job.clone()).collect(),
        strategy: "NoTranslation",
    };
    let prometheus = Prometheus::start(&settings).await?;
    prometheus.until_scraped(jobs.len()).await?;
    Ok(prometheus)
}

#[tokio::test]
async fn every_format_with_every_escaping_brings_what_was_sent() -> Result<()> {
    let sidecar = Sidecar::start(&[(variable::TRANSLATION, "NoTranslation")]).await;
    push(&sidecar, &request(Times::of_now()?, "1")).await?;
    let jobs = jobs(&sidecar);
    let prometheus = scraped(&jobs).await?;
    for (format, job) in &jobs {
        let stored = of_target(&prometheus, "job", &job.name).await?;
        assert_eq!(stored, expected(*format, job.escaping), "{}", job.name);
    }
    Ok(())
}

/// The formats that have an exemplar, the series it is of, and its value.
type Example = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

const EXAMPLES: &[Example] = &[
    (
        "p21",
        "http_requests_total",
        &[("http_route", "/pay \"now\"\n\\")],
        "1",
    ),
    ("p1", "wait_seconds_bucket", &[("le", "1.0")], "0.75"),
    ("2", "wait_seconds_count", &[], "0.75"),
    ("p2", "body_size_bytes", &[], "10"),
    ("1", "body_size_bytes_bucket", &[("le", "16.0")], "10"),
];

/// The formats that say when a series began, and series of which it is said.
const STARTS: &[(&str, &str)] = &[
    ("p21", "http_requests_total"),
    ("p21", "wait_seconds_count"),
    ("p2", "body_size_bytes"),
    ("p21", "legacy_size_bytes_count"),
];

#[tokio::test]
async fn exemplars_and_starts_come_where_the_format_has_them() -> Result<()> {
    let settings = [
        (variable::SCOPE_LABELS, "false"),
        (variable::CREATED_LINES, "true"),
    ];
    let sidecar = Sidecar::start(&settings).await;
    let times = Times::of_now()?;
    push(&sidecar, &request(times, "1")).await?;
    let jobs = jobs(&sidecar);
    let prometheus = scraped(&jobs).await?;
    for (format, job) in &jobs {
        exemplars_are_there(&prometheus, *format, job).await?;
        let starts = STARTS
            .iter()
            .filter(|(formats, _)| formats.contains(*format));
        for (_, name) in starts {
            let name = doubled(name, job.escaping);
            let first = prometheus
                .first(&format!("{name}{{job=\"{}\"}}", job.name))
                .await?;
            let (time, value) = first.values().next().context(name.clone())?;
            assert_eq!(*time, times.start as f64 / 1e9, "{name} in {}", job.name);
            ensure!(value == "0" || value == "count 0 sum 0", "{name}: {value}");
        }
    }
    Ok(())
}

/// The strategy has escaped all names, so only `dots` changes them: it doubles underscores, but not those of suffixes.
fn doubled(name: &str, escaping: &str) -> String {
    if escaping != "dots" {
        return name.to_owned();
    }
    let doubled = name.replace('_', "__");
    ["_bucket", "_count"].iter().fold(doubled, |name, suffix| {
        name.replace(&format!("_{suffix}"), suffix)
    })
}

async fn exemplars_are_there(prometheus: &Prometheus, format: char, job: &Job) -> Result<()> {
    // From OpenMetrics 1.0 Prometheus takes the labels of an exemplar as they are written, escaped.
    let user = match format {
        '1' => USER.replace('\\', r"\\").replace('"', r#"\""#),
        _ => USER.to_owned(),
    };
    let labels = [("trace_id", TRACE), ("span_id", SPAN), ("user", &user)];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let name = |name: &str| doubled(name, job.escaping);
    let expected: BTreeMap<_, _> = EXAMPLES
        .iter()
        .filter(|row| row.0.contains(format))
        .map(|(_, family, own, value)| {
            let own = own
                .iter()
                .map(|(label, value)| (name(label), (*value).to_owned()));
            let series = Series {
                name: name(family),
                labels: own.collect(),
            };
            (series, vec![(labels.clone().into(), (*value).to_owned())])
        })
        .collect();
    wait::retry("exemplars", DEADLINE, || async {
        let all = prometheus
            .exemplars(&format!("{{job=\"{}\"}}", job.name))
            .await?;
        let seen: BTreeMap<_, _> = all
            .into_iter()
            .map(|(mut series, exemplars)| {
                series
                    .labels
                    .retain(|label, _| label != "job" && label != "instance");
                (series, exemplars)
            })
            .collect();
        ensure!(
            seen == expected,
            "{}: {seen:#?}, not {expected:#?}",
            job.name
        );
        Ok(())
    })
    .await
}
