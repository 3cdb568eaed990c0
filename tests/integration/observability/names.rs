//! Names of metrics: which there are, and which a query asks for.

use std::{collections::BTreeSet, fs};

use agents::api::registration::rung::Rung;
use support::fixtures::repository;

/// Shown only while there is something to show, so that no page has it from the start; and the file that registers it.
const SOMETIMES: [(&str, &str, &str); 1] = [(
    "agents_sidecar_job_ttl_headroom_seconds",
    "sidecar/src/jobs/metrics/gauges.rs",
    "\"job_ttl_headroom\"",
)];

/// Words of the language that stand where a name could.
const WORDS: [&str; 5] = ["and", "or", "unless", "bool", "offset"];

/// Words that a list of labels may follow.
const BEFORE_LABELS: [&str; 6] = [
    "by",
    "without",
    "on",
    "ignoring",
    "group_left",
    "group_right",
];

/// What samples of a family are called.
const SAMPLES: [&str; 4] = ["", "_bucket", "_sum", "_count"];

/// Every name under which a program or the API server shows a sample. Recording rules are not among them.
pub(super) fn shown() -> BTreeSet<String> {
    let mut names = promised();
    for (name, file, registered) in SOMETIMES {
        let source = fs::read_to_string(repository().join(file)).unwrap();
        assert!(source.contains(registered), "{name} is not in {file}");
        names.insert(name.to_owned());
    }
    let gates = Rung::ALL.into_iter().flat_map(|rung| rung.gates());
    names.extend(gates.flat_map(|gate| SAMPLES.map(|end| format!("{}{end}", gate.metric))));
    names
}

/// What `docs/compatibility.md` promises; a test of the documents holds it against running programs.
fn promised() -> BTreeSet<String> {
    let document = fs::read_to_string(repository().join("docs/compatibility.md")).unwrap();
    let mut names = BTreeSet::new();
    for section in document.split("\n## ") {
        let title = section.lines().next().unwrap_or_default();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
        let rows = rows.filter_map(|row| row.split_once('`'));
        if title.starts_with("Metrics of ") {
            names.extend(rows.flat_map(|(name, rest)| samples(name, rest)));
        } else if title == "Shared names: metric" {
            names.extend(rows.flat_map(|(name, _)| pushed(name)));
        }
    }
    assert!(names.len() > 200, "found only {} names", names.len());
    names
}

/// Samples of a family of a page.
fn samples(name: &str, rest: &str) -> Vec<String> {
    let ends = match rest.contains("| histogram:") {
        true => &SAMPLES[1..],
        false => &SAMPLES[..1],
    };
    ends.iter().map(|end| format!("{name}{end}")).collect()
}

/// What a metric that is pushed may be called on a page, by its type and unit; only a page says which of these it is.
fn pushed(name: &str) -> Vec<String> {
    let name = name.replace('.', "_");
    let families = ["", "_total", "_seconds"].map(|end| format!("{name}{end}"));
    let families = families.iter();
    families
        .flat_map(|family| SAMPLES.map(|end| format!("{family}{end}")))
        .collect()
}

/// The names of metrics that a query asks for.
pub(crate) fn asked(query: &str) -> BTreeSet<String> {
    let text = blanked(query);
    let mut found = BTreeSet::new();
    let mut rest = text.as_str();
    while let Some(start) =
        rest.find(|letter: char| letter.is_ascii_alphanumeric() || letter == '_')
    {
        let word = &rest[start..];
        let end = word
            .find(|letter: char| !(letter.is_ascii_alphanumeric() || "_:.".contains(letter)))
            .unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        rest = after;
        let follows = |start: &str| after.trim_start().starts_with(start);
        let is_called = ["(", "by (", "without ("].into_iter().any(follows);
        let is_number = word.starts_with(|letter: char| letter.is_ascii_digit());
        if BEFORE_LABELS.contains(&word) {
            rest = without_labels(after);
        } else if !is_called && !is_number && !WORDS.contains(&word) {
            found.insert(word.to_owned());
        }
    }
    found
}

/// The query without what stands in quotes, braces and brackets.
fn blanked(query: &str) -> String {
    let (mut kept, mut depth, mut quote) = (String::new(), 0_u32, None);
    let mut letters = query.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(_), '\\') => drop(letters.next()),
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '{' | '[') => depth += 1,
            (None, '}' | ']') => depth = depth.saturating_sub(1),
            (None, _) if depth == 0 => kept.push(letter),
            (None, _) => {}
        }
    }
    kept
}

/// What follows a list of labels, such as that of `by (a, b)`; all of it if there is no list.
fn without_labels(text: &str) -> &str {
    let rest = text.trim_start();
    let list = rest.strip_prefix('(').and_then(|list| list.split_once(')'));
    let is_list = |labels: &str| {
        labels
            .chars()
            .all(|letter| letter.is_alphanumeric() || "_, ".contains(letter))
    };
    match list {
        Some((labels, after)) if is_list(labels) => after,
        _ => text,
    }
}

#[test]
fn names_are_found_in_queries() {
    for (query, names) in [
        ("up", vec!["up"]),
        (
            "sum by (a, b) (rate(x_total{y=\"z\"}[5m])) / on (a) group_left () (q:r:s > bool 0.5)",
            vec!["q:r:s", "x_total"],
        ),
        (
            "absent(a) or (b unless on (c) d offset 1h) and (e)",
            vec!["a", "b", "d", "e"],
        ),
        (
            "histogram_quantile(0.99, sum by (le) (rate(h_bucket{c=~\"d}e\\\"f\"}[$__rate_interval]))) - time()",
            vec!["h_bucket"],
        ),
        (
            "label_replace(a, \"b\", \"c\", \"\", \"\") == 1e3",
            vec!["a"],
        ),
    ] {
        let expected: BTreeSet<_> = names.into_iter().map(str::to_owned).collect();
        assert_eq!(asked(query), expected, "{query}");
    }
}
