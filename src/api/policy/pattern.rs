//! Patterns in which `*` stands for any text, `/` and nothing included; everything else is meant as it is written.
//!
//! A pattern covers the whole text, case counts, and there is no other special character.

use serde::{Deserialize, Serialize};

/// One pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Pattern {
    /// What stands between the stars; a pattern without a star is one piece.
    pieces: Vec<String>,
}

impl Pattern {
    /// Whether the pattern covers the text. Takes time in proportion to both lengths, whatever they are.
    pub fn matches(&self, text: &str) -> bool {
        let (first, middle, last) = match self.pieces.as_slice() {
            [] => return text.is_empty(),
            [whole] => return text == whole,
            [first, middle @ .., last] => (first, middle, last),
        };
        let within = text
            .strip_prefix(first.as_str())
            .and_then(|rest| rest.strip_suffix(last.as_str()));
        let Some(mut rest) = within else {
            return false;
        };
        // The leftmost place for each piece leaves the most for those after it, so there is nothing to go back to.
        for piece in middle {
            match rest.split_once(piece.as_str()) {
                Some((_, after)) => rest = after,
                None => return false,
            }
        }
        true
    }
}

impl From<String> for Pattern {
    fn from(text: String) -> Self {
        Self {
            pieces: text.split('*').map(str::to_owned).collect(),
        }
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.pieces.join("*")
    }
}

/// Several patterns; empty means that no list is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Patterns(Vec<Pattern>);

impl Patterns {
    /// Whether no list is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first pattern that covers the text, as it was written.
    pub fn covering(&self, text: &str) -> Option<String> {
        let found = self.0.iter().find(|pattern| pattern.matches(text));
        found.map(|pattern| String::from(pattern.clone()))
    }

    /// The patterns as they were written.
    pub fn written(&self) -> Vec<String> {
        self.0
            .iter()
            .map(|pattern| String::from(pattern.clone()))
            .collect()
    }
}

impl<T: Into<String>> FromIterator<T> for Patterns {
    fn from_iter<I: IntoIterator<Item = T>>(patterns: I) -> Self {
        Self(
            patterns
                .into_iter()
                .map(|text| Pattern::from(text.into()))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::from(pattern.to_owned()).matches(text)
    }

    /// Tries every way a star can be filled; slow and plainly right.
    fn slowly(pattern: &[char], text: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['*', rest @ ..] => (0..=text.len()).any(|skipped| slowly(rest, &text[skipped..])),
            [c, rest @ ..] => text.first() == Some(c) && slowly(rest, &text[1..]),
        }
    }

    #[test]
    fn stars_stand_for_any_text_and_nothing_else_is_special() {
        for (pattern, right, wrong) in [
            ("*", vec!["", "a", "a/b"], vec![]),
            ("", vec![""], vec!["a"]),
            ("a", vec!["a"], vec!["", "A", "ab", "ba"]),
            (
                "registry.io/team/*",
                vec!["registry.io/team/", "registry.io/team/a/b:1"],
                vec!["registry.io/teams/a", "xregistry.io/team/a"],
            ),
            ("*@sha256:*", vec!["a@sha256:0", "@sha256:"], vec!["a:1"]),
            ("a*a", vec!["aa", "aba"], vec!["a"]),
            ("*ab*ab*", vec!["abab", "xabyabz"], vec!["ab", "aba"]),
            ("a?c[x].+", vec!["a?c[x].+"], vec!["abcx..", "abcx."]),
        ] {
            for text in right {
                assert!(matches(pattern, text), "{pattern} should cover {text}");
            }
            for text in wrong {
                assert!(!matches(pattern, text), "{pattern} should not cover {text}");
            }
        }
    }

    #[test]
    fn a_hostile_pattern_is_no_slower_than_its_length() {
        let pattern = "a*".repeat(2000) + "b";
        let text = "a".repeat(200_000);
        assert!(!matches(&pattern, &text));
    }

    #[test]
    fn a_pattern_is_written_as_it_was_read() {
        for text in ["", "*", "a", "*a*b*", "**"] {
            assert_eq!(String::from(Pattern::from(text.to_owned())), text);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]

        #[test]
        fn the_fast_matcher_agrees_with_the_slow_one(pattern in "[ab*ä]{0,8}", text in "[abä]{0,10}") {
            let (p, t): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
            prop_assert_eq!(matches(&pattern, &text), slowly(&p, &t));
        }

        #[test]
        fn a_pattern_covers_every_way_of_filling_its_stars(pieces in prop::collection::vec("[ab]{0,3}", 1..5), filling in "[abc/]{0,4}") {
            prop_assert!(matches(&pieces.join("*"), &pieces.join(&filling)));
        }
    }
}
