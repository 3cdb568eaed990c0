//! Fuzz targets over their corpus, without a fuzzer; what each program that has some promises of them.

use std::fs;
use std::path::PathBuf;

use support::fixtures::repository;

/// The name of a target's folder, and the target.
pub(crate) type Target = (&'static str, fn(&[u8]));

/// The targets of one package.
pub(crate) struct Fuzzed {
    /// Its folder.
    pub(crate) package: &'static str,
    pub(crate) targets: &'static [Target],
}

impl Fuzzed {
    fn folder(&self) -> PathBuf {
        repository().join(self.package).join("fuzz")
    }

    /// The inputs of a target, by name.
    fn corpus(&self, target: &str) -> Vec<(String, Vec<u8>)> {
        let folder = self.folder().join("corpus").join(target);
        let mut inputs: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.display().to_string(), fs::read(&path).unwrap()))
            .collect();
        inputs.sort();
        inputs
    }

    /// Every input of the corpus keeps the promises.
    pub(crate) fn keeps_its_promises(&self) {
        for (target, promise) in self.targets {
            let inputs = self.corpus(target);
            assert!(inputs.len() >= 5, "{target} has {} inputs", inputs.len());
            for (name, input) in inputs {
                eprintln!("{name}"); // the last one is the culprit
                promise(&input);
            }
        }
    }

    /// Inputs of the corpus may be cut anywhere or have any bit flipped.
    pub(crate) fn keeps_them_for_what_is_cut_or_flipped(&self) {
        let mut chance = fastrand::Rng::with_seed(7);
        for (target, promise) in self.targets {
            for (name, input) in self
                .corpus(target)
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

    /// Every target is fuzzed by a program of its name.
    pub(crate) fn has_a_program_for_each_target(&self) {
        let manifest = fs::read_to_string(self.folder().join("Cargo.toml")).unwrap();
        for (target, _) in self.targets {
            let program = format!("path = \"fuzz_targets/{target}.rs\"");
            assert!(manifest.contains(&program), "{target}");
            let source = self.folder().join(format!("fuzz_targets/{target}.rs"));
            let source = fs::read_to_string(source).unwrap();
            assert!(
                source.contains(&format!("targets::{target}(input)")),
                "{target}"
            );
        }
    }
}
