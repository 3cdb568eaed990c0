//! What the model API server stores: versions, finalizers, owners, and the news that watches would bring.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The namespace in which everything happens.
pub(super) const NAMESPACE: &str = "a";
/// The run that everything is about.
pub(super) const RUN: &str = "r";

/// A sort of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sort {
    Run,
    Job,
    Pod,
    ConfigMap,
}

/// What a watch would tell.
#[derive(Clone, Debug)]
pub(super) struct News {
    pub(super) sort: Sort,
    pub(super) object: Arc<Value>,
    pub(super) is_gone: bool,
}

/// How what belongs to an object goes when it is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

impl Propagation {
    const fn finalizer(self) -> Option<&'static str> {
        match self {
            Self::Background => None,
            Self::Foreground => Some(FOREGROUND),
            Self::Orphan => Some(ORPHAN),
        }
    }
}

pub(super) const FOREGROUND: &str = "foregroundDeletion";
pub(super) const ORPHAN: &str = "orphan";
pub(super) const TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// All objects, the time, and what has happened. A state of an object is never changed, so everyone shares it.
#[derive(Debug)]
pub(super) struct World {
    pub(super) now: Timestamp,
    version: u64,
    pub(super) objects: BTreeMap<(Sort, String), Arc<Value>>,
    pub(super) news: Vec<News>,
    /// Uids of all that there ever was.
    pub(super) known: BTreeSet<String>,
    /// What was done, for people who look for a fault.
    pub(super) trace: Vec<String>,
}

impl World {
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            now,
            version: 1,
            objects: BTreeMap::new(),
            news: Vec::new(),
            known: BTreeSet::new(),
            trace: Vec::new(),
        }
    }

    pub(super) fn say(&mut self, what: impl Into<String>) {
        let line = format!("{} {}", self.now, what.into());
        self.trace.push(line);
    }

    pub(super) fn get(&self, sort: Sort, name: &str) -> Option<&Value> {
        self.objects.get(&(sort, name.to_owned())).map(Arc::as_ref)
    }

    /// The same, to be kept.
    pub(super) fn take(&self, sort: Sort, name: &str) -> Option<Arc<Value>> {
        self.objects.get(&(sort, name.to_owned())).cloned()
    }

    pub(super) fn all(&self, sort: Sort) -> Vec<Arc<Value>> {
        let own = self.objects.iter().filter(|((found, _), _)| *found == sort);
        own.map(|(_, object)| Arc::clone(object)).collect()
    }

    /// Makes an object; says whether its name was free.
    pub(super) fn create(&mut self, sort: Sort, mut object: Value) -> Option<Arc<Value>> {
        let name = name(&object).to_owned();
        if self.get(sort, &name).is_some() {
            return None;
        }
        let number = self.known.len();
        let uid = format!("{}-{number}", name.to_lowercase());
        self.known.insert(uid.clone());
        let metadata = &mut object["metadata"];
        metadata["namespace"] = json!(NAMESPACE);
        metadata["uid"] = json!(uid);
        metadata["generation"] = json!(1);
        metadata["creationTimestamp"] = json!(self.now);
        Some(self.put(sort, object))
    }

    /// Stores a new state of an object, or lets it go if nothing holds it any more.
    pub(super) fn put(&mut self, sort: Sort, mut object: Value) -> Arc<Value> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let key = (sort, name(&object).to_owned());
        let is_gone = is_going(&object) && finalizers(&object).is_empty() && !runs_on(&object);
        let object = Arc::new(object);
        if is_gone {
            self.objects.remove(&key);
        } else {
            self.objects.insert(key, Arc::clone(&object));
        }
        self.news.push(News {
            sort,
            object: Arc::clone(&object),
            is_gone,
        });
        object
    }

    /// Changes an object, if it is there.
    pub(super) fn change(&mut self, sort: Sort, name: &str, change: impl FnOnce(&mut Value)) {
        if let Some(object) = self.get(sort, name) {
            let mut object = object.clone();
            change(&mut object);
            self.put(sort, object);
        }
    }

    pub(super) fn delete(&mut self, sort: Sort, name: &str, propagation: Propagation) {
        let now = self.now;
        self.change(sort, name, |object| {
            if let Some(finalizer) = propagation.finalizer()
                && !is_going(object)
            {
                hold(object, finalizer);
            }
            if !is_going(object) {
                object["metadata"]["deletionTimestamp"] = json!(now);
            }
        });
    }

    /// What belongs to an object.
    pub(super) fn dependents(&self, uid: &str) -> Vec<(Sort, String)> {
        let own = self.objects.iter();
        own.filter(|(_, object)| owners(object).any(|owner| owner == uid))
            .map(|(key, _)| key.clone())
            .collect()
    }

    pub(super) fn is_there(&self, uid: &str) -> bool {
        self.objects.values().any(|object| self::uid(object) == uid)
    }

    pub(super) fn run(&self) -> Option<&Value> {
        self.get(Sort::Run, RUN)
    }
}

pub(super) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub(super) fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

/// The uid of the Job that a pod was made for; it stays when the pod loses its owner.
pub(super) fn made_for(pod: &Value) -> Option<&str> {
    pod["metadata"]["annotations"]["made-for"].as_str()
}

pub(super) fn is_going(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

pub(super) fn finalizers(object: &Value) -> Vec<&str> {
    let list = object["metadata"]["finalizers"].as_array();
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

pub(super) fn is_held(object: &Value, finalizer: &str) -> bool {
    finalizers(object).contains(&finalizer)
}

pub(super) fn hold(object: &mut Value, finalizer: &str) {
    let mut list: Vec<Value> = finalizers(object).into_iter().map(Value::from).collect();
    list.push(json!(finalizer));
    object["metadata"]["finalizers"] = Value::Array(list);
}

pub(super) fn free(object: &mut Value, finalizer: &str) {
    let mut list = finalizers(object);
    list.retain(|held| *held != finalizer);
    object["metadata"]["finalizers"] = json!(list);
}

fn owners(object: &Value) -> impl Iterator<Item = &str> {
    let list = object["metadata"]["ownerReferences"].as_array();
    list.into_iter()
        .flatten()
        .filter_map(|owner| owner["uid"].as_str())
}

pub(super) fn is_owned(object: &Value) -> bool {
    owners(object).next().is_some()
}

/// The owners of an object that are gone, and whether it has others.
pub(super) fn is_abandoned(world: &World, object: &Value) -> bool {
    is_owned(object) && !owners(object).any(|owner| world.is_there(owner))
}

/// A node still looks after it.
fn runs_on(object: &Value) -> bool {
    let phase = object["status"]["phase"].as_str();
    let is_placed = object["spec"]["nodeName"].is_string();
    is_placed && matches!(phase, Some("Pending" | "Running"))
}

/// When a Job ended, and whether well.
pub(super) fn end_of(job: &Value) -> Option<(Timestamp, bool)> {
    let conditions = job["status"]["conditions"].as_array()?;
    let over = conditions.iter().find(|condition| {
        condition["status"] == "True"
            && ["Complete", "Failed"].contains(&condition["type"].as_str().unwrap_or_default())
    })?;
    let at = over["lastTransitionTime"].as_str()?.parse().ok()?;
    Some((at, over["type"] == "Complete"))
}

/// The labels that a selector of the form `key=value` asks for.
pub(super) fn matches(object: &Value, selector: &str) -> bool {
    let empty = Map::new();
    let labels = object["metadata"]["labels"].as_object().unwrap_or(&empty);
    selector
        .split(',')
        .filter(|part| !part.is_empty())
        .all(|part| match part.split_once('=') {
            Some((key, value)) => labels.get(key).and_then(Value::as_str) == Some(value),
            None => labels.contains_key(part),
        })
}
