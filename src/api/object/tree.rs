//! JSON that is looked at and not kept: a tree that borrows its texts, and what rules ask of any tree.
//!
//! A [`Value`] owns every key and every text, and costs an allocation for each. Most objects have no fault, so most trees
//! are built, looked at once and thrown away; for those there is [`Tree`]. Wherever something is changed, compared or
//! kept, a [`Value`] is the better one.

mod allowance;
mod read;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

pub use allowance::Allowance;
use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

use crate::api::object::cause::quoted;

/// What rules ask of a tree, whoever owns its texts. What is of another sort counts as absent.
pub trait Json: PartialEq + Sized {
    /// What it is.
    fn sort(&self) -> Sort<'_, Self>;
    /// A field of an object.
    fn field(&self, name: &str) -> Option<&Self>;
    /// All fields of an object.
    fn fields(&self) -> impl Iterator<Item = (&str, &Self)>;

    /// Whether it is null.
    fn is_nothing(&self) -> bool {
        matches!(self.sort(), Sort::Nothing)
    }

    /// The text, if it is one.
    fn text(&self) -> Option<&str> {
        match self.sort() {
            Sort::Text(text) => Some(text),
            Sort::Nothing | Sort::Truth(_) | Sort::Number(_) | Sort::List(_) | Sort::Fields => None,
        }
    }

    /// Whether it is true, if it is one of true and false.
    fn truth(&self) -> Option<bool> {
        match self.sort() {
            Sort::Truth(truth) => Some(truth),
            Sort::Nothing | Sort::Number(_) | Sort::Text(_) | Sort::List(_) | Sort::Fields => None,
        }
    }

    /// The entries, if it is a list.
    fn entries(&self) -> &[Self] {
        match self.sort() {
            Sort::List(entries) => entries,
            Sort::Nothing | Sort::Truth(_) | Sort::Number(_) | Sort::Text(_) | Sort::Fields => &[],
        }
    }
}

/// The sorts of JSON.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the sorts of JSON")]
pub enum Sort<'v, J> {
    Nothing,
    Truth(bool),
    Number(&'v Number),
    Text(&'v str),
    List(&'v [J]),
    Fields,
}

impl Json for Value {
    fn sort(&self) -> Sort<'_, Self> {
        match self {
            Self::Null => Sort::Nothing,
            Self::Bool(truth) => Sort::Truth(*truth),
            Self::Number(number) => Sort::Number(number),
            Self::String(text) => Sort::Text(text),
            Self::Array(entries) => Sort::List(entries),
            Self::Object(_) => Sort::Fields,
        }
    }

    fn field(&self, name: &str) -> Option<&Self> {
        self.get(name)
    }

    fn fields(&self) -> impl Iterator<Item = (&str, &Self)> {
        let fields = self.as_object().into_iter().flatten();
        fields.map(|(name, value)| (name.as_str(), value))
    }
}

/// A tree whose texts are borrowed unless they had to be unescaped. Fields are in the order of their names, and each
/// stands once.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the sorts of JSON")]
pub enum Tree<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
    List(Vec<Tree<'a>>),
    Fields(Vec<(Cow<'a, str>, Tree<'a>)>),
}

impl<'a> Tree<'a> {
    /// Reads a tree.
    ///
    /// # Errors
    ///
    /// When the text is no JSON, when it is nested so deeply that reading it could exhaust the stack, when it holds so much
    /// that it could exhaust the memory, and when a key stands twice, since two readers might then see two objects.
    pub fn parse(text: &'a str) -> serde_json::Result<Self> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let tree = Strict(&Allowance::default()).deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(tree)
    }

    /// Adds a field. Nothing happens where it is there already, or what should hold it is not.
    pub fn add(&mut self, path: &[&'a str], value: Self) {
        let (Self::Fields(fields), Some((name, below))) = (self, path.split_first()) else {
            return;
        };
        let place = fields.binary_search_by(|(own, _)| (**own).cmp(name));
        match (place, below) {
            (Err(place), []) => fields.insert(place, (Cow::Borrowed(name), value)),
            (Ok(place), [_, ..]) => {
                if let Some((_, inner)) = fields.get_mut(place) {
                    inner.add(below, value);
                }
            }
            (Ok(_), []) | (Err(_), [_, ..]) => {}
        }
    }
}

impl Json for Tree<'_> {
    fn sort(&self) -> Sort<'_, Self> {
        match self {
            Self::Null => Sort::Nothing,
            Self::Bool(truth) => Sort::Truth(*truth),
            Self::Number(number) => Sort::Number(number),
            Self::Text(text) => Sort::Text(text),
            Self::List(entries) => Sort::List(entries),
            Self::Fields(_) => Sort::Fields,
        }
    }

    fn field(&self, name: &str) -> Option<&Self> {
        let Self::Fields(fields) = self else {
            return None;
        };
        let place = fields.binary_search_by(|(own, _)| (**own).cmp(name)).ok()?;
        fields.get(place).map(|(_, value)| value)
    }

    fn fields(&self) -> impl Iterator<Item = (&str, &Self)> {
        let fields = match self {
            Self::Fields(fields) => fields.as_slice(),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) | Self::List(_) => &[],
        };
        fields.iter().map(|(name, value)| (&**name, value))
    }
}

#[derive(Clone, Copy)]
struct Strict<'l>(&'l Allowance);

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Tree<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree<'de>, D::Error> {
        self.0.value()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Tree<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree<'de>, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree<'de>, E> {
        Ok(Tree::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree<'de>, E> {
        Ok(Tree::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree<'de>, E> {
        Ok(Number::from_f64(value).map_or(Tree::Null, Tree::Number))
    }

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<Tree<'de>, E> {
        self.0.text(value)?;
        Ok(Tree::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Tree<'de>, E> {
        self.0.text(value)?;
        Ok(Tree::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Tree<'de>, E> {
        Ok(Tree::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree<'de>, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = list.next_element_seed(self)? {
            entries.push(entry);
        }
        Ok(Tree::List(entries))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree<'de>, A::Error> {
        let mut fields: Vec<(Cow<'de, str>, Tree<'de>)> = Vec::new();
        while let Some(key) = map.next_key_seed(Key)? {
            self.0.field(&key, fields.is_empty())?;
            fields.push((key, map.next_value_seed(self)?));
        }
        match in_order(&mut fields) {
            Ok(()) => Ok(Tree::Fields(fields)),
            Err(twice) => {
                let key = quoted(twice);
                Err(A::Error::custom(format_args!("the key {key} stands twice")))
            }
        }
    }
}

/// Puts pairs in the order of their keys. The API server writes keys in order, so there is nearly always nothing to do; and
/// where there is, it is done once and not with each key, or a long object in the wrong order would take minutes.
///
/// # Errors
///
/// The first key that stands twice.
pub fn in_order<K: Ord + AsRef<str>, V>(pairs: &mut [(K, V)]) -> Result<(), &str> {
    if pairs.is_sorted_by(|(one, _), (next, _)| one < next) {
        return Ok(());
    }
    pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut neighbours = pairs.windows(2);
    let twice = neighbours.find_map(|pair| match pair {
        [(one, _), (next, _)] if one == next => Some(one.as_ref()),
        _ => None,
    });
    twice.map_or(Ok(()), Err)
}

/// A key, borrowed if it can be.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E>(self, key: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}
