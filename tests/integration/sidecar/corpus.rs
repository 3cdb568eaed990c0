//! The fuzz targets over their corpus, without a fuzzer.

#[expect(unreachable_pub, reason = "a library of its own where it is fuzzed")]
#[path = "../../../sidecar/fuzz/targets.rs"]
mod targets;

use crate::fuzzed::Fuzzed;

const FUZZED: Fuzzed = Fuzzed {
    package: "sidecar",
    targets: &[
        ("protobuf", targets::protobuf),
        ("json", targets::json),
        ("events", targets::events),
        ("accept", targets::accept),
        ("inflate", targets::inflate),
        ("framing", targets::framing),
        ("queue", targets::queue),
        ("control_plane", targets::control_plane),
    ],
};

#[test]
fn every_input_of_the_corpus_keeps_the_promises() {
    FUZZED.keeps_its_promises();
}

#[test]
fn an_input_of_the_corpus_may_be_cut_anywhere_or_have_any_bit_flipped() {
    FUZZED.keeps_them_for_what_is_cut_or_flipped();
}

#[test]
fn every_target_is_fuzzed_by_a_program_of_its_name() {
    FUZZED.has_a_program_for_each_target();
}
