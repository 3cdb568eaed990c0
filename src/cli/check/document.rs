//! YAML and JSON as trees that know where in the text each value stands.
//!
//! Read by `serde-saphyr`, which gives every node its place and bounds depth, aliases and their expansion. Words are read
//! as kubectl reads them: `yes` is true and `0644` is octal.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{Options, Spanned};

use crate::api::object::cause::{FieldPath, Segment};

/// Levels of one document. The API server takes more, the webhook does not read more.
const DEPTH: usize = 100;
/// Values of one document, aliases written out.
const NODES: usize = 500_000;

/// Where something stands in a text. Both count from 1; columns are characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The line.
    pub(crate) line: usize,
    /// The first character.
    pub(crate) column: usize,
    /// Characters from there on, as far as they are known.
    pub(crate) width: usize,
}

impl Place {
    fn of<T>(node: &Spanned<T>) -> Self {
        let at = node.referenced;
        let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Self {
            line: number(at.line()),
            column: number(at.column()),
            width: number(at.span().len()),
        }
    }
}

/// A document, or a part of one.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Where it begins.
    pub(crate) place: Place,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Fields(Vec<(Name, Node)>),
}

/// The name of a field, and where it stands.
#[derive(Clone, Debug)]
struct Name {
    text: String,
    place: Place,
}

/// A document that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// Where reading ended.
    pub(crate) place: Place,
    /// Why.
    pub(crate) message: String,
}

/// The documents of a text, each as it is or why it cannot be read. Empty ones are left out.
pub(crate) fn documents(text: &str) -> Vec<Result<Node, Unreadable>> {
    let mut bytes = text.as_bytes();
    let documents = serde_saphyr::read_with_options::<_, Spanned<Content>>(&mut bytes, options());
    documents
        .map(|document| document.map(Node::from).map_err(|error| unreadable(&error)))
        .collect()
}

fn options() -> Options {
    let budget = serde_saphyr::budget! {
        max_depth: DEPTH,
        flow_nesting_limit: DEPTH,
        max_nodes: NODES,
        max_reader_input_bytes: None, // whoever reads the file has bounded it
    };
    serde_saphyr::options! {
        budget: budget,
        legacy_octal_numbers: true,
        with_snippet: false,
    }
}

fn unreadable(error: &serde_saphyr::Error) -> Unreadable {
    let error = error.without_snippet();
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX).max(1);
    let place = match error.location() {
        Some(at) => Place {
            line: number(at.line()),
            column: number(at.column()),
            width: 1,
        },
        None => Place {
            line: 1,
            column: 1,
            width: 1,
        },
    };
    let message = error.to_string();
    // The place is said once, in front.
    let message = message.split(" at line ").next().unwrap_or_default();
    Unreadable {
        place,
        message: message.trim().replace('\n', " "),
    }
}

impl From<Spanned<Content>> for Node {
    fn from(node: Spanned<Content>) -> Self {
        Self {
            place: Place::of(&node),
            content: node.value,
        }
    }
}

impl Node {
    /// A field of an object.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        let Content::Fields(fields) = &self.content else {
            return None;
        };
        let mut fields = fields.iter();
        fields.find_map(|(own, value)| (own.text == name).then_some(value))
    }

    /// The text, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            Content::Null
            | Content::Bool(_)
            | Content::Number(_)
            | Content::List(_)
            | Content::Fields(_) => None,
        }
    }

    /// The text of a field.
    pub(crate) fn text_of(&self, field: &str) -> Option<&str> {
        self.field(field)?.text()
    }

    /// The entries of a list, taken out of it.
    pub(crate) fn into_entries(self) -> Option<Vec<Self>> {
        match self.content {
            Content::List(entries) => Some(entries),
            Content::Null
            | Content::Bool(_)
            | Content::Number(_)
            | Content::Text(_)
            | Content::Fields(_) => None,
        }
    }

    /// A field, taken out of its object.
    pub(crate) fn into_field(self, name: &str) -> Option<Self> {
        let Content::Fields(fields) = self.content else {
            return None;
        };
        let mut fields = fields.into_iter();
        fields.find_map(|(own, value)| (own.text == name).then_some(value))
    }

    /// Names and values of the fields of an object.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &Self)> {
        let fields = match &self.content {
            Content::Fields(fields) => fields.as_slice(),
            Content::Null
            | Content::Bool(_)
            | Content::Number(_)
            | Content::Text(_)
            | Content::List(_) => &[],
        };
        fields.iter().map(|(name, value)| (&*name.text, value))
    }

    /// What it is, without places.
    pub(crate) fn value(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Bool(truth) => Value::Bool(*truth),
            Content::Number(number) => Value::Number(number.clone()),
            Content::Text(text) => Value::String(text.clone()),
            Content::List(entries) => entries.iter().map(Self::value).collect(),
            Content::Fields(fields) => {
                let fields = fields.iter();
                let fields = fields.map(|(name, value)| (name.text.clone(), value.value()));
                Value::Object(fields.collect::<Map<_, _>>())
            }
        }
    }

    /// Where the value at a path stands. What is not there is looked for at the nearest thing that would hold it.
    pub(crate) fn find(&self, path: &FieldPath) -> Place {
        let (mut here, mut place) = (self, self.place);
        for segment in path.clone() {
            let next = match (&here.content, &segment) {
                (Content::Fields(fields), Segment::Field(wanted) | Segment::Key(wanted)) => {
                    let mut fields = fields.iter();
                    fields.find(|(name, _)| name.text == *wanted)
                }
                (Content::List(entries), Segment::Index(index)) => {
                    let Some(entry) = entries.get(*index) else {
                        return place;
                    };
                    (here, place) = (entry, entry.place);
                    continue;
                }
                (_, Segment::Field(_) | Segment::Key(_) | Segment::Index(_)) => None,
            };
            let Some((name, value)) = next else {
                return place;
            };
            here = value;
            // The name says more than the beginning of what it holds.
            place = match value.content {
                Content::List(_) | Content::Fields(_) | Content::Null => name.place,
                Content::Bool(_) | Content::Number(_) | Content::Text(_) => value.place,
            };
        }
        place
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Anything)
    }
}

struct Anything;

impl<'de> Visitor<'de> for Anything {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Content, E> {
        Ok(Content::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Content, E> {
        Ok(Content::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Content, E> {
        Ok(Content::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Content, E> {
        Ok(Number::from_f64(number).map_or(Content::Null, Content::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Content, E> {
        Ok(Content::Text(text))
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Content, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = list.next_element::<Spanned<Content>>()? {
            entries.push(entry.into());
        }
        Ok(Content::List(entries))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content, A::Error> {
        let mut fields = Vec::new();
        while let Some(name) = map.next_key::<Spanned<String>>()? {
            let place = Place::of(&name);
            let value: Spanned<Content> = map.next_value()?;
            let text = name.value;
            fields.push((Name { text, place }, value.into()));
        }
        Ok(Content::Fields(fields))
    }
}

#[cfg(test)]
mod tests;
