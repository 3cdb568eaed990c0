//! All objects as they were last told, so that who comes anew is told what there is.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::hub::{About, Filter};
use crate::api::contract::control_plane_event;
use crate::api::kind::Kind;
use crate::cluster::Scope;
use crate::serve::carry_out::redact;
use crate::serve::carry_out::runs::Summary;

/// Fields that move without anything having happened.
const RESTLESS: [&str; 5] = [
    "resourceVersion",
    "managedFields",
    "updatedAt",
    "lastTransitionTime",
    "lastUpdateTime",
];

/// Which object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    kind: Kind,
    namespace: Box<str>,
    name: Box<str>,
}

impl Key {
    pub(super) fn of(kind: Kind, object: &DynamicObject) -> Self {
        Self {
            kind,
            namespace: object.namespace().unwrap_or_default().into(),
            name: object.name_any().into(),
        }
    }

    pub(super) fn about(&self) -> About {
        About {
            kind: Some(self.kind),
            namespace: Some(self.namespace.clone()),
        }
    }
}

#[derive(Debug)]
struct Entry {
    fingerprint: u64,
    /// What is told of it to who comes anew.
    data: Bytes,
    /// How much of that is for those who want it in short.
    brief: usize,
    /// For a run that nobody has looked at yet: when it was made.
    untouched: Option<Timestamp>,
    /// The round of lists that it was last seen in.
    round: u64,
}

/// All objects as they were last told.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    entries: Mutex<BTreeMap<Key, Entry>>,
}

/// What became of an object, if it is worth telling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) about: About,
    pub(super) data: Bytes,
    /// How much of the data is for those who want it in short.
    pub(super) brief: usize,
}

/// An object as it is told to who comes anew.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) key: Key,
    pub(super) data: Bytes,
    /// How much of the data is for those who want it in short.
    pub(super) brief: usize,
}

impl Shelf {
    /// Keeps an object; a change if it is another than before.
    pub(super) fn put(&self, kind: Kind, object: DynamicObject, round: u64) -> Option<Change> {
        let key = Key::of(kind, &object);
        let untouched = untouched(kind, &object);
        let summary = summary(kind, &object);
        let shown = redact::shown(object);
        let fingerprint = fingerprint(&shown);
        let mut entries = self.lock();
        let before = entries.get_mut(&key);
        let is_new = before.is_none();
        if let Some(before) = before {
            before.round = round;
            if before.fingerprint == fingerprint {
                return None;
            }
        }
        let added = told(&key, "ADDED", &shown, &summary);
        let change = match is_new {
            true => added.clone(),
            false => told(&key, "MODIFIED", &shown, &summary),
        };
        let entry = Entry {
            fingerprint,
            data: added.data,
            brief: added.brief,
            untouched,
            round,
        };
        entries.insert(key, entry);
        Some(change)
    }

    /// Forgets an object.
    pub(super) fn take(&self, kind: Kind, object: DynamicObject) -> Option<Change> {
        let key = Key::of(kind, &object);
        self.lock().remove(&key)?;
        let summary = summary(kind, &object);
        Some(told(&key, "DELETED", &redact::shown(object), &summary))
    }

    /// Forgets all that the last list did not have.
    pub(super) fn settle(&self, kind: Kind, scope: &Scope, round: u64) -> Vec<Change> {
        let mut gone = Vec::new();
        self.lock().retain(|key, entry| {
            let stays = key.kind != kind || !scope.covers(&key.namespace) || entry.round >= round;
            if !stays {
                let bare = json!({
                    "apiVersion": kind.api_version(), "kind": kind.as_str(),
                    "metadata": {"name": key.name, "namespace": key.namespace},
                });
                gone.push(told(key, "DELETED", &bare, &Value::Null));
            }
            stays
        });
        gone
    }

    /// The next object after this one that a reader may see.
    pub(super) fn after(&self, last: Option<&Key>, filter: &Filter) -> Option<Known> {
        let entries = self.lock();
        let from = last.map_or(Bound::Unbounded, Bound::Excluded);
        let mut ahead = entries.range((from, Bound::Unbounded));
        let (key, entry) = ahead.find(|(key, _)| filter.admits(&key.about()))?;
        Some(Known {
            key: key.clone(),
            data: entry.data.clone(),
            brief: entry.brief,
        })
    }

    /// Namespaces in which there is something.
    pub(super) fn namespaces(&self) -> BTreeSet<Box<str>> {
        let entries = self.lock();
        entries.keys().map(|key| key.namespace.clone()).collect()
    }

    /// How many runs of a namespace nobody has looked at yet, and since when the first of them is there.
    pub(super) fn untouched(&self, namespace: Option<&str>) -> (usize, Option<Timestamp>) {
        let entries = self.lock();
        let here = entries.iter().filter(|(key, _)| {
            key.kind == Kind::AgentRun && namespace.is_none_or(|name| *key.namespace == *name)
        });
        let waiting: Vec<_> = here.filter_map(|(_, entry)| entry.untouched).collect();
        (waiting.len(), waiting.into_iter().min())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When a run was made that nobody has looked at yet.
fn untouched(kind: Kind, object: &DynamicObject) -> Option<Timestamp> {
    let phase = object.data.pointer("/status/phase");
    let waits = kind == Kind::AgentRun && phase.is_none();
    object
        .creation_timestamp()
        .map(|time| time.0)
        .filter(|_| waits)
}

/// A run in short, as the list of runs tells it; nothing for other kinds.
fn summary(kind: Kind, object: &DynamicObject) -> Value {
    if kind != Kind::AgentRun {
        return Value::Null;
    }
    serde_json::to_value(Summary::of(object)).unwrap_or_default()
}

/// What is told of an object: first what those want who want it in short, then the object itself.
fn told(key: &Key, action: &str, shown: &Value, summary: &Value) -> Change {
    let mut short = json!({
        "type": control_plane_event::RESOURCE, "kind": key.kind.as_str(), "namespace": key.namespace, "action": action,
        "name": key.name,
    });
    if !summary.is_null() {
        short["summary"] = summary.clone();
    }
    let mut text = short.to_string();
    text.pop();
    let brief = text.len();
    text.push_str(&format!(",\"resource\":{shown}}}"));
    Change {
        about: key.about(),
        data: text.into(),
        brief,
    }
}

/// Tells whether anything happened to an object but that its times moved.
fn fingerprint(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    feed(value, &mut hasher);
    hasher.finish()
}

fn feed(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Object(fields) => {
            fields.len().hash(hasher);
            let steady = fields
                .iter()
                .filter(|(name, _)| !RESTLESS.contains(&name.as_str()));
            for (name, value) in steady {
                name.hash(hasher);
                feed(value, hasher);
            }
        }
        Value::Array(entries) => {
            entries.len().hash(hasher);
            entries.iter().for_each(|entry| feed(entry, hasher));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            value.to_string().hash(hasher);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, version: &str, phase: &str) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun",
            "metadata": {"name": name, "namespace": "a", "resourceVersion": version, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"env": [{"name": "A", "value": "hunter2"}]},
            "status": {"phase": phase, "updatedAt": version},
        }))
        .unwrap()
    }

    fn action(change: Option<Change>) -> Option<String> {
        let data: Value = serde_json::from_slice(&change?.data).unwrap_or_default();
        assert!(!data.to_string().contains("hunter2"), "{data}");
        data["action"].as_str().map(str::to_owned)
    }

    #[test]
    fn a_change_is_told_once_and_only_if_something_happened() {
        let shelf = Shelf::default();
        let put = |version: &str, phase: &str| {
            action(shelf.put(Kind::AgentRun, run("r", version, phase), 1))
        };
        assert_eq!(put("1", "Pending").as_deref(), Some("ADDED"));
        assert_eq!(put("2", "Pending"), None, "only times moved");
        assert_eq!(put("3", "Running").as_deref(), Some("MODIFIED"));
        let all = Filter {
            namespace: None,
            kinds: Kind::ALL.to_vec(),
        };
        let Known { key, data, brief } = shelf.after(None, &all).unwrap();
        let about = key.about();
        let first = Change { about, data, brief };
        assert_eq!(
            action(Some(first)).as_deref(),
            Some("ADDED"),
            "who comes anew"
        );
        assert!(shelf.after(Some(&key), &all).is_none());
        let taken = || action(shelf.take(Kind::AgentRun, run("r", "4", "Running")));
        assert_eq!(taken().as_deref(), Some("DELETED"));
        assert_eq!(taken(), None);
    }

    #[test]
    fn a_run_has_its_summary_and_in_short_only_that() {
        let shelf = Shelf::default();
        let change = shelf
            .put(Kind::AgentRun, run("r", "1", "Running"), 1)
            .unwrap();
        let whole: Value = serde_json::from_slice(&change.data).unwrap();
        assert_eq!(whole["resource"]["metadata"]["name"], "r");
        let brief = [&change.data[..change.brief], b"}"].concat();
        let brief: Value = serde_json::from_slice(&brief).unwrap();
        assert_eq!(brief["summary"], whole["summary"]);
        assert_eq!(brief["summary"]["phase"], "Running");
        assert!(brief.get("resource").is_none() && brief["action"] == "ADDED");
        let agent = shelf.put(Kind::Agent, run("a", "1", "x"), 1).unwrap();
        let agent: Value = serde_json::from_slice(&agent.data).unwrap();
        assert!(agent.get("summary").is_none(), "{agent}");
    }

    #[test]
    fn what_a_new_list_lacks_is_gone() {
        let shelf = Shelf::default();
        for name in ["one", "two"] {
            shelf.put(Kind::AgentRun, run(name, "1", "Pending"), 1);
        }
        shelf.put(Kind::AgentRun, run("two", "1", "Pending"), 2);
        let elsewhere = Scope::Namespace("b".to_owned());
        assert_eq!(shelf.settle(Kind::AgentRun, &elsewhere, 2), []);
        assert_eq!(shelf.settle(Kind::Agent, &Scope::Cluster, 2), []);
        let gone = shelf.settle(Kind::AgentRun, &Scope::Cluster, 2);
        assert_eq!(gone.len(), 1);
        assert!(String::from_utf8_lossy(&gone[0].data).contains("\"one\""));
    }

    #[test]
    fn runs_that_nobody_looked_at_are_counted() {
        let shelf = Shelf::default();
        let mut fresh = run("fresh", "1", "x");
        fresh.data["status"] = Value::Null;
        shelf.put(Kind::AgentRun, fresh, 1);
        shelf.put(Kind::AgentRun, run("seen", "1", "Pending"), 1);
        let since = "2026-01-01T00:00:00Z".parse().ok();
        assert_eq!(shelf.untouched(Some("a")), (1, since));
        assert_eq!(shelf.untouched(Some("b")), (0, None));
    }
}
