//! Where in an object a fault is: built while walking, kept only when there is a fault.
//!
//! Paths read like `spec.workflow.steps[2].parameters[team/name]`. Nothing here knows a kind.

use std::fmt;

use serde_json::Value;

/// A place in an object while a check walks it. Costs no allocation until it becomes a [`FieldPath`].
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    /// A top-level field of the object, e.g. `spec`.
    pub const fn root(field: &'a str) -> Self {
        Self {
            parent: None,
            step: Step::Field(field),
        }
    }

    /// The named field below this place.
    pub const fn field(&'a self, name: &'a str) -> Self {
        self.below(Step::Field(name))
    }

    /// The entry of a map below this place; written in brackets, since keys may hold dots.
    pub const fn key(&'a self, key: &'a str) -> Self {
        self.below(Step::Key(key))
    }

    /// The entry of a list below this place.
    pub const fn index(&'a self, index: usize) -> Self {
        self.below(Step::Index(index))
    }

    const fn below(&'a self, step: Step<'a>) -> Self {
        Self {
            parent: Some(self),
            step,
        }
    }

    fn collect(&self, segments: &mut Vec<Segment>) {
        if let Some(parent) = self.parent {
            parent.collect(segments);
        }
        segments.push(match self.step {
            Step::Field(name) => Segment::Field(name.to_owned()),
            Step::Key(key) => Segment::Key(key.to_owned()),
            Step::Index(index) => Segment::Index(index),
        });
    }
}

/// A place in an object that outlives the walk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldPath {
    segments: Vec<Segment>,
}

/// One step of a [`FieldPath`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    /// A field of an object.
    Field(String),
    /// An entry of a map with free keys.
    Key(String),
    /// An entry of a list.
    Index(usize),
}

impl FieldPath {
    /// The part of the object that this place is in, e.g. `spec`.
    pub fn root(&self) -> Self {
        self.segments.first().cloned().into_iter().collect()
    }

    /// The value at this place, if the object has one there.
    pub fn find<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        self.segments
            .iter()
            .try_fold(object, |value, segment| match segment {
                Segment::Field(name) | Segment::Key(name) => value.get(name),
                Segment::Index(index) => value.get(index),
            })
    }

    /// Whether this place is the other one or lies below it. A field and an entry of the same name are the same.
    pub fn is_within(&self, other: &Self) -> bool {
        let same = |(a, b): (&Segment, &Segment)| match (a, b) {
            (Segment::Index(a), Segment::Index(b)) => a == b,
            (Segment::Field(a) | Segment::Key(a), Segment::Field(b) | Segment::Key(b)) => a == b,
            (Segment::Index(_), _) | (_, Segment::Index(_)) => false,
        };
        self.segments.len() >= other.segments.len()
            && self.segments.iter().zip(&other.segments).all(same)
    }
}

impl IntoIterator for FieldPath {
    type Item = Segment;
    type IntoIter = std::vec::IntoIter<Segment>;

    fn into_iter(self) -> Self::IntoIter {
        self.segments.into_iter()
    }
}

impl From<&Path<'_>> for FieldPath {
    fn from(path: &Path<'_>) -> Self {
        let mut segments = Vec::new();
        path.collect(&mut segments);
        Self { segments }
    }
}

impl FromIterator<Segment> for FieldPath {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> Self {
        Self {
            segments: segments.into_iter().collect(),
        }
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.segments.iter().enumerate() {
            match segment {
                Segment::Field(name) if position == 0 => f.write_str(name)?,
                Segment::Field(name) => write!(f, ".{name}")?,
                Segment::Key(key) => write!(f, "[{key}]")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_reads_as_people_write_it() {
        let spec = Path::root("spec");
        let steps = spec.field("steps");
        let step = steps.index(2);
        let with = step.field("with");
        assert_eq!(
            FieldPath::from(&with.key("a.b/c")).to_string(),
            "spec.steps[2].with[a.b/c]"
        );
        assert_eq!(FieldPath::from(&spec).to_string(), "spec");
    }

    #[test]
    fn a_path_finds_its_value_and_nothing_else() {
        let object = json!({"spec": {"steps": [{"with": {"a.b": 1}}]}});
        let spec = Path::root("spec");
        let steps = spec.field("steps");
        let first = steps.index(0);
        let with = first.field("with");
        assert_eq!(
            FieldPath::from(&with.key("a.b")).find(&object),
            Some(&json!(1))
        );
        assert_eq!(FieldPath::from(&steps.index(1)).find(&object), None);
    }

    #[test]
    fn a_place_lies_within_itself_and_what_holds_it() {
        let spec = Path::root("spec");
        let steps = spec.field("steps");
        let first = steps.index(0);
        let name = FieldPath::from(&first.field("name"));
        for around in [
            &spec,
            &steps,
            &first,
            &first.field("name"),
            &first.key("name"),
        ] {
            assert!(name.is_within(&FieldPath::from(around)));
        }
        let second = steps.index(1);
        for other in [
            &second,
            &first.field("kind"),
            &first.field("name").field("x"),
        ] {
            assert!(!name.is_within(&FieldPath::from(other)));
        }
    }
}
