//! What follows from the answer of a target, and when to try again. Pure: no clock, no chance.

use std::time::Duration;

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use http::{HeaderMap, StatusCode, header};

use crate::otlp::wire::{Fields, Malformed};

/// Time before the first new try.
const FIRST: Duration = Duration::from_secs(1);
/// Longest time between two tries, unless the target asks for more.
const LONGEST: Duration = Duration::from_secs(30);
/// The most that a target may ask for.
const MOST: Duration = Duration::from_secs(300);

/// gRPC writes bytes in headers with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What an answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It was taken.
    Taken,
    /// It may be taken later, not before this time if one was said.
    Later(Option<Duration>),
    /// It will never be taken.
    Refused,
}

/// Of an answer over HTTP.
pub(super) fn of_http(status: StatusCode, headers: &HeaderMap) -> Verdict {
    match status.as_u16() {
        200..=299 => Verdict::Taken,
        429 | 502..=504 => {
            let text = headers.get(header::RETRY_AFTER);
            let seconds = text.and_then(|text| text.to_str().ok()?.trim().parse().ok());
            Verdict::Later(seconds.map(Duration::from_secs))
        }
        _ => Verdict::Refused,
    }
}

/// Of an answer over gRPC: its trailers, or its headers if it has nothing else.
pub(super) fn of_grpc(status: StatusCode, trailers: &HeaderMap) -> Verdict {
    let number = |name| -> Option<u64> { trailers.get(name)?.to_str().ok()?.parse().ok() };
    let Some(code) = number("grpc-status") else {
        // Something between us and the target has answered.
        return match of_http(status, trailers) {
            Verdict::Taken => Verdict::Later(None),
            other @ (Verdict::Later(_) | Verdict::Refused) => other,
        };
    };
    let details = trailers.get("grpc-status-details-bin");
    let delay = details.and_then(|details| retry_delay(&BASE64.decode(details).ok()?).ok()?);
    match (code, delay) {
        (0, _) => Verdict::Taken,
        (1 | 4 | 10 | 11 | 14 | 15, delay) => Verdict::Later(delay),
        (8, Some(delay)) => Verdict::Later(Some(delay)), // says by the delay that it may pass
        _ => Verdict::Refused,
    }
}

/// The delay in the `RetryInfo` of a `google.rpc.Status`.
fn retry_delay(status: &[u8]) -> Result<Option<Duration>, Malformed> {
    let mut fields = Fields::of(status);
    while let Some(field) = fields.read()? {
        if field.number != 3 {
            continue;
        }
        let (mut kind, mut value) = (&[][..], &[][..]);
        let mut any = Fields::of(field.content.bytes()?);
        while let Some(field) = any.read()? {
            match field.number {
                1 => kind = field.content.bytes()?,
                2 => value = field.content.bytes()?,
                _ => {}
            }
        }
        if kind.ends_with(b"/google.rpc.RetryInfo") {
            return duration(value).map(Some);
        }
    }
    Ok(None)
}

fn duration(info: &[u8]) -> Result<Duration, Malformed> {
    let (mut seconds, mut nanos) = (0, 0);
    let mut fields = Fields::of(info);
    while let Some(field) = fields.read()? {
        if field.number == 1 {
            let mut parts = Fields::of(field.content.bytes()?);
            while let Some(part) = parts.read()? {
                match part.number {
                    1 => seconds = part.content.varint()?,
                    2 => nanos = part.content.varint()?,
                    _ => {}
                }
            }
        }
    }
    // Below zero means at once.
    let seconds = u64::try_from(seconds.cast_signed()).unwrap_or_default();
    let nanos = u32::try_from(nanos).unwrap_or_default().min(999_999_999);
    Ok(Duration::from_secs(seconds.min(MOST.as_secs())) + Duration::from_nanos(nanos.into()))
}

/// How long to wait after so many tries. `chance` lies between 0 and 1 and keeps many from coming back all at once.
pub(super) fn wait(tries: u32, asked: Option<Duration>, chance: f64) -> Duration {
    let doubled = FIRST.saturating_mul(2_u32.saturating_pow(tries.saturating_sub(1)));
    let delay = doubled
        .min(LONGEST)
        .mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0);
    delay.max(asked.unwrap_or_default().min(MOST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp::write::Writer;

    const fn seconds(seconds: u64) -> Option<Duration> {
        Some(Duration::from_secs(seconds))
    }

    #[test]
    fn over_http_only_what_otlp_says_comes_again() {
        for (status, after, expected) in [
            (200, None, Verdict::Taken),
            (202, None, Verdict::Taken),
            (429, Some("7"), Verdict::Later(seconds(7))),
            (429, Some("soon"), Verdict::Later(None)),
            (503, None, Verdict::Later(None)),
            (502, None, Verdict::Later(None)),
            (504, None, Verdict::Later(None)),
            (400, None, Verdict::Refused),
            (413, None, Verdict::Refused),
            (500, None, Verdict::Refused),
            (301, None, Verdict::Refused),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(after) = after {
                headers.insert(header::RETRY_AFTER, after.parse().unwrap());
            }
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(of_http(status, &headers), expected, "{status} {after:?}");
        }
    }

    /// A status with this delay.
    fn details(delay: u64) -> String {
        let mut status = Writer::default();
        status.varint(1, 8);
        status.message(3, |any| {
            any.bytes(1, b"type.googleapis.com/google.rpc.RetryInfo");
            any.message(2, |info| info.message(1, |parts| parts.varint(1, delay)));
        });
        BASE64.encode(status.into_bytes())
    }

    #[test]
    fn over_grpc_an_exhausted_target_is_asked_again_only_if_it_says_when() {
        let five = details(5);
        let bare = five.trim_end_matches('=');
        for (status, code, details, expected) in [
            (200, Some("0"), None, Verdict::Taken),
            (200, Some("14"), None, Verdict::Later(None)),
            (200, Some("14"), Some(&*five), Verdict::Later(seconds(5))),
            (200, Some("8"), None, Verdict::Refused),
            (200, Some("8"), Some(bare), Verdict::Later(seconds(5))),
            (200, Some("8"), Some("?"), Verdict::Refused),
            (200, Some("3"), None, Verdict::Refused),
            (200, Some("12"), None, Verdict::Refused),
            (200, None, None, Verdict::Later(None)),
            (503, None, None, Verdict::Later(None)),
            (404, None, None, Verdict::Refused),
        ] {
            let mut trailers = HeaderMap::new();
            if let Some(code) = code {
                trailers.insert("grpc-status", code.parse().unwrap());
            }
            if let Some(details) = details {
                trailers.insert("grpc-status-details-bin", details.parse().unwrap());
            }
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(of_grpc(status, &trailers), expected, "{status} {code:?}");
        }
    }

    #[test]
    fn waits_grow_up_to_a_bound_and_the_target_may_ask_for_more() {
        for (tries, asked, chance, expected) in [
            (1, None, 1.0, 1_000),
            (1, None, 0.0, 500),
            (3, None, 1.0, 4_000),
            (99, None, 1.0, 30_000),
            (1, seconds(20), 0.5, 20_000),
            (1, seconds(9_999), 0.5, 300_000),
        ] {
            let expected = Duration::from_millis(expected);
            assert_eq!(wait(tries, asked, chance), expected, "{tries} {asked:?}");
        }
    }
}
