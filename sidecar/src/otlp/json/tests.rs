use super::*;
use crate::otlp::wire::Fields as Read;

/// A point within a gauge within everything else.
fn around(point: &str) -> String {
    format!(
        r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{"name":"x","gauge":{{"dataPoints":[{point}]}}}}]}}]}}]}}"#
    )
}

/// The fields of the one point of a request: number and bytes.
fn point(json: &str) -> Result<Vec<(u32, String)>, String> {
    let bytes = to_protobuf(json.as_bytes());
    bytes
        .map(|bytes| point_of(&bytes))
        .map_err(|error| error.to_string())
}

fn point_of(bytes: &[u8]) -> Vec<(u32, String)> {
    let mut message = bytes;
    for number in [1, 2, 2, 5, 1] {
        let mut fields = Read::of(message);
        let found = std::iter::from_fn(|| fields.read().unwrap());
        let last = found.filter(|field| field.number == number).last();
        message = last.unwrap().content.bytes().unwrap();
    }
    let mut fields = Read::of(message);
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

#[test]
fn what_is_unknown_or_null_is_as_if_it_were_not_there() {
    for given in [
        r#"{"description":null,"asInt":null}"#,
        r#"{"as_int":"3","time_unix_nano":"1"}"#,
        r#"{"later":{"deep":[1,{"a":[]}]}}"#,
    ] {
        assert_eq!(point(&around(given)), Ok(vec![]), "{given}");
    }
    assert_eq!(to_protobuf(br#"{"resource_metrics":[{}]}"#).unwrap(), b"");
    assert_eq!(to_protobuf(b"{}").unwrap(), b"");
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
            "[]" => to_protobuf(given.as_bytes()).unwrap_err().to_string(),
            _ => point(&around(given)).unwrap_err(),
        };
        assert!(said.contains(expected), "{given}: {said}");
    }
    assert!(to_protobuf(b"{} {}").is_err());
    let deep = format!("{}{}", r#"{"a":"#.repeat(200), "1");
    assert!(to_protobuf(deep.as_bytes()).is_err());
}

#[test]
fn ids_are_hexadecimal_and_other_bytes_base64() {
    assert_eq!(unhex("00fFa1"), Some(vec![0, 255, 161]));
    assert_eq!(unhex("abc"), None);
    assert_eq!(unhex("zz"), None);
    for text in ["-_8=", "-_8", "+/8=", "+/8"] {
        assert_eq!(unbase64(text), Some(vec![251, 255]), "{text}");
    }
    assert_eq!(unbase64("?"), None);
}
