//! What a setting may be: the types and how an operator writes them.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

/// A type that a setting can have.
pub trait Value: Sized {
    /// What may be written; completes the sentence "`x` is not ...".
    const EXPECTED: &'static str;

    /// Whether its flag may stand without a value, which then means yes.
    const SWITCH: bool = false;

    /// The value that a text means, if it means one.
    fn parse(text: &str) -> Option<Self>;
}

impl Value for bool {
    const EXPECTED: &'static str = "1, true, yes, y, on or 0, false, no, n, off";
    const SWITCH: bool = true;

    fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" | "y" | "on" => Some(true),
            "0" | "false" | "no" | "n" | "off" => Some(false),
            _ => None,
        }
    }
}

impl Value for usize {
    const EXPECTED: &'static str = "a whole number";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Value for String {
    const EXPECTED: &'static str = "a text";

    fn parse(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| text.to_owned())
    }
}

impl Value for PathBuf {
    const EXPECTED: &'static str = "a path";

    fn parse(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self::from(text))
    }
}

impl Value for SocketAddr {
    const EXPECTED: &'static str = "an address and a port such as 0.0.0.0:8080 or [::]:8080";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Value for Vec<String> {
    const EXPECTED: &'static str = "a list such as a,b or [\"a\",\"b\"]";

    fn parse(text: &str) -> Option<Self> {
        let items: Self = match text.starts_with('[') {
            true => serde_json::from_str(text).ok()?,
            false => text.split(',').map(str::to_owned).collect(),
        };
        let trimmed = items.iter().map(|item| item.trim().to_owned());
        Some(trimmed.filter(|item| !item.is_empty()).collect())
    }
}

impl Value for Duration {
    const EXPECTED: &'static str = "a duration such as 30 or 30s, 250ms, 5m, 1h";

    fn parse(text: &str) -> Option<Self> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().ok()?;
        match unit {
            "ms" => Some(Self::from_millis(number)),
            "" | "s" => Some(Self::from_secs(number)),
            "m" => number.checked_mul(60).map(Self::from_secs),
            "h" => number.checked_mul(3600).map(Self::from_secs),
            _ => None,
        }
    }
}

/// A duration that is written in milliseconds, as the OpenTelemetry variables are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub Duration);

impl Value for Millis {
    const EXPECTED: &'static str = "a whole number of milliseconds";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Duration::from_millis).map(Self)
    }
}

/// A share of a whole.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Ratio(pub f64);

impl Value for Ratio {
    const EXPECTED: &'static str = "a number from 0 to 1";

    fn parse(text: &str) -> Option<Self> {
        let ratio: f64 = text.parse().ok()?;
        (0.0..=1.0).contains(&ratio).then_some(Self(ratio))
    }
}

/// The value that a word stands for, in a closed list of words without regard to case.
pub fn one_of<T: Copy>(words: &[(&str, T)], text: &str) -> Option<T> {
    let known = words
        .iter()
        .find(|(word, _)| word.eq_ignore_ascii_case(text));
    known.map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_booleans_are_understood_in_any_case() {
        for yes in ["1", "true", "YES", "y", "On"] {
            assert_eq!(bool::parse(yes), Some(true), "{yes}");
        }
        for no in ["0", "False", "no", "N", "off"] {
            assert_eq!(bool::parse(no), Some(false), "{no}");
        }
        for neither in ["", "2", "truthy", "enabled"] {
            assert_eq!(bool::parse(neither), None, "{neither}");
        }
    }

    #[test]
    fn durations_are_seconds_unless_a_unit_says_otherwise() {
        let cases = [
            ("30", Some(Duration::from_secs(30))),
            ("30s", Some(Duration::from_secs(30))),
            ("250ms", Some(Duration::from_millis(250))),
            ("5m", Some(Duration::from_secs(300))),
            ("1h", Some(Duration::from_secs(3600))),
            ("", None),
            ("s", None),
            ("-1", None),
            ("1.5s", None),
            ("5 minutes", None),
            ("18446744073709551615h", None),
        ];
        for (text, expected) in cases {
            assert_eq!(Duration::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn lists_are_commas_or_json_and_drop_what_is_empty() {
        let list = |items: &[&str]| Some(items.iter().map(|item| (*item).to_owned()).collect());
        let cases = [
            ("", list(&[])),
            (" , ,", list(&[])),
            ("a", list(&["a"])),
            ("a, b ,,c", list(&["a", "b", "c"])),
            (r#"["a", " b ", ""]"#, list(&["a", "b"])),
            (r#"["a,b"]"#, list(&["a,b"])),
            ("[]", list(&[])),
            // Read as commas these would quietly give entries with brackets and quotes, which match nothing.
            ("[a, b]", None),
            (r#"["a""#, None),
            (r#"["a"] x"#, None),
            (r#"["a", 1]"#, None),
        ];
        for (text, expected) in cases {
            assert_eq!(Vec::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn ratios_lie_between_nothing_and_everything() {
        assert_eq!(Ratio::parse("0.25"), Some(Ratio(0.25)));
        assert_eq!(Ratio::parse("1"), Some(Ratio(1.0)));
        for wrong in ["-0.1", "1.1", "NaN", "half"] {
            assert_eq!(Ratio::parse(wrong), None, "{wrong}");
        }
    }
}
