//! What holds for every input, however odd. Each target takes bytes and panics if a promise is broken.
//!
//! The fuzzer looks for such bytes; a plain test goes through the corpus.

use agents_sidecar::{
    expose::{Encoding, Style},
    names::LabelOptions,
    otlp::{
        self, grpc,
        inflate::{Packing, unpack},
        to_protobuf, walk,
    },
    sse::{
        parse::{Item, Limits, Parser},
        payload::{Counted, of_control_plane, of_queue},
    },
    store::{self, Patience, Rules, Store, Targets},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use jiff::Timestamp;

/// Small, so that an input of a few bytes meets them.
const LIMITS: store::Limits = store::Limits {
    series_per_metric: 4,
    series: 8,
    bytes: 64 * 1024,
    bytes_per_request: 16 * 1024,
    sources: 4,
    labels: 4,
    name_bytes: 64,
    value_bytes: 64,
};

/// A request is read or not, the same each time; its series stay within the limits, and each is on the page once.
pub fn protobuf(input: &[u8]) {
    let rules = Rules {
        names: LabelOptions::default(),
        has_scope_labels: true,
        targets: Targets::Auto,
        limits: LIMITS,
    };
    let store = Store::new(rules, otlp::pairs);
    let take = |now| {
        let mut intake = store.intake(now);
        walk::metrics(input, &mut intake)
    };
    let first = take(1);
    assert_eq!(take(2), first);
    assert!(store.series() <= LIMITS.series, "{} series", store.series());
    assert!(store.weight() <= LIMITS.bytes, "{} bytes", store.weight());
    for shelf in store.shelves() {
        let (mut after, mut last) = (None, None::<String>);
        while shelf.read(&mut after, 2, &mut |series| {
            let labels = series.labels.as_str().to_owned();
            assert!(last.as_ref().is_none_or(|last| *last < labels), "{labels}");
            last = Some(labels);
        }) {}
    }
    let at_once = Patience {
        series: 0,
        target: 0,
        known: 1,
    };
    store.sweep(3, at_once);
    assert_eq!((store.series(), store.weight()), (0, 0));
}

/// What is read as JSON is protobuf that can be read, and no larger than it may be.
pub fn json(input: &[u8]) {
    const MOST: usize = 4 * 1024;
    let Ok(request) = to_protobuf(input, MOST) else {
        return;
    };
    assert!(request.capacity() <= MOST, "{} bytes", request.capacity());
    let store = Store::new(Rules::default(), otlp::pairs);
    assert_eq!(walk::metrics(&request, &mut store.intake(1)), Ok(()));
    protobuf(&request);
}

/// The first byte is the size of the chunks. They change nothing, and nothing is longer than it may be.
pub fn events(input: &[u8]) {
    let Some((&size, stream)) = input.split_first() else {
        return;
    };
    let limits = Limits {
        line: 64,
        event: 128,
    };
    let read = |size: usize| {
        let mut parser = Parser::new(limits, "");
        let mut items = Vec::new();
        for chunk in stream.chunks(size) {
            parser.feed(chunk, &mut |item| {
                if let Item::Event(event) = item {
                    // What is not UTF-8 becomes three bytes for each.
                    assert!(event.data.len() <= 3 * limits.event, "{event:?}");
                }
                items.push(format!("{item:?}"));
            });
        }
        (items, parser.last_id().to_owned())
    };
    let whole = read(stream.len().max(1));
    assert_eq!(read(usize::from(size).max(1)), whole);
    assert_eq!(read(1), whole);
}

/// Every header is answered, the same each time, with a type that the same scraper would choose again.
pub fn accept(input: &[u8]) {
    let header = String::from_utf8_lossy(input);
    let style = Style::accepted(&header);
    assert_eq!(Style::accepted(&header), style);
    let named = style.content_type();
    assert!(named.to_str().is_ok_and(|named| named.contains('/')));
    assert_eq!(Encoding::accepted(&header), Encoding::accepted(&header));
}

/// The first byte chooses how the rest is packed. However much it stands for, no more than allowed comes out.
pub fn inflate(input: &[u8]) {
    const MOST: usize = 64 * 1024;
    let Some((&packing, packed)) = input.split_first() else {
        return;
    };
    let packing = match packing % 4 {
        0 => Packing::None,
        1 => Packing::Gzip,
        2 => Packing::Deflate,
        _ => Packing::Zstd,
    };
    if let Ok(unpacked) = unpack(Bytes::copy_from_slice(packed), packing, MOST) {
        assert!(unpacked.len() <= MOST, "{} bytes", unpacked.len());
    }
}

/// The first byte chooses what the headers say of the packing, the rest is the body of a call. Its message is whole and no
/// larger than it may be, and what is not packed is not changed.
pub fn framing(input: &[u8]) {
    const MOST: usize = 64 * 1024;
    let Some((&packing, body)) = input.split_first() else {
        return;
    };
    let packings = ["", "identity", "gzip", "deflate", "zstd", "gzip, gzip"];
    let packing = packings[usize::from(packing) % packings.len()];
    let mut headers = HeaderMap::new();
    if !packing.is_empty() {
        headers.insert("grpc-encoding", HeaderValue::from_static(packing));
    }
    let read = || grpc::message(Bytes::copy_from_slice(body), &headers, MOST);
    let message = read();
    assert_eq!(read(), message);
    let Ok(message) = message else {
        return;
    };
    assert!(message.len() <= MOST, "{} bytes", message.len());
    if body[0] == 0 {
        assert_eq!(message, body[5..]);
    }
}

/// Numbers that can stand on a page, under reasons that nobody can make up.
fn can_be_shown(counted: &Counted) {
    assert!(counted.oldest >= 0.0, "{counted:?}");
    for reason in &counted.reasons {
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        assert!(reason.chars().all(is_word), "{counted:?}");
    }
}

/// The first byte chooses the event, the rest is what it says. It is read the same each time, and the oldest only ages.
pub fn queue(input: &[u8]) {
    let Some((&name, data)) = input.split_first() else {
        return;
    };
    let names = ["snapshot", "queue", "dropped", "end", "message"];
    let name = names[usize::from(name) % names.len()];
    let data = String::from_utf8_lossy(data);
    let (now, later) = (of_queue(name, &data, 0.0), of_queue(name, &data, 60.0));
    assert_eq!(of_queue(name, &data, 0.0), now);
    let (Some(now), Some(later)) = (&now, &later) else {
        assert_eq!(now, later);
        return;
    };
    can_be_shown(now);
    assert!(later.oldest >= now.oldest, "{now:?} {later:?}");
    assert_eq!((later.waiting, later.running), (now.waiting, now.running));
}

/// A line is a message. No more runs are counted than are kept, and what is told twice counts once.
pub fn control_plane(input: &[u8]) {
    const MOST: usize = 4;
    let text = String::from_utf8_lossy(input);
    let count = |times: usize| {
        let messages = (0..times).flat_map(|_| text.lines());
        of_control_plane(messages, MOST, Timestamp::UNIX_EPOCH)
    };
    let once = count(1);
    assert_eq!(count(1), once);
    if let Some(counted) = &once {
        can_be_shown(counted);
        assert!(
            counted.waiting + counted.running <= MOST as u64,
            "{counted:?}"
        );
    }
    if text.lines().count() < MOST {
        assert_eq!(count(2), once);
    }
}
