//! Derived names: same input, same name, for ever; a name that would be too long ends in a digest instead.

use std::fmt;

use sha1::{Digest, Sha1};

/// Longest DNS label and longest label value.
const LONGEST: usize = 63;
/// What stays of a name that is too long, before `-` and the digest.
const STEM: usize = 54;
/// Hex digits of the digest.
const DIGEST: usize = 8;

/// Name of an object that belongs to another one, e.g. the Job of a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChildName(String);

impl ChildName {
    /// The name for the child of `base` that plays the part `suffix`.
    pub fn derive(base: &str, suffix: &str) -> Self {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let full = format!("{}-{suffix}", dashed(base, allowed));
        let full = full.trim_matches('-');
        if full.chars().count() <= LONGEST {
            return Self(full.to_owned());
        }
        let stem: String = full.chars().take(STEM).collect();
        Self(format!("{stem}-{}", short_digest(full)))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ChildName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text made fit to be the value of a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelValue(String);

impl LabelValue {
    /// The label value for any text; `unknown` when nothing of it can be kept.
    pub fn normalise(text: &str) -> Self {
        let allowed =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '.' | '-');
        let edge = |c: char| !c.is_ascii_alphanumeric();
        let dashed = dashed(text, allowed);
        let trimmed = dashed.trim_matches(edge);
        if trimmed.is_empty() {
            return Self("unknown".to_owned());
        }
        // All ASCII here, so bytes are characters. The cut may bare another edge; the API server would refuse it.
        let cut = trimmed.get(..LONGEST).unwrap_or(trimmed);
        Self(cut.trim_end_matches(edge).to_owned())
    }

    /// The value as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LabelValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Lower case, each run of characters that are not allowed replaced by one dash.
fn dashed(text: &str, allowed: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_gap = false;
    for c in text.to_lowercase().chars() {
        if allowed(c) {
            out.push(c);
            in_gap = false;
        } else if !in_gap {
            out.push('-');
            in_gap = true;
        }
    }
    out
}

fn short_digest(text: &str) -> String {
    let mut hex: String = Sha1::digest(text.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    hex.truncate(DIGEST);
    hex
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::text::names::Form;
    use proptest::prelude::*;

    #[test]
    fn child_names_are_derived_as_before() {
        let long = "a".repeat(70);
        for (what, base, suffix, name) in [
            ("a plain name", "demo", "job", "demo-job"),
            ("dots become dashes", "demo.v1", "job", "demo-v1-job"),
            (
                "a run of others becomes one dash",
                "Demo  __Run",
                "job",
                "demo-run-job",
            ),
            ("dashes of the name stay", "a--b", "job", "a--b-job"),
            ("edges are trimmed", "-demo", "job-", "demo-job"),
            (
                "a step",
                "demo",
                "step-2-attempt-1",
                "demo-step-2-attempt-1",
            ),
            (
                "a long name ends in the digest of the full one",
                long.as_str(),
                "job",
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-4464feb9",
            ),
        ] {
            assert_eq!(ChildName::derive(base, suffix).as_str(), name, "{what}");
        }
    }

    #[test]
    fn label_values_are_derived_as_before() {
        for (what, text, value) in [
            ("a plain name", "demo", "demo"),
            ("upper case", "Demo.Run_1", "demo.run_1"),
            ("spaces", "build and test", "build-and-test"),
            ("edges", "__demo--", "demo"),
            ("nothing left", "***", "unknown"),
            ("empty", "", "unknown"),
        ] {
            assert_eq!(LabelValue::normalise(text).as_str(), value, "{what}");
        }
        assert_eq!(
            LabelValue::normalise(&"x".repeat(80)).as_str(),
            "x".repeat(63)
        );
        let dash_at_the_cut = format!("{}-tail", "x".repeat(62));
        assert_eq!(
            LabelValue::normalise(&dash_at_the_cut).as_str(),
            "x".repeat(62)
        );
    }

    proptest! {
        #[test]
        fn every_child_name_is_a_dns_label(base in any::<String>()) {
            let name = ChildName::derive(&base, "job");
            prop_assert!(Form::DnsLabel.fits(name.as_str()), "{}", name);
        }

        #[test]
        fn every_label_value_is_accepted_and_stays(text in any::<String>()) {
            let value = LabelValue::normalise(&text);
            prop_assert!(Form::LabelValue.fits(value.as_str()), "{}", value);
            prop_assert_eq!(LabelValue::normalise(value.as_str()), value);
        }

        #[test]
        fn long_names_that_differ_stay_apart(tail in "[a-z]{1,20}", other in "[a-z]{1,20}") {
            prop_assume!(tail != other);
            let stem = "n".repeat(80);
            prop_assert_ne!(
                ChildName::derive(&format!("{stem}{tail}"), "job"),
                ChildName::derive(&format!("{stem}{other}"), "job")
            );
        }
    }
}
