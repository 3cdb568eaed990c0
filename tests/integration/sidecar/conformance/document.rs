//! What the tests beside this show, counted, for `docs/conformance.md`.

use super::{STRATEGIES, clients, formats, open_metrics, own_endpoint, parsers};

/// Something that is shown.
#[derive(Debug)]
pub(crate) struct Suite {
    pub(crate) what: String,
    pub(crate) vectors: usize,
    /// The file and the test.
    pub(crate) place: String,
}

/// Everything that other programs are asked about.
pub(crate) fn shown() -> Vec<Suite> {
    let suite = |what: String, vectors, file: &str, test: &str| Suite {
        what,
        vectors,
        place: format!("`tests/integration/sidecar/{file}`: `{test}`"),
    };
    let (pages, samples) = formats::counts();
    let strategies = STRATEGIES.len();
    let mut suites = vec![
        suite(
            format!(
                "Samples that Prometheus stores from {pages} pages: {} formats with their escapings",
                formats::FORMATS.len()
            ),
            samples,
            "conformance/formats.rs",
            "every_format_with_every_escaping_brings_what_was_sent",
        ),
        suite(
            "Exemplars and start times of series on the same pages".to_owned(),
            formats::examples_and_starts(),
            "conformance/formats.rs",
            "exemplars_and_starts_come_where_the_format_has_them",
        ),
        suite(
            format!(
                "Metrics and histograms that are stored as through the OTLP endpoint of Prometheus, or as the specification says where that errs, under {strategies} strategies"
            ),
            own_endpoint::compared() * strategies,
            "conformance/own_endpoint.rs",
            "the_same_is_stored_as_through_the_endpoint_of_prometheus",
        ),
        suite(
            "Pages that `promtool check metrics` can read, with nothing to say about our own names"
                .to_owned(),
            strategies,
            "conformance/parsers.rs",
            "promtool_finds_nothing_wrong_with_the_page",
        ),
        suite(
            format!(
                "Samples of a large page that Prometheus stores in {} formats",
                formats::FORMATS.len()
            ),
            parsers::SAMPLES * formats::FORMATS.len(),
            "conformance/parsers.rs",
            "a_large_page_is_stored_whole_in_every_format",
        ),
        suite(
            format!(
                "Pages of over {} series that the strict parser for Python reads whole",
                parsers::SERIES
            ),
            parsers::PAGES.len() * parsers::STRATEGIES.len(),
            "conformance/parsers.rs",
            "a_large_page_is_read_by_the_strict_parser_for_python",
        ),
    ];
    suites
        .extend(rules_of_open_metrics().map(|(what, vectors, test)| {
            suite(what, vectors, "conformance/open_metrics.rs", test)
        }));
    suites.extend(clients::CLIENTS.iter().map(|(language, ways, test)| {
        let what = format!(
            "Ways of the SDK for {language}, read back from Prometheus: {}",
            ways.join(", ")
        );
        suite(what, ways.len(), "conformance/clients.rs", test)
    }));
    suites.push(suite(
        "JSON that is not quite OTLP: enumerations by name, numbers as text, a histogram without bounds".to_owned(),
        1,
        "otlp.rs",
        "json_that_is_not_quite_as_it_should_be_is_taken_and_refusals_are_told",
    ));
    suites
}

fn rules_of_open_metrics() -> [(String, usize, &'static str); 2] {
    let (good, bad) = (open_metrics::GOOD.len(), open_metrics::BAD.len());
    let otherwise = open_metrics::OTHERWISE.len();
    [
        (
            format!(
                "Rules of OpenMetrics 1.0, {good} kept and {bad} broken, as our strict reader sees them"
            ),
            good + bad,
            "the_strict_reader_keeps_every_rule",
        ),
        (
            format!(
                "The same as the strict parser for Python sees them; {otherwise} it sees otherwise"
            ),
            good + bad - otherwise,
            "the_library_for_python_agrees_but_where_it_is_listed",
        ),
    ]
}

/// Where Prometheus stores something else of the same data.
pub(crate) fn differences() -> String {
    let rows = own_endpoint::DIFFERENCES.iter();
    let rows: String = rows
        .map(|(what, ours, theirs)| format!("| {what} | {ours} | {theirs} |\n"))
        .collect();
    format!("| what | through the sidecar | through the endpoint |\n| --- | --- | --- |\n{rows}")
}
