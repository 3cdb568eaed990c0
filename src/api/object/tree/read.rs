//! Types are read from a tree as they are from a [`Value`](serde_json::Value).

use serde::de::value::{
    BorrowedStrDeserializer, MapAccessDeserializer, MapDeserializer, SeqDeserializer,
};
use serde::de::{Deserializer, IntoDeserializer, Unexpected, Visitor};
use serde::{de, forward_to_deserialize_any};
use serde_json::Error;

use super::Tree;

/// The name of a field on its way into a type.
#[derive(Clone, Copy)]
struct Name<'de>(&'de str);

impl<'de> IntoDeserializer<'de, Error> for Name<'de> {
    type Deserializer = BorrowedStrDeserializer<'de, Error>;

    fn into_deserializer(self) -> Self::Deserializer {
        BorrowedStrDeserializer::new(self.0)
    }
}

impl<'de> IntoDeserializer<'de, Error> for &'de Tree<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for &'de Tree<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Tree::Null => visitor.visit_unit(),
            Tree::Bool(truth) => visitor.visit_bool(*truth),
            Tree::Number(number) => number.deserialize_any(visitor),
            Tree::Text(text) => visitor.visit_borrowed_str(text),
            Tree::List(entries) => {
                let mut list = SeqDeserializer::<_, Error>::new(entries.iter());
                let read = visitor.visit_seq(&mut list)?;
                list.end()?;
                Ok(read)
            }
            Tree::Fields(fields) => {
                let fields = fields.iter().map(|(name, value)| (Name(name), value));
                let mut map: MapDeserializer<'de, _, Error> = MapDeserializer::new(fields);
                let read = visitor.visit_map(&mut map)?;
                map.end()?;
                Ok(read)
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Tree::Null => visitor.visit_none(),
            Tree::Bool(_) | Tree::Number(_) | Tree::Text(_) | Tree::List(_) | Tree::Fields(_) => {
                visitor.visit_some(self)
            }
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self {
            Tree::Text(text) => visitor.visit_enum(BorrowedStrDeserializer::new(text)),
            Tree::Fields(fields) => {
                let fields = fields.iter().map(|(name, value)| (Name(name), value));
                visitor.visit_enum(MapAccessDeserializer::new(MapDeserializer::new(fields)))
            }
            Tree::Null | Tree::Bool(_) | Tree::Number(_) | Tree::List(_) => {
                let other = Unexpected::Other("a value of another sort");
                Err(de::Error::invalid_type(other, &"string or map"))
            }
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier
    }
}
