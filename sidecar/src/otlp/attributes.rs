//! Attributes as text: what the value of a label says.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::wire::{Content, Fields, Malformed};
use crate::store::{Pair, Refusal};

/// Values within values, at most.
const DEPTH: usize = 16;
/// Entries of one map, at most; as text, so many are longer than the value of a label may be.
const ENTRIES: usize = 1_024;

/// The attributes in a row of fields, as name and text. Which field they are does not matter; the last of a name counts.
pub fn pairs(fields: &[u8]) -> Result<Vec<Pair>, Refusal> {
    let mut pairs: Vec<Pair> = Vec::new();
    let mut fields = Fields::of(fields);
    while let Some(field) = fields.read().map_err(|_| Refusal::Text)? {
        let message = field.content.bytes().map_err(|_| Refusal::Text)?;
        let (name, value) = key_value(message).map_err(|_| Refusal::Text)?;
        let name = std::str::from_utf8(name).map_err(|_| Refusal::Text)?;
        let mut text = String::new();
        write(value, Place::Alone, DEPTH, &mut text)?;
        match pairs.iter_mut().find(|pair| *pair.name == *name) {
            Some(pair) => pair.value = text,
            None => pairs.push(Pair {
                name: name.to_owned(),
                value: text,
            }),
        }
    }
    Ok(pairs)
}

/// Name and value of an attribute.
pub(super) fn key_value(message: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let (mut name, mut value) = (&[][..], &[][..]);
    let mut fields = Fields::of(message);
    while let Some(field) = fields.read()? {
        match field.number {
            1 => name = field.content.bytes()?,
            2 => value = field.content.bytes()?,
            _ => {}
        }
    }
    Ok((name, value))
}

/// Where a value stands: some are written otherwise within JSON.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Alone,
    Within,
}

/// Writes a value as OpenTelemetry says for formats that only have text.
fn write(value: &[u8], place: Place, depth: usize, into: &mut String) -> Result<(), Refusal> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Refusal::TooLong);
    };
    let mut last = None;
    let mut fields = Fields::of(value);
    while let Some(field) = fields.read().map_err(|_| Refusal::Text)? {
        last = Some(field);
    }
    let Some(field) = last else {
        into.push_str(match place {
            Place::Alone => "",
            Place::Within => "null",
        });
        return Ok(());
    };
    match (field.number, field.content) {
        (1, Content::Bytes(text)) => {
            let text = std::str::from_utf8(text).map_err(|_| Refusal::Text)?;
            match place {
                Place::Alone => into.push_str(text),
                Place::Within => write_json(text, into),
            }
        }
        (2, Content::Varint(number)) => into.push_str(if number == 0 { "false" } else { "true" }),
        (3, Content::Varint(number)) => into.push_str(&number.cast_signed().to_string()),
        (4, Content::Fixed64(bits)) => write_double(f64::from_bits(bits), place, into),
        (5, Content::Bytes(list)) => return write_list(list, depth, into),
        (6, Content::Bytes(list)) => return write_map(list, depth, into),
        (7, Content::Bytes(bytes)) => {
            let text = STANDARD.encode(bytes);
            match place {
                Place::Alone => into.push_str(&text),
                Place::Within => write_json(&text, into),
            }
        }
        (1..=7, _) => return Err(Refusal::Text),
        // A kind of value that came after this was written: as if it were empty.
        _ => {}
    }
    Ok(())
}

fn write_double(value: f64, place: Place, into: &mut String) {
    let special = match value {
        value if value.is_nan() => Some("NaN"),
        f64::INFINITY => Some("Infinity"),
        f64::NEG_INFINITY => Some("-Infinity"),
        _ => None,
    };
    match (special, place) {
        (Some(word), Place::Alone) => into.push_str(word),
        (Some(word), Place::Within) => write_json(word, into),
        (None, _) => match serde_json::Number::from_f64(value) {
            Some(number) => into.push_str(&number.to_string()),
            None => into.push_str("null"),
        },
    }
}

fn write_json(text: &str, into: &mut String) {
    into.push_str(&serde_json::Value::from(text).to_string());
}

fn write_list(list: &[u8], depth: usize, into: &mut String) -> Result<(), Refusal> {
    into.push('[');
    let mut fields = Fields::of(list);
    let mut is_first = true;
    while let Some(field) = fields.read().map_err(|_| Refusal::Text)? {
        if field.number != 1 {
            continue;
        }
        if !is_first {
            into.push(',');
        }
        is_first = false;
        let value = field.content.bytes().map_err(|_| Refusal::Text)?;
        write(value, Place::Within, depth, into)?;
    }
    into.push(']');
    Ok(())
}

/// In the order of names, so that the same map is the same text; the last of a name counts.
fn write_map(list: &[u8], depth: usize, into: &mut String) -> Result<(), Refusal> {
    let mut entries: Vec<(&str, &[u8])> = Vec::new();
    let mut fields = Fields::of(list);
    while let Some(field) = fields.read().map_err(|_| Refusal::Text)? {
        if field.number != 1 {
            continue;
        }
        if entries.len() == ENTRIES {
            return Err(Refusal::TooLong);
        }
        let message = field.content.bytes().map_err(|_| Refusal::Text)?;
        let (name, value) = key_value(message).map_err(|_| Refusal::Text)?;
        let name = std::str::from_utf8(name).map_err(|_| Refusal::Text)?;
        entries.push((name, value));
    }
    entries.reverse();
    entries.sort_by_key(|(name, _)| *name);
    entries.dedup_by_key(|(name, _)| *name);
    into.push('{');
    for (at, (name, value)) in entries.into_iter().enumerate() {
        if at > 0 {
            into.push(',');
        }
        write_json(name, into);
        into.push(':');
        write(value, Place::Within, depth, into)?;
    }
    into.push('}');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp::write::Writer;

    fn one(value: impl FnOnce(&mut Writer)) -> Result<String, Refusal> {
        let mut writer = Writer::default();
        writer.message(7, |pair| {
            pair.bytes(1, b"key");
            pair.message(2, value);
        });
        let pairs = pairs(&writer.into_bytes())?;
        assert_eq!(pairs.len(), 1);
        assert_eq!(pairs[0].name, "key");
        Ok(pairs[0].value.clone())
    }

    #[test]
    fn every_kind_of_value_has_its_text() {
        assert_eq!(one(|value| value.bytes(1, b"text")).unwrap(), "text");
        assert_eq!(one(|value| value.varint(2, 1)).unwrap(), "true");
        assert_eq!(one(|value| value.varint(3, u64::MAX)).unwrap(), "-1");
        assert_eq!(one(|value| value.double(4, 0.5)).unwrap(), "0.5");
        assert_eq!(one(|value| value.double(4, f64::NAN)).unwrap(), "NaN");
        assert_eq!(
            one(|value| value.double(4, f64::NEG_INFINITY)).unwrap(),
            "-Infinity"
        );
        assert_eq!(one(|value| value.bytes(7, &[1, 2, 3])).unwrap(), "AQID");
        assert_eq!(one(|_| {}).unwrap(), "");
        let nested = one(|value| {
            value.message(5, |list| {
                list.message(1, |item| item.bytes(1, b"a\"b"));
                list.message(1, |item| item.double(4, f64::NAN));
                list.message(1, |_| {});
                list.message(1, |item| {
                    item.message(6, |map| {
                        map.message(1, |pair| {
                            pair.bytes(1, b"k");
                            pair.message(2, |value| value.varint(3, 4));
                        });
                    });
                });
            });
        });
        assert_eq!(nested.unwrap(), r#"["a\"b","NaN",null,{"k":4}]"#);
    }

    #[test]
    fn a_map_is_the_same_text_in_any_order() {
        let map = |names: &[&str]| {
            one(|value| {
                value.message(6, |map| {
                    for (at, name) in names.iter().enumerate() {
                        map.message(1, |pair| {
                            pair.bytes(1, name.as_bytes());
                            pair.message(2, |value| value.varint(3, at as u64));
                        });
                    }
                });
            })
        };
        assert_eq!(map(&["z", "a"]).unwrap(), r#"{"a":1,"z":0}"#);
        assert_eq!(map(&["z", "a", "z"]).unwrap(), r#"{"a":1,"z":2}"#);
        assert_eq!(map(&[]).unwrap(), "{}");
        assert!(map(&["a"; ENTRIES]).is_ok());
        assert_eq!(map(&["a"; ENTRIES + 1]), Err(Refusal::TooLong));
    }

    #[test]
    fn text_that_is_no_text_and_depth_without_end_are_refused() {
        assert_eq!(one(|value| value.bytes(1, &[0xff])), Err(Refusal::Text));
        fn deep(value: &mut Writer, left: usize) {
            if left > 0 {
                value.message(5, |list| list.message(1, |item| deep(item, left - 1)));
            }
        }
        assert!(one(|value| deep(value, DEPTH - 1)).is_ok());
        assert_eq!(one(|value| deep(value, DEPTH)), Err(Refusal::TooLong));
    }

    #[test]
    fn the_last_of_a_name_counts() {
        let mut writer = Writer::default();
        for text in ["first", "last"] {
            writer.message(7, |pair| {
                pair.bytes(1, b"key");
                pair.message(2, |value| value.bytes(1, text.as_bytes()));
            });
        }
        let pairs = pairs(&writer.into_bytes()).unwrap();
        assert_eq!(pairs.len(), 1);
        assert_eq!(pairs[0].value, "last");
    }
}
