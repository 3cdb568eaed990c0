//! Quantities as Kubernetes writes them: `500m`, `1.5`, `2Gi`, `1e3`.

use std::str::FromStr;

use thiserror::Error;

/// An amount, exact to a billionth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity {
    nano: i128,
}

/// A text that is no quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("is not a quantity; write a number with an optional unit, e.g. 500m, 2 or 1.5Gi")]
pub struct QuantityError;

/// Longest quantity that is read; far longer than any that means something.
const LONGEST: usize = 32;

const NANO: u32 = 1_000_000_000;

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self { nano: 0 };
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if text.len() > LONGEST {
            return Err(QuantityError);
        }
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, unit) = rest.split_at(end);
        let (multiplier, divisor) = unit_of(unit).ok_or(QuantityError)?;
        let (digits, scale) = digits_of(number).ok_or(QuantityError)?;
        let parts = divisor.checked_mul(scale).ok_or(QuantityError)?;
        let amount = digits.checked_mul(multiplier).ok_or(QuantityError)?;
        // Wide numbers are divided slowly, and most quantities need not be.
        let nano = match u32::try_from(parts) {
            Ok(parts) if NANO.is_multiple_of(parts) => amount.checked_mul((NANO / parts).into()),
            _ => amount
                .checked_mul(NANO.into())
                .and_then(|amount| amount.checked_div(parts)),
        };
        let nano = nano.ok_or(QuantityError)?;
        Ok(Self {
            nano: if negative { -nano } else { nano },
        })
    }
}

/// The digits without the point, and the power of ten that the point stands for.
fn digits_of(number: &str) -> Option<(i128, i128)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if let (Ok(digits), "") = (whole.parse::<u64>(), fraction) {
        return Some((digits.into(), 1));
    }
    let digits = format!("{whole}{fraction}");
    let scale = 10i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    Some((digits.parse().ok()?, scale))
}

/// What a unit multiplies by and divides by.
fn unit_of(unit: &str) -> Option<(i128, i128)> {
    let decimal = |power: u32| 10i128.pow(power);
    let binary = |power: u32| 1i128 << power;
    Some(match unit {
        "" => (1, 1),
        "n" => (1, decimal(9)),
        "u" => (1, decimal(6)),
        "m" => (1, decimal(3)),
        "k" => (decimal(3), 1),
        "M" => (decimal(6), 1),
        "G" => (decimal(9), 1),
        "T" => (decimal(12), 1),
        "P" => (decimal(15), 1),
        "E" => (decimal(18), 1),
        "Ki" => (binary(10), 1),
        "Mi" => (binary(20), 1),
        "Gi" => (binary(30), 1),
        "Ti" => (binary(40), 1),
        "Pi" => (binary(50), 1),
        "Ei" => (binary(60), 1),
        exponent => {
            let power: i32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            let size = 10i128
                .checked_pow(power.unsigned_abs())
                .filter(|_| power.abs() <= 18)?;
            if power < 0 { (1, size) } else { (size, 1) }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Quantity, QuantityError> {
        text.parse()
    }

    #[test]
    fn equal_amounts_are_equal_however_they_are_written() {
        for (one, other) in [
            ("1", "1000m"),
            ("1", "1."),
            (".5", "500m"),
            ("1.5Gi", "1536Mi"),
            ("1k", "1e3"),
            ("2E", "2000P"),
            ("5e-3", "5m"),
            ("+1", "1.000"),
            ("0", "-0"),
            ("1u", "1000n"),
        ] {
            assert_eq!(parse(one).unwrap(), parse(other).unwrap(), "{one} {other}");
        }
    }

    #[test]
    fn amounts_have_an_order() {
        let sorted = [
            "-1", "0", "1n", "1m", "999m", "1", "1k", "1Ki", "1M", "1Mi", "1G", "1Gi", "1Ei",
        ];
        let amounts: Vec<Quantity> = sorted.iter().map(|text| parse(text).unwrap()).collect();
        assert!(amounts.is_sorted());
        assert!(parse("-1m").unwrap() < Quantity::ZERO);
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in [
            "", " ", ".", "Gi", "1 Gi", "1GiB", "1K", "1gb", "one", "1.2.3", "1e", "1e99", "0x1",
            "-", "--1", "1m1",
        ] {
            assert_eq!(parse(text), Err(QuantityError), "{text:?}");
        }
        assert_eq!(parse(&"9".repeat(40)), Err(QuantityError));
        assert_eq!(parse("99999999999999999999999999Ei"), Err(QuantityError));
    }
}
