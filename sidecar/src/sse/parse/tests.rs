use proptest::prelude::*;

use super::*;

const WIDE: Limits = Limits {
    line: 4096,
    event: 4096,
};

/// An item that outlives what it was read from; an event with the id that holds after it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Event(String, String),
    Retry(u128),
    Excess(Excess),
}

/// What a stream says that comes in chunks of these sizes, again and again, and the id that is left.
fn read(limits: Limits, bytes: &[u8], sizes: &[usize]) -> (Vec<Seen>, String) {
    let mut parser = Parser::new(limits, "");
    let mut seen = Vec::new();
    let mut rest = bytes;
    for size in sizes.iter().cycle() {
        let (chunk, after) = rest.split_at((*size).min(rest.len()));
        parser.feed(chunk, &mut |item| {
            seen.push(match item {
                Item::Event(Event { name, data }) => Seen::Event(name.into(), data.into()),
                Item::Retry(delay) => Seen::Retry(delay.as_millis()),
                Item::Excess(excess) => Seen::Excess(excess),
            });
        });
        // Never more than what was asked for, whatever comes.
        assert!(parser.line.len() <= limits.line && parser.data.len() <= limits.event + 1);
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    let id = parser.last_id().to_owned();
    (seen, id)
}

fn message(data: &str) -> Seen {
    Seen::Event("message".to_owned(), data.to_owned())
}

fn named(name: &str, data: &str) -> Seen {
    Seen::Event(name.to_owned(), data.to_owned())
}

/// Vectors of the web platform tests, by the name of their file, with the id that is left at the end.
fn vectors() -> Vec<(&'static str, Vec<u8>, Vec<Seen>, &'static str)> {
    let long = "x".repeat(2 * 1024);
    let comments =
        format!("data:1\r:\0\n:\r\ndata:2\n:{long}\rdata:3\n:data:fail\r:{long}\ndata:4\n\n\n");
    let text = |text: &str| text.as_bytes().to_vec();
    vec![
        (
            "format-bom",
            text("\u{feff}data:1\n\n\u{feff}data:2\n\ndata:3\n\n"),
            vec![message("1"), message("3")],
            "",
        ),
        (
            "format-bom-2",
            text("\u{feff}\u{feff}data:1\n\ndata:2\n\ndata:3\n\n"),
            vec![message("2"), message("3")],
            "",
        ),
        (
            "format-comments",
            text(&comments),
            vec![message("1\n2\n3\n4")],
            "",
        ),
        (
            "format-data-before-final-empty-line",
            text("retry:1000\ndata:test1\n\nid:test\ndata:test2"),
            vec![Seen::Retry(1000), message("test1")],
            "",
        ),
        (
            "format-field-data",
            text("data:\n\ndata\ndata\n\ndata:test\n\n"),
            vec![message(""), message("\n"), message("test")],
            "",
        ),
        (
            "format-field-event",
            text("event:test\ndata:x\n\ndata:x\n\n"),
            vec![named("test", "x"), message("x")],
            "",
        ),
        (
            "format-field-event-empty",
            text("event: \ndata:data\n\n"),
            vec![message("data")],
            "",
        ),
        (
            "format-field-id",
            text("id:…\ndata:hello\n\n"),
            vec![message("hello")],
            "…",
        ),
        (
            "format-field-id-2",
            text("id:…\nretry:200\ndata:hello\n\ndata:again\n\n"),
            vec![Seen::Retry(200), message("hello"), message("again")],
            "…",
        ),
        (
            "format-field-id-3",
            text("id:…\ndata:1\n\nid:\ndata:2\n\nid:x\ndata:3\n\nid\ndata:4\n\n"),
            vec![message("1"), message("2"), message("3"), message("4")],
            "",
        ),
        (
            "format-field-id-null",
            text("id:\0a\ndata:1\n\nid:a\0b\ndata:2\n\n"),
            vec![message("1"), message("2")],
            "",
        ),
        (
            "format-field-parsing",
            text(
                "data:\0\ndata:  2\rData:1\ndata\0:2\ndata:1\r\0data:4\nda-ta:3\rdata_5\ndata:3\rdata:\r\n data:32\ndata:4\n\n",
            ),
            vec![message("\0\n 2\n1\n3\n\n4")],
            "",
        ),
        (
            "format-field-retry",
            text("retry:03000\ndata:x\n\n"),
            vec![Seen::Retry(3000), message("x")],
            "",
        ),
        (
            "format-field-retry-bogus",
            text("retry:3000\nretry:1000x\ndata:x\n\n"),
            vec![Seen::Retry(3000), message("x")],
            "",
        ),
        (
            "format-field-retry-empty",
            text("retry\ndata:test\n\n"),
            vec![message("test")],
            "",
        ),
        (
            "format-field-unknown",
            text(
                "data:test\n data\ndata\nfoobar:xxx\njustsometext\n:thisisacommentyay\ndata:test\n\n",
            ),
            vec![message("test\n\ntest")],
            "",
        ),
        (
            "format-leading-space",
            text("data:\ttest\rdata: \ndata:test\n\n"),
            vec![message("\ttest\n\ntest")],
            "",
        ),
        (
            "format-newlines",
            text("data:test\r\ndata\ndata:test\r\n\r"),
            vec![message("test\n\ntest")],
            "",
        ),
        (
            "format-null-character",
            text("data:\0\n\n\n\n"),
            vec![message("\0")],
            "",
        ),
        (
            "format-utf-8",
            text("data:ok…\n\n"),
            vec![message("ok…")],
            "",
        ),
        (
            "decoding of what is not UTF-8",
            b"data:a\xffb\xe2\x82c\xf0\x9f\ndata:\xe2\x82\xac\n\n".to_vec(),
            vec![message("a\u{fffd}b\u{fffd}c\u{fffd}\n€")],
            "",
        ),
        (
            "event-data",
            text(
                "data:msg\ndata: msg\n\n:\nfalsefield:msg\n\nfalsefield:msg\nData:data\n\ndata\n\ndata:end\n\n",
            ),
            vec![message("msg\nmsg"), message(""), message("end")],
            "",
        ),
    ]
}

#[test]
fn all_vectors_of_the_web_platform_hold_at_every_chunk_size() {
    let vectors = vectors();
    assert_eq!(vectors.len(), 22);
    for (name, bytes, expected, id) in vectors {
        for size in 1..=bytes.len() {
            let (seen, last_id) = read(WIDE, &bytes, &[size]);
            assert_eq!(seen, expected, "{name} in chunks of {size}");
            assert_eq!(last_id, id, "{name} in chunks of {size}");
        }
    }
}

#[test]
fn an_event_is_not_held_back_by_a_line_feed_that_may_follow() {
    let mut parser = Parser::new(WIDE, "");
    let mut count = 0;
    for (chunk, expected) in [
        ("data:1\r\n\r", 1),
        ("\n", 1),
        ("data:2\n", 1),
        ("\r", 2),
        ("", 2),
        ("\ndata:3\n\n", 3),
    ] {
        parser.feed(chunk.as_bytes(), &mut |_| count += 1);
        assert_eq!(count, expected, "after {chunk:?}");
    }
}

#[test]
fn what_is_too_long_is_left_out_and_said_and_the_next_event_is_whole() {
    let limits = Limits {
        line: 12,
        event: 10,
    };
    let line = Seen::Excess(Excess::Line);
    let event = Seen::Excess(Excess::Event);
    for (what, text, expected) in [
        ("just fits", "data:1234567\n\n", vec![message("1234567")]),
        (
            "a line",
            "data:12345678\n\ndata:1\n\n",
            vec![line.clone(), message("1")],
        ),
        (
            "a line within an event",
            "data:1\ndata:12345678\ndata:2\n\ndata:3\n\n",
            vec![line.clone(), message("3")],
        ),
        (
            "several lines together",
            "data:12345\ndata:12345\ndata:12345\n\ndata:3\n\n",
            vec![event, message("3")],
        ),
        (
            "a comment is nothing to keep",
            ":12345678901234567890\ndata:1\n\n",
            vec![message("1")],
        ),
        ("one that never ends", &"data:x".repeat(100), vec![line]),
    ] {
        for size in 1..=text.len() {
            let (seen, _) = read(limits, text.as_bytes(), &[size]);
            assert_eq!(seen, expected, "{what} in chunks of {size}");
        }
    }
}

#[test]
fn the_id_of_an_event_that_was_left_out_counts() {
    let limits = Limits {
        line: 12,
        event: 10,
    };
    let (_, id) = read(limits, b"id:7\ndata:12345678\n\n", &[3]);
    assert_eq!(id, "7");
}

#[test]
fn a_large_event_leaves_no_large_buffer() {
    let limits = Limits {
        line: 1 << 20,
        event: 1 << 20,
    };
    let mut parser = Parser::new(limits, "");
    let event = format!("data:{}\n\n", "x".repeat((1 << 20) - 5));
    for chunk in event.as_bytes().chunks(1000) {
        parser.feed(chunk, &mut |_| {});
    }
    assert!(parser.data.capacity() <= KEPT && parser.line.capacity() <= KEPT);
}

#[test]
fn a_time_longer_than_any_is_the_longest() {
    let (seen, _) = read(WIDE, b"retry:99999999999999999999999\n", &[64]);
    assert_eq!(seen, [Seen::Retry(u128::from(u64::MAX))]);
}

/// Streams of what matters to the parser, and of anything.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let words = prop_oneof![
        Just(b"data:".to_vec()),
        Just(b"data".to_vec()),
        Just(b"event:".to_vec()),
        Just(b"id:".to_vec()),
        Just(b"retry:12".to_vec()),
        Just(b":".to_vec()),
        Just(b" ".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\n\n".to_vec()),
        Just(b"\0".to_vec()),
        Just(BYTE_ORDER_MARK.to_vec()),
        Just("…".as_bytes().to_vec()),
        proptest::collection::vec(any::<u8>(), 0..12),
    ];
    proptest::collection::vec(words, 0..40).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn chunks_never_change_what_is_said(
        bytes in streams(),
        sizes in proptest::collection::vec(1_usize..9, 1..8),
        line in 1_usize..40,
        event in 1_usize..40,
    ) {
        let limits = Limits { line, event };
        let whole = read(limits, &bytes, &[usize::MAX]);
        prop_assert_eq!(read(limits, &bytes, &sizes), whole.clone());
        prop_assert_eq!(read(limits, &bytes, &[1]), whole);
    }
}
