//! Every series that is known, by the name under which it is exposed.
//!
//! What comes in is judged here and nowhere later, so that no source can break the page: names, types, labels, times and
//! limits. Each family has a lock of its own, held for the points of one metric or for a thousand series of a page at most.

mod census;
mod exemplars;
mod expiry;
mod exponential;
mod hashing;
mod index;
mod intake;
mod labels;
mod limits;
mod merge;
mod point;
mod refusal;
mod shelf;
mod source;
mod tally;
mod weight;

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

pub use census::{Identity, Targets};
pub use expiry::{Cause, Patience};
pub use intake::{Intake, Open};
pub use limits::Limits;
pub use point::{Data, Example, Hint, Metric, Pair, Point, Scaled, Sort, Temporality};
pub use refusal::Refusal;
pub use shelf::Shelf;
pub use source::{Named, Origin, Scope, Stream};
pub use tally::{Oddity, Tally};

use crate::{lock::lock, names::LabelOptions};
use index::Index;

/// How attributes are read; how they are encoded is the business of who sends them in.
pub type ReadAttributes = fn(&[u8]) -> Result<Vec<Pair>, Refusal>;

/// What operators decide.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    /// How names are made.
    pub names: LabelOptions,
    /// Whether series carry the scope that they come from.
    pub has_scope_labels: bool,
    /// Whether series carry their target.
    pub targets: Targets,
    /// What one source may take.
    pub limits: Limits,
}

/// All families.
#[derive(Debug)]
pub struct Store {
    rules: Rules,
    read_attributes: ReadAttributes,
    index: Mutex<Index>,
    series: AtomicUsize,
    weight: AtomicUsize,
    expired: [AtomicU64; Cause::COUNT],
}

/// What went in one sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Series that the page no longer has.
    pub hidden: usize,
    /// Series of which nothing is known any more.
    pub forgotten: usize,
}

impl Store {
    /// An empty one.
    pub fn new(rules: Rules, read_attributes: ReadAttributes) -> Self {
        Self {
            rules,
            read_attributes,
            index: Mutex::new(Index::new(rules.targets)),
            series: AtomicUsize::new(0),
            weight: AtomicUsize::new(0),
            expired: Default::default(),
        }
    }

    /// The families in byte order of their names.
    pub fn shelves(&self) -> Vec<Arc<Shelf>> {
        lock(&self.index).shelves()
    }

    /// How many series are known, hidden ones included.
    pub fn series(&self) -> usize {
        self.series.load(Ordering::Relaxed)
    }

    /// How many families there are.
    pub fn families(&self) -> usize {
        lock(&self.index).shelves().len()
    }

    /// What became of every metric that was sent.
    pub fn names(&self) -> Vec<Named> {
        let streams = lock(&self.index).streams();
        streams.iter().map(|stream| stream.named()).collect()
    }

    /// How many targets were heard of lately.
    pub fn targets(&self) -> usize {
        lock(&self.index).targets()
    }

    /// What all series take of the memory, about.
    pub fn weight(&self) -> usize {
        self.weight.load(Ordering::Relaxed)
    }

    /// Takes in a request. `now` is in seconds of a clock that never goes back.
    pub fn intake(&self, now: u64) -> Intake<'_> {
        Intake::new(self, now)
    }

    /// Hides what has been silent for long, and forgets what has been for longer. `now` is of the clock of [`Self::intake`].
    pub fn sweep(&self, now: u64, patience: Patience) -> Expired {
        let mut index = lock(&self.index);
        let swept = index.sweep(now, patience);
        self.gone(&swept);
        Expired {
            hidden: swept.hidden.iter().sum(),
            forgotten: swept.forgotten,
        }
    }

    /// How many series left the page so far, by cause.
    pub fn expired(&self) -> impl Iterator<Item = (Cause, u64)> {
        let counts = self.expired.iter();
        let counts = counts.map(|count| count.load(Ordering::Relaxed));
        Cause::ALL.iter().copied().zip(counts)
    }

    /// Whether not even the smallest series fits any more.
    fn is_full(&self) -> bool {
        let Limits { series, bytes, .. } = self.rules.limits;
        self.series() >= series || self.weight() + weight::OVERHEAD > bytes
    }

    /// The value of a series takes another room than before.
    fn reweigh(&self, before: usize, after: usize) {
        match after.checked_sub(before) {
            Some(0) => {}
            Some(more) => {
                self.weight.fetch_add(more, Ordering::Relaxed);
            }
            None => {
                self.weight.fetch_sub(before - after, Ordering::Relaxed);
            }
        }
    }

    fn gone(&self, swept: &shelf::Swept) {
        for (count, more) in self.expired.iter().zip(swept.hidden) {
            count.fetch_add(more as u64, Ordering::Relaxed);
        }
        self.series.fetch_sub(swept.forgotten, Ordering::Relaxed);
        let weight = self.weight.load(Ordering::Relaxed);
        // The weight is a guess; it must not run below zero.
        self.weight
            .store(weight.saturating_sub(swept.weight), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
