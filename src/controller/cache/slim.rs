//! Objects read without their managed fields. They are as long as the rest of an object, nobody here reads them, and they
//! come with every event of a watch and every answer to a write: they are passed over instead of being read and dropped.

use std::borrow::Cow;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, IgnoredAny, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};

/// What is passed over, and where it is.
const METADATA: &str = "metadata";
const MANAGED_FIELDS: &str = "managedFields";

/// An object that is read without its managed fields.
#[derive(Clone, Debug)]
pub(in crate::controller) struct Slim<K>(pub(in crate::controller) K);

impl<'de, K: Deserialize<'de>> Deserialize<'de> for Slim<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let place = Place::Object;
        K::deserialize(Sieve(deserializer, place)).map(Self)
    }
}

impl<K: Resource> Resource for Slim<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(dynamic)
    }

    fn group(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::group(dynamic)
    }

    fn version(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::version(dynamic)
    }

    fn plural(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(dynamic)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}

/// Where in an object one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Object,
    Metadata,
}

/// Reads through another deserializer. What is not an object or absent is none of ours, and is refused by who reads.
struct Sieve<D>(D, Place);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Sieve<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(Sift(visitor, self.1))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_option(Sift(visitor, self.1))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let sift = Sift(visitor, self.1);
        self.0.deserialize_struct(name, fields, sift)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

struct Sift<V>(V, Place);

impl<'de, V: Visitor<'de>> Visitor<'de> for Sift<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Sifted {
            inner,
            place: self.1,
            is_metadata: false,
        })
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Sieve(deserializer, self.1))
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }
}

/// The fields of an object.
struct Sifted<A> {
    inner: A,
    place: Place,
    /// Whether the value that comes next is the metadata of the object.
    is_metadata: bool,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Sifted<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        let mut seed = Some(seed);
        loop {
            let name = Name {
                seed: &mut seed,
                place: self.place,
                is_metadata: &mut self.is_metadata,
            };
            match self.inner.next_key_seed(name)? {
                None => return Ok(None),
                Some(Some(key)) => return Ok(Some(key)),
                Some(None) => {
                    self.inner.next_value::<IgnoredAny>()?;
                }
            }
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        match self.is_metadata {
            true => self.inner.next_value_seed(Within(seed)),
            false => self.inner.next_value_seed(seed),
        }
    }
}

/// The metadata of an object.
struct Within<S>(S);

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Within<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Sieve(deserializer, Place::Metadata))
    }
}

/// The name of a field; none for what is passed over.
struct Name<'a, S> {
    /// Who reads the name; taken when it does.
    seed: &'a mut Option<S>,
    place: Place,
    is_metadata: &'a mut bool,
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Name<'_, S> {
    type Value = Option<S::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de, S: DeserializeSeed<'de>> Visitor<'de> for Name<'_, S> {
    type Value = Option<S::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Self::Value, E> {
        *self.is_metadata = self.place == Place::Object && name == METADATA;
        if self.place == Place::Metadata && name == MANAGED_FIELDS {
            return Ok(None);
        }
        let name: StrDeserializer<'_, E> = name.into_deserializer();
        self.seed
            .take()
            .map(|seed| seed.deserialize(name))
            .transpose()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::batch::v1::Job;
    use serde_json::json;

    use super::*;
    use crate::api::kinds::AgentRun;

    fn managed() -> serde_json::Value {
        json!([{"manager": "m", "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": {}}}}])
    }

    #[test]
    fn everything_is_read_but_the_managed_fields() {
        let mut run = json!({
            "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun",
            "metadata": {"name": "r", "namespace": "a", "labels": {"managedFields": "a label"}, "managedFields": managed(),
                "annotations": {"metadata": "an annotation"}, "resourceVersion": "7"},
            "spec": {"agentRef": {"name": "c"}, "runtime": {"type": "job", "config": {"managedFields": [1]}}},
            "status": {"phase": "Running", "runtimeRef": {"metadata": {"managedFields": 1}}},
        });
        let Slim(read): Slim<AgentRun> = serde_json::from_str(&run.to_string()).unwrap();
        assert_eq!(read.metadata.managed_fields, None);
        run["metadata"]
            .as_object_mut()
            .unwrap()
            .remove(MANAGED_FIELDS);
        assert_eq!(serde_json::to_value(&read).unwrap(), run);
    }

    #[test]
    fn objects_of_others_are_read_in_the_same_way() {
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"managedFields": managed(), "name": "j", "finalizers": ["f"]},
            "spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}},
        });
        let Slim(slim): Slim<Job> = serde_json::from_value(job.clone()).unwrap();
        let mut whole: Job = serde_json::from_value(job).unwrap();
        assert!(whole.metadata.managed_fields.take().is_some());
        assert_eq!(slim, whole);
    }

    #[test]
    fn what_is_wrong_is_told_as_before() {
        for text in [
            "[]",
            r#"{"metadata": []}"#,
            r#"{"metadata": {"name": 1}}"#,
            r#"{"metadata": {"managedFields": }}"#,
            r#"{"metadata": {"name": "a"}"#,
        ] {
            let slim = serde_json::from_str::<Slim<Job>>(text).map(|Slim(job)| job);
            let whole = serde_json::from_str::<Job>(text);
            assert!(slim.is_err() && whole.is_err(), "{text}: {slim:?}");
        }
        let bare: Slim<Job> = serde_json::from_str(r#"{"metadata": null}"#).unwrap();
        assert_eq!(bare.0, Job::default());
    }
}
