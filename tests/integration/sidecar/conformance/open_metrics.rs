//! Rules of OpenMetrics 1.0 as pages that keep or break one each, read by our strict reader and by that of the library for
//! Python: who reads our pages is known to see what is wrong.

use std::fs::{self, File};

use anyhow::{Context, Result, ensure};
use support::{lab::tools::build::python::Python, open_metrics, prometheus};
use tokio::time::timeout;

/// A page without its end, and the rule that it keeps.
#[rustfmt::skip]
pub(super) const GOOD: &[(&str, &str)] = &[
    ("a page may be empty", ""),
    ("a family may have no samples", "# TYPE a counter\n# HELP a help\n"),
    ("a family may come without a heading", "a 1\nb{c=\"d\"} 2\n"),
    ("metadata come in any order", "# HELP a_bytes x\n# UNIT a_bytes bytes\n# TYPE a_bytes gauge\na_bytes 1\n"),
    ("a help may be escaped", "# HELP a one\\ntwo \\\\ \\\"three\\\"\na 1\n"),
    ("a help may be empty", "# HELP a \na 1\n"),
    ("a unit may be empty", "# UNIT a \na 1\n"),
    ("a label may be escaped", "a{b=\"\\\\ \\\" \\n\"} 1\n"),
    ("a label may hold braces, commas and signs", "a{b=\"}{,=# 1\"} 1\n"),
    ("a label may be empty", "a{b=\"\"} 1\n"),
    ("braces may be empty", "a{} 1\n"),
    ("a name may have colons", "a:b 1\n"),
    ("a gauge may be anything", "# TYPE a gauge\na{n=\"1\"} NaN\na{n=\"2\"} -Inf\na{n=\"3\"} -1.5e-9\n"),
    ("a counter has a total and a start", "# TYPE a counter\na_total 1\na_created 2\n"),
    ("a counter may have an exemplar", "# TYPE a counter\na_total 1 # {b=\"c\"} 0.5 3\n"),
    ("an exemplar may have no labels and no time", "# TYPE a counter\na_total 1 # {} 0.5\n"),
    ("an exemplar may have 128 letters", "# TYPE a counter\na_total 1 # {b=\"1234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567\"} 1\n"),
    ("a histogram is whole", "# TYPE a histogram\na_bucket{le=\"1.0\"} 1\na_bucket{le=\"+Inf\"} 2\na_count 2\na_sum 1.5\n"),
    ("a histogram may have its buckets alone", "# TYPE a histogram\na_bucket{le=\"+Inf\"} 2\n"),
    ("a histogram may have bounds below zero without a sum", "# TYPE a histogram\na_bucket{le=\"-1.0\"} 1\na_bucket{le=\"+Inf\"} 2\n"),
    ("a bucket may have an exemplar", "# TYPE a histogram\na_bucket{le=\"+Inf\"} 2 # {b=\"c\"} 0.5\n"),
    ("a gauge histogram may fall", "# TYPE a gaugehistogram\na_bucket{le=\"-1.0\"} 1\na_bucket{le=\"+Inf\"} 2\na_gcount 2\na_gsum -3\n"),
    ("a summary has quantiles", "# TYPE a summary\na{quantile=\"0.5\"} 1\na{quantile=\"1.0\"} NaN\na_count 2\na_sum 3\n"),
    ("an info is one", "# TYPE a info\na_info{b=\"c\"} 1\n"),
    ("a state is one or nothing", "# TYPE a stateset\na{a=\"on\"} 1\na{a=\"off\"} 0\n"),
    ("times may rise", "# TYPE a gauge\na 1 1\na 2 2.5\n"),
    ("times may repeat", "# TYPE a gauge\na 1 1\na 2 1\n"),
    ("a time may be before its epoch", "a 1 -5\n"),
];

/// The same with the rule that it breaks.
#[rustfmt::skip]
pub(super) const BAD: &[(&str, &str)] = &[
    ("there are no comments", "# just so\na 1\n"),
    ("there are no empty lines", "a 1\n\nb 1\n"),
    ("a value is a number", "a x\n"),
    ("a number has no underscores", "a 1_000\n"),
    ("a number is not hexadecimal", "a 0x10\n"),
    ("there is a value", "a\n"),
    ("there is one space before the value", "a  1\n"),
    ("there is no space at the end", "a 1 \n"),
    ("there is no space before the name", " a 1\n"),
    ("there are no tabs", "a\t1\n"),
    ("a name begins with a letter", "1a 1\n"),
    ("a name has only letters", "a-b 1\n"),
    ("a label has no colon", "a{b:c=\"d\"} 1\n"),
    ("a label is there once", "a{b=\"1\",b=\"2\"} 1\n"),
    ("a label has a value", "a{b} 1\n"),
    ("a label is in quotes", "a{b=c} 1\n"),
    ("a label is between commas", "a{b=\"1\"c=\"2\"} 1\n"),
    ("there is no comma at the end", "a{b=\"1\",} 1\n"),
    ("there are no spaces between labels", "a{b=\"1\", c=\"2\"} 1\n"),
    ("braces are closed", "a{b=\"1\" 1\n"),
    ("a quote is closed", "a{b=\"1} 1\n"),
    ("a type is known", "# TYPE a sum\na 1\n"),
    ("a type is said once", "# TYPE a gauge\n# TYPE a gauge\na 1\n"),
    ("a help is said once", "# HELP a x\n# HELP a x\na 1\n"),
    ("a unit is said once", "# UNIT a_s s\n# UNIT a_s s\na_s 1\n"),
    ("a unit is the end of the name", "# UNIT a seconds\na 1\n"),
    ("an info has no unit", "# TYPE a_s info\n# UNIT a_s s\na_s_info 1\n"),
    ("a set of states has no unit", "# TYPE a_s stateset\n# UNIT a_s s\na_s{a_s=\"on\"} 1\n"),
    ("metadata come before samples", "a 1\n# TYPE a gauge\n"),
    ("a family is in one piece", "# TYPE a gauge\na{n=\"1\"} 1\n# TYPE b gauge\nb 1\n# TYPE a gauge\na{n=\"2\"} 1\n"),
    ("two families share no name", "# TYPE a counter\na_total 1\n# TYPE a_total gauge\na_total 1\n"),
    ("a sample is there once", "# TYPE a gauge\na 1\na 1\n"),
    ("samples of one metric stand together", "# TYPE a summary\na_count{n=\"1\"} 1\na_count{n=\"2\"} 1\na_sum{n=\"1\"} 1\n"),
    ("a counter has a total", "# TYPE a counter\na 1\n"),
    ("a total is a number", "# TYPE a counter\na_total NaN\n"),
    ("a total is not below zero", "# TYPE a counter\na_total -1\n"),
    ("a gauge has no exemplar", "# TYPE a gauge\na 1 # {b=\"c\"} 1\n"),
    ("a sum has no exemplar", "# TYPE a histogram\na_bucket{le=\"+Inf\"} 1\na_count 1\na_sum 1 # {b=\"c\"} 1\n"),
    ("an exemplar has a value", "# TYPE a counter\na_total 1 # {b=\"c\"}\n"),
    ("an exemplar has labels", "# TYPE a counter\na_total 1 # 1\n"),
    ("an exemplar has at most 128 letters", "# TYPE a counter\na_total 1 # {b=\"12345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678\"} 1\n"),
    ("an exemplar has a time that is one", "# TYPE a counter\na_total 1 # {b=\"c\"} 1 NaN\n"),
    ("an exemplar has one space around its sign", "# TYPE a counter\na_total 1  # {b=\"c\"} 1\n"),
    ("a time is a number", "a 1 now\n"),
    ("a time is finite", "a 1 +Inf\n"),
    ("there is one time", "a 1 2 3\n"),
    ("times do not fall", "# TYPE a gauge\na 1 2\na 1 1\n"),
    ("all samples of a metric have a time, or none", "# TYPE a summary\na_count 1 1\na_sum 1\n"),
    ("a bucket has a bound", "# TYPE a histogram\na_bucket 1\n"),
    ("a bound is a number", "# TYPE a histogram\na_bucket{le=\"x\"} 1\na_bucket{le=\"+Inf\"} 1\n"),
    ("the last bucket has no end", "# TYPE a histogram\na_bucket{le=\"1.0\"} 1\na_count 1\na_sum 1\n"),
    ("bounds rise", "# TYPE a histogram\na_bucket{le=\"2.0\"} 1\na_bucket{le=\"1.0\"} 1\na_bucket{le=\"+Inf\"} 1\n"),
    ("counts of buckets rise", "# TYPE a histogram\na_bucket{le=\"1.0\"} 2\na_bucket{le=\"+Inf\"} 1\n"),
    ("the last bucket is the count", "# TYPE a histogram\na_bucket{le=\"+Inf\"} 1\na_count 2\na_sum 1\n"),
    ("a count of a bucket is whole", "# TYPE a histogram\na_bucket{le=\"+Inf\"} 0.5\n"),
    ("a count is not below zero", "# TYPE a histogram\na_bucket{le=\"+Inf\"} -1\n"),
    ("a count comes with a sum", "# TYPE a histogram\na_bucket{le=\"+Inf\"} 1\na_count 1\n"),
    ("a sum comes with a count", "# TYPE a histogram\na_bucket{le=\"+Inf\"} 1\na_sum 1\n"),
    ("a sum of a histogram is not below zero", "# TYPE a histogram\na_bucket{le=\"+Inf\"} 1\na_count 1\na_sum -1\n"),
    ("with bounds below zero there is no sum", "# TYPE a histogram\na_bucket{le=\"-1.0\"} 1\na_bucket{le=\"+Inf\"} 1\na_count 1\na_sum 1\n"),
    ("a quantile is at most 1", "# TYPE a summary\na{quantile=\"1.5\"} 1\n"),
    ("a quantile is a number", "# TYPE a summary\na{quantile=\"x\"} 1\n"),
    ("a sample of a summary has a quantile", "# TYPE a summary\na 1\n"),
    ("a value of a quantile is not below zero", "# TYPE a summary\na{quantile=\"0.5\"} -1\n"),
    ("a sum of a summary is not below zero", "# TYPE a summary\na_sum -1\n"),
    ("a count of a summary is whole", "# TYPE a summary\na_count 1.5\n"),
    ("an info is 1", "# TYPE a info\na_info 2\n"),
    ("a state is 0 or 1", "# TYPE a stateset\na{a=\"on\"} 2\n"),
    ("a state has a name", "# TYPE a stateset\na 1\n"),
];

/// Rules on which the library for Python thinks otherwise, and how.
#[rustfmt::skip]
pub(super) const OTHERWISE: &[(&str, &str)] = &[
    ("a label has no colon", "it is taken, as every name in quotes would be"),
    ("there are no spaces between labels", "they are left out"),
    ("a sample is there once", "the second one is dropped"),
    ("an exemplar has one space around its sign", "a second one before it is left out"),
];

fn page(body: &str) -> String {
    format!("{body}# EOF\n")
}

#[test]
fn the_strict_reader_keeps_every_rule() {
    let mut otherwise = Vec::new();
    for (rule, body) in GOOD {
        if let Err(wrong) = open_metrics::read(&page(body)) {
            otherwise.push(format!("{rule}: {wrong}"));
        }
    }
    for (rule, body) in BAD {
        if let Ok(counts) = open_metrics::read(&page(body)) {
            otherwise.push(format!("{rule}: {counts:?}"));
        }
    }
    assert_eq!(otherwise, Vec::<String>::new());
}

#[test]
fn a_page_has_an_end_and_nothing_after_it() {
    for (page, line) in [
        ("", 1),
        ("a 1\n", 2),
        ("a 1\n# EOF\nb 1\n", 2),
        ("# EOF\n\n", 1),
    ] {
        let wrong = open_metrics::read(page).unwrap_err();
        assert_eq!(wrong.line, line, "{page:?}: {wrong}");
    }
    assert!(open_metrics::read("a 1\n# EOF").is_ok());
}

/// What the library for Python finds wrong with each page.
async fn judged(python: &Python, pages: &[String]) -> Result<Vec<Option<String>>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("pages");
    fs::write(&file, serde_json::to_vec(pages)?)?;
    let mut parser = python.script(include_str!("parse_cases.py"));
    let parser = parser.stdin(File::open(&file)?);
    let output = timeout(prometheus::DEADLINE, parser.output()).await??;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).context("a list")
}

#[tokio::test]
async fn the_library_for_python_agrees_but_where_it_is_listed() -> Result<()> {
    let python = support::python!();
    let cases = || GOOD.iter().chain(BAD);
    let pages: Vec<_> = cases().map(|(_, body)| page(body)).collect();
    let judged = judged(&python, &pages).await?;
    assert_eq!(judged.len(), pages.len());
    let mut otherwise = Vec::new();
    for (number, ((rule, _), wrong)) in cases().zip(&judged).enumerate() {
        let is_good = number < GOOD.len();
        if is_good != wrong.is_none() {
            otherwise.push(*rule);
        }
    }
    let listed: Vec<_> = OTHERWISE.iter().map(|(rule, _)| *rule).collect();
    assert_eq!(otherwise, listed, "{judged:#?}");
    Ok(())
}
