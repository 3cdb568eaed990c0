//! Durations as Go writes them, in requests of the API server and in manifests.

use std::time::Duration;

/// The duration in a text such as `10s`, `1m0s` or `1.5s`; none if it is no duration or one below zero.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut seconds = 0.0;
    let mut rest = text;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(end);
        let end = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let scale = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "\u{b5}s" | "%C2%B5s" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * scale;
        rest = tail;
    }
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        let millis = |millis| Some(Duration::from_millis(millis));
        for (text, expected) in [
            ("10s", millis(10_000)),
            ("1m0s", millis(60_000)),
            ("1.5s", millis(1500)),
            ("250ms", millis(250)),
            ("0s", millis(0)),
            ("", None),
            ("s", None),
            ("10", None),
            ("10y", None),
            ("-1s", None),
            ("1..5s", None),
            ("9999999999999999999999h", None),
        ] {
            assert_eq!(parse_duration(text), expected, "{text}");
        }
    }
}
