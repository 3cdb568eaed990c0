//! What is known of the objects of one kind, by namespace and name, and of which namespaces all objects are known.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Objects of several namespaces.
pub(super) type Homes<T> = HashMap<String, HashMap<String, Arc<T>>>;

/// What one watch covers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Scope {
    /// The whole cluster.
    Cluster,
    /// One namespace.
    Namespace(String),
}

/// The objects of one kind.
#[derive(Debug)]
pub(super) struct Shelf<T> {
    contents: RwLock<Contents<T>>,
}

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
        }
    }
}

impl<T> Shelf<T> {
    /// Takes a full list in place of all that was known of its scope.
    pub(super) fn replace(&self, scope: &Scope, mut homes: Homes<T>) {
        let mut contents = self.write();
        match scope {
            Scope::Cluster => contents.homes = homes,
            Scope::Namespace(namespace) => {
                contents.homes.remove(namespace);
                if let Some(objects) = homes.remove(namespace) {
                    contents.homes.insert(namespace.clone(), objects);
                }
            }
        }
        contents.listed.insert(scope.clone());
    }

    pub(super) fn put(&self, namespace: String, name: String, object: T) {
        let mut contents = self.write();
        let home = contents.homes.entry(namespace).or_default();
        home.insert(name, Arc::new(object));
    }

    pub(super) fn remove(&self, namespace: &str, name: &str) {
        let mut contents = self.write();
        if let Some(home) = contents.homes.get_mut(namespace) {
            home.remove(name);
            if home.is_empty() {
                contents.homes.remove(namespace);
            }
        }
    }

    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        self.read().homes.get(namespace)?.get(name).cloned()
    }

    /// The objects of a namespace that fit, with their names in order, so that the same question has the same answer.
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

    pub(super) fn len(&self) -> usize {
        self.read().homes.values().map(HashMap::len).sum()
    }

    /// Whether an object is known not to exist: it is not there, and its namespace has been listed.
    pub(super) fn lacks(&self, namespace: &str, name: &str) -> bool {
        let contents = self.read();
        let is_there = contents
            .homes
            .get(namespace)
            .is_some_and(|home| home.contains_key(name));
        let is_listed = contents.listed.contains(&Scope::Cluster)
            || contents
                .listed
                .contains(&Scope::Namespace(namespace.to_owned()));
        is_listed && !is_there
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn homes(objects: &[(&str, &str, u8)]) -> Homes<u8> {
        let mut homes = Homes::new();
        for (namespace, name, object) in objects {
            let home = homes.entry((*namespace).to_owned()).or_default();
            home.insert((*name).to_owned(), Arc::new(*object));
        }
        homes
    }

    #[test]
    fn nothing_is_missing_before_the_first_list() {
        let shelf = Shelf::<u8>::default();
        assert!(!shelf.lacks("a", "x"));
        shelf.replace(&Scope::Namespace("a".to_owned()), homes(&[("a", "y", 1)]));
        assert!(shelf.lacks("a", "x"));
        assert!(!shelf.lacks("a", "y"));
        assert!(!shelf.lacks("b", "x"), "that namespace is not followed");
        shelf.replace(&Scope::Cluster, homes(&[]));
        assert!(shelf.lacks("b", "x"));
    }

    #[test]
    fn a_list_replaces_its_scope_and_nothing_else() {
        let shelf = Shelf::default();
        let (a, b) = (
            Scope::Namespace("a".to_owned()),
            Scope::Namespace("b".to_owned()),
        );
        shelf.replace(&a, homes(&[("a", "x", 1), ("a", "y", 2)]));
        shelf.replace(&b, homes(&[("b", "x", 3)]));
        shelf.replace(&a, homes(&[("a", "y", 4)]));
        assert_eq!(shelf.get("a", "x"), None);
        assert_eq!(shelf.get("a", "y"), Some(Arc::new(4)));
        assert_eq!(shelf.get("b", "x"), Some(Arc::new(3)));
        assert_eq!(shelf.len(), 2);
        shelf.replace(&a, homes(&[]));
        assert_eq!(shelf.len(), 1);
    }

    #[test]
    fn objects_come_change_and_go() {
        let shelf = Shelf::default();
        shelf.put("a".to_owned(), "y".to_owned(), 1);
        shelf.put("a".to_owned(), "x".to_owned(), 2);
        shelf.put("a".to_owned(), "y".to_owned(), 3);
        assert_eq!(shelf.all("a", |_| true), [Arc::new(2), Arc::new(3)]);
        assert_eq!(shelf.all("a", |object| *object == 3), [Arc::new(3)]);
        shelf.remove("a", "x");
        shelf.remove("a", "not there");
        shelf.remove("not there", "x");
        assert_eq!(shelf.all("a", |_| true), [Arc::new(3)]);
        shelf.remove("a", "y");
        assert_eq!(shelf.len(), 0);
    }
}
