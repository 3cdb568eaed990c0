use super::*;
use crate::otlp::{
    inflate::{Packing, unpack},
    wire::Fields as Read,
};

/// More than anything here becomes, except where that is the point.
const MOST: usize = 64 * 1024;

/// A point within a gauge within everything else.
fn around(point: &str) -> String {
    format!(
        r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{"name":"x","gauge":{{"dataPoints":[{point}]}}}}]}}]}}]}}"#
    )
}

/// The fields of the one point of a request: number and bytes.
fn point(json: &str) -> Result<Vec<(u32, String)>, String> {
    let bytes = to_protobuf(json.as_bytes(), MOST);
    bytes
        .map(|bytes| point_of(&bytes))
        .map_err(|denied| denied.message())
}

/// The message at the end of a way of field numbers.
fn at<'b>(bytes: &'b [u8], way: &[u32]) -> &'b [u8] {
    let mut message = bytes;
    for number in way {
        let mut fields = Read::of(message);
        let found = std::iter::from_fn(|| fields.read().unwrap());
        let last = found.filter(|field| field.number == *number).last();
        message = last.unwrap().content.bytes().unwrap();
    }
    message
}

fn point_of(bytes: &[u8]) -> Vec<(u32, String)> {
    let mut fields = Read::of(at(bytes, &[1, 2, 2, 5, 1]));
    let mut read = Vec::new();
    while let Some(field) = fields.read().unwrap() {
        let text = match (field.number, field.content.fixed64()) {
            (4, Ok(bits)) => f64::from_bits(bits).to_string(),
            (_, Ok(bits)) => bits.cast_signed().to_string(),
            _ => format!("{:?}", field.content),
        };
        read.push((field.number, text));
    }
    read
}

#[test]
fn numbers_are_read_in_every_form_that_is_allowed() {
    let cases = [
        (r#"{"asInt":"3"}"#, (6, "3")),
        (r#"{"asInt":3}"#, (6, "3")),
        (r#"{"asInt":-3}"#, (6, "-3")),
        (
            r#"{"asInt":"-9223372036854775808"}"#,
            (6, "-9223372036854775808"),
        ),
        (r#"{"timeUnixNano":"1"}"#, (3, "1")),
        (r#"{"timeUnixNano":1e3}"#, (3, "1000")),
        (r#"{"timeUnixNano":3.0}"#, (3, "3")),
        (r#"{"asDouble":1}"#, (4, "1")),
        (r#"{"asDouble":1.5}"#, (4, "1.5")),
        (r#"{"asDouble":"1.5"}"#, (4, "1.5")),
        (r#"{"asDouble":"NaN"}"#, (4, "NaN")),
        (r#"{"asDouble":"Infinity"}"#, (4, "inf")),
        (r#"{"asDouble":"-Infinity"}"#, (4, "-inf")),
    ];
    assert_eq!(cases.len(), 13);
    for (given, expected) in cases {
        let (number, text) = expected;
        assert_eq!(
            point(&around(given)),
            Ok(vec![(number, text.to_owned())]),
            "{given}"
        );
    }
}

/// A metric with this data.
fn metric(data: &str) -> Result<Vec<u8>, String> {
    let json = format!(
        r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{"name":"x",{data}}}]}}]}}]}}"#
    );
    to_protobuf(json.as_bytes(), MOST).map_err(|denied| denied.message())
}

/// The last double of this number in a message.
fn last_double(message: &[u8], number: u32) -> Option<f64> {
    let mut fields = Read::of(message);
    let found = std::iter::from_fn(|| fields.read().unwrap());
    let last = found.filter(|field| field.number == number).last()?;
    Some(f64::from_bits(last.content.fixed64().unwrap()))
}

#[test]
fn doubles_are_read_in_every_form_wherever_they_stand() {
    let forms = [
        ("1", 1.0),
        ("1.5", 1.5),
        (r#""1.5""#, 1.5),
        (r#""NaN""#, f64::NAN),
        (r#""Infinity""#, f64::INFINITY),
        (r#""-Infinity""#, f64::NEG_INFINITY),
    ];
    assert_eq!(forms.len(), 6);
    let histogram = [1, 2, 2, 9, 1];
    let exponential = [1, 2, 2, 10, 1];
    let summary = [1, 2, 2, 11, 1];
    for (given, expected) in forms {
        for (field, number, kind, way) in [
            ("sum", 5, "histogram", histogram),
            ("min", 11, "histogram", histogram),
            ("max", 12, "histogram", histogram),
            ("sum", 5, "exponentialHistogram", exponential),
            ("min", 12, "exponentialHistogram", exponential),
            ("max", 13, "exponentialHistogram", exponential),
            ("zeroThreshold", 14, "exponentialHistogram", exponential),
            ("sum", 5, "summary", summary),
        ] {
            let data = format!(r#""{kind}":{{"dataPoints":[{{"{field}":{given}}}]}}"#);
            let bytes = metric(&data).unwrap();
            let read = last_double(at(&bytes, &way), number).unwrap();
            assert_eq!(read.to_bits(), expected.to_bits(), "{data}");
        }
        let quantile = format!(
            r#""summary":{{"dataPoints":[{{"quantileValues":[{{"quantile":{given},"value":{given}}}]}}]}}"#
        );
        let bytes = metric(&quantile).unwrap();
        for number in [1, 2] {
            let read = last_double(at(&bytes, &[1, 2, 2, 11, 1, 6]), number).unwrap();
            assert_eq!(read.to_bits(), expected.to_bits(), "{quantile}");
        }
        let bounds = format!(r#""histogram":{{"dataPoints":[{{"explicitBounds":[0,{given}]}}]}}"#);
        let bytes = metric(&bounds).unwrap();
        let last = last_double(at(&bytes, &histogram), 7).unwrap();
        assert_eq!(last.to_bits(), expected.to_bits(), "{bounds}");
        let attribute = format!(
            r#""gauge":{{"dataPoints":[{{"attributes":[{{"key":"k","value":{{"doubleValue":{given}}}}}]}}]}}"#
        );
        let bytes = metric(&attribute).unwrap();
        let read = last_double(at(&bytes, &[1, 2, 2, 5, 1, 7, 2]), 4).unwrap();
        assert_eq!(read.to_bits(), expected.to_bits(), "{attribute}");
    }
}

#[test]
fn of_two_values_the_last_one_counts() {
    let cases = [
        (r#"{"asInt":"3","asDouble":1.5}"#, (4, "1.5")),
        (r#"{"asDouble":1.5,"asInt":"3"}"#, (6, "3")),
        (r#"{"asInt":"1","asInt":"2"}"#, (6, "2")),
        (r#"{"asDouble":1,"asDouble":"2.5"}"#, (4, "2.5")),
        (r#"{"timeUnixNano":"1","timeUnixNano":2}"#, (3, "2")),
    ];
    assert_eq!(cases.len(), 5);
    for (given, expected) in cases {
        let fields = point(&around(given)).unwrap();
        let (number, text) = expected;
        assert_eq!(fields.last(), Some(&(number, text.to_owned())), "{given}");
    }
}

#[test]
fn an_enumeration_is_a_number_and_what_is_missing_is_its_default() {
    let temporality = |given: &str| {
        let bytes = metric(&format!(r#""sum":{{"aggregationTemporality":{given}}}"#))?;
        let mut fields = Read::of(at(&bytes, &[1, 2, 2, 7]));
        let field = fields.read().unwrap().unwrap();
        Ok::<_, String>((field.number, field.content.varint().unwrap()))
    };
    let cases = [
        ("2", 2),
        ("1", 1),
        // Against the rules, and in use.
        (r#""AGGREGATION_TEMPORALITY_CUMULATIVE""#, 2),
    ];
    assert_eq!(cases.len(), 3);
    for (given, expected) in cases {
        assert_eq!(temporality(given), Ok((2, expected)), "{given}");
    }
    let said = temporality(r#""CUMULATIVE""#).unwrap_err();
    assert!(said.contains("a temporality"), "{said}");
    let bare = r#""exponentialHistogram":{"dataPoints":[{"count":"2","scale":1}]}"#;
    let bytes = metric(bare).unwrap();
    let mut fields = Read::of(at(&bytes, &[1, 2, 2, 10, 1]));
    let found = std::iter::from_fn(|| fields.read().unwrap());
    let numbers: Vec<_> = found.map(|field| field.number).collect();
    assert_eq!(numbers, [4, 6], "no flags, no zero count, no buckets");
}

#[test]
fn what_is_unknown_or_null_is_as_if_it_were_not_there() {
    let cases = [
        r#"{"description":null,"asInt":null}"#,
        r#"{"as_int":"3","time_unix_nano":"1"}"#,
        r#"{"later":{"deep":[1,{"a":[]}]}}"#,
    ];
    assert_eq!(cases.len(), 3);
    for given in cases {
        assert_eq!(point(&around(given)), Ok(vec![]), "{given}");
    }
    for given in [r#"{"resource_metrics":[{}]}"#, "{}"] {
        assert_eq!(to_protobuf(given.as_bytes(), MOST).unwrap(), b"");
    }
}

#[test]
fn what_is_wrong_is_named() {
    let cases = [
        (r#"{"asInt":"x"}"#, "a whole number, or one as text"),
        (r#"{"asInt":1.5}"#, "a whole number, or one as text"),
        (r#"{"timeUnixNano":-1}"#, "-1 is out of range"),
        (r#"{"asDouble":"inf"}"#, "NaN"),
        (r#"{"attributes":{}}"#, "a list"),
        (r#"{"exemplars":[{"spanId":"abc"}]}"#, "hexadecimal"),
        (
            r#"{"attributes":[{"key":1}]}"#,
            "a number stands where none may",
        ),
        ("[]", "an object"),
    ];
    assert_eq!(cases.len(), 8);
    for (given, expected) in cases {
        let said = match given {
            "[]" => to_protobuf(given.as_bytes(), MOST).unwrap_err().message(),
            _ => point(&around(given)).unwrap_err(),
        };
        assert!(said.contains(expected), "{given}: {said}");
    }
    assert!(to_protobuf(b"{} {}", MOST).is_err());
    let deep = format!("{}{}", r#"{"a":"#.repeat(200), "1");
    assert!(to_protobuf(deep.as_bytes(), MOST).is_err());
}

#[test]
fn ids_are_hexadecimal_and_other_bytes_base64() {
    assert_eq!(unhex("00fFa1"), Some(vec![0, 255, 161]));
    assert_eq!(unhex("abc"), None);
    assert_eq!(unhex("zz"), None);
    let texts = ["-_8=", "-_8", "+/8=", "+/8"];
    assert_eq!(texts.len(), 4);
    for text in texts {
        assert_eq!(unbase64(text), Some(vec![251, 255]), "{text}");
    }
    assert_eq!(unbase64("?"), None);
}

/// A histogram with a list of so many bytes of ones under this name.
fn ones(field: &str, bytes: usize) -> String {
    let list = "1,".repeat(bytes / 2);
    let data = format!(
        r#""histogram":{{"dataPoints":[{{"{field}":[{}]}}]}}"#,
        list.trim_end_matches(',')
    );
    format!(r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{"name":"x",{data}}}]}}]}}]}}"#)
}

#[test]
fn what_swells_on_its_way_is_refused_as_too_large_plain_and_packed() {
    for field in ["bucketCounts", "explicitBounds"] {
        let fits = to_protobuf(ones(field, MOST / 6).as_bytes(), MOST).unwrap();
        assert!(fits.capacity() <= MOST, "{field}: {}", fits.capacity());
        let plain = ones(field, MOST / 2);
        let gzip = {
            use std::io::Write;
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(plain.as_bytes()).unwrap();
            encoder.finish().unwrap()
        };
        assert!(gzip.len() < 1_000, "{field}: {} bytes", gzip.len());
        for (packing, sent) in [(Packing::None, plain.into_bytes()), (Packing::Gzip, gzip)] {
            let json = unpack(sent.into(), packing, MOST).unwrap();
            assert_eq!(
                to_protobuf(&json, MOST),
                Err(Denied::TooLarge(MOST)),
                "{field} {packing:?}"
            );
        }
    }
}

#[test]
fn what_comes_after_too_much_is_not_read() {
    let swollen = ones("bucketCounts", MOST);
    let broken = swollen.trim_end_matches(['}', ']']);
    assert_eq!(
        to_protobuf(broken.as_bytes(), MOST),
        Err(Denied::TooLarge(MOST))
    );
}
