//! What people and programs are shown, compared with files; `GENERATE=1` writes them.

use std::path::Path;

use super::alerts::Alert;
use super::facts::{Probe, Sidecar, Unseen};
use super::judge::tests::healthy;
use super::report::{Report, Wanted};
use super::{json, junit, text};
use crate::cli::shown::Paint;
use crate::kit::exit::Exit;

/// A report with one of each verdict.
fn report(wanted: Wanted) -> Report {
    let mut facts = healthy();
    facts.version = Ok("v1.30.0 <&>".to_owned());
    facts.probe = Ok(Probe::Unmarked);
    facts.endpoints = Err(Unseen::Forbidden("cannot list endpointslices".to_owned()));
    facts.prometheuses = Ok(Vec::new());
    facts.sidecars = Ok(vec![Sidecar {
        pod: "agents-controllers-1".to_owned(),
        age: None,
        scrapes: 1,
    }]);
    Report::new(wanted, &facts)
}

fn golden(file: &str, said: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/doctor/golden");
    let path = path.join(file);
    if std::env::var_os("GENERATE").is_some() {
        std::fs::write(&path, said).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(said, expected, "{}", path.display());
}

#[test]
fn a_report_is_shown_as_the_files_say() {
    let after = report(Wanted::After);
    golden("after.txt", &text::text(&after, Paint::PLAIN));
    golden("after.json", &json::json(&after).unwrap());
    golden("after.xml", &junit::junit(&after));
    golden(
        "before.txt",
        &text::text(&report(Wanted::Before), Paint::PLAIN),
    );
    let alert = Alert::named("AgentsWebhookPassedBy").unwrap();
    let alert = report(Wanted::Alert(alert));
    golden("alert.txt", &text::text(&alert, Paint::PLAIN));
}

#[test]
fn the_exit_code_says_how_grave_it_is() {
    let exit = |facts, strict| Report::new(Wanted::After, &facts).exit(strict);
    assert_eq!(exit(healthy(), true), Exit::Done);
    let mut facts = healthy();
    facts.prometheuses = Ok(Vec::new());
    assert_eq!(exit(facts.clone(), false), Exit::Done);
    assert_eq!(exit(facts.clone(), true), Exit::Found);
    facts.prometheuses = Err(Unseen::Silent("no answer".to_owned()));
    assert_eq!(exit(facts.clone(), true), Exit::Found);
    facts.endpoints = Ok(0);
    assert_eq!(exit(facts, false), Exit::Found);
}
