//! A copy of a spec in which everything can be read, so that the rules can be held against the rest of it.
//!
//! What stands in for an unreadable value is a guess. There are several ways to guess, and only what the rules say in
//! every way is about the object and not about the guess.

use serde_json::{Map, Value};

use super::node::{Fields, List, Node, Shape};
use super::walk::is_whole;
use super::{SPEC, tree};
use crate::api::kind::Kind;
use crate::api::object::cause::{FieldPath, Path};

/// A spec that can be read.
#[derive(Debug)]
pub(in crate::api) struct Mended {
    /// The copy.
    pub(in crate::api) spec: Value,
    /// Where something stands in for what could not be read.
    pub(in crate::api) places: Vec<FieldPath>,
    /// In how many ways the copy could be made.
    pub(in crate::api) ways: usize,
}

/// Makes the copy in one of the ways.
pub(in crate::api) fn mend(kind: Kind, spec: &Value, way: usize) -> Mended {
    let mut mender = Mender {
        way,
        ways: 1,
        places: Vec::new(),
    };
    let node = &tree(kind).spec;
    let spec = match mender.copy(node, &SPEC, spec) {
        Some(spec) => spec,
        None => mender.stand_in(node, &SPEC),
    };
    Mended {
        spec,
        places: mender.places,
        ways: mender.ways,
    }
}

struct Mender {
    way: usize,
    ways: usize,
    places: Vec<FieldPath>,
}

impl Mender {
    /// The value with everything unreadable in it replaced; none when it is itself unreadable.
    fn copy(&mut self, node: &Node, at: &Path<'_>, value: &Value) -> Option<Value> {
        match (&node.shape, value) {
            (Shape::Object(fields), Value::Object(given)) => {
                Some(self.copy_fields(fields, at, given))
            }
            (Shape::List(list), Value::Array(given)) => Some(self.copy_list(list, at, given)),
            (Shape::Text(text), Value::String(given)) => {
                let known = text.words.is_empty() || text.words.contains(given);
                known.then(|| value.clone())
            }
            // A fraction of nothing is an integer to the API server, but not to our types.
            (Shape::Integer(_) | Shape::IntOrText, Value::Number(given)) if is_whole(given) => {
                let float = given.as_f64().filter(|_| given.is_f64());
                Some(float.map_or_else(|| value.clone(), |float| Value::from(float as i64)))
            }
            (Shape::Any, _)
            | (Shape::Number(_), Value::Number(_))
            | (Shape::Boolean, Value::Bool(_))
            | (Shape::IntOrText, Value::String(_)) => Some(value.clone()),
            _ => None,
        }
    }

    fn copy_fields(&mut self, fields: &Fields, at: &Path<'_>, given: &Map<String, Value>) -> Value {
        let mut copy = Map::new();
        for (name, value) in given.iter().filter(|(_, value)| !value.is_null()) {
            let (node, at, required) = match (fields.find(name), &fields.entries) {
                (Some(field), _) => (&field.node, at.field(name), field.required),
                (None, Some(entry)) => (&**entry, at.key(name), false),
                (None, None) => {
                    copy.insert(name.clone(), value.clone());
                    continue;
                }
            };
            let value = match self.copy(node, &at, value) {
                Some(value) => Some(value),
                None if required => Some(self.stand_in(node, &at)),
                None => self.perhaps_stand_in(node, &at),
            };
            copy.extend(value.map(|value| (name.clone(), value)));
        }
        for field in fields.named.iter().filter(|field| field.required) {
            if given.get(&field.name).is_none_or(Value::is_null) {
                let value = self.stand_in(&field.node, &at.field(&field.name));
                copy.insert(field.name.clone(), value);
            }
        }
        Value::Object(copy)
    }

    /// Entries keep their places, so none is left out.
    fn copy_list(&mut self, list: &List, at: &Path<'_>, given: &[Value]) -> Value {
        let entries = given.iter().enumerate().map(|(index, value)| {
            let at = at.index(index);
            match self.copy(&list.items, &at, value) {
                Some(value) => value,
                None => self.stand_in(&list.items, &at),
            }
        });
        entries.collect()
    }

    /// A value that the object must have.
    fn stand_in(&mut self, node: &Node, at: &Path<'_>) -> Value {
        let unique = self.places.len();
        self.places.push(at.into());
        self.ways = self.ways.max(ways(node));
        sample(node, self.way, unique)
    }

    /// A value that the object need not have: in one way it is left out, in the next it is there.
    fn perhaps_stand_in(&mut self, node: &Node, at: &Path<'_>) -> Option<Value> {
        let value = self.stand_in(node, at);
        self.ways = self.ways.max(2);
        let has_words = matches!(&node.shape, Shape::Text(text) if !text.words.is_empty());
        (has_words || self.way % 2 == 1).then_some(value)
    }
}

/// How many different values could stand here: as many as there are words to choose from.
fn ways(node: &Node) -> usize {
    match &node.shape {
        Shape::Text(text) => text.words.len().max(1),
        Shape::Object(fields) => {
            let required = fields.named.iter().filter(|field| field.required);
            required.map(|field| ways(&field.node)).max().unwrap_or(1)
        }
        Shape::List(list) => ways(&list.items),
        Shape::Any | Shape::Integer(_) | Shape::Number(_) | Shape::Boolean | Shape::IntOrText => 1,
    }
}

/// A small value that can be read. Texts differ from place to place, so that no two seem to be the same name.
fn sample(node: &Node, way: usize, unique: usize) -> Value {
    match &node.shape {
        Shape::Any => Value::Object(Map::new()),
        Shape::Object(fields) => {
            let required = fields.named.iter().filter(|field| field.required);
            let fields =
                required.map(|field| (field.name.clone(), sample(&field.node, way, unique)));
            Value::Object(fields.collect())
        }
        Shape::List(list) => Value::Array(vec![sample(&list.items, way, unique)]),
        Shape::Text(text) => match text.words.len() {
            0 => Value::from(format!("unread-{unique}")),
            count => text
                .words
                .get(way % count)
                .map_or(Value::Null, |word| word.clone().into()),
        },
        Shape::Integer(_) | Shape::Number(_) | Shape::IntOrText => Value::from(1),
        Shape::Boolean => Value::Bool(way % 2 == 1),
    }
}
