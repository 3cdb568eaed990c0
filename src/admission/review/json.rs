//! Specs and statuses from text to trees, without the liberties that a plain parser takes.

use std::fmt;

use crate::api::object::cause::quoted;
use crate::api::object::tree::Allowance;
use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

/// Why a part of an object cannot be judged.
#[derive(Debug, thiserror::Error)]
#[error("cannot be read: {0}")]
pub struct Unreadable(String);

/// The tree of a part of an object.
///
/// # Errors
///
/// When a key stands twice, since two readers might then see two objects, when it is nested so deeply that reading it
/// could exhaust the stack, and when it holds so much that it could exhaust the memory. The API server sends none of
/// these on its own account.
pub fn read(raw: &RawValue) -> Result<Value, Unreadable> {
    let mut deserializer = serde_json::Deserializer::from_str(raw.get());
    let read = Strict(&Allowance::default()).deserialize(&mut deserializer);
    read.map_err(|error| Unreadable(error.to_string()))
}

#[derive(Clone, Copy)]
struct Strict<'l>(&'l Allowance);

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.0.value()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.0.text(value)?;
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        self.0.text(&value)?;
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            self.0.field(&key, map.is_empty())?;
            let value = entries.next_value_seed(self)?;
            match map.entry(key) {
                Entry::Vacant(place) => {
                    place.insert(value);
                }
                Entry::Occupied(place) => {
                    let key = quoted(place.key());
                    return Err(A::Error::custom(format_args!("the key {key} stands twice")));
                }
            }
        }
        Ok(Value::Object(map))
    }
}
