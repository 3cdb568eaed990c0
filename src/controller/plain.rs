//! Kinds that stand until someone deletes them: their status says whether they can be used, and if not, why.
//!
//! All of them are judged alike: by the rules of `validate`, then by whether what they need is there, then by the kind.

mod kinds;
mod plan;

use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use serde::Serialize;

use super::cache::{Change, Key, Shelf, Told};
use super::context::{Context, Thing};
use super::driver::fault::Fault;
use super::driver::plan::{Plan, Standing};
use super::driver::queue::Priority;
use super::driver::{Reconciler, Work};
use super::shelves::Shelves;
use crate::api::kind::Kind;
use crate::api::references::references;
pub(super) use kinds::Plain;
use plan::Observed;

/// The reconciler of one such kind.
pub(super) struct Plains<K> {
    context: Arc<Context>,
    shelves: Arc<Shelves>,
    shelf: Arc<Shelf<K>>,
}

impl<K: Plain> Plains<K> {
    pub(super) fn new(context: Arc<Context>, shelves: Arc<Shelves>, shelf: Arc<Shelf<K>>) -> Self {
        Self {
            context,
            shelves,
            shelf,
        }
    }
}

/// Nothing is done about these kinds but to write their status.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Nothing {}

impl<K: Plain> Reconciler for Plains<K> {
    const KIND: Kind = K::KIND;
    type Object = K;
    type Status = K::Status;
    type Observed = Observed<K>;
    type Action = Nothing;

    fn shelf(&self) -> &Shelf<K> {
        &self.shelf
    }

    fn status(object: &K) -> Option<&K::Status> {
        object.stored()
    }

    fn object(observed: &Observed<K>) -> Option<&K> {
        observed.object.as_deref()
    }

    async fn gather(&self, key: &Key, _: Timestamp) -> Result<Observed<K>, Fault> {
        let object = self.shelf.get(key);
        let json = object.as_deref().and_then(|object| serde_json::to_value(object).ok());
        let json = json.unwrap_or_default();
        let mut missing = references(K::KIND, &json);
        missing.retain(|reference| {
            let namespace = reference.namespace.as_deref().unwrap_or(&key.namespace);
            let at = Key::new(namespace, &reference.name);
            K::NEEDS.contains(&reference.kind) && self.shelves.has(reference.kind, &at) == Some(false)
        });
        Ok(Observed {
            object,
            json,
            missing,
        })
    }

    fn plan(&self, observed: &Observed<K>) -> Plan<Nothing, K::Status> {
        plan::plan(observed)
    }

    async fn act(&self, _: &Observed<K>, action: &Nothing) -> Result<bool, Fault> {
        match *action {}
    }

    fn failed(&self, object: &K, fault: &Fault) -> Option<Standing<K::Status>> {
        plan::failed(object, fault)
    }
}

/// Looks again at an object that came or changed.
pub(super) fn on_change<K: Plain>(work: Work) -> Told<K> {
    Arc::new(move |change| {
        if let Change::Applied { object, before } = change {
            let priority = match before {
                Some(_) => Priority::Create,
                None => Priority::Resync,
            };
            work.add(Key::of(&**object), priority);
        }
    })
}

/// Looks again at everything in a namespace in which something came or went that others need.
pub(super) fn on_need<K, N>(work: Work, shelf: Arc<Shelf<K>>) -> Told<N>
where
    K: Plain,
    N: Thing + Send + Sync + 'static,
{
    Arc::new(move |change| {
        let object = match change {
            Change::Applied {
                before: Some(_), ..
            } => return,
            Change::Applied { object, .. } | Change::Deleted(object) => object,
        };
        let namespace = object.namespace().unwrap_or_default();
        for waiting in shelf.in_namespace(&namespace, |_| true) {
            work.add(Key::of(&*waiting), Priority::Create);
        }
    })
}
