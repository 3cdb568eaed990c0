//! Units of UCUM, in which OTLP speaks, as the words that Prometheus puts at the end of a name.

use std::borrow::Cow;

use super::Strategy;

/// The unit in words, such as `bytes_per_second` for `By/s`; empty if it says nothing.
pub fn unit(unit: &str, strategy: Strategy) -> Cow<'_, str> {
    let Words { main, per } = Words::of(unit);
    let (main, per) = match strategy.escapes() {
        true => (clean(main), per.map(clean)),
        false => (Cow::Borrowed(main), per.map(Cow::Borrowed)),
    };
    let whole = match per {
        Some(per) if main.is_empty() => Cow::Owned(format!("per_{per}")),
        Some(per) => Cow::Owned(format!("{main}_per_{per}")),
        None => main,
    };
    trim(whole)
}

/// One underscore less at either end.
fn trim(text: Cow<'_, str>) -> Cow<'_, str> {
    let inner = text.strip_prefix('_').unwrap_or(&text);
    let inner = inner.strip_suffix('_').unwrap_or(inner);
    if inner.len() == text.len() {
        return text;
    }
    Cow::Owned(inner.to_owned())
}

/// The two halves of a unit in words, not yet fit for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Words<'a> {
    /// What is measured; empty for nothing.
    pub(super) main: &'a str,
    /// Per what, in the singular.
    pub(super) per: Option<&'a str>,
}

impl<'a> Words<'a> {
    pub(super) fn of(unit: &'a str) -> Self {
        let (main, per) = unit.split_once('/').unwrap_or((unit, ""));
        Self {
            main: half(main).map(plural).unwrap_or_default(),
            per: half(per).map(singular),
        }
    }
}

/// A half that says something. Braces hold a remark, such as `{request}`; the translator of Prometheus drops a half with
/// any in it, and so do we.
fn half(text: &str) -> Option<&str> {
    let text = text.trim();
    (!text.is_empty() && !text.contains(['{', '}'])).then_some(text)
}

fn plural(unit: &str) -> &str {
    match unit {
        "d" => "days",
        "h" => "hours",
        "min" => "minutes",
        "s" => "seconds",
        "ms" => "milliseconds",
        "us" => "microseconds",
        "ns" => "nanoseconds",
        "By" => "bytes",
        "KiBy" => "kibibytes",
        "MiBy" => "mebibytes",
        "GiBy" => "gibibytes",
        "TiBy" => "tibibytes",        // misspelt where users compare with it
        "KBy" | "kBy" => "kilobytes", // the translator knows only the first, the specification only the second
        "MBy" => "megabytes",
        "GBy" => "gigabytes",
        "TBy" => "terabytes",
        "m" => "meters",
        "V" => "volts",
        "A" => "amperes",
        "J" => "joules",
        "W" => "watts",
        "g" => "grams",
        "Cel" => "celsius",
        "Hz" => "hertz",
        "%" => "percent",
        "1" => "",
        other => other,
    }
}

fn singular(unit: &str) -> &str {
    match unit {
        "s" => "second",
        "m" => "minute",
        "h" => "hour",
        "d" => "day",
        "w" => "week",
        "mo" => "month",
        "y" => "year",
        other => other,
    }
}

/// Only what a name may have: everything else is an underscore, several are one, and none leads.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b':';
    if text.bytes().all(is_word) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len());
    for letter in text.chars() {
        if u8::try_from(letter).is_ok_and(is_word) {
            cleaned.push(letter);
        } else if !cleaned.is_empty() && !cleaned.ends_with('_') {
            cleaned.push('_');
        }
    }
    Cow::Owned(cleaned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_said_in_words() {
        for (given, expected) in [
            ("s", "seconds"),
            ("By/s", "bytes_per_second"),
            (" By / s ", "bytes_per_second"),
            ("1/s", "per_second"),
            ("1", ""),
            ("", ""),
            ("/", ""),
            ("By/", "bytes"),
            ("By/{page}", "bytes"),
            ("{page}/s", "per_second"),
            ("{a}By", ""),
            ("km/h", "km_per_hour"),
            ("1/min", "per_min"),
            ("unit@with#special/chars", "unit_with_special_per_chars"),
            ("unit__multiple__underscores", "unit_multiple_underscores"),
            ("kBy", "kilobytes"),
            ("KBy", "kilobytes"),
            ("°C", "C"),
            ("_x_", "x"),
            ("€/€", "per"),
        ] {
            assert_eq!(unit(given, Strategy::default()), expected, "{given}");
        }
        let kept = Strategy::NoTranslation;
        for (given, expected) in [("°C", "°C"), ("€/s", "€_per_second"), ("_x_", "x")] {
            assert_eq!(unit(given, kept), expected, "{given}");
        }
    }
}
