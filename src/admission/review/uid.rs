//! The uid of a review whose rest may be anything: cut off, malformed, or the cause of a panic.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};

use super::Text;

/// The uid of the request, if the body is good that far.
pub fn uid_of(body: &[u8]) -> Option<String> {
    let mut found = None;
    let path = Seek {
        path: &["request", "uid"],
        found: &mut found,
    };
    // What comes after the uid may be wrong; the uid is right all the same.
    drop(path.deserialize(&mut serde_json::Deserializer::from_slice(body)));
    found
}

struct Seek<'a> {
    path: &'static [&'static str],
    found: &'a mut Option<String>,
}

impl<'de> DeserializeSeed<'de> for Seek<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.path.is_empty() {
            deserializer.deserialize_str(self)
        } else {
            deserializer.deserialize_map(self)
        }
    }
}

impl<'de> Visitor<'de> for Seek<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a review")
    }

    fn visit_str<E>(self, uid: &str) -> Result<(), E> {
        *self.found = Some(uid.to_owned());
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { path, found } = self;
        let Some((first, rest)) = path.split_first() else {
            return Ok(());
        };
        while let Some(key) = map.next_key::<Text<'de>>()? {
            if &*key == *first {
                let found = &mut *found;
                map.next_value_seed(Seek { path: rest, found })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}
