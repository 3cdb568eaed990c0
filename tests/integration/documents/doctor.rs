//! The part of `docs/doctor.md` that is made from the checks, and whether everything that a check names is there.

use std::{collections::BTreeSet, fs};

use agents::cli::doctor::page;
use support::fixtures::repository;

use super::bind_parts;
use crate::observability::{rules, runbooks::anchor};

#[test]
fn the_document_of_the_doctor_shows_every_check() {
    bind_parts("docs/doctor.md", &[("checks", page::checks())]);
}

#[test]
fn every_link_of_a_check_leads_to_a_file_and_a_heading() {
    let links = page::links();
    assert!(links.len() > 25, "found only {} checks", links.len());
    for (check, link) in links {
        let (file, wanted) = link.split_once('#').unwrap_or((link, ""));
        let text = fs::read_to_string(repository().join(file));
        let text = text.unwrap_or_else(|error| panic!("{check}: {file}: {error}"));
        let mut headings = text.lines().filter(|line| line.starts_with('#'));
        let found = wanted.is_empty() || headings.any(|heading| anchor(heading) == wanted);
        assert!(found, "{check}: {file} has no heading {wanted}");
    }
}

#[test]
fn every_alert_of_the_chart_can_be_asked_about() {
    let runbooks = page::runbooks();
    let known: BTreeSet<String> = runbooks.keys().map(|name| (*name).to_owned()).collect();
    assert_eq!(known, rules::alerts());
    for file in runbooks.values() {
        assert!(repository().join(file).is_file(), "{file}");
    }
}
