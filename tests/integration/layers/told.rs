//! What is told, held by reading the sources: what the catalogue lists and nobody ever says misleads whoever waits for it,
//! and what is told by another way than the emitter keeps to no limit.

use agents::api::custody::Class;
use agents::events::Reason;

use super::reading::{Source, offences, sources};

/// Where the reasons are listed, and classes of missing Jobs become reasons.
const CATALOGUE: &str = "src/events/reason.rs";

/// Who shows Events to people.
const READERS: [&str; 2] = ["src/cli/explain.rs", "src/serve/carry_out/events.rs"];

/// The name by which a file calls the reasons of Events besides their full one, if it imports them.
fn imported(text: &str) -> Option<&'static str> {
    let text = format!("\n{text}");
    let uses = text.split("\nuse ").skip(1);
    let uses = uses.filter_map(|rest| rest.split(';').next()?.split_once("events::"));
    let mut words = uses.flat_map(|(_, list)| list.split([',', '{', '}']));
    words.find_map(|word| match word.trim() {
        "Reason" => Some("Reason"),
        "Reason as EventReason" => Some("EventReason"),
        _ => None,
    })
}

/// Whether a text has a path, by itself or at the end of a longer one.
fn has(text: &str, path: &str, is_whole: bool) -> bool {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(path).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + path.len()..].chars().next();
        let goes_on = |letter| is_word(letter) || (is_whole && letter == ':');
        !before.is_some_and(goes_on) && !after.is_some_and(is_word)
    })
}

/// Conditions have reasons of their own, often the same words.
fn tells(text: &str, reason: &str) -> bool {
    if !text.contains(reason) {
        return false;
    }
    let by_import = |name| has(text, &format!("{name}::{reason}"), true);
    has(text, &format!("events::Reason::{reason}"), false) || imported(text).is_some_and(by_import)
}

/// The sources of all programs.
fn programs() -> Vec<Source> {
    let folders = ["src", "webhook/src", "sidecar/src"];
    let files: Vec<Source> = folders.into_iter().flat_map(sources).collect();
    assert!(files.len() > 300, "found only {} files", files.len());
    files
}

#[test]
fn only_the_emitter_writes_events() {
    let is_emitter = |name: &str| name == "src/events.rs" || name.starts_with("src/events/");
    let named = ["v1::Event", "v1::*", "runtime::events", "events.k8s.io"];
    let (emitter, others): (Vec<_>, Vec<_>) = programs()
        .into_iter()
        .partition(|(name, _)| is_emitter(name));
    assert!(!offences(&emitter, &named).is_empty(), "it names them");
    let (readers, others): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|(name, _)| READERS.contains(&name.as_str()));
    assert_eq!(offences(&others, &named), Vec::<String>::new());
    assert_eq!(readers.len(), READERS.len());
    let writes = [".create", ".patch", ".replace", ".entry("];
    assert_eq!(offences(&readers, &writes), Vec::<String>::new());
}

#[test]
fn every_reason_of_an_event_is_told_somewhere() {
    let mut files = programs();
    files.retain(|(name, _)| name != CATALOGUE);
    let is_silent = |reason: &&str| {
        let mut files = files.iter();
        match Class::ALL.iter().any(|class| class.as_str() == *reason) {
            // A class of missing Jobs is told under its own name wherever one is found.
            true => !files.any(|(_, text)| has(text, &format!("Class::{reason}"), false)),
            false => !files.any(|(_, text)| tells(text, reason)),
        }
    };
    let reasons = Reason::ALL.iter().map(|reason| reason.as_str());
    assert_eq!(
        reasons.filter(is_silent).collect::<Vec<_>>(),
        Vec::<&str>::new()
    );
}

#[test]
fn a_reason_of_a_condition_does_not_pass_for_one_of_an_event() {
    for (text, expected) in [
        ("tell(events::Reason::Failed)", true),
        ("use crate::events::Reason;\ntell(Reason::Failed)", true),
        (
            "use crate::events::{Note, Reason as EventReason};\ntell(EventReason::Failed)",
            true,
        ),
        (
            "use crate::events::{Note, Reason};\ntell(Reason::FailedTwice)",
            false,
        ),
        (
            "use crate::events::Reason;\ntell(condition::Reason::Failed)",
            false,
        ),
        (
            "use crate::condition::Reason;\nfn f(_: events::Reason, _: u8) {}\ntell(Reason::Failed)",
            false,
        ),
        (
            "use crate::events;\nuse crate::condition::Reason;\ntell(Reason::Failed)",
            false,
        ),
    ] {
        assert_eq!(tells(text, "Failed"), expected, "{text}");
    }
}
