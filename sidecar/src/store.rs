//! Every series that is known, by the name under which it is exposed.
//!
//! Each family has a lock of its own, held for one batch of points or for a thousand series of a page at most.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::model::{Family, Labels, Series};

/// All families.
#[derive(Debug, Default)]
pub struct Store {
    shelves: Mutex<BTreeMap<Box<str>, Arc<Shelf>>>,
}

/// One family with its series.
#[derive(Debug)]
pub struct Shelf {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    family: Arc<Family>,
    series: BTreeMap<Labels, Series>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind our locks is whole between any two statements, also if one of them panicked.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store {
    /// The families in byte order of their names.
    pub fn shelves(&self) -> Vec<Arc<Shelf>> {
        lock(&self.shelves).values().map(Arc::clone).collect()
    }
}

impl Shelf {
    /// What all its series have in common, as it stands now.
    pub fn family(&self) -> Arc<Family> {
        Arc::clone(&lock(&self.state).family)
    }

    /// Visits at most `most` visible series in byte order of their labels, after `after` if given. Says whether there are
    /// more, and moves `after` on.
    pub fn read(
        &self,
        after: &mut Option<Labels>,
        most: usize,
        visit: &mut dyn FnMut(&Series),
    ) -> bool {
        use std::ops::Bound::{Excluded, Unbounded};
        let state = lock(&self.state);
        let from = after.as_ref().map_or(Unbounded, Excluded);
        let mut seen = 0;
        let mut last = None;
        let mut rest = state.series.range((from, Unbounded));
        for (labels, series) in rest.by_ref().take(most) {
            visit(series);
            seen += 1;
            last = Some(labels.clone());
        }
        if last.is_some() {
            *after = last;
        }
        seen == most && rest.next().is_some()
    }
}
