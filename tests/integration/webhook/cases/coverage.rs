//! That no rule is without a case: every reason is among those for which some case is refused, or it is said why not.

use std::{collections::BTreeSet, fs};

use agents::api::{kind::Kind, object::cause::Reason, policy::Rule};
use anyhow::Result;
use support::fixtures::file_stem;

use super::{cases, folder, kinds};

/// Reasons that no case can meet.
const NOT_MET: [(Reason, &str); 4] = [
    (
        Reason::Malformed,
        "a spec that is nested too deeply; the reader of cases refuses that as well, so the tests of hostile input have it",
    ),
    (
        Reason::ObjectMismatch,
        "the API server sends no object of another kind than it says",
    ),
    (
        Reason::FinishedAtMissing,
        "the end of a run is filled in before it is judged",
    ),
    (
        Reason::InputFilesTooLarge,
        "the object would be a file of a megabyte; the rule is tested where it is written",
    ),
];

fn all_folders() -> Vec<String> {
    let mut folders = kinds();
    folders.extend(["strict", "lenient"].map(str::to_owned));
    folders
}

/// Folder, name and reasons of every refused case.
fn refused() -> Result<Vec<(String, String, BTreeSet<String>)>> {
    let mut found = Vec::new();
    for name in all_folders() {
        let expected = fs::read_to_string(folder(&name).join("expected.txt"))?;
        let heads = expected.lines().filter_map(|line| line.strip_prefix("# "));
        for (case, verdict) in heads.filter_map(|head| head.split_once(": ")) {
            if let Some(reasons) = verdict.strip_prefix("refused, ") {
                let reasons = reasons.split(", ").map(str::to_owned).collect();
                found.push((name.clone(), case.to_owned(), reasons));
            }
        }
    }
    Ok(found)
}

#[test]
fn every_reason_has_a_case() -> Result<()> {
    let met: BTreeSet<String> = refused()?
        .into_iter()
        .flat_map(|(_, _, reasons)| reasons)
        .collect();
    let excused: BTreeSet<&str> = NOT_MET.iter().map(|(reason, _)| reason.as_str()).collect();
    let lacking: Vec<&str> = Reason::ALL
        .iter()
        .map(|reason| reason.as_str())
        .filter(|reason| !met.contains(*reason) && !excused.contains(reason))
        .collect();
    assert_eq!(lacking, Vec::<&str>::new(), "reasons without a case");
    let idle: Vec<&&str> = excused
        .iter()
        .filter(|reason| met.contains(**reason))
        .collect();
    assert_eq!(idle, Vec::<&&str>::new(), "excuses that are not needed");
    Ok(())
}

#[test]
fn every_kind_is_refused_for_something() -> Result<()> {
    let folders: BTreeSet<String> = refused()?
        .into_iter()
        .map(|(folder, _, _)| folder)
        .collect();
    for kind in Kind::ALL {
        assert!(
            folders.contains(&file_stem(kind)),
            "{kind} has no refused case"
        );
    }
    Ok(())
}

/// The case that shows a rule of the policy; a new rule does not compile without one.
const fn shown_by(rule: Rule) -> Option<&'static str> {
    Some(match rule {
        Rule::RequiredLabels => "labels-missing",
        Rule::DeniedLabels => "label-denied",
        Rule::AllowedLabels => "label-not-allowed",
        Rule::DeniedImages => "image-denied",
        Rule::AllowedImages => "image-not-allowed",
        Rule::BlockedSecrets => "secret-blocked",
        Rule::DeclaredSecrets => "prompt-that-is-not-declared",
        Rule::AgentSecrets => "secret-that-the-agent-does-not-allow",
        Rule::AgentServiceAccounts => "service-account-that-the-agent-does-not-allow",
        Rule::SecretBindings => "secret-that-no-binding-gives",
        // Ten thousand entries make no readable case; the tests of the policy have it.
        Rule::Amount => return None,
    })
}

#[test]
fn every_rule_of_the_policy_has_a_case() -> Result<()> {
    let refused = refused()?;
    for rule in Rule::ALL {
        let Some(case) = shown_by(*rule) else {
            continue;
        };
        let found = refused
            .iter()
            .any(|(folder, name, _)| folder == "strict" && name == case);
        assert!(found, "{rule}: strict/{case} is not refused");
    }
    Ok(())
}

#[test]
fn there_are_enough_cases() -> Result<()> {
    let mut count = 0;
    for name in all_folders() {
        count += cases(&name)?.len();
    }
    assert!(count >= 150, "only {count} cases");
    Ok(())
}
