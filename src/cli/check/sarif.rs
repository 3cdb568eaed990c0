//! A report as SARIF 2.1.0, which forges show beside the lines of a change.

use std::collections::BTreeSet;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Value, json};

use super::document::Place;
use super::report::{Finding, Judged, Report};
use crate::api::text::hash::text_hash;

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// What a path may not hold as it is.
const NOT_IN_A_PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b']')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// The report as SARIF.
///
/// # Errors
///
/// Never, as far as anyone knows: everything in here can be written as JSON.
pub(crate) fn sarif(report: &Report) -> serde_json::Result<String> {
    let mut reasons: BTreeSet<&str> = report.faults.iter().map(|fault| fault.reason).collect();
    let found = report.judged.iter().flat_map(|judged| &judged.findings);
    reasons.extend(found.map(|finding| finding.reason));
    let rules: Vec<&str> = reasons.into_iter().collect();
    let results = results(report, &rules);
    let whole = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "agents",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules.iter().map(|reason| rule(reason)).collect::<Vec<Value>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
            "properties": {"policy": report.policy},
        }],
    });
    Ok(serde_json::to_string_pretty(&whole)? + "\n")
}

fn rule(reason: &str) -> Value {
    json!({"id": reason, "name": reason, "shortDescription": {"text": words(reason)}})
}

/// A word of the API as people would write it: `ImageNotAllowed` is "Image not allowed".
fn words(reason: &str) -> String {
    let mut text = String::new();
    for (index, letter) in reason.chars().enumerate() {
        if index > 0 && letter.is_uppercase() {
            text.push(' ');
            text.extend(letter.to_lowercase());
        } else {
            text.push(letter);
        }
    }
    text
}

fn results(report: &Report, rules: &[&str]) -> Vec<Value> {
    let index = |reason: &str| rules.iter().position(|rule| *rule == reason);
    let mut results: Vec<Value> = report
        .faults
        .iter()
        .map(|fault| {
            json!({
                "ruleId": fault.reason,
                "ruleIndex": index(fault.reason),
                "level": "error",
                "message": {"text": fault.message},
                "locations": [{"physicalLocation": physical(report, fault.source, fault.place)}],
            })
        })
        .collect();
    for judged in &report.judged {
        let found = judged.findings.iter();
        results.extend(found.map(|finding| result(report, judged, finding, index(finding.reason))));
    }
    results
}

fn result(report: &Report, judged: &Judged, finding: &Finding, index: Option<usize>) -> Value {
    let whose = judged.whose.to_string();
    let message = match finding.field.is_empty() {
        true => format!("{whose}: {}", finding.message),
        false => format!("{whose}: {}: {}", finding.field, finding.message),
    };
    let logical = format!("{whose} {}", finding.field);
    json!({
        "ruleId": finding.reason,
        "ruleIndex": index,
        "level": finding.level.as_str(),
        "message": {"text": message},
        "locations": [{
            "physicalLocation": physical(report, judged.source, finding.place),
            "logicalLocations": [{"fullyQualifiedName": logical.trim_end()}],
        }],
        // The same fault of the same object is known again when its line has moved.
        "partialFingerprints": {"cause/v1": text_hash(&format!("{logical} {}", finding.reason))},
        "properties": {"rule": finding.rule},
    })
}

fn physical(report: &Report, source: usize, place: Place) -> Value {
    let name = report.source_name(source).replace('\\', "/");
    let name = name.strip_prefix("./").unwrap_or(&name);
    let uri = match name.starts_with('/') {
        true => format!("file://{}", encoded(name)),
        false => encoded(name),
    };
    let mut region = json!({"startLine": place.line.max(1), "startColumn": place.column.max(1)});
    if let (true, Some(fields)) = (place.width > 0, region.as_object_mut()) {
        let end = place.column.max(1) + place.width;
        fields.insert("endColumn".to_owned(), end.into());
    }
    json!({"artifactLocation": {"uri": uri}, "region": region})
}

fn encoded(path: &str) -> String {
    utf8_percent_encode(path, NOT_IN_A_PATH).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_reads_as_a_sentence() {
        assert_eq!(words("ImageNotAllowed"), "Image not allowed");
        assert_eq!(words("Required"), "Required");
    }

    #[test]
    fn a_path_can_hold_anything() {
        assert_eq!(encoded("a b/ä#?.yaml"), "a%20b/%C3%A4%23%3F.yaml");
    }
}
