//! Names that cross a process stand in `src/api/contract.rs` and nowhere else.

use std::collections::BTreeSet;

use super::reading::{files, sources};

/// Where the names are.
const CONTRACT: &str = "src/api/contract.rs";

/// Names that happen to be written like one of them: what starts the line, and in which file.
const OTHERS: &[(&str, &str)] = &[
    // The macro that makes a kind takes nothing but literals; the CRDs are compared with the constants.
    ("src/api/kinds/", "group = "),
    ("src/api/kinds/", "version = "),
    // A program has the name under which it writes.
    ("src/controller.rs", "program: "),
];

/// What the constants of the contract say.
fn values() -> BTreeSet<String> {
    let contract = files("src/api")
        .into_iter()
        .find(|(name, _)| name == CONTRACT);
    let (_, text) = contract.expect("a contract");
    let constants = text.split("pub const ").skip(1);
    let values = constants.filter_map(|rest| {
        let (_, value) = rest.split(';').next()?.split_once(": &str =")?;
        Some(value.trim().trim_matches('"').to_owned())
    });
    values.collect()
}

/// Whether a value is an everyday word, which stands for many things.
fn is_word(value: &str) -> bool {
    value.chars().all(|letter| letter.is_ascii_lowercase())
}

/// Lines of product code that have one of these texts.
fn lines_with(texts: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let product = ["src", "webhook/src", "sidecar/src"].map(sources);
    for (name, text) in product.iter().flatten() {
        for (number, line) in text.lines().map(str::trim).enumerate() {
            let other =
                |(file, start): &(&str, &str)| name.starts_with(file) && line.starts_with(start);
            let is_there = texts.iter().any(|text| line.contains(text));
            if is_there && name != CONTRACT && !OTHERS.iter().any(other) {
                found.push(format!("{name}:{}: {line}", number + 1));
            }
        }
    }
    found
}

#[test]
fn a_name_that_crosses_a_process_is_written_once() {
    let values = values();
    assert!(values.len() > 200, "found only {} names", values.len());
    let distinct = values.iter().filter(|value| !is_word(value));
    let literals: Vec<_> = distinct.map(|value| format!("\"{value}\"")).collect();
    assert_eq!(lines_with(&literals), Vec::<String>::new());
}

#[test]
fn the_type_of_an_event_is_written_once() {
    let values = values();
    let words: Vec<_> = values.iter().filter(|value| is_word(value)).collect();
    assert!(words.contains(&&"dropped".to_owned()), "{words:?}");
    let types: Vec<_> = words
        .iter()
        .map(|word| format!("\"type\": \"{word}\""))
        .collect();
    assert_eq!(lines_with(&types), Vec::<String>::new());
}
