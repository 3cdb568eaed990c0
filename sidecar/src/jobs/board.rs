//! What is known of all Jobs and pods, watch by watch; read when metrics are asked for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use agents::cluster::Scope;

use super::metrics::Resource;
use super::shelf::{Figures, Orphans, Shelf};

/// All that is known.
#[derive(Debug)]
pub(super) struct Board {
    /// One for each scope of the watches.
    pub(super) places: Vec<Place>,
}

/// What is known of one scope.
#[derive(Debug)]
pub(super) struct Place {
    /// What the watches cover.
    pub(super) scope: Scope,
    jobs: Mutex<Shelf>,
    pods: Mutex<Orphans>,
    has_jobs: AtomicBool,
    has_pods: AtomicBool,
}

impl Board {
    /// Nothing is known of these scopes.
    pub(super) fn new(scopes: Vec<Scope>) -> Self {
        let place = |scope| Place {
            scope,
            jobs: Mutex::default(),
            pods: Mutex::default(),
            has_jobs: AtomicBool::new(false),
            has_pods: AtomicBool::new(false),
        };
        Self {
            places: scopes.into_iter().map(place).collect(),
        }
    }

    /// How all Jobs stand.
    pub(super) fn figures(&self) -> Figures {
        let figures = self.places.iter().map(|place| place.jobs().figures());
        figures.fold(Figures::default(), Figures::and)
    }

    /// How many pods no Job looks after.
    pub(super) fn orphans(&self) -> u64 {
        let counts = self.places.iter().map(|place| place.pods().count());
        u64::try_from(counts.sum::<usize>()).unwrap_or(u64::MAX)
    }

    /// Whether all watches of a resource work.
    pub(super) fn is_up(&self, resource: Resource) -> bool {
        let mut places = self.places.iter();
        !self.places.is_empty() && places.all(|place| place.up(resource).load(Ordering::Relaxed))
    }
}

impl Place {
    /// Its Jobs.
    pub(super) fn jobs(&self) -> MutexGuard<'_, Shelf> {
        // Whole between any two statements, also if one of them panicked.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its pods.
    pub(super) fn pods(&self) -> MutexGuard<'_, Orphans> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says whether a watch works; returns whether it did before.
    pub(super) fn set_up(&self, resource: Resource, is_up: bool) -> bool {
        self.up(resource).swap(is_up, Ordering::Relaxed)
    }

    fn up(&self, resource: Resource) -> &AtomicBool {
        match resource {
            Resource::Jobs => &self.has_jobs,
            Resource::Pods => &self.has_pods,
        }
    }
}
