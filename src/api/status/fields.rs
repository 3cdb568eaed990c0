//! A status as the API server stores it, with the fields that the contract governs within reach.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::api::condition::Condition;
use crate::api::phase::Phase;

pub(super) const PHASE: &str = "phase";
pub(super) const STARTED_AT: &str = "startedAt";
pub(super) const FINISHED_AT: &str = "finishedAt";
pub(super) const UPDATED_AT: &str = "updatedAt";
pub(super) const OBSERVED_GENERATION: &str = "observedGeneration";
pub(super) const CONDITIONS: &str = "conditions";

/// The fields of a status; empty when there is none. A field that is null counts as absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Fields(Map<String, Value>);

impl From<Option<&Value>> for Fields {
    fn from(status: Option<&Value>) -> Self {
        Self::of(status.cloned())
    }
}

impl Fields {
    pub(super) fn of(status: Option<Value>) -> Self {
        let mut fields = match status {
            Some(Value::Object(fields)) => fields,
            Some(_) | None => Map::new(),
        };
        fields.retain(|_, value| !value.is_null());
        Self(fields)
    }

    pub(super) fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.get(name)?.as_i64()
    }

    pub(super) fn time(&self, name: &str) -> Option<Timestamp> {
        time_of(self.get(name)?)
    }

    /// The phase of a run; none for a word that is not one of ours.
    pub(super) fn phase(&self) -> Option<Phase> {
        Phase::parse(self.text(PHASE)?)
    }

    /// The conditions with their places. The schema of every kind admits none that cannot be read.
    pub(super) fn conditions(&self) -> Vec<(usize, Condition)> {
        let list = self.raw_conditions().iter().enumerate();
        list.filter_map(|(index, entry)| Some((index, Condition::deserialize(entry).ok()?)))
            .collect()
    }

    pub(super) fn raw_conditions(&self) -> &[Value] {
        let list = self.get(CONDITIONS).and_then(Value::as_array);
        list.map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn raw_conditions_mut(&mut self) -> &mut [Value] {
        let list = self.0.get_mut(CONDITIONS).and_then(Value::as_array_mut);
        list.map(Vec::as_mut_slice).unwrap_or_default()
    }

    pub(super) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    pub(super) fn set_time(&mut self, name: &str, time: Timestamp) {
        self.set(name, time.to_string());
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Takes a field from another status as it stands there, if it is there.
    pub(super) fn restore(&mut self, from: &Self, name: &str) {
        if let Some(value) = from.get(name) {
            self.set(name, value.clone());
        }
    }

    /// S2: whether a write would change anything but `updatedAt`.
    pub(super) fn same_but_for_updated_at(&self, other: &Self) -> bool {
        let rest = |fields: &Self| fields.0.keys().filter(|name| *name != UPDATED_AT).count();
        rest(self) == rest(other)
            && (self.0.iter())
                .all(|(name, value)| name == UPDATED_AT || other.get(name) == Some(value))
    }
}

/// The time that a value holds.
pub(super) fn time_of(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}
