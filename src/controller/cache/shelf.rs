//! The copies of one kind, newest version of each object only.
//!
//! Two sources write here: the watch, and our own writes as the API server answered them. Whichever is newer stays, so
//! a reconcile that follows on a write sees that write. A list that lacks an object means that it was deleted, which is
//! told like any other deletion.
//!
//! An answer may come after the news that the object is gone, and no watch tells that again. So what we wrote counts as
//! confirmed only when the watch has told it, and is asked for where that takes too long.

mod change;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use kube::Resource;

use crate::cluster::Scope;
pub(crate) use change::{Change, Kept, Key};

/// Objects that are asked for at once: whoever asks hears no news meanwhile, which would make more of them overdue.
const OVERDUE_AT_ONCE: usize = 16;

/// What a complete list says.
#[derive(Debug)]
pub(in crate::controller) struct Listed<K> {
    pub(in crate::controller) changes: Vec<Change<K>>,
    /// Objects that we wrote while the list was on its way and that it lacks: only a live read can tell.
    pub(super) doubtful: Vec<Key>,
}

/// Copies of the objects of one kind.
#[derive(Debug)]
pub(crate) struct Shelf<K> {
    /// Name of the object, in the same namespace, that an object belongs to.
    owner: fn(&K) -> Option<String>,
    contents: RwLock<Contents<K>>,
}

/// Told how each object is now, or that it is gone, before anyone can see it here. Must not look at the shelf.
pub(crate) type Follower<K> = Box<dyn Fn(&Key, Option<&K>) + Send + Sync>;

struct Contents<K> {
    objects: BTreeMap<Key, Arc<K>>,
    follower: Option<Follower<K>>,
    /// Names of objects by what they belong to.
    owned: HashMap<Key, BTreeSet<String>>,
    listings: HashMap<Scope, Listing<K>>,
    /// What another reconciler than that of the kind has written, as it was before: the watch still has to tell it.
    untold: HashMap<Key, Option<Arc<K>>>,
    /// What we wrote and no watch has told yet, and whether it was so when someone last asked.
    unconfirmed: HashMap<Key, bool>,
}

impl<K> fmt::Debug for Contents<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} objects", self.objects.len())
    }
}

/// A list that is on its way.
#[derive(Debug)]
struct Listing<K> {
    found: BTreeMap<Key, Arc<K>>,
    written: HashSet<Key>,
}

impl<K: Kept> Default for Shelf<K> {
    fn default() -> Self {
        Self::with_owner(|_| None)
    }
}

impl<K: Kept> Shelf<K> {
    pub(crate) fn with_owner(owner: fn(&K) -> Option<String>) -> Self {
        let contents = Contents {
            objects: BTreeMap::new(),
            follower: None,
            owned: HashMap::new(),
            listings: HashMap::new(),
            untold: HashMap::new(),
            unconfirmed: HashMap::new(),
        };
        Self {
            owner,
            contents: RwLock::new(contents),
        }
    }

    /// Tells someone of every change from now on, and of what is there already.
    pub(crate) fn follow(&self, follower: Follower<K>) {
        let mut contents = self.write();
        for (key, object) in &contents.objects {
            follower(key, Some(object));
        }
        contents.follower = Some(follower);
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.read().objects.get(key).cloned()
    }

    /// The objects that belong to another one.
    pub(crate) fn of_owner(&self, owner: &Key) -> Vec<Arc<K>> {
        let contents = self.read();
        let names = contents.owned.get(owner).into_iter().flatten();
        names
            .filter_map(|name| contents.objects.get(&Key::new(&owner.namespace, name)))
            .cloned()
            .collect()
    }

    /// The objects of a namespace that are wanted, by name.
    pub(crate) fn in_namespace(&self, namespace: &str, wanted: impl Fn(&K) -> bool) -> Vec<Arc<K>> {
        let contents = self.read();
        let from = contents.objects.range(Key::new(namespace, "")..);
        from.take_while(|(key, _)| key.namespace == namespace)
            .map(|(_, object)| object)
            .filter(|object| wanted(object))
            .cloned()
            .collect()
    }

    /// What is made of each object, of all namespaces.
    pub(crate) fn select<T>(&self, make: impl Fn(&K) -> Option<T>) -> Vec<T> {
        let contents = self.read();
        let objects = contents.objects.values();
        objects.filter_map(|object| make(object)).collect()
    }

    /// What the objects belong to.
    pub(crate) fn owners(&self) -> Vec<Key> {
        self.read().owned.keys().cloned().collect()
    }

    pub(crate) fn keys(&self) -> Vec<Key> {
        self.read().objects.keys().cloned().collect()
    }

    /// Takes over what the API server answered to a write of ours. The watch says nothing about it any more, so it is for
    /// whoever works on the object itself.
    pub(crate) fn learn(&self, object: K) {
        self.take_over(object);
    }

    /// The same for an object that someone else works on, who hears of it when the watch brings it.
    pub(crate) fn announce(&self, object: K) {
        let key = Key::of(&object);
        if let Some(Change::Applied { before, .. }) = self.take_over(object) {
            self.write().untold.entry(key).or_insert(before);
        }
    }

    fn take_over(&self, object: K) -> Option<Change<K>> {
        let mut contents = self.write();
        let key = Key::of(&object);
        for (scope, listing) in &mut contents.listings {
            if scope.covers(&key.namespace) {
                listing.written.insert(key.clone());
            }
        }
        let change = contents.put(self.owner, key.clone(), Arc::new(object));
        if change.is_some() {
            contents.unconfirmed.insert(key, false);
        }
        change
    }

    /// Some of what we wrote in a scope and no watch has told since this was last asked: only a live read can tell whether
    /// it is still there. What is given out has its turn again after the others.
    pub(in crate::controller) fn overdue(&self, scope: &Scope) -> Vec<Key> {
        let mut contents = self.write();
        let here = contents.unconfirmed.iter_mut();
        let here = here.filter(|(key, _)| scope.covers(&key.namespace));
        let overdue = here.filter_map(|(key, was_so)| {
            *was_so = !*was_so;
            (!*was_so).then(|| key.clone())
        });
        overdue.take(OVERDUE_AT_ONCE).collect()
    }

    /// Forgets an object that we deleted. If something keeps it alive, the watch brings it back as it then is.
    pub(crate) fn unlearn(&self, key: &Key) {
        self.write().remove(self.owner, key);
    }

    /// Forgets an object that a live read did not find, unless it was written anew meanwhile.
    pub(in crate::controller) fn forget(
        &self,
        key: &Key,
        looked_for: &Arc<K>,
    ) -> Option<Change<K>> {
        let mut contents = self.write();
        let known = contents.objects.get(key)?;
        if !Arc::ptr_eq(known, looked_for) {
            return None;
        }
        let object = contents.remove(self.owner, key)?;
        Some(Change::Deleted {
            object,
            is_last: false,
        })
    }

    /// Takes over what the watch says; nothing if that is old news.
    pub(in crate::controller) fn apply(&self, object: K) -> Option<Change<K>> {
        self.write()
            .hear(self.owner, Key::of(&object), Arc::new(object))
    }

    /// Takes over a deletion. What is newer than that is another object of the same name.
    pub(in crate::controller) fn delete(&self, object: K) -> Option<Change<K>> {
        let key = Key::of(&object);
        let mut contents = self.write();
        let known = contents.objects.get(&key);
        if known.is_some_and(|known| version(&**known) > version(&object)) {
            return None;
        }
        contents.remove(self.owner, &key);
        Some(Change::Deleted {
            object: Arc::new(object),
            is_last: true,
        })
    }

    pub(in crate::controller) fn begin(&self, scope: &Scope) {
        let listing = Listing {
            found: BTreeMap::new(),
            written: HashSet::new(),
        };
        self.write().listings.insert(scope.clone(), listing);
    }

    pub(in crate::controller) fn stage(&self, scope: &Scope, object: K) {
        if let Some(listing) = self.write().listings.get_mut(scope) {
            listing.found.insert(Key::of(&object), Arc::new(object));
        }
    }

    /// Puts a complete list in place of what was known in its scope.
    pub(in crate::controller) fn complete(&self, scope: &Scope) -> Listed<K> {
        let mut contents = self.write();
        let mut listed = Listed {
            changes: Vec::new(),
            doubtful: Vec::new(),
        };
        let Some(Listing { found, written }) = contents.listings.remove(scope) else {
            return listed;
        };
        let absent: Vec<Key> = contents
            .objects
            .keys()
            .filter(|key| scope.covers(&key.namespace) && !found.contains_key(key))
            .cloned()
            .collect();
        for key in absent {
            if written.contains(&key) {
                listed.doubtful.push(key);
            } else if let Some(object) = contents.remove(self.owner, &key) {
                listed.changes.push(Change::Deleted {
                    object,
                    is_last: false,
                });
            }
        }
        for (key, object) in found {
            listed
                .changes
                .extend(contents.hear(self.owner, key, object));
        }
        listed
    }

    fn read(&self) -> RwLockReadGuard<'_, Contents<K>> {
        self.contents.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Contents<K>> {
        self.contents
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Kept> Contents<K> {
    /// Takes over what the watch says; old news is told once if nobody heard it yet.
    fn hear(
        &mut self,
        owner: fn(&K) -> Option<String>,
        key: Key,
        object: Arc<K>,
    ) -> Option<Change<K>> {
        let untold = self.untold.remove(&key);
        let told = version(&*object);
        let change = self.put(owner, key.clone(), object);
        let known = self.objects.get(&key);
        if known.is_some_and(|known| version(&**known) <= told) {
            self.unconfirmed.remove(&key);
        }
        match (change, untold) {
            (None, Some(before)) => {
                let object = self.objects.get(&key).cloned()?;
                Some(Change::Applied { object, before })
            }
            (change, _) => change,
        }
    }

    /// Puts an object in its place, unless that holds the same version or a newer one.
    fn put(
        &mut self,
        owner: fn(&K) -> Option<String>,
        key: Key,
        object: Arc<K>,
    ) -> Option<Change<K>> {
        let known = self.objects.get(&key);
        if known.is_some_and(|known| version(&**known) >= version(&*object)) {
            return None;
        }
        let before = self.take(owner, &key);
        if let Some(follower) = &self.follower {
            follower(&key, Some(&object));
        }
        if let Some(owner) = owner(&object) {
            let owner = Key::new(&key.namespace, owner);
            let names = self.owned.entry(owner).or_default();
            names.insert(key.name.clone());
        }
        self.objects.insert(key, Arc::clone(&object));
        Some(Change::Applied { object, before })
    }

    fn remove(&mut self, owner: fn(&K) -> Option<String>, key: &Key) -> Option<Arc<K>> {
        self.untold.remove(key);
        self.unconfirmed.remove(key);
        let gone = self.take(owner, key)?;
        if let Some(follower) = &self.follower {
            follower(key, None);
        }
        Some(gone)
    }

    fn take(&mut self, owner: fn(&K) -> Option<String>, key: &Key) -> Option<Arc<K>> {
        let gone = self.objects.remove(key)?;
        if let Some(owner) = owner(&gone).map(|owner| Key::new(&key.namespace, owner))
            && let Some(names) = self.owned.get_mut(&owner)
        {
            names.remove(&key.name);
            if names.is_empty() {
                self.owned.remove(&owner);
            }
        }
        Some(gone)
    }
}

/// Versions of one resource can be compared as numbers. What has none is taken as the newest.
fn version<K: Resource>(object: &K) -> u64 {
    let version = object.meta().resource_version.as_deref();
    version
        .and_then(|version| version.parse().ok())
        .unwrap_or(u64::MAX)
}
