//! A report for programs.

use serde::Serialize;

use super::report::{Count, Fault, Finding, Judged, Report, Whose};

/// Changes with every change of the form that a reader could notice.
const FORMAT: &str = "agents.check/v1";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Whole<'a> {
    format: &'static str,
    policy: &'a str,
    summary: Summary,
    findings: Vec<Entry<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    files: usize,
    objects: usize,
    refused: usize,
    errors: usize,
    warnings: usize,
    notes: usize,
    unreadable: usize,
    passed_over: usize,
}

/// One finding, wherever it is from.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry<'a> {
    level: &'static str,
    file: &'a str,
    line: usize,
    column: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    message: &'a str,
}

impl<'a> Entry<'a> {
    /// A finding about an object.
    pub(crate) fn of(report: &'a Report, judged: &'a Judged, finding: &'a Finding) -> Self {
        let Whose {
            kind,
            namespace,
            name,
        } = &judged.whose;
        Self {
            level: finding.level.as_str(),
            file: report.source_name(judged.source),
            line: finding.place.line,
            column: finding.place.column,
            kind: Some(kind),
            namespace: Some(namespace),
            name: name.as_deref(),
            rule: Some(finding.rule),
            reason: finding.reason,
            field: Some(&finding.field),
            message: &finding.message,
        }
    }

    fn of_fault(report: &'a Report, fault: &'a Fault) -> Self {
        let whose = fault.whose.as_ref();
        Self {
            level: "error",
            file: report.source_name(fault.source),
            line: fault.place.line,
            column: fault.place.column,
            kind: whose.map(|whose| &*whose.kind),
            namespace: whose.map(|whose| &*whose.namespace),
            name: whose.and_then(|whose| whose.name.as_deref()),
            rule: None,
            reason: fault.reason,
            field: None,
            message: &fault.message,
        }
    }
}

/// The report as JSON.
///
/// # Errors
///
/// Never, as far as anyone knows: everything in here can be written as JSON.
pub(crate) fn json(report: &Report) -> serde_json::Result<String> {
    let Count {
        errors,
        warnings,
        notes,
    } = report.count();
    let faults = report.faults.iter();
    let mut findings: Vec<Entry<'_>> = faults.map(|fault| Entry::of_fault(report, fault)).collect();
    for judged in &report.judged {
        let found = judged.findings.iter();
        findings.extend(found.map(|finding| Entry::of(report, judged, finding)));
    }
    let refused = report.judged.iter().filter(|judged| judged.is_refused());
    let whole = Whole {
        format: FORMAT,
        policy: &report.policy,
        summary: Summary {
            files: report.sources.len(),
            objects: report.judged.len(),
            refused: refused.count(),
            errors,
            warnings,
            notes,
            unreadable: report.faults.len(),
            passed_over: report.others,
        },
        findings,
    };
    Ok(serde_json::to_string_pretty(&whole)? + "\n")
}
