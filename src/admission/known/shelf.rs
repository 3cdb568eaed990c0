//! What is known of the objects of one kind, by namespace and name, and of which namespaces all objects are known.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::api::text::names::Scope;
use serde_json::Value;

/// What is kept of an object.
pub(super) trait Facts: Send + Sync {
    /// Reads it from an object, whatever its state.
    fn of(object: &Value) -> Self;
}

/// The objects of one kind, seen without knowing what is kept of them.
pub trait Shelve: Send + Sync {
    /// A list of the scope begins; what is known stays until it is complete.
    fn begin(&self, scope: &Scope);
    /// An object of the list that has begun.
    fn stage(&self, scope: &Scope, namespace: &str, name: &str, object: &Value);
    /// The list is complete and replaces all that was known of its scope.
    fn complete(&self, scope: &Scope);
    /// An object was made or changed.
    fn put(&self, namespace: &str, name: &str, object: &Value);
    /// An object is gone.
    fn remove(&self, namespace: &str, name: &str);
    /// How many objects there are.
    fn count(&self) -> usize;
    /// Whether an object is known not to exist: it is not there, and its namespace has been listed.
    fn lacks(&self, namespace: &str, name: &str) -> bool;
}

/// The objects of one kind.
#[derive(Debug)]
pub(super) struct Shelf<T> {
    contents: RwLock<Contents<T>>,
    /// Lists that are not complete.
    staged: Mutex<HashMap<Scope, Homes<T>>>,
}

/// Objects by namespace and name.
type Homes<T> = HashMap<String, HashMap<String, Arc<T>>>;

#[derive(Debug)]
struct Contents<T> {
    homes: Homes<T>,
    listed: HashSet<Scope>,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self {
            contents: RwLock::new(Contents {
                homes: HashMap::new(),
                listed: HashSet::new(),
            }),
            staged: Mutex::default(),
        }
    }
}

impl<T: Facts> Shelve for Shelf<T> {
    fn begin(&self, scope: &Scope) {
        self.staged().insert(scope.clone(), Homes::new());
    }

    fn stage(&self, scope: &Scope, namespace: &str, name: &str, object: &Value) {
        let facts = Arc::new(T::of(object));
        let mut staged = self.staged();
        let homes = staged.entry(scope.clone()).or_default();
        let home = homes.entry(namespace.to_owned()).or_default();
        home.insert(name.to_owned(), facts);
    }

    fn complete(&self, scope: &Scope) {
        let mut homes = self.staged().remove(scope).unwrap_or_default();
        let mut contents = self.write();
        match scope {
            Scope::Cluster => contents.homes = homes,
            Scope::Namespace(namespace) => {
                contents.homes.remove(namespace);
                if let Some(home) = homes.remove(namespace) {
                    contents.homes.insert(namespace.clone(), home);
                }
            }
        }
        contents.listed.insert(scope.clone());
    }

    fn put(&self, namespace: &str, name: &str, object: &Value) {
        let facts = Arc::new(T::of(object));
        let mut contents = self.write();
        let home = contents.homes.entry(namespace.to_owned()).or_default();
        home.insert(name.to_owned(), facts);
    }

    fn remove(&self, namespace: &str, name: &str) {
        let mut contents = self.write();
        if let Some(home) = contents.homes.get_mut(namespace) {
            home.remove(name);
            if home.is_empty() {
                contents.homes.remove(namespace);
            }
        }
    }

    fn count(&self) -> usize {
        self.read().homes.values().map(HashMap::len).sum()
    }

    fn lacks(&self, namespace: &str, name: &str) -> bool {
        let contents = self.read();
        let is_there = contents
            .homes
            .get(namespace)
            .is_some_and(|home| home.contains_key(name));
        // Asked second, since it makes a text to compare with.
        !is_there && contents.covers(namespace)
    }
}

impl<T> Contents<T> {
    /// Whether the namespace has been listed.
    fn covers(&self, namespace: &str) -> bool {
        self.listed.contains(&Scope::Cluster)
            || self
                .listed
                .contains(&Scope::Namespace(namespace.to_owned()))
    }
}

impl<T> Shelf<T> {
    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        self.read().homes.get(namespace)?.get(name).cloned()
    }

    /// The objects of a namespace that fit, in the order of their names, so that the same question has the same answer.
    pub(super) fn all(&self, namespace: &str, fits: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let contents = self.read();
        let home = contents.homes.get(namespace).into_iter().flatten();
        let mut found: Vec<_> = home.filter(|(_, object)| fits(object)).collect();
        found.sort_unstable_by_key(|(name, _)| *name);
        found
            .into_iter()
            .map(|(_, object)| Arc::clone(object))
            .collect()
    }

    /// All objects of a namespace; none where nobody looked.
    pub(super) fn all_known(&self, namespace: &str) -> Option<Vec<Arc<T>>> {
        let covered = self.read().covers(namespace);
        covered.then(|| self.all(namespace, |_| true))
    }

    // Nothing panics while a lock is held, so a poisoned one is as good as new.
    fn read(&self) -> RwLockReadGuard<'_, Contents<T>> {
        self.contents.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Contents<T>> {
        self.contents
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn staged(&self) -> MutexGuard<'_, HashMap<Scope, Homes<T>>> {
        self.staged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    impl Facts for i64 {
        fn of(object: &Value) -> Self {
            object.as_i64().unwrap()
        }
    }

    fn list(shelf: &Shelf<i64>, scope: &Scope, objects: &[(&str, &str, i64)]) {
        shelf.begin(scope);
        for (namespace, name, object) in objects {
            shelf.stage(scope, namespace, name, &json!(object));
        }
        shelf.complete(scope);
    }

    fn namespace(name: &str) -> Scope {
        Scope::Namespace(name.to_owned())
    }

    #[test]
    fn nothing_is_missing_before_the_first_list() {
        let shelf = Shelf::<i64>::default();
        assert!(!shelf.lacks("a", "x"));
        list(&shelf, &namespace("a"), &[("a", "y", 1)]);
        assert!(shelf.lacks("a", "x"));
        assert!(!shelf.lacks("a", "y"));
        assert!(!shelf.lacks("b", "x"), "that namespace is not followed");
        list(&shelf, &Scope::Cluster, &[]);
        assert!(shelf.lacks("b", "x"));
    }

    #[test]
    fn a_list_replaces_its_scope_and_nothing_else() {
        let shelf = Shelf::default();
        let (a, b) = (namespace("a"), namespace("b"));
        list(&shelf, &a, &[("a", "x", 1), ("a", "y", 2)]);
        list(&shelf, &b, &[("b", "x", 3)]);
        list(&shelf, &a, &[("a", "y", 4)]);
        assert_eq!(shelf.get("a", "x"), None);
        assert_eq!(shelf.get("a", "y"), Some(Arc::new(4)));
        assert_eq!(shelf.get("b", "x"), Some(Arc::new(3)));
        assert_eq!(shelf.count(), 2);
        list(&shelf, &a, &[]);
        assert_eq!(shelf.count(), 1);
    }

    #[test]
    fn what_is_known_stays_until_a_new_list_is_complete() {
        let shelf = Shelf::default();
        let a = namespace("a");
        list(&shelf, &a, &[("a", "x", 1)]);
        shelf.begin(&a);
        shelf.stage(&a, "a", "y", &json!(2));
        assert_eq!(shelf.all("a", |_| true), [Arc::new(1)]);
        shelf.begin(&a);
        shelf.stage(&a, "a", "z", &json!(3));
        shelf.complete(&a);
        assert_eq!(
            shelf.all("a", |_| true),
            [Arc::new(3)],
            "a list that broke off leaves nothing"
        );
    }

    #[test]
    fn objects_come_change_and_go() {
        let shelf = Shelf::<i64>::default();
        shelf.put("a", "y", &json!(1));
        shelf.put("a", "x", &json!(2));
        shelf.put("a", "y", &json!(3));
        assert_eq!(shelf.all("a", |_| true), [Arc::new(2), Arc::new(3)]);
        assert_eq!(shelf.all("a", |object| *object == 3), [Arc::new(3)]);
        shelf.remove("a", "x");
        shelf.remove("a", "not there");
        shelf.remove("not there", "x");
        assert_eq!(shelf.all("a", |_| true), [Arc::new(3)]);
        shelf.remove("a", "y");
        assert_eq!(shelf.count(), 0);
    }
}
