//! The table of the webhook: what `kubectl` printed in front of a real API server is what `check` says without one.

use std::collections::BTreeMap;

use serde_json::Value;

use super::*;
use crate::admission::question::question;
use crate::api::kind::Kind;
use crate::cli::check::document::Place;
use crate::cli::check::input::{stance, told};
use crate::cli::check::judge::{Law, pass};
use crate::cli::check::report::Finding;
use crate::cli::check::source::Source;

const CASES: &str = "tests/fixtures/admission";
/// Files of a folder that are no case.
const NO_CASE: [&str; 3] = ["policy", "standing", "known"];

/// What was printed for one case.
struct Expected {
    refused: Option<Vec<String>>,
    causes: Vec<String>,
    warnings: Vec<String>,
}

fn expected(folder: &Path) -> BTreeMap<String, Expected> {
    let text = fs::read_to_string(folder.join("expected.txt")).unwrap();
    text.split_inclusive("\n\n").map(one_expected).collect()
}

fn one_expected(block: &str) -> (String, Expected) {
    let (head, said) = block.split_once('\n').unwrap();
    let (name, verdict) = head.strip_prefix("# ").unwrap().split_once(": ").unwrap();
    let reasons = verdict.strip_prefix("refused, ");
    let mut expected = Expected {
        refused: reasons.map(|reasons| reasons.split(", ").map(str::to_owned).collect()),
        causes: Vec::new(),
        warnings: Vec::new(),
    };
    for line in said.lines().filter(|line| !line.is_empty()) {
        if let Some(warning) = line.strip_prefix("Warning: ") {
            expected.warnings.push(warning.to_owned());
        } else if let Some(cause) = line.strip_prefix("* ") {
            expected.causes.push(cause.to_owned());
        } else if let Some((_, cause)) = line.split_once(" is invalid: ") {
            expected
                .causes
                .extend(Some(cause.to_owned()).filter(|cause| !cause.is_empty()));
        }
    }
    (name.to_owned(), expected)
}

fn source(text: String) -> Source {
    Source {
        name: "a.yaml".to_owned(),
        text,
    }
}

/// What a case says, by folder and name.
struct Said {
    reasons: Vec<String>,
    causes: Vec<String>,
    warnings: Vec<String>,
}

fn said(findings: &[Finding]) -> Said {
    let lines = |level: Level| {
        let found = findings
            .iter()
            .filter(move |finding| finding.level == level);
        found.map(|finding| format!("{}: {}", finding.field, finding.message))
    };
    let mut reasons: Vec<String> = Vec::new();
    for finding in findings
        .iter()
        .filter(|finding| finding.level == Level::Error)
    {
        if !reasons.iter().any(|reason| reason == finding.reason) {
            reasons.push(finding.reason.to_owned());
        }
    }
    Said {
        reasons,
        causes: lines(Level::Error).collect(),
        warnings: lines(Level::Warning).collect(),
    }
}

/// Everything that stands when a case begins, as one text.
fn standing(folder: &Path) -> String {
    let roots = [Path::new(CASES), folder].into_iter();
    let texts = roots.filter_map(|root| fs::read_to_string(root.join("standing.yaml")).ok());
    texts.collect::<Vec<_>>().join("\n---\n")
}

/// Stored objects: applied one over the other, statuses merged.
fn applied(before: &[Value]) -> Vec<Value> {
    let mut stored: Vec<Value> = Vec::new();
    for document in before {
        let same = |other: &&mut Value| {
            other["kind"] == document["kind"]
                && other["metadata"]["name"] == document["metadata"]["name"]
        };
        match stored.iter_mut().find(same) {
            None => stored.push(document.clone()),
            Some(old) if document.get("spec").is_some() => old["spec"] = document["spec"].clone(),
            Some(old) => merge(&mut old["status"], &document["status"]),
        }
    }
    stored
}

fn merge(old: &mut Value, new: &Value) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (name, value) in new {
                merge(old.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (old, new) => old.clone_from(new),
    }
}

/// The findings of a case: its last document, after those before it have been applied.
fn findings(folder: &Path, in_force: &InForce, documents: &[Value]) -> Vec<Finding> {
    let (last, before) = documents.split_last().unwrap();
    let mut stands = vec![source(standing(folder))];
    stands.extend(applied(before).iter().map(|it| source(it.to_string())));
    let input = Input::new(vec![source(last.to_string())], Some(&stands), "NAMESPACE");
    if last["kind"] != "Job" && last.get("spec").is_some() {
        let mut report = input.report(in_force);
        assert_eq!(report.faults, []);
        return report.judged.remove(0).findings;
    }
    let review = match last["kind"] == "Job" {
        true => deletion(last),
        false => status_write(&applied(before), last),
    };
    let stance = stance();
    let law = Law {
        in_force,
        known: &input.known,
        stance: &stance,
        now: input.now,
    };
    told(&pass(law, review).unwrap(), |_| Place::default())
}

/// The review of a merge patch of the status.
fn status_write(stored: &[Value], last: &Value) -> Value {
    let kind = Kind::ALL
        .into_iter()
        .find(|kind| last["kind"] == kind.as_str())
        .unwrap();
    let mut old = stored.last().unwrap().clone();
    old["metadata"]["generation"] = 1.into();
    let mut new = old.clone();
    merge(&mut new["status"], &last["status"]);
    let mut review = question(kind, "NAMESPACE", &new, Some(&old));
    review["request"]["subResource"] = "status".into();
    review
}

fn deletion(job: &Value) -> Value {
    let mut review = question(Kind::Agent, "NAMESPACE", job, Some(job));
    let request = &mut review["request"];
    request["object"] = Value::Null;
    request["operation"] = "DELETE".into();
    request["kind"] = serde_json::json!({"group": "batch", "version": "v1", "kind": "Job"});
    request["resource"] =
        serde_json::json!({"group": "batch", "version": "v1", "resource": "jobs"});
    review
}

/// Whether a warning is this one, which the API server may have cut.
fn is_warning(printed: &str, own: &str) -> bool {
    match printed.strip_suffix("...") {
        Some(start) => own.starts_with(start),
        None => own == printed,
    }
}

#[test]
fn the_verdict_is_that_of_the_live_webhook_for_every_case() {
    let (mut count, mut wrong) = (0, Vec::new());
    for entry in fs::read_dir(CASES).unwrap() {
        let folder = entry.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        let file = folder.join("policy.yaml");
        let in_force = policy(file.is_file().then_some(&*file)).unwrap();
        for (name, expected) in expected(&folder) {
            let file = folder.join(&name).with_extension("yaml");
            assert!(!NO_CASE.contains(&&*name));
            let text = fs::read_to_string(file).unwrap();
            let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
            let said = said(&findings(&folder, &in_force, &documents));
            count += 1;
            let mut printed = expected.causes.clone();
            let mut own = said.causes.clone();
            printed.sort_unstable();
            own.sort_unstable();
            let same_warnings = expected.warnings.len() == said.warnings.len()
                && expected
                    .warnings
                    .iter()
                    .all(|printed| said.warnings.iter().any(|own| is_warning(printed, own)));
            let mut reasons = expected.refused.clone().unwrap_or_default();
            let mut own_reasons = said.reasons.clone();
            reasons.sort_unstable();
            own_reasons.sort_unstable();
            if printed != own || !same_warnings || reasons != own_reasons {
                wrong.push(format!(
                    "{}/{name}:\n  printed {reasons:?} {printed:?} {:?}\n  check   {own_reasons:?} {own:?} {:?}",
                    folder.display(), expected.warnings, said.warnings
                ));
            }
        }
    }
    assert!(count >= 150, "only {count} cases");
    assert!(
        wrong.is_empty(),
        "{} of {count} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
