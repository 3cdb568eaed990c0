//! The metadata of an object, as far as decisions look at it.

use std::fmt;

use crate::api::contract::annotation;
use crate::api::object::cause::quoted;
use crate::api::object::tree::{Allowance, in_order};
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::Text;
use super::few::few;

/// Who an object is.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata<'a> {
    /// Its name; none yet if the API server is to make one up.
    #[serde(borrow, default)]
    pub name: Text<'a>,
    /// How a name that is made up begins.
    #[serde(borrow, default)]
    pub generate_name: Text<'a>,
    /// Where it lives.
    #[serde(borrow, default)]
    pub namespace: Text<'a>,
    /// Which of all objects of this name it is; none before it is stored.
    #[serde(borrow, default)]
    pub uid: Text<'a>,
    /// How often its spec has changed.
    #[serde(default)]
    pub generation: Option<i64>,
    /// Labels.
    #[serde(borrow, default)]
    pub labels: Option<Labels<'a>>,
    /// Annotations of ours; none if the object has no annotations at all.
    #[serde(borrow, default)]
    pub annotations: Option<Annotations<'a>>,
    /// What it belongs to.
    #[serde(borrow, default, deserialize_with = "few")]
    pub owner_references: Option<Vec<Owner<'a>>>,
}

impl<'a> Metadata<'a> {
    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        let mut labels = self.labels.iter().flat_map(Labels::iter);
        labels.find_map(|(own, value)| (own == key).then_some(value))
    }

    /// The trace context that the object carries.
    pub fn traceparent(&self) -> Option<&Text<'a>> {
        self.annotations.as_ref()?.traceparent.as_ref()
    }

    /// Whether the outcome of this Job is stored.
    pub fn outcome_recorded(&self) -> bool {
        let ours = self.annotations.as_ref();
        ours.is_some_and(|annotations| annotations.outcome_recorded)
    }
}

/// Labels in the order of their keys, each of which stands once.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Labels<'a>(Vec<(Text<'a>, Text<'a>)>);

impl Labels<'_> {
    /// Keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Labels<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EachOnce)
    }
}

struct EachOnce;

impl<'de> Visitor<'de> for EachOnce {
    type Value = Labels<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("labels")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels<'de>, A::Error> {
        let (mut labels, allowance) = (Vec::<(Text<'de>, Text<'de>)>::new(), Allowance::default());
        while let Some((key, value)) = map.next_entry::<Text<'de>, Text<'de>>()? {
            allowance.field(&key, labels.is_empty())?;
            allowance.text(&value)?;
            labels.push((key, value));
        }
        match in_order(&mut labels) {
            Ok(()) => Ok(Labels(labels)),
            Err(twice) => {
                let key = quoted(twice);
                Err(A::Error::custom(format_args!(
                    "the label {key} stands twice"
                )))
            }
        }
    }
}

/// What an object belongs to.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner<'a> {
    /// Group and version.
    #[serde(borrow, default)]
    pub api_version: Text<'a>,
    /// Kind.
    #[serde(borrow, default)]
    pub kind: Text<'a>,
    /// Name.
    #[serde(borrow, default)]
    pub name: Text<'a>,
    /// Uid.
    #[serde(borrow, default)]
    pub uid: Text<'a>,
}

/// The annotations that decisions look at. All others, among them whole manifests that kubectl keeps there, are skipped.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Annotations<'a> {
    /// Trace context.
    pub traceparent: Option<Text<'a>>,
    /// The trace context that we wrote last.
    pub stamped: Option<Text<'a>>,
    /// Mark of a Job whose outcome is stored.
    pub outcome_recorded: bool,
}

impl<'de: 'a, 'a> Deserialize<'de> for Annotations<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OursOnly)
    }
}

struct OursOnly;

impl<'de> Visitor<'de> for OursOnly {
    type Value = Annotations<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("annotations")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Annotations<'de>, A::Error> {
        let mut found = Annotations::default();
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match &*key {
                annotation::TRACEPARENT if found.traceparent.is_some() => {
                    return Err(A::Error::duplicate_field(annotation::TRACEPARENT));
                }
                annotation::TRACEPARENT => found.traceparent = Some(map.next_value()?),
                annotation::TRACEPARENT_STAMPED if found.stamped.is_some() => {
                    return Err(A::Error::duplicate_field(annotation::TRACEPARENT_STAMPED));
                }
                annotation::TRACEPARENT_STAMPED => found.stamped = Some(map.next_value()?),
                annotation::OUTCOME_RECORDED => {
                    map.next_value::<IgnoredAny>()?;
                    found.outcome_recorded = true;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found)
    }
}
