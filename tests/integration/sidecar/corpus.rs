//! The fuzz targets over their corpus, without a fuzzer.

#[expect(unreachable_pub, reason = "a library of its own where it is fuzzed")]
#[path = "../../../sidecar/fuzz/targets.rs"]
mod targets;

use std::fs;

use support::fixtures::repository;

/// The name of a target's folder, and the target.
type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 5] = [
    ("protobuf", targets::protobuf),
    ("json", targets::json),
    ("events", targets::events),
    ("accept", targets::accept),
    ("inflate", targets::inflate),
];

/// The inputs of a target, by name.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = repository().join("sidecar/fuzz/corpus").join(target);
    let mut inputs: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.display().to_string(), fs::read(&path).unwrap()))
        .collect();
    inputs.sort();
    inputs
}

#[test]
fn every_input_of_the_corpus_keeps_the_promises() {
    for (target, promise) in TARGETS {
        let inputs = corpus(target);
        assert!(inputs.len() >= 5, "{target} has {} inputs", inputs.len());
        for (name, input) in inputs {
            eprintln!("{name}"); // the last one is the culprit
            promise(&input);
        }
    }
}

#[test]
fn an_input_of_the_corpus_may_be_cut_anywhere_or_have_any_bit_flipped() {
    let mut chance = fastrand::Rng::with_seed(7);
    for (target, promise) in TARGETS {
        for (name, input) in corpus(target)
            .into_iter()
            .filter(|(_, input)| !input.is_empty())
        {
            eprintln!("{name}");
            for _ in 0..50 {
                promise(&input[..chance.usize(..input.len())]);
                let mut flipped = input.clone();
                let at = chance.usize(..input.len());
                flipped[at] ^= 1 << chance.u8(..8);
                promise(&flipped);
            }
        }
    }
}

#[test]
fn every_target_is_fuzzed_by_a_program_of_its_name() {
    let manifest = fs::read_to_string(repository().join("sidecar/fuzz/Cargo.toml")).unwrap();
    for (target, _) in TARGETS {
        let program = format!("path = \"fuzz_targets/{target}.rs\"");
        assert!(manifest.contains(&program), "{target}");
        let source = repository().join(format!("sidecar/fuzz/fuzz_targets/{target}.rs"));
        let source = fs::read_to_string(source).unwrap();
        assert!(
            source.contains(&format!("targets::{target}(input)")),
            "{target}"
        );
    }
}
