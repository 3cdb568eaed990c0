use std::sync::Arc;

use super::{super::plan::plan, *};
use crate::{
    model::{Buckets, Exponential, Family, Histogram, Kind, Number, Summary, Value},
    names::Escaping,
};

const SECOND: u64 = 1_000_000_000;

fn family(name: &str, kind: Kind, help: &str, unit: &str) -> Family {
    Family {
        name: name.into(),
        kind,
        help: help.into(),
        unit: unit.into(),
    }
}

fn series(labels: &[(&str, &str)], value: Value) -> Series {
    Series {
        labels: Labels::of(labels.iter().copied()),
        start: 12_345 * SECOND + 600_000_000,
        time: 20_000 * SECOND,
        value,
    }
}

fn number(value: f64) -> Value {
    Value::Number(Number::Float(value))
}

fn exemplar(labels: &[(&str, &str)], value: f64, time: u64) -> Exemplar {
    Exemplar {
        labels: Labels::of(labels.iter().copied()),
        value,
        time,
    }
}

fn bytes(
    format: Format,
    escaping: Escaping,
    created: bool,
    family: &Family,
    all: &[Series],
) -> Vec<u8> {
    let style = Style { format, escaping };
    let plan = plan(&[family], 0, style);
    let heading = &plan.headings[0].1;
    let mut span = Span::default();
    for series in all {
        if let Value::Exponential(histogram) = &series.value {
            span.add(histogram);
        }
    }
    let (mut writer, mut page) = (Writer::new(style, created), Vec::new());
    writer.begin(heading, span.ladder(), true, &mut page);
    for series in all {
        writer.series(heading, series, &mut page);
    }
    writer.end(&mut page);
    writer.finish(&mut page);
    page
}

fn page(format: Format, family: &Family, all: &[Series]) -> String {
    let page = bytes(format, Escaping::AllowUtf8, false, family, all);
    String::from_utf8(page).expect("text")
}

fn with_created(family: &Family, all: &[Series]) -> String {
    let page = bytes(Format::OpenMetrics1, Escaping::AllowUtf8, true, family, all);
    String::from_utf8(page).expect("text")
}

#[test]
fn a_gauge_with_all_that_must_be_escaped() {
    let given = family("gauge_name", Kind::Gauge, "gauge\ndoc\nstr\"ing\\", "");
    let all = [
        series(
            &[
                ("name_1", "val with\nnew line"),
                ("name_2", "val with \\backslash and \"quotes\""),
            ],
            number(f64::INFINITY),
        ),
        series(&[("name_1", "Björn"), ("name_2", "佖佥")], number(3.14e42)),
        series(&[], Value::Number(Number::Integer(1_234_567))),
    ];
    assert_eq!(
        page(Format::Text004, &given, &all),
        r#"# HELP gauge_name gauge\ndoc\nstr"ing\\
# TYPE gauge_name gauge
gauge_name{name_1="val with\nnew line",name_2="val with \\backslash and \"quotes\""} +Inf
gauge_name{name_1="Björn",name_2="佖佥"} 3.14e+42
gauge_name 1234567
"#
    );
    assert_eq!(
        page(Format::OpenMetrics1, &given, &all),
        r#"# TYPE gauge_name gauge
# HELP gauge_name gauge\ndoc\nstr\"ing\\
gauge_name{name_1="val with\nnew line",name_2="val with \\backslash and \"quotes\""} +Inf
gauge_name{name_1="Björn",name_2="佖佥"} 3.14e+42
gauge_name 1234567
# EOF
"#
    );
}

#[test]
fn names_in_utf8_are_quoted() {
    let given = family("gauge.name\"", Kind::Gauge, "help", "");
    let all = [
        series(&[("name*2", "佖佥"), ("name.1", "Björn")], number(1.0)),
        series(&[], number(-1.23e-45)),
    ];
    assert_eq!(
        page(Format::Text100, &given, &all),
        r#"# HELP "gauge.name\"" help
# TYPE "gauge.name\"" gauge
{"gauge.name\"","name*2"="佖佥","name.1"="Björn"} 1
{"gauge.name\""} -1.23e-45
"#
    );
    let dotted = family("request.time", Kind::Histogram, "", "");
    let all = [series(
        &[("a.b", "c")],
        Value::Histogram(Box::new(histogram())),
    )];
    assert!(
        page(Format::OpenMetrics1, &dotted, &all)
            .contains("{\"request.time_bucket\",\"a.b\"=\"c\",le=\"100.0\"} 123\n")
    );
}

#[test]
fn a_counter_begins_somewhere_and_may_have_an_example() {
    let given = family(
        "foos_seconds_total",
        Kind::Counter,
        "Number of foos.",
        "seconds",
    );
    let example = exemplar(&[("trace_id", "ab")], 0.5, 12_345 * SECOND + 1);
    let all = [series(
        &[("a", "b")],
        Value::Total(Number::Float(42.0), Some(Box::new(example))),
    )];
    assert_eq!(
        with_created(&given, &all),
        r#"# TYPE foos_seconds counter
# UNIT foos_seconds seconds
# HELP foos_seconds Number of foos.
foos_seconds_total{a="b"} 42.0 # {trace_id="ab"} 0.5 12345.000000001
foos_seconds_created{a="b"} 12345.6
# EOF
"#
    );
    assert_eq!(
        page(Format::Text004, &given, &all),
        "# HELP foos_seconds_total Number of foos.\n# TYPE foos_seconds_total counter\nfoos_seconds_total{a=\"b\"} 42\n"
    );
    assert_eq!(
        page(Format::OpenMetrics2, &given, &all),
        r#"# TYPE foos_seconds_total counter
# UNIT foos_seconds_total seconds
# HELP foos_seconds_total Number of foos.
foos_seconds_total{a="b"} 42.0 st@12345.6 # {trace_id="ab"} 0.5 12345.000000001
# EOF
"#
    );
    let bare = family("foos", Kind::Counter, "", "");
    assert_eq!(
        page(Format::OpenMetrics1, &bare, &all),
        "# TYPE foos unknown\nfoos{a=\"b\"} 42.0\n# EOF\n"
    );
}

#[test]
fn the_trace_of_an_example_is_found_under_every_escaping() {
    let given = family("foos_total", Kind::Counter, "", "");
    let example = exemplar(&[("trace_id", "ab"), ("user.id", "1")], 0.5, SECOND);
    let all = [series(
        &[("a_b", "c")],
        Value::Total(Number::Float(42.0), Some(Box::new(example))),
    )];
    for (escaping, expected) in [
        (Escaping::Underscores, r#"{trace_id="ab",user_id="1"}"#),
        (Escaping::Dots, r#"{trace_id="ab",user_id="1"}"#),
        (Escaping::Values, r#"{trace_id="ab",U__user_2e_id="1"}"#),
        (Escaping::AllowUtf8, r#"{trace_id="ab","user.id"="1"}"#),
    ] {
        for format in [Format::OpenMetrics1, Format::OpenMetrics2] {
            let page = bytes(format, escaping, false, &given, &all);
            let page = String::from_utf8(page).expect("text");
            assert!(
                page.contains(&format!(" # {expected} ")),
                "{escaping:?}: {page}"
            );
        }
        let page = bytes(Format::Protobuf, escaping, false, &given, &all);
        let name = b"trace_id";
        assert!(
            page.windows(name.len()).any(|part| part == name),
            "{escaping:?}"
        );
    }
}

#[test]
fn an_example_that_is_too_long_keeps_what_leads_to_its_trace() {
    let given = family("x_total", Kind::Counter, "", "");
    let long = "ü".repeat(70);
    let example = exemplar(
        &[("a", &long), ("span_id", "s"), ("trace_id", "t")],
        1.0,
        SECOND,
    );
    let all = [series(
        &[],
        Value::Total(Number::Integer(1), Some(Box::new(example))),
    )];
    assert!(page(Format::OpenMetrics1, &given, &all).contains(&format!("a=\"{long}\"")));
    let longer = "ü".repeat(120);
    let example = exemplar(
        &[("a", &longer), ("span_id", "s"), ("trace_id", "t")],
        1.0,
        SECOND,
    );
    let all = [series(
        &[],
        Value::Total(Number::Integer(1), Some(Box::new(example))),
    )];
    let expected = "x_total 1 # {span_id=\"s\",trace_id=\"t\"} 1.0 1\n";
    assert!(page(Format::OpenMetrics1, &given, &all).contains(expected));
}

#[test]
fn what_openmetrics_forbids_is_left_out() {
    let given = family("x_total", Kind::Counter, "", "");
    let total = |value| series(&[], Value::Total(Number::Float(value), None));
    for (value, is_there) in [(f64::NAN, false), (-1.0, false), (0.0, true)] {
        assert_eq!(
            page(Format::OpenMetrics1, &given, &[total(value)]).contains("x_total "),
            is_there
        );
        assert_eq!(
            page(Format::OpenMetrics2, &given, &[total(value)]).contains("x_total 0"),
            is_there
        );
        assert!(page(Format::Text004, &given, &[total(value)]).contains("x_total "));
    }
    let long = "x".repeat(129);
    let example = exemplar(&[("trace_id", &long)], 1.0, SECOND);
    let nothing = exemplar(&[], 1.0, SECOND);
    for example in [example, nothing] {
        let all = [series(
            &[],
            Value::Total(Number::Integer(1), Some(Box::new(example))),
        )];
        assert_eq!(
            page(Format::OpenMetrics1, &given, &all),
            "# TYPE x counter\nx_total 1\n# EOF\n"
        );
    }
}

fn histogram() -> Histogram {
    Histogram {
        bounds: Arc::from([100.0, 120.0, 144.0, 172.8]),
        counts: Box::from([123, 289, 180, 932, 1169]),
        count: 2693,
        sum: Some(1_756_047.3),
        exemplars: vec![
            exemplar(&[("foo", "bar")], 119.9, 12_345 * SECOND + 600_000_000),
            exemplar(&[("dings", "bums"), ("foo", "baz")], 140.14, 0),
            exemplar(&[("foo", "far")], 1e6, SECOND),
        ],
    }
}

#[test]
fn a_histogram_with_fixed_bounds() {
    let given = family(
        "request_duration_microseconds",
        Kind::Histogram,
        "The response latency.",
        "microseconds",
    );
    let all = [series(&[], Value::Histogram(Box::new(histogram())))];
    assert_eq!(
        with_created(&given, &all),
        r#"# TYPE request_duration_microseconds histogram
# UNIT request_duration_microseconds microseconds
# HELP request_duration_microseconds The response latency.
request_duration_microseconds_bucket{le="100.0"} 123
request_duration_microseconds_bucket{le="120.0"} 412 # {foo="bar"} 119.9 12345.6
request_duration_microseconds_bucket{le="144.0"} 592 # {dings="bums",foo="baz"} 140.14
request_duration_microseconds_bucket{le="172.8"} 1524
request_duration_microseconds_bucket{le="+Inf"} 2693 # {foo="far"} 1e+06 1
request_duration_microseconds_sum 1.7560473e+06
request_duration_microseconds_count 2693
request_duration_microseconds_created 12345.6
# EOF
"#
    );
    assert_eq!(
        page(Format::Text004, &given, &all),
        r#"# HELP request_duration_microseconds The response latency.
# TYPE request_duration_microseconds histogram
request_duration_microseconds_bucket{le="100"} 123
request_duration_microseconds_bucket{le="120"} 412
request_duration_microseconds_bucket{le="144"} 592
request_duration_microseconds_bucket{le="172.8"} 1524
request_duration_microseconds_bucket{le="+Inf"} 2693
request_duration_microseconds_sum 1.7560473e+06
request_duration_microseconds_count 2693
"#
    );
    assert!(page(Format::OpenMetrics2, &given, &all).contains(
        "request_duration_microseconds {count:2693,sum:1.7560473e+06,\
         bucket:[100.0:123,120.0:412,144.0:592,172.8:1524,+Inf:2693]} st@12345.6 \
         # {foo=\"bar\"} 119.9 12345.6 # {foo=\"far\"} 1e+06 1\n"
    ));
}

#[test]
fn a_sum_that_nobody_said_is_not_made_up() {
    let given = family("x", Kind::Histogram, "", "");
    let without = |sum, first| Histogram {
        bounds: Arc::from([first]),
        counts: Box::from([1, 2]),
        count: 3,
        sum,
        exemplars: Vec::new(),
    };
    let all = |sum, first| [series(&[], Value::Histogram(Box::new(without(sum, first))))];
    let text = page(Format::Text004, &given, &all(None, 1.0));
    assert!(
        !text.contains("_sum") && text.contains("x_count 3"),
        "{text}"
    );
    // OpenMetrics has both or neither, and neither where observations can be negative.
    for (sum, first) in [
        (None, 1.0),
        (Some(f64::NAN), 1.0),
        (Some(-1.0), 1.0),
        (Some(1.0), -1.0),
    ] {
        let page = page(Format::OpenMetrics1, &given, &all(sum, first));
        assert!(!page.contains("_sum") && !page.contains("_count"), "{page}");
    }
    assert!(page(Format::OpenMetrics2, &given, &all(None, 1.0)).contains("{count:3,sum:NaN,"));
}

#[test]
fn an_infinite_bound_is_there_once() {
    let given = family("x", Kind::Histogram, "", "");
    let infinite = Histogram {
        bounds: Arc::from([1.0, f64::INFINITY]),
        counts: Box::from([1, 2, 0]),
        count: 3,
        sum: Some(5.0),
        exemplars: Vec::new(),
    };
    let all = [series(&[], Value::Histogram(Box::new(infinite)))];
    for format in [Format::Text004, Format::OpenMetrics1, Format::OpenMetrics2] {
        let page = page(format, &given, &all);
        assert_eq!(page.matches("+Inf").count(), 1, "{page}");
    }
}

fn exponential() -> Exponential {
    Exponential {
        scale: 0,
        zero_threshold: 0.0,
        zero_count: 1,
        positive: Buckets {
            offset: 0,
            counts: vec![2, 0, 0, 0, 3],
        },
        negative: Buckets::default(),
        count: 6,
        sum: Some(70.5),
        exemplars: vec![exemplar(&[("trace_id", "x")], 1.5, SECOND)],
    }
}

#[test]
fn an_exponential_histogram_has_stable_bounds_in_text() {
    let given = family("x", Kind::Histogram, "", "");
    let all = [series(
        &[("a", "b")],
        Value::Exponential(Box::new(exponential())),
    )];
    assert_eq!(
        page(Format::OpenMetrics1, &given, &all),
        r#"# TYPE x histogram
x_bucket{a="b",le="1.0"} 1
x_bucket{a="b",le="2.0"} 3 # {trace_id="x"} 1.5 1
x_bucket{a="b",le="4.0"} 3
x_bucket{a="b",le="8.0"} 3
x_bucket{a="b",le="16.0"} 3
x_bucket{a="b",le="32.0"} 6
x_bucket{a="b",le="64.0"} 6
x_bucket{a="b",le="128.0"} 6
x_bucket{a="b",le="256.0"} 6
x_bucket{a="b",le="+Inf"} 6
x_sum{a="b"} 70.5
x_count{a="b"} 6
# EOF
"#
    );
    assert_eq!(
        page(Format::OpenMetrics2, &given, &all),
        "# TYPE x histogram\nx{a=\"b\"} {count:6,sum:70.5,schema:0,zero_threshold:1e-128,zero_count:1,\
         positive_spans:[1:1,3:1],positive_buckets:[2,3]} st@12345.6 # {trace_id=\"x\"} 1.5 1\n# EOF\n"
    );
}

#[test]
fn a_summary() {
    let given = family("s", Kind::Summary, "", "");
    let summary = Summary {
        count: 42,
        sum: 3.5,
        quantiles: Box::from([(0.5, f64::NAN), (0.9, 0.25), (1.0, 2.0)]),
    };
    let all = [series(
        &[("quantile", "mine")],
        Value::Summary(Box::new(summary)),
    )];
    assert_eq!(
        page(Format::Text004, &given, &all),
        r#"# TYPE s summary
s{exported_quantile="mine",quantile="0.5"} NaN
s{exported_quantile="mine",quantile="0.9"} 0.25
s{exported_quantile="mine",quantile="1"} 2
s_sum{exported_quantile="mine"} 3.5
s_count{exported_quantile="mine"} 42
"#
    );
    assert_eq!(
        page(Format::OpenMetrics2, &given, &all),
        "# TYPE s summary\ns{exported_quantile=\"mine\"} {count:42,sum:3.5,quantile:[0.5:NaN,0.9:0.25,1.0:2.0]} \
         st@12345.6\n# EOF\n"
    );
}

#[test]
fn facts_and_states() {
    let facts = family("build_info", Kind::Info, "", "");
    let all = [series(&[("version", "1")], number(7.0))];
    assert_eq!(
        page(Format::OpenMetrics1, &facts, &all),
        "# TYPE build info\nbuild_info{version=\"1\"} 1\n# EOF\n"
    );
    assert_eq!(
        page(Format::Text004, &facts, &all),
        "# TYPE build_info gauge\nbuild_info{version=\"1\"} 7\n"
    );
    let states = family("state", Kind::StateSet, "", "");
    let all = [
        series(&[("state", "on")], number(1.0)),
        series(&[("state", "off")], number(0.0)),
        series(&[("state", "odd")], number(2.0)),
        series(&[("other", "x")], number(1.0)),
    ];
    assert_eq!(
        page(Format::OpenMetrics1, &states, &all),
        "# TYPE state stateset\nstate{state=\"on\"} 1.0\nstate{state=\"off\"} 0.0\n# EOF\n"
    );
}

#[test]
fn what_is_not_of_its_kind_is_left_out() {
    let given = family("x", Kind::Gauge, "", "");
    let all = [
        series(&[], Value::Histogram(Box::new(histogram()))),
        series(&[("a", "b")], number(1.0)),
    ];
    for format in [Format::Text004, Format::OpenMetrics1, Format::OpenMetrics2] {
        assert_eq!(page(format, &given, &all).matches("\nx").count(), 1);
    }
}
