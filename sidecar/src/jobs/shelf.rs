//! The Jobs of one watch, and the pods that have lost theirs. A list replaces what was known, and what it lacks has gone.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use agents::api::contract::{finalizer, label};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::judge::{Question, is_overrun, questions};
use super::view::{State, Transition, View, transitions};

/// The Jobs of one watch.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    jobs: HashMap<Arc<str>, Box<Entry>>,
    /// Number of the list that is on its way, or was last.
    list: u32,
    has_list: bool,
}

#[derive(Debug)]
struct Entry {
    view: View,
    /// The list that had it last.
    list: u32,
    is_overrun: bool,
}

/// What a message of the watch has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// The Job as it is now, or was last.
    pub(super) view: View,
    /// What happened to it.
    pub(super) transitions: Vec<Transition>,
    /// What is to be looked into.
    pub(super) questions: Vec<Question>,
    /// Its time to live turned out to be too short.
    pub(super) is_overrun: bool,
}

/// How the Jobs of a watch stand.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Figures {
    /// How many are in each state, in the order of [`State::ALL`].
    pub(super) states: [u64; State::ALL.len()],
    /// How many have ended without a stored outcome.
    pub(super) unrecorded: u64,
    /// When the first of those ended.
    pub(super) oldest: Option<Timestamp>,
    /// When the first of those is removed by its time to live.
    pub(super) due: Option<Timestamp>,
}

impl Shelf {
    /// A list begins.
    pub(super) fn begin(&mut self) {
        self.list = self.list.wrapping_add(1);
    }

    /// Takes over a Job. What it went through before the first list is not counted: another count has it.
    pub(super) fn put(&mut self, view: View, now: Timestamp) -> Change {
        let before = self.jobs.get(&view.uid);
        let seen = before.map(|before| &before.view);
        let view = match seen {
            Some(before) => view.after(before),
            None => view,
        };
        let was_overrun = before.is_some_and(|before| before.is_overrun);
        let is_overrun = !was_overrun && is_overrun(seen, &view, now);
        let mut happened = transitions(seen, &view);
        if seen.is_none() && !self.has_list {
            happened.clear();
        }
        let change = Change {
            transitions: happened,
            questions: questions(seen, &view),
            is_overrun,
            view: view.clone(),
        };
        let entry = Entry {
            view,
            list: self.list,
            is_overrun: was_overrun || is_overrun,
        };
        let uid = Arc::clone(&entry.view.uid);
        self.jobs.insert(uid, Box::new(entry));
        change
    }

    /// Takes over that a Job is gone; `last` is how it was at its end, if that is known.
    pub(super) fn remove(&mut self, uid: &str, last: Option<View>) -> Option<Change> {
        let before = self.jobs.remove(uid).map(|entry| entry.view);
        let view = match (last, &before) {
            (Some(last), Some(before)) => last.after(before),
            (Some(last), None) => last,
            (None, before) => before.clone()?,
        };
        let mut happened = match &before {
            Some(before) => transitions(Some(before), &view),
            None => Vec::new(),
        };
        happened.push(Transition::Deleted);
        Some(Change {
            transitions: happened,
            questions: match view.is_recorded {
                true => Vec::new(),
                false => vec![Question::Gone],
            },
            is_overrun: false,
            view,
        })
    }

    /// A list is complete: what it lacks has gone unseen.
    pub(super) fn complete(&mut self) -> Vec<Change> {
        self.has_list = true;
        let list = self.list;
        let gone = self.jobs.values().filter(|entry| entry.list != list);
        let gone: Vec<_> = gone.map(|entry| Arc::clone(&entry.view.uid)).collect();
        self.jobs.shrink_to(self.jobs.len());
        gone.iter()
            .filter_map(|uid| self.remove(uid, None))
            .collect()
    }

    /// How many times to live have turned out to be too short since the last look.
    pub(super) fn overrun(&mut self, now: Timestamp) -> u64 {
        let mut count = 0;
        for entry in self.jobs.values_mut().filter(|entry| !entry.is_overrun) {
            entry.is_overrun = is_overrun(None, &entry.view, now);
            count += u64::from(entry.is_overrun);
        }
        count
    }

    /// How they stand.
    pub(super) fn figures(&self) -> Figures {
        let mut figures = Figures::default();
        for Entry { view, .. } in self.jobs.values().map(|entry| &**entry) {
            let state = view.state();
            let place = State::ALL.iter().position(|known| *known == state);
            if let Some(count) = place.and_then(|place| figures.states.get_mut(place)) {
                *count += 1;
            }
            if let Some(ended) = view.unrecorded_since() {
                figures.unrecorded += 1;
                figures.oldest = earlier(figures.oldest, Some(ended));
                figures.due = earlier(figures.due, view.due());
            }
        }
        figures
    }
}

impl Figures {
    /// Those of two watches.
    pub(super) fn and(mut self, other: Self) -> Self {
        for (count, more) in self.states.iter_mut().zip(other.states) {
            *count += more;
        }
        Self {
            states: self.states,
            unrecorded: self.unrecorded + other.unrecorded,
            oldest: earlier(self.oldest, other.oldest),
            due: earlier(self.due, other.due),
        }
    }
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The pods of one watch that no Job looks after any more. Of all others nothing is kept.
#[derive(Debug, Default)]
pub(super) struct Orphans {
    /// The list that had each last.
    pods: HashMap<Box<str>, u32>,
    list: u32,
}

impl Orphans {
    /// A list begins.
    pub(super) fn begin(&mut self) {
        self.list = self.list.wrapping_add(1);
    }

    /// Takes over a pod; says whether it has just lost its Job.
    pub(super) fn put(&mut self, pod: &ObjectMeta) -> bool {
        let Some(uid) = pod.uid.as_deref() else {
            return false;
        };
        if !is_orphan(pod) {
            self.pods.remove(uid);
            return false;
        }
        self.pods.insert(uid.into(), self.list).is_none()
    }

    /// Takes over that a pod is gone.
    pub(super) fn remove(&mut self, pod: &ObjectMeta) {
        if let Some(uid) = pod.uid.as_deref() {
            self.pods.remove(uid);
        }
    }

    /// A list is complete.
    pub(super) fn complete(&mut self) {
        let list = self.list;
        self.pods.retain(|_, seen| *seen == list);
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.pods.len()
    }
}

/// Whether a pod of ours belongs to nobody. Anyone can write a label; the pods of our own Jobs are held as well.
fn is_orphan(pod: &ObjectMeta) -> bool {
    let labels = pod.labels.as_ref();
    let finalizers = pod.finalizers.as_deref().unwrap_or_default();
    labels.is_some_and(|labels| labels.contains_key(label::RUN_UID))
        && finalizers.iter().any(|name| name == finalizer::EVIDENCE)
        && pod.owner_references.as_ref().is_none_or(Vec::is_empty)
        && pod.deletion_timestamp.is_none()
}
