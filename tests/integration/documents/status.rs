//! The parts of `docs/status.md` and `docs/events.md` that are made from the sources.

use agents::api::condition::{ConditionType, Health, Lifecycle};
use agents::api::kind::Kind;
use agents::api::phase::{Phase, PhaseModel, model};
use agents::events::{Reason, Severity};
use std::collections::BTreeSet;
use std::fs;
use support::fixtures::repository;

use super::bind_parts;

#[test]
fn the_status_document_shows_every_phase_kind_and_condition() {
    let parts = [
        ("phases", phases()),
        ("kinds", kinds()),
        ("conditions", conditions()),
        ("health", health()),
    ];
    bind_parts("docs/status.md", &parts);
}

#[test]
fn the_document_of_events_shows_every_reason() {
    let mut text = "| Reason | Type | While | Meaning |\n|---|---|---|---|\n".to_owned();
    for reason in Reason::ALL {
        let (severity, action) = (reason.severity(), reason.action());
        text += &format!(
            "| `{reason}` | {severity} | `{action}` | {} |\n",
            reason.meaning()
        );
    }
    bind_parts("docs/events.md", &[("reasons", text)]);
}

#[test]
fn the_document_of_events_says_what_to_do_about_every_warning() {
    let document = fs::read_to_string(repository().join("docs/events.md")).unwrap();
    let (_, rows) = document.split_once("\n## What to do\n").expect("a section");
    // The words of the first column, each between two marks.
    let first = rows.lines().filter_map(|row| row.split('|').nth(1));
    let told: BTreeSet<&str> = first
        .flat_map(|reasons| reasons.split('`').skip(1).step_by(2))
        .collect();
    let warnings = Reason::ALL.iter();
    let warnings = warnings.filter(|reason| reason.severity() == Severity::Warning);
    let silent: Vec<_> = warnings
        .filter(|reason| !told.contains(reason.as_str()))
        .collect();
    assert!(
        silent.is_empty(),
        "docs/events.md does not say what to do about {silent:?}"
    );
    let unknown: Vec<_> = told
        .iter()
        .filter(|word| Reason::parse(word).is_none())
        .collect();
    assert!(
        unknown.is_empty(),
        "docs/events.md has rows for no reason: {unknown:?}"
    );
}

fn phases() -> String {
    let mut text =
        "| Phase | Meaning | Condition that is `True` | `startedAt` | `finishedAt` | May become |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for phase in Phase::ALL {
        let condition = phase.terminal_condition();
        let condition = condition.map_or("".to_owned(), |condition| format!("`{condition}`"));
        let (started, finished) = match (phase, phase.is_terminal()) {
            (Phase::Pending, _) => ("not yet", "no"),
            (Phase::Running, _) => ("set", "no"),
            (_, true) => ("if it ever worked", "set"),
            (_, false) => ("", "no"),
        };
        let next = Phase::ALL.iter();
        let next = next.filter(|next| **next != *phase && phase.may_become(**next));
        let next: Vec<_> = next.map(|next| format!("`{next}`")).collect();
        let next = match next.is_empty() {
            true => "nothing else".to_owned(),
            false => next.join(", "),
        };
        text += &format!(
            "| `{phase}` | {} | {condition} | {started} | {finished} | {next} |\n",
            phase.meaning()
        );
    }
    text
}

fn kinds() -> String {
    let of = |wanted: PhaseModel| {
        let kinds = Kind::ALL.iter().filter(|kind| model(**kind) == wanted);
        let kinds: Vec<_> = kinds.map(|kind| kind.as_str()).collect();
        kinds.join(", ")
    };
    format!(
        "| Kinds | Phase |\n|---|---|\n\
        | {} | one of the phases above, with `startedAt` and `finishedAt` |\n\
        | {} | says whether the object can be used; it is there until someone deletes it |\n\
        | {} | none; the conditions say everything |\n",
        of(PhaseModel::Run),
        of(PhaseModel::Standing),
        of(PhaseModel::None)
    )
}

fn conditions() -> String {
    let mut text = "| Type | Meaning |\n|---|---|\n".to_owned();
    for type_ in ConditionType::ALL {
        text += &format!("| `{type_}` | {} |\n", type_.meaning());
    }
    text
}

/// How the five conditions stand that follow from the others.
fn health() -> String {
    let all = [
        ("does what it is for", Health::Ready),
        ("is on its way", Health::Progressing),
        ("needs someone", Health::Degraded),
        ("the facts say nothing", Health::Unknown),
    ];
    let mut text = "| The object |".to_owned();
    for shown in Health::Ready.conditions(Lifecycle::Reconciled.into(), "") {
        text += &format!(" `{}` |", shown.type_);
    }
    text += "\n|---|---|---|---|---|---|\n";
    for (words, health) in all {
        text += &format!("| {words} |");
        for shown in health.conditions(Lifecycle::Reconciled.into(), "") {
            text += &format!(" {} |", shown.status);
        }
        text += "\n";
    }
    text
}
