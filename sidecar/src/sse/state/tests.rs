use http::{HeaderName, HeaderValue};
use proptest::prelude::*;

use super::*;

fn headers(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
    let pairs = pairs.iter().cloned();
    pairs
        .map(|(name, value)| (name, HeaderValue::from_static(value)))
        .collect()
}

fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).expect("a status")
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn only_an_event_stream_that_can_be_read_as_it_comes_is_one() {
    for (content, expected) in [
        ("text/event-stream", true),
        ("text/event-stream;", true),
        ("TEXT/Event-Stream ; charset=windows-1251", true),
        ("text/event-stream x bogus", false),
        ("x bogus", false),
        ("text/x-bogus", false),
        ("application/json", false),
        ("", false),
    ] {
        let typed = headers(&[(header::CONTENT_TYPE, content)]);
        let is_stream = judge(StatusCode::OK, &typed) == Answer::Stream;
        assert_eq!(is_stream, expected, "{content}");
    }
    for (encoding, expected) in [("identity", true), ("gzip", false), ("", false)] {
        let encoded = headers(&[
            (header::CONTENT_TYPE, "text/event-stream"),
            (header::CONTENT_ENCODING, encoding),
        ]);
        let is_stream = judge(StatusCode::OK, &encoded) == Answer::Stream;
        assert_eq!(is_stream, expected, "{encoding}");
    }
    let untyped = judge(StatusCode::OK, &HeaderMap::new());
    assert_eq!(untyped, Answer::Nothing(Cause::NotAStream.into()));
}

#[test]
fn every_status_means_one_thing() {
    let streaming = headers(&[(header::CONTENT_TYPE, "text/event-stream")]);
    let nothing = |cause: Cause| Answer::Nothing(cause.into());
    for (codes, expected) in [
        (&[200][..], Answer::Stream),
        (&[204], nothing(Cause::Stopped)),
        (&[301, 302, 303, 307, 308], nothing(Cause::Redirected)),
        (&[408, 425, 429, 500, 503, 599], nothing(Cause::Busy)),
        (
            &[201, 205, 210, 299, 300, 304, 400, 401, 403, 404, 410, 600],
            nothing(Cause::Refused),
        ),
    ] {
        for code in codes {
            assert_eq!(judge(status(*code), &streaming), expected, "{code}");
        }
    }
    let moved = headers(&[(header::LOCATION, "/elsewhere")]);
    let elsewhere = Answer::Elsewhere("/elsewhere".to_owned());
    assert_eq!(judge(status(307), &moved), elsewhere);
}

#[test]
fn how_long_a_busy_server_asks_for_is_read_in_seconds() {
    for (text, expected) in [
        ("7", Some(7)),
        (" 7 ", Some(7)),
        ("soon", None),
        ("-1", None),
        ("", None),
    ] {
        let asked = headers(&[(header::RETRY_AFTER, text)]);
        let end = End {
            cause: Cause::Busy,
            retry_after: expected.map(seconds),
        };
        assert_eq!(judge(status(503), &asked), Answer::Nothing(end), "{text}");
    }
}

/// The delays, at their longest, of ends one after the other.
fn delays(backoff: &mut Backoff, ends: &[(Cause, Option<u64>)]) -> Vec<u64> {
    let each = ends.iter().map(|(cause, lasted)| {
        let next = backoff.next((*cause).into(), lasted.map(seconds), 1.0);
        match next {
            Next::After(delay) => delay.as_secs(),
            Next::Never => panic!("never after {cause:?}"),
        }
    });
    each.collect()
}

#[test]
fn delays_double_up_to_a_bound_and_only_a_good_connection_starts_anew() {
    let unreachable = (Cause::Unreachable, None);
    let mut backoff = Backoff::default();
    assert_eq!(
        delays(&mut backoff, &[unreachable; 7]),
        [1, 2, 4, 8, 16, 30, 30]
    );
    // One that breaks again and again is no better than one that is not there.
    let short = (Cause::Ended, Some(59));
    assert_eq!(delays(&mut backoff, &[short; 2]), [30, 30]);
    let good = (Cause::Ended, Some(60));
    assert_eq!(delays(&mut backoff, &[good, short, good]), [1, 2, 1]);
    let mut old = Backoff {
        failures: u32::MAX,
        ..Backoff::default()
    };
    assert_eq!(delays(&mut old, &[unreachable]), [30]);
}

#[test]
fn the_server_may_say_how_long_to_wait_within_bounds() {
    for (hint, expected) in [(0, [1, 2]), (2_500, [2, 5]), (u64::MAX, [30, 30])] {
        let mut backoff = Backoff::default();
        backoff.hint(Duration::from_millis(hint));
        let both = delays(&mut backoff, &[(Cause::Ended, Some(1)); 2]);
        assert_eq!(both, expected, "{hint} ms");
    }
}

#[test]
fn a_busy_server_is_left_alone_for_as_long_as_it_asks_within_bounds() {
    for (asked, expected) in [(0, 1), (7, 7), (1_000_000, 600)] {
        let end = End {
            cause: Cause::Busy,
            retry_after: Some(seconds(asked)),
        };
        let next = Backoff::default().next(end, None, 1.0);
        assert_eq!(next, Next::After(seconds(expected)), "{asked}");
    }
}

#[test]
fn who_does_not_want_us_is_asked_rarely_and_who_has_nothing_never() {
    let mut backoff = Backoff::default();
    let refused = (Cause::Refused, None);
    assert_eq!(delays(&mut backoff, &[refused; 6]), [1, 2, 4, 8, 600, 600]);
    // Whoever changes its mind is a server like any other.
    let again = [(Cause::Ended, Some(60)), refused];
    assert_eq!(delays(&mut backoff, &again), [1, 2]);
    let stopped = backoff.next(Cause::Stopped.into(), Some(seconds(90)), 0.5);
    assert_eq!(stopped, Next::Never);
}

proptest! {
    #[test]
    fn every_delay_lies_between_half_of_it_and_all_of_it(
        failures in 0_u32..100,
        chance in 0.0_f64..=1.0,
        hint in 0_u64..100_000,
    ) {
        let mut backoff = Backoff { failures, ..Backoff::default() };
        backoff.hint(Duration::from_millis(hint));
        let mut longest = backoff;
        let Next::After(longest) = longest.next(Cause::Broken.into(), None, 1.0) else {
            panic!("never");
        };
        let Next::After(delay) = backoff.next(Cause::Broken.into(), None, chance) else {
            panic!("never");
        };
        prop_assert!(delay >= longest / 2 && delay <= longest && delay >= SHORTEST / 2);
    }
}
