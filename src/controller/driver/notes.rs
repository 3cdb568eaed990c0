//! What a reconciler remembers about objects besides what they say themselves. It is lost with the process.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use kube::ResourceExt;

use crate::controller::cache::{Kept, Shelf};
use crate::controller::context::Thing;

/// One note about each object, by its uid.
pub(in crate::controller) struct Notes<T>(Mutex<HashMap<String, Arc<T>>>);

impl<T> Default for Notes<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Notes<T> {
    pub(in crate::controller) fn about<K: Thing>(&self, object: &K) -> Option<Arc<T>> {
        let notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        notes.get(&object.uid()?).cloned()
    }

    pub(in crate::controller) fn keep<K: Thing + Kept>(
        &self,
        object: &K,
        shelf: &Shelf<K>,
        note: T,
    ) {
        let here: HashSet<_> = shelf.select(ResourceExt::uid).into_iter().collect();
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Those about objects that are gone go with the next one that comes.
        notes.retain(|uid, _| here.contains(uid));
        notes.extend(object.uid().map(|uid| (uid, Arc::new(note))));
    }
}
