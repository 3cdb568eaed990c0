//! `docs/conformance.md`: no number in it is written by hand.

use std::fs;

use support::fixtures::repository;

use super::bind_parts;
use crate::sidecar::conformance::document::{Suite, differences, shown};

/// Tables of vectors beside the code that they are of: what they are, how many, the file, and the test that says so.
const TABLES: &[(&str, &str, &str)] = &[
    (
        "Names of metrics, as the translator of Prometheus makes them",
        "sidecar/src/names/metric/tests.rs",
        "a_metric_is_called_as_in_the_translator_of_prometheus",
    ),
    (
        "Names of labels, the same, each under 4 settings",
        "sidecar/src/names/label.rs",
        "a_label_is_called_as_in_the_translator_of_prometheus",
    ),
    (
        "Escaping of names, as the library of Prometheus does it, each under 4 schemes",
        "sidecar/src/names/escape.rs",
        "a_name_is_escaped_as_in_the_library_of_prometheus",
    ),
    (
        "`Accept` headers and the format that answers",
        "sidecar/src/expose/accept.rs",
        "the_answer_follows_the_accept_header",
    ),
    (
        "Numbers in OTLP/JSON, in every form that is allowed",
        "sidecar/src/otlp/json/tests.rs",
        "numbers_are_read_in_every_form_that_is_allowed",
    ),
    (
        "Doubles in OTLP/JSON, in every form, each in 12 places",
        "sidecar/src/otlp/json/tests.rs",
        "doubles_are_read_in_every_form_wherever_they_stand",
    ),
    (
        "Two values in OTLP/JSON where one may stand",
        "sidecar/src/otlp/json/tests.rs",
        "of_two_values_the_last_one_counts",
    ),
    (
        "Enumerations in OTLP/JSON, by number and by name",
        "sidecar/src/otlp/json/tests.rs",
        "an_enumeration_is_a_number_and_what_is_missing_is_its_default",
    ),
    (
        "OTLP/JSON that is unknown or null",
        "sidecar/src/otlp/json/tests.rs",
        "what_is_unknown_or_null_is_as_if_it_were_not_there",
    ),
    (
        "OTLP/JSON that is refused, by name",
        "sidecar/src/otlp/json/tests.rs",
        "what_is_wrong_is_named",
    ),
    (
        "Bytes in OTLP/JSON as base64, of both alphabets, padded or not",
        "sidecar/src/otlp/json/tests.rs",
        "ids_are_hexadecimal_and_other_bytes_base64",
    ),
    (
        "Event streams of the web platform tests, each at every chunk size",
        "sidecar/src/sse/parse/tests.rs",
        "all_vectors_of_the_web_platform_hold_at_every_chunk_size",
    ),
];

/// How many vectors a test says that it has: the first `.len(), N` in it.
fn counted(source: &str, test: &str) -> Option<usize> {
    let (_, body) = source.split_once(&format!("fn {test}()"))?;
    let (_, number) = body.split_once(".len(), ")?;
    number.split_once(')')?.0.parse().ok()
}

fn tables() -> Vec<Suite> {
    let of_table = |&(what, file, test): &(&str, &str, &str)| {
        let source = fs::read_to_string(repository().join(file)).expect(file);
        Suite {
            what: what.to_owned(),
            vectors: counted(&source, test).unwrap_or_else(|| panic!("{test} counts nothing")),
            place: format!("`{file}`: `{test}`"),
        }
    };
    TABLES.iter().map(of_table).collect()
}

/// A row for each suite. A vector that fails fails its test, so all that are counted pass.
fn table(suites: &[Suite]) -> String {
    let rows = suites.iter().map(|suite| {
        let Suite {
            what,
            vectors,
            place,
        } = suite;
        format!("| {what} | {vectors} | {vectors} | {place} |\n")
    });
    let rows: String = rows.collect();
    format!("| what | vectors | passed | test |\n| --- | --- | --- | --- |\n{rows}")
}

#[test]
fn the_page_of_conformance_says_what_tests_count() {
    let parts = [
        ("others", table(&shown())),
        ("tables", table(&tables())),
        ("differences", differences()),
    ];
    bind_parts("docs/conformance.md", &parts);
    // Modules of Prometheus are numbered otherwise: 0.315 is version 3.15.
    let read = |file: &str| fs::read_to_string(repository().join(file)).expect(file);
    let pins = read("tests/tools/prometheus/go.mod");
    let (_, version) = pins
        .split_once("github.com/prometheus/prometheus v0.")
        .expect("a version");
    let said = format!("(3.{}, from the lab)", &version[1..3]);
    assert!(read("docs/conformance.md").contains(&said), "{said}");
}

/// A place in the page is one that there is.
#[test]
fn every_test_of_the_page_of_conformance_is_there() {
    for suite in shown().iter().chain(&tables()) {
        let names: Vec<&str> = suite.place.split('`').skip(1).step_by(2).collect();
        let [file, test] = names[..] else {
            panic!("{} is not a file and a test", suite.place);
        };
        let source = fs::read_to_string(repository().join(file)).expect(file);
        assert!(
            source.contains(&format!("fn {test}()")),
            "{test} is not in {file}"
        );
    }
}

#[test]
fn a_count_is_found_within_its_test() {
    let source = "fn a() { assert_eq!(X.len(), 3); }\nfn b() { assert_eq!(y.len(), 12); }";
    assert_eq!(counted(source, "b"), Some(12));
    assert_eq!(counted(source, "a"), Some(3));
    assert_eq!(counted(source, "c"), None);
}
