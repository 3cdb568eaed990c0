//! Changes to an object as the smallest JSON Patch against what was received.
//!
//! Two ways to one: values that are filled in one by one, and the difference between two trees. What is not named in a
//! patch stays as it is in the stored object, whether or not anyone here knows it. Pure.

#[cfg(test)]
mod tests;

use crate::api::object::cause::{FieldPath, Segment};
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation};
use serde_json::{Map, Value};

/// Sets a value in the object and notes the operation that does the same elsewhere. Parents that are absent come to be;
/// where the place cannot be (its parent is no object, or a list without such an entry), or holds the value already,
/// nothing happens.
pub fn set(
    object: &mut Value,
    path: FieldPath,
    value: Value,
    operations: &mut Vec<PatchOperation>,
) {
    let segments: Vec<Segment> = path.into_iter().collect();
    let mut pointer = PointerBuf::new();
    let mut here = object;
    for (depth, segment) in segments.iter().enumerate() {
        push(&mut pointer, segment);
        let is_there = match (&*here, segment) {
            (Value::Object(map), Segment::Field(name) | Segment::Key(name)) => {
                map.contains_key(name)
            }
            (Value::Array(list), Segment::Index(index)) => *index < list.len(),
            (_, _) => return,
        };
        if !is_there {
            let rest = segments.get(depth + 1..).unwrap_or_default();
            if let (Value::Object(map), Segment::Field(name) | Segment::Key(name), Some(value)) =
                (here, segment, nested(rest, value))
            {
                map.insert(name.clone(), value.clone());
                let path = pointer;
                operations.push(PatchOperation::Add(AddOperation { path, value }));
            }
            return;
        }
        let next = match segment {
            Segment::Field(name) | Segment::Key(name) => here.get_mut(name),
            Segment::Index(index) => here.get_mut(index),
        };
        let Some(next) = next else { return };
        here = next;
    }
    if *here != value {
        here.clone_from(&value);
        let path = pointer;
        operations.push(PatchOperation::Replace(ReplaceOperation { path, value }));
    }
}

/// The operation that adds a value whose parent is there.
pub fn addition(path: FieldPath, value: Value) -> PatchOperation {
    let mut pointer = PointerBuf::new();
    for segment in path {
        push(&mut pointer, &segment);
    }
    PatchOperation::Add(AddOperation {
        path: pointer,
        value,
    })
}

/// The value inside the objects that its path names; none if the path goes through a list, which nobody can make up.
fn nested(path: &[Segment], value: Value) -> Option<Value> {
    path.iter().rev().try_fold(value, |value, segment| {
        let (Segment::Field(name) | Segment::Key(name)) = segment else {
            return None;
        };
        Some(Value::Object(Map::from_iter([(name.clone(), value)])))
    })
}

/// The operations that turn one tree at this place into another.
pub fn difference(at: &str, from: Option<&Value>, to: Option<&Value>) -> Vec<PatchOperation> {
    let mut operations = Vec::new();
    let path = PointerBuf::from_tokens([at]);
    match (from, to) {
        (None, None) => {}
        (None, Some(to)) => operations.push(PatchOperation::Add(AddOperation {
            path,
            value: to.clone(),
        })),
        (Some(_), None) => operations.push(PatchOperation::Remove(RemoveOperation { path })),
        (Some(from), Some(to)) => compare(&path, from, to, &mut operations),
    }
    operations
}

fn compare(at: &PointerBuf, from: &Value, to: &Value, operations: &mut Vec<PatchOperation>) {
    match (from, to) {
        (Value::Object(from), Value::Object(to)) => compare_objects(at, from, to, operations),
        // Lists of different lengths are replaced as a whole: which entry became which is anyone's guess.
        (Value::Array(from), Value::Array(to)) if from.len() == to.len() => {
            for (index, (from, to)) in from.iter().zip(to).enumerate() {
                if from != to {
                    compare(&below(at, index), from, to, operations);
                }
            }
        }
        (from, to) if from == to => {}
        (_, to) => operations.push(PatchOperation::Replace(ReplaceOperation {
            path: at.clone(),
            value: to.clone(),
        })),
    }
}

fn compare_objects(
    at: &PointerBuf,
    from: &Map<String, Value>,
    to: &Map<String, Value>,
    operations: &mut Vec<PatchOperation>,
) {
    for name in from.keys().filter(|name| !to.contains_key(*name)) {
        let path = below(at, name.as_str());
        operations.push(PatchOperation::Remove(RemoveOperation { path }));
    }
    for (name, value) in to {
        let path = below(at, name.as_str());
        match from.get(name) {
            Some(from) => compare(&path, from, value, operations),
            None => operations.push(PatchOperation::Add(AddOperation {
                path,
                value: value.clone(),
            })),
        }
    }
}

fn below<'t>(at: &PointerBuf, token: impl Into<json_patch::jsonptr::Token<'t>>) -> PointerBuf {
    let mut path = at.clone();
    path.push_back(token);
    path
}

fn push(pointer: &mut PointerBuf, segment: &Segment) {
    match segment {
        Segment::Field(name) | Segment::Key(name) => pointer.push_back(name.as_str()),
        Segment::Index(index) => pointer.push_back(*index),
    }
}
