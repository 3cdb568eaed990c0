//! Numbers as text: doubles as Go prints them, which is what every other exporter does and what `le` must look like.
//!
//! Nothing here allocates but the page that is written to.

use crate::model::Number;

/// How whole numbers look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whole {
    /// `1`, as in the older text format.
    Bare,
    /// `1.0`, as OpenMetrics wants a double to look.
    Pointed,
}

/// Numbers below this, and above its negative, have no exponent.
const PLAIN_BELOW: f64 = 1e6;
/// Nor have those from here up.
const PLAIN_FROM: f64 = 1e-4;

/// A double: the fewest digits that read back as it, with an exponent if that is below -4 or above 5.
pub(super) fn float(value: f64, whole: Whole, page: &mut Vec<u8>) {
    let magnitude = value.abs();
    if magnitude < PLAIN_BELOW
        && value.trunc() == value
        && !(value == 0.0 && value.is_sign_negative())
    {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is whole and below a million"
        )]
        integer(value as i64, page);
        if whole == Whole::Pointed {
            page.extend_from_slice(b".0");
        }
    } else if (PLAIN_FROM..PLAIN_BELOW).contains(&magnitude) {
        page.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
    } else if value == 0.0 {
        page.extend_from_slice(if whole == Whole::Pointed {
            b"-0.0"
        } else {
            b"-0"
        });
    } else if value.is_finite() {
        exponential(value, page);
    } else {
        page.extend_from_slice(match (value.is_nan(), value.is_sign_positive()) {
            (true, _) => b"NaN",
            (false, true) => b"+Inf",
            (false, false) => b"-Inf",
        });
    }
}

/// One digit, a point and the rest of them if there are any, and an exponent with its sign and at least two digits.
fn exponential(value: f64, page: &mut Vec<u8>) {
    let mut buffer = zmij::Buffer::new();
    let text = buffer.format_finite(value);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let mut exponent: i32 = exponent.parse().unwrap_or_default();
    let unsigned = mantissa.strip_prefix('-').unwrap_or(mantissa);
    let (before, after) = unsigned.split_once('.').unwrap_or((unsigned, ""));

    let mut digits = [0; 32];
    let mut count = 0;
    for digit in before.bytes().chain(after.bytes()) {
        if let Some(place) = digits.get_mut(count) {
            *place = digit;
            count += 1;
        }
    }
    let digits = digits.get(..count).unwrap_or_default();
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    let place = |length: usize| i32::try_from(length).unwrap_or_default();
    exponent += place(before.len()) - 1 - place(zeros);
    let digits = digits.get(zeros..).unwrap_or_default().trim_ascii_end();
    let tail = digits
        .iter()
        .rev()
        .take_while(|digit| **digit == b'0')
        .count();
    let digits = digits.get(..digits.len() - tail).unwrap_or_default();

    if value < 0.0 {
        page.push(b'-');
    }
    let (first, rest) = digits.split_first().unwrap_or((&b'0', &[]));
    page.push(*first);
    if !rest.is_empty() {
        page.push(b'.');
        page.extend_from_slice(rest);
    }
    page.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
    if exponent.abs() < 10 {
        page.push(b'0');
    }
    integer(exponent.unsigned_abs(), page);
}

/// A whole number, exactly.
pub(super) fn integer(value: impl itoa::Integer, page: &mut Vec<u8>) {
    page.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// The value of a sample. A whole number that was sent as one is exact, however large.
pub(super) fn number(value: Number, whole: Whole, page: &mut Vec<u8>) {
    match value {
        Number::Float(value) => float(value, whole, page),
        Number::Integer(value) => integer(value, page),
    }
}

/// Nanoseconds as seconds. From whole numbers, since a double cannot tell nanoseconds apart.
pub(super) fn seconds(nanoseconds: u64, page: &mut Vec<u8>) {
    const PER_SECOND: u64 = 1_000_000_000;
    integer(nanoseconds / PER_SECOND, page);
    let mut fraction = nanoseconds % PER_SECOND;
    if fraction == 0 {
        return;
    }
    page.push(b'.');
    let mut unit = PER_SECOND / 10;
    while fraction > 0 {
        #[expect(clippy::cast_possible_truncation, reason = "a digit is below ten")]
        page.push(b'0' + (fraction / unit) as u8);
        fraction %= unit;
        unit /= 10;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bare(value: f64) -> String {
        let mut page = Vec::new();
        float(value, Whole::Bare, &mut page);
        String::from_utf8(page).expect("text")
    }

    fn pointed(value: f64) -> String {
        let mut page = Vec::new();
        float(value, Whole::Pointed, &mut page);
        String::from_utf8(page).expect("text")
    }

    #[test]
    fn doubles_look_as_in_go() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (0.1, "0.1"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (0.000_012_3, "1.23e-05"),
            (100_000.0, "100000"),
            (999_999.5, "999999.5"),
            (1e6, "1e+06"),
            (1_234_567.0, "1.234567e+06"),
            (1_756_047.3, "1.7560473e+06"),
            (-1_234_567.5, "-1.2345675e+06"),
            (1e100, "1e+100"),
            (3.14e42, "3.14e+42"),
            (-1.23e-45, "-1.23e-45"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
            (9_007_199_254_740_993.0, "9.007199254740992e+15"),
            (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
            (1e16, "1e+16"),
            (1e21, "1e+21"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
        ] {
            assert_eq!(bare(value), expected);
        }
    }

    #[test]
    fn doubles_are_canonical_in_openmetrics() {
        for expected in [
            "0.0", "-0.0", "0.001", "0.002", "0.01", "0.1", "0.9", "0.95", "0.99", "0.999", "1.0",
            "1.7", "10.0", "1e-10", "1e-09", "1e-05", "0.0001", "100000.0", "1e+06", "1e+10",
            "1.1e+23",
        ] {
            assert_eq!(pointed(expected.parse().expect("a number")), expected);
        }
    }

    #[test]
    fn a_time_keeps_its_nanoseconds() {
        for (time, expected) in [
            (0, "0"),
            (1_604_676_851_123_456_789, "1604676851.123456789"),
            (12_345_600_000_000, "12345.6"),
            (1_000_000_001, "1.000000001"),
            (2_000_000_000, "2"),
            (u64::MAX, "18446744073.709551615"),
        ] {
            let mut page = Vec::new();
            seconds(time, &mut page);
            assert_eq!(page, expected.as_bytes());
        }
    }

    #[test]
    fn a_whole_number_is_exact() {
        let mut page = Vec::new();
        number(Number::Integer(i64::MAX), Whole::Pointed, &mut page);
        assert_eq!(page, b"9223372036854775807");
    }

    proptest! {
        #[test]
        fn a_double_reads_back_as_it_was(bits: u64) {
            let value = f64::from_bits(bits);
            for text in [bare(value), pointed(value)] {
                let back: f64 = text.parse().expect("a number");
                prop_assert!(back.to_bits() == bits || back.is_nan() && value.is_nan(), "{} {}", value, text);
            }
        }

        /// The standard library prints the same digits, so only their layout is ours.
        #[test]
        fn a_double_has_the_fewest_digits(value in prop_oneof![-1e7..1e7_f64, -1e-3..1e-3_f64, any::<f64>()]) {
            let value: f64 = value;
            prop_assume!(value.is_finite() && value != 0.0);
            let library = format!("{value:e}");
            let (mantissa, exponent) = library.split_once('e').expect("an exponent");
            let exponent: i32 = exponent.parse().expect("an exponent");
            let ours = bare(value);
            let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).map(char::from).collect::<String>()
                .trim_matches('0').to_owned();
            prop_assert_eq!(ours.contains('e'), !(-4..6).contains(&exponent), "{} {}", &ours, &library);
            let own = ours.split('e').next().unwrap_or_default();
            prop_assert_eq!(digits(own), digits(mantissa));
        }
    }
}
