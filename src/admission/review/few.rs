//! Lists of which a review holds few: who asks is in some groups, and an object has a few owners.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Entries that a list may have. An entry can take fifty times the memory of its text, `{},`; of 10,000 it is at most 1 MiB.
/// The groups of a user, the longest of these lists, come from tokens of some KiB.
const MOST: usize = 10_000;

/// A list, or null, which counts as none.
///
/// # Errors
///
/// When it has too many entries, or one that cannot be read.
pub(super) fn few<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_option(Few(PhantomData))
}

struct Few<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Few<T> {
    type Value = Option<Vec<T>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = list.next_element()? {
            if entries.len() == MOST {
                return Err(A::Error::custom(format_args!(
                    "a list of groups or owners holds too many values: at most {MOST} are read"
                )));
            }
            entries.push(entry);
        }
        Ok(Some(entries))
    }
}
