//! A report for programs.

use serde::Serialize;

use super::report::{Count, Report, Wanted};
use crate::cli::failure::Failure;
use crate::cli::shown::document;

/// Changes with every change of the form that a reader could notice.
const FORMAT: &str = "agents.doctor/v1";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Whole {
    format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    alert: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runbook: Option<String>,
    summary: Summary,
    checks: Vec<Entry>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    ok: usize,
    warnings: usize,
    failed: usize,
    unknown: usize,
    skipped: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    category: &'static str,
    check: &'static str,
    title: &'static str,
    result: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    see: Option<&'static str>,
}

/// The report as JSON.
///
/// # Errors
///
/// Never, as far as anyone knows: everything in here can be written as JSON.
pub(crate) fn json(report: &Report) -> Result<String, Failure> {
    let Count {
        good,
        warnings,
        failed,
        unknown,
        skipped,
    } = report.count();
    let alert = match report.wanted {
        Wanted::Alert(alert) => Some(alert),
        Wanted::Before | Wanted::After => None,
    };
    let checks = report.parts.iter().flat_map(|(category, done)| {
        done.iter().map(move |done| {
            let is_finding = done.verdict.is_finding();
            Entry {
                category,
                check: done.check.id,
                title: done.check.title,
                result: done.verdict.as_str(),
                message: done.verdict.text().to_owned(),
                hint: is_finding.then_some(done.check.hint),
                see: is_finding.then_some(done.check.link),
            }
        })
    });
    let whole = Whole {
        format: FORMAT,
        alert: alert.map(|alert| alert.name),
        runbook: alert.map(|alert| alert.runbook()),
        summary: Summary {
            ok: good,
            warnings,
            failed,
            unknown,
            skipped,
        },
        checks: checks.collect(),
    };
    document(&whole, false)
}
