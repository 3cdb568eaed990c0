use std::sync::Arc;

use super::{
    super::{
        super::{
            accept::{Format, Style},
            plan::plan,
        },
        Span,
    },
    *,
};
use crate::model::{Buckets, Family, Histogram, Number};

/// Fields of a message as they are on the wire: numbers, or bytes.
#[derive(Clone, Debug, PartialEq)]
enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

fn take_varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for at in 0.. {
        let (byte, rest) = bytes.split_first().expect("a byte");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(length);
    *bytes = rest;
    taken
}

fn take_message<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
    let length = usize::try_from(take_varint(bytes)).expect("a length");
    take(bytes, length)
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = take_varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(take_varint(&mut bytes)),
            1 => Field::Number(u64::from_le_bytes(
                take(&mut bytes, 8).try_into().expect("eight bytes"),
            )),
            2 => Field::Bytes(take_message(&mut bytes).to_vec()),
            other => panic!("no such wire type: {other}"),
        };
        fields.push((key >> 3, field));
    }
    fields
}

fn numbers(bytes: &[u8], field: u64) -> Vec<u64> {
    let found = fields(bytes)
        .into_iter()
        .filter(|(number, _)| *number == field);
    found
        .map(|(_, field)| match field {
            Field::Number(number) => number,
            Field::Bytes(bytes) => panic!("bytes: {bytes:?}"),
        })
        .collect()
}

fn messages(bytes: &[u8], field: u64) -> Vec<Vec<u8>> {
    let found = fields(bytes)
        .into_iter()
        .filter(|(number, _)| *number == field);
    found
        .map(|(_, field)| match field {
            Field::Bytes(bytes) => bytes,
            Field::Number(number) => panic!("a number: {number}"),
        })
        .collect()
}

fn text(bytes: &[u8], field: u64) -> String {
    let mut found = messages(bytes, field);
    String::from_utf8(found.pop().unwrap_or_default()).expect("text")
}

fn double(bytes: &[u8], field: u64) -> f64 {
    f64::from_bits(numbers(bytes, field)[0])
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -((value & 1).cast_signed())
}

/// One family as the message it becomes.
fn written(name: &str, kind: Kind, value: Value) -> Vec<u8> {
    let style = Style {
        format: Format::Protobuf,
        escaping: Escaping::Underscores,
    };
    let family = Family {
        name: name.into(),
        kind,
        help: "Help".into(),
        unit: "seconds".into(),
    };
    let mut span = Span::default();
    if let Value::Exponential(histogram) = &value {
        span.add(histogram);
    }
    let series = Series {
        labels: Labels::of([("a.b", "c\"d")]),
        start: 5_000_000_007,
        time: 9_000_000_000,
        value,
    };
    let heading = &plan(&[&family], 0, style).headings[0].1;
    let (mut writer, mut page) = (Protobuf::new(style.escaping), Vec::new());
    writer.begin(heading, span.ladder(), &mut page);
    writer.series(heading, &series, &mut page);
    writer.end(&mut page);
    let mut rest = &*page;
    let message = take_message(&mut rest).to_vec();
    assert!(rest.is_empty());
    message
}

#[test]
fn a_counter_has_its_start_and_its_example() {
    let example = Exemplar {
        labels: Labels::of([("trace_id", "x")]),
        value: 0.5,
        time: 7_000_000_000,
    };
    let family = written(
        "x_total",
        Kind::Counter,
        Value::Total(Number::Integer(3), Some(Box::new(example))),
    );
    assert_eq!(
        (&*text(&family, 1), &*text(&family, 2), &*text(&family, 5)),
        ("x_total", "Help", "seconds")
    );
    assert_eq!(numbers(&family, 3), [0]);
    let metric = &messages(&family, 4)[0];
    let label = &messages(metric, 1)[0];
    assert_eq!((&*text(label, 1), &*text(label, 2)), ("a_b", "c\"d"));
    let counter = &messages(metric, 3)[0];
    assert_eq!(double(counter, 1), 3.0);
    let start = &messages(counter, 3)[0];
    assert_eq!((numbers(start, 1), numbers(start, 2)), (vec![5], vec![7]));
    let example = &messages(counter, 2)[0];
    assert_eq!(double(example, 2), 0.5);
    assert_eq!(numbers(&messages(example, 3)[0], 1), [7]);
}

#[test]
fn numbers_are_where_their_kind_is() {
    for (kind, type_, field) in [
        (Kind::Gauge, 1, 2),
        (Kind::Info, 1, 2),
        (Kind::StateSet, 1, 2),
        (Kind::Unknown, 3, 5),
        (Kind::Counter, 0, 3),
    ] {
        let family = written("x", kind, Value::Number(Number::Float(1.0)));
        assert_eq!(numbers(&family, 3), [type_]);
        let metric = &messages(&family, 4)[0];
        assert_eq!(double(&messages(metric, field)[0], 1), 1.0, "{kind:?}");
    }
}

#[test]
fn a_histogram_with_fixed_bounds_has_buckets() {
    let value = Histogram {
        bounds: Arc::from([1.0, 2.0, f64::INFINITY]),
        counts: Box::from([1, 2, 3, 0]),
        count: 6,
        sum: None,
        exemplars: Vec::new(),
    };
    let family = written("x", Kind::Histogram, Value::Histogram(Box::new(value)));
    let histogram = &messages(&messages(&family, 4)[0], 7)[0];
    assert_eq!(numbers(histogram, 1), [6]);
    assert!(double(histogram, 2).is_nan());
    let buckets: Vec<_> = messages(histogram, 3)
        .iter()
        .map(|bucket| (double(bucket, 2), numbers(bucket, 1)[0]))
        .collect();
    assert_eq!(buckets, [(1.0, 1), (2.0, 3)]);
    assert_eq!(numbers(histogram, 5), Vec::<u64>::new());
}

#[test]
fn an_exponential_histogram_is_native_and_has_buckets_too() {
    let value = Exponential {
        scale: -1,
        zero_threshold: 0.25,
        zero_count: 1,
        positive: Buckets {
            offset: 1,
            counts: vec![4, 3],
        },
        negative: Buckets {
            offset: -2,
            counts: vec![5],
        },
        count: 13,
        sum: Some(70.5),
        exemplars: Vec::new(),
    };
    let family = written(
        "x",
        Kind::Histogram,
        Value::Exponential(Box::new(value.clone())),
    );
    let histogram = &messages(&messages(&family, 4)[0], 7)[0];
    assert_eq!(unzigzag(numbers(histogram, 5)[0]), -1);
    assert_eq!(double(histogram, 6), 0.25);
    assert_eq!(numbers(histogram, 7), [1]);
    let spans = |field| -> Vec<(i64, u64)> {
        let spans = messages(histogram, field).into_iter();
        spans
            .map(|span| (unzigzag(numbers(&span, 1)[0]), numbers(&span, 2)[0]))
            .collect()
    };
    let deltas = |field| -> Vec<i64> {
        let packed = messages(histogram, field).concat();
        let mut rest = &*packed;
        std::iter::from_fn(|| (!rest.is_empty()).then(|| unzigzag(take_varint(&mut rest))))
            .collect()
    };
    assert_eq!((spans(12), deltas(13)), (vec![(2, 2)], vec![4, -1]));
    assert_eq!((spans(9), deltas(10)), (vec![(-1, 1)], vec![5]));
    let last = messages(histogram, 3).pop().expect("a bucket");
    assert_eq!((double(&last, 2), numbers(&last, 1)[0]), (256.0, 13));

    let without = Exponential { sum: None, ..value };
    let family = written("x", Kind::Histogram, Value::Exponential(Box::new(without)));
    assert_eq!(messages(&family, 4), Vec::<Vec<u8>>::new());
}

#[test]
fn a_summary_has_quantiles() {
    let value = Summary {
        count: 2,
        sum: 3.0,
        quantiles: Box::from([(0.5, 1.0)]),
    };
    let family = written("x", Kind::Summary, Value::Summary(Box::new(value)));
    let summary = &messages(&messages(&family, 4)[0], 4)[0];
    assert_eq!((numbers(summary, 1), double(summary, 2)), (vec![2], 3.0));
    let quantile = &messages(summary, 3)[0];
    assert_eq!((double(quantile, 1), double(quantile, 2)), (0.5, 1.0));
}
