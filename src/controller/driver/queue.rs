//! Which object is worked on next: each at most once at a time, the urgent ones first, some only later.
//!
//! A value with a clock from outside; it wakes nobody. It holds each object at most once, so it cannot outgrow them.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::controller::cache::Key;

/// What goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Priority {
    /// An outcome to record, a cancellation, a deletion: waiting could lose something or cost something.
    Record,
    /// Work to begin or to follow.
    Create,
    /// A look without a cause.
    Resync,
}

const PRIORITIES: usize = 3;

/// So many in a row may overtake what is less urgent; then that gets one turn, or it would never get any.
const PATIENCE: u32 = 16;

/// The objects that wait to be worked on.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    ready: [VecDeque<Key>; PRIORITIES],
    later: BTreeMap<(Instant, u64), Key>,
    entries: HashMap<Key, Entry>,
    count: u64,
    overtaken: u32,
    adds: u64,
    retries: u64,
}

/// How a queue stands, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    /// Objects that are ready.
    pub(crate) depth: u64,
    /// Objects that became ready, so far.
    pub(crate) adds: u64,
    /// Those among them that had failed.
    pub(crate) retries: u64,
    /// Time that all objects which are worked on have taken.
    pub(crate) unfinished: Duration,
    /// Time of the one among them that has taken longest.
    pub(crate) longest: Duration,
}

#[derive(Debug, Default)]
struct Entry {
    place: Place,
    /// Since when it is there, unless that is nowhere.
    since: Option<Instant>,
    later: Option<(Instant, u64)>,
    failures: u32,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Place {
    /// Nothing is to be done, except perhaps later.
    #[default]
    Idle,
    Ready(Priority),
    /// Being worked on; with what became urgent meanwhile.
    Working(Option<Priority>),
}

impl Queue {
    /// Asks for an object to be worked on.
    pub(crate) fn add(&mut self, key: Key, priority: Priority, now: Instant) {
        let entry = self.entries.entry(key.clone()).or_default();
        match &mut entry.place {
            Place::Ready(known) if *known <= priority => return,
            Place::Working(again) => {
                *again = Some(again.map_or(priority, |known| known.min(priority)));
                return;
            }
            place @ Place::Ready(_) => *place = Place::Ready(priority),
            place @ Place::Idle => {
                *place = Place::Ready(priority);
                entry.since = Some(now);
                self.adds += 1;
            }
        }
        // What stands in a less urgent line as well is passed over there.
        self.ready[priority as usize].push_back(key);
    }

    /// The next object, and how long it stood here; none if nothing is ready now.
    pub(crate) fn take(&mut self, now: Instant) -> Option<(Key, Duration)> {
        self.promote(now);
        let order: [usize; PRIORITIES] = match self.overtaken < PATIENCE {
            true => [0, 1, 2],
            false => [2, 1, 0],
        };
        for line in order {
            while let Some(key) = self.ready[line].pop_front() {
                let Some(entry) = self.entries.get_mut(&key) else {
                    continue;
                };
                if entry.place != Place::Ready(PRIORITY[line]) {
                    continue;
                }
                entry.place = Place::Working(None);
                let since = entry.since.replace(now).unwrap_or(now);
                let others_wait = self.ready[line + 1..].iter().any(|line| !line.is_empty());
                self.overtaken = if others_wait { self.overtaken + 1 } else { 0 };
                return Some((key, now.saturating_duration_since(since)));
            }
        }
        None
    }

    /// An object was worked on without a failure, and is looked at again at a time, or when something happens.
    pub(crate) fn done(&mut self, key: &Key, again: Option<Instant>, now: Instant) {
        self.finish(key, again, 0, now);
    }

    /// Working on an object failed; `delay` says from the number of failures in a row when it is tried again.
    pub(crate) fn failed(
        &mut self,
        key: &Key,
        now: Instant,
        delay: impl Fn(u32) -> Duration,
    ) -> u32 {
        let failures = self.entries.get(key).map_or(1, |entry| entry.failures + 1);
        self.retries += 1;
        self.finish(key, Some(now + delay(failures)), failures, now);
        failures
    }

    fn finish(&mut self, key: &Key, again: Option<Instant>, failures: u32, now: Instant) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        entry.failures = failures;
        if let Some(due) = entry.later.take() {
            self.later.remove(&due);
        }
        if let Some(at) = again {
            self.count += 1;
            entry.later = Some((at, self.count));
            self.later.insert((at, self.count), key.clone());
        }
        let asked = match entry.place {
            Place::Working(again) => again,
            Place::Idle | Place::Ready(_) => return,
        };
        entry.place = Place::Idle;
        entry.since = None;
        match asked {
            Some(priority) => self.add(key.clone(), priority, now),
            None if entry.later.is_none() && entry.failures == 0 => drop(self.entries.remove(key)),
            None => {}
        }
    }

    /// When something becomes ready by itself.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.later.keys().next().map(|(at, _)| *at)
    }

    /// How it stands.
    pub(crate) fn figures(&self, now: Instant) -> Figures {
        let mut figures = Figures {
            adds: self.adds,
            retries: self.retries,
            ..Figures::default()
        };
        for entry in self.entries.values() {
            match entry.place {
                Place::Idle => {}
                Place::Ready(_) => figures.depth += 1,
                Place::Working(_) => {
                    let since = entry.since.unwrap_or(now);
                    let taken = now.saturating_duration_since(since);
                    figures.unfinished += taken;
                    figures.longest = figures.longest.max(taken);
                }
            }
        }
        figures
    }

    fn promote(&mut self, now: Instant) {
        while let Some(first) = self.later.first_entry() {
            if first.key().0 > now {
                return;
            }
            let key = first.remove();
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.later = None;
            }
            self.add(key, Priority::Create, now);
        }
    }
}

const PRIORITY: [Priority; PRIORITIES] = [Priority::Record, Priority::Create, Priority::Resync];
