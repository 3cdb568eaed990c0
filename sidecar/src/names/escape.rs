//! The second translation: names in UTF-8 for a scraper that does not know them.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::model;

/// What a scraper wants done with names that older versions of Prometheus do not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Escaping {
    /// An underscore for each such character.
    #[default]
    Underscores,
    /// `_dot_` for a dot, two underscores for one, and two for any other character.
    Dots,
    /// The code of each such character; the name can be had back.
    Values,
    /// Nothing: names are quoted.
    AllowUtf8,
}

impl Escaping {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Underscores, Self::Dots, Self::Values, Self::AllowUtf8];

    /// For labels of exemplars: `dots` would rename `trace_id`, by which everybody finds the trace.
    pub fn of_exemplars(self) -> Self {
        match self {
            Self::Dots => Self::Underscores,
            Self::Underscores | Self::Values | Self::AllowUtf8 => self,
        }
    }

    /// As in the headers of a request and of its answer.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Underscores => "underscores",
            Self::Dots => "dots",
            Self::Values => "values",
            Self::AllowUtf8 => "allow-utf-8",
        }
    }
}

/// Whether every version of Prometheus takes this for the name of a metric.
pub fn is_metric(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| is_kept(first, true))
        && letters.all(|letter| is_kept(letter, false))
}

/// Whether every version of Prometheus takes this for the name of a label.
pub fn is_label(name: &str) -> bool {
    model::is_plain(name)
}

fn is_kept(letter: char, is_first: bool) -> bool {
    letter.is_ascii_alphabetic()
        || letter == '_'
        || letter == ':'
        || letter.is_ascii_digit() && !is_first
}

/// The name of a metric as the scraper wants it.
pub fn escape(name: &str, escaping: Escaping) -> Cow<'_, str> {
    escape_with(name, escaping, is_kept)
}

/// The name of a label as the scraper wants it: as that of a metric, but without colons.
pub fn escape_label(name: &str, escaping: Escaping) -> Cow<'_, str> {
    escape_with(name, escaping, |letter, is_first| {
        letter != ':' && is_kept(letter, is_first)
    })
}

fn escape_with(name: &str, escaping: Escaping, is_kept: fn(char, bool) -> bool) -> Cow<'_, str> {
    let mut letters = name.char_indices();
    let is_valid = letters.all(|(at, letter)| is_kept(letter, at == 0));
    let is_done = match escaping {
        Escaping::AllowUtf8 => true,
        Escaping::Underscores | Escaping::Values => is_valid,
        Escaping::Dots => is_valid && !name.contains('_'),
    };
    if is_done {
        return Cow::Borrowed(name);
    }
    let mut escaped = String::with_capacity(name.len() + 16);
    if escaping == Escaping::Values {
        escaped.push_str("U__");
    }
    for (at, letter) in name.char_indices() {
        match (escaping, letter) {
            (Escaping::Dots, '.') => escaped.push_str("_dot_"),
            (Escaping::Dots | Escaping::Values, '_') => escaped.push_str("__"),
            _ if is_kept(letter, at == 0) => escaped.push(letter),
            (Escaping::Dots, _) => escaped.push_str("__"),
            (Escaping::Values, _) => {
                // Writing to a string cannot fail.
                let _ = write!(escaped, "_{:x}_", u32::from(letter));
            }
            (Escaping::Underscores | Escaping::AllowUtf8, _) => escaped.push('_'),
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// By underscores, by dots, by values.
    const VECTORS: &[(&str, [&str; 3])] = &[
        ("", [""; 3]),
        (
            "no:escaping_required",
            [
                "no:escaping_required",
                "no:escaping__required",
                "no:escaping_required",
            ],
        ),
        (
            "mysystem.prod.west.cpu.load",
            [
                "mysystem_prod_west_cpu_load",
                "mysystem_dot_prod_dot_west_dot_cpu_dot_load",
                "U__mysystem_2e_prod_2e_west_2e_cpu_2e_load",
            ],
        ),
        (
            "mysystem.prod.west.cpu.load_total",
            [
                "mysystem_prod_west_cpu_load_total",
                "mysystem_dot_prod_dot_west_dot_cpu_dot_load__total",
                "U__mysystem_2e_prod_2e_west_2e_cpu_2e_load__total",
            ],
        ),
        (
            "http.status:sum",
            [
                "http_status:sum",
                "http_dot_status:sum",
                "U__http_2e_status:sum",
            ],
        ),
        (
            "label with 😱",
            [
                "label_with__",
                "label__with____",
                "U__label_20_with_20__1f631_",
            ],
        ),
        ("花火", ["__", "____", "U___82b1__706b_"]),
        (
            "label with \u{100}",
            [
                "label_with__",
                "label__with____",
                "U__label_20_with_20__100_",
            ],
        ),
        ("2xx", ["_xx", "__xx", "U___32_xx"]),
    ];

    #[test]
    fn a_name_is_escaped_as_in_the_library_of_prometheus() {
        assert_eq!(VECTORS.len(), 9);
        for (given, expected) in VECTORS {
            for (escaping, expected) in Escaping::ALL.into_iter().zip(expected) {
                assert_eq!(escape(given, escaping), *expected, "{given} {escaping:?}");
            }
            assert_eq!(escape(given, Escaping::AllowUtf8), *given);
        }
    }

    #[test]
    fn a_label_has_no_colon() {
        assert_eq!(escape_label("a:b", Escaping::Underscores), "a_b");
        assert_eq!(escape_label("a:b", Escaping::Dots), "a__b");
        assert_eq!(escape_label("a:b", Escaping::Values), "U__a_3a_b");
        assert_eq!(escape_label("a:b", Escaping::AllowUtf8), "a:b");
    }

    /// What `values` wrote, read back as the library of Prometheus does; nothing if it was not written so.
    fn unescape(name: &str) -> Option<String> {
        let Some(mut rest) = name.strip_prefix("U__") else {
            return Some(name.to_owned());
        };
        let mut plain = String::new();
        while let Some(letter) = rest.chars().next() {
            rest = &rest[letter.len_utf8()..];
            if letter != '_' {
                plain.push(letter);
            } else if let Some(after) = rest.strip_prefix('_') {
                plain.push('_');
                rest = after;
            } else {
                let (code, after) = rest.split_once('_').filter(|(code, _)| code.len() <= 6)?;
                plain.push(char::from_u32(u32::from_str_radix(code, 16).ok()?)?);
                rest = after;
            }
        }
        Some(plain)
    }

    #[test]
    fn what_was_not_written_by_values_does_not_read_back() {
        for (given, expected) in [
            ("", Some("")),
            ("U__no:unescapingrequired", Some("no:unescapingrequired")),
            ("U__capitals_2E_ok", Some("capitals.ok")),
            ("U__underscores__doubled__", Some("underscores_doubled_")),
            ("U__underscores_doubled_", None),
            ("U__underscores__doubled_", None),
            ("U__my__hack_2e_attempt_872348732fabdabbab_", None),
            ("U__my__hack_2e", None),
            ("U__bad__utf_2eg_", None),
            ("U__bad__utf_D900_", None),
        ] {
            assert_eq!(unescape(given).as_deref(), expected, "{given}");
        }
    }

    proptest! {
        #[test]
        fn an_escaped_name_is_valid(name in ".{1,12}") {
            for escaping in [Escaping::Underscores, Escaping::Dots, Escaping::Values] {
                prop_assert!(is_metric(&escape(&name, escaping)));
                prop_assert!(is_label(&escape_label(&name, escaping)));
            }
        }

        #[test]
        fn escaping_twice_is_escaping_once(name in ".{1,12}") {
            for escaping in [Escaping::Underscores, Escaping::Values, Escaping::AllowUtf8] {
                let once = escape(&name, escaping);
                prop_assert_eq!(escape(&once, escaping), &*once);
            }
        }

        #[test]
        fn values_can_be_read_back(name in ".{1,12}") {
            prop_assume!(!name.starts_with("U__")); // such a name stands for another
            prop_assert_eq!(unescape(&escape(&name, Escaping::Values)), Some(name.clone()));
            prop_assert_eq!(unescape(&escape_label(&name, Escaping::Values)), Some(name));
        }
    }
}
