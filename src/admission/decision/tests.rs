use crate::api::object::cause::{Path, Reason};

use super::words::message;
use super::*;

fn causes(count: usize, length: usize) -> Vec<Cause> {
    let spec = Path::root("spec");
    (0..count)
        .map(|index| Cause::new(&spec.index(index), Reason::Required, "x".repeat(length)))
        .collect()
}

#[test]
fn one_fault_is_a_sentence_and_several_are_a_list() {
    let one = causes(1, 3);
    assert_eq!(message(one.iter()), "spec[0]: xxx");
    let two = causes(2, 3);
    assert_eq!(
        message(two.iter()),
        "2 faults:\n* spec[0]: xxx\n* spec[1]: xxx"
    );
}

#[test]
fn a_message_holds_all_that_is_told_and_a_note_what_fits() {
    let many = causes(101, 200);
    let text = message(many.iter());
    assert_eq!(text.matches("\n* spec[").count(), 101, "{text}");
    let short = note(many.iter());
    assert!(short.len() <= 1024 && short.ends_with(" more"), "{short}");
    let endless = causes(1, 1_000_000);
    let text = message(endless.iter());
    assert!(text.len() <= 128 * 1024 && text.ends_with("..."));
}

#[test]
fn warnings_stay_within_what_the_api_server_passes_on() {
    let mut decision = Decision::default();
    decision.find(Rule::Spec, Mode::Warn, causes(40, 1000));
    decision.find(Rule::Spec, Mode::Audit, causes(5, 1));
    decision.notes.push("a\nb".to_owned());
    let all = warnings(&decision);
    assert_eq!(all.len(), 16);
    assert!(all.iter().map(String::len).sum::<usize>() <= 4096);
    assert_eq!(all.last().map(String::as_str), Some("and 26 more warnings"));
    assert!(!decision.is_refusal());
    let noted = Decision::noting("a\nb\u{1b}[2J");
    assert_eq!(warnings(&noted), ["a b [2J"]);
    let umlauts = Decision::noting("ä".repeat(500));
    assert!(warnings(&umlauts)[0].len() <= 240);
}

#[test]
fn every_rule_has_a_word_of_its_own() {
    let mut words: Vec<&str> = Rule::all().map(Rule::as_str).collect();
    let count = words.len();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), count);
}

#[test]
fn the_last_word_is_a_refusal_or_that_of_the_last_door() {
    let mut decision = Decision::default();
    let last = |decision: &Decision| Door::ALL.map(|door| decision.is_last_word(door));
    let behind_us = Door::ALL.map(|door| !door.mutates());
    assert_eq!(last(&decision), behind_us);
    decision.find(Rule::Spec, Mode::Warn, causes(1, 1));
    assert_eq!(last(&decision), behind_us, "a warning ends nothing");
    decision.find(Rule::Spec, Mode::Enforce, causes(1, 1));
    assert_eq!(last(&decision), Door::ALL.map(|_| true));
}
