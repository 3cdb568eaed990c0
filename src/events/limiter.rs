//! Decides which occurrences become a write and when: the first at once, repeats as the count of a series, all of it
//! within limits per object, per topic and for the whole program.
//!
//! Pure: time is an argument, and the writes it plans are carried out by `writer`.

mod series;
#[cfg(test)]
mod tests;
mod window;

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::event::{Draft, Stored};
use super::settings::Limits;
use series::{Plan, Series};
use window::Window;

const MINUTE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

/// The only key of the window that limits the whole program.
const PROGRAM: u64 = 0;

/// Names a series. Two series with one id are as unlikely as a hash of 64 random bits allows.
pub(super) type Id = u64;

/// What an occurrence counts for.
struct Keys {
    id: Id,
    object: u64,
    topic: u64,
}

/// What became of an occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It starts a series; its Event is written as soon as possible.
    New,
    /// It is counted in a series.
    Repeat,
    /// There is too much about its object already.
    TooManyAboutObject,
    /// There is too much of its reason in its namespace already.
    TooManyOfTopic,
}

/// A change of the stored Events.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Write {
    pub(super) id: Id,
    pub(super) draft: Arc<Draft>,
    /// What is stored already; without it the Event is to be created.
    pub(super) stored: Option<Stored>,
    /// Occurrences that the stored count does not have yet.
    pub(super) adding: u32,
    pub(super) last_seen: Timestamp,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Next {
    /// This write, and tell [`Limiter::done`] how it went.
    Write(Write),
    /// Nothing before this time.
    At(Instant),
    /// Nothing until something new is observed.
    Idle,
}

/// How a write went.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Done {
    /// It is stored.
    Stored(Stored),
    /// Not now; nothing is written until this time has passed.
    Later(Duration),
    /// Never.
    Refused,
}

/// All series and their limits.
#[derive(Debug)]
pub(super) struct Limiter {
    limits: Limits,
    hasher: RandomState,
    objects: Window,
    topics: Window,
    program: Window,
    series: HashMap<Id, Series>,
    due: BTreeSet<(Instant, Id)>,
    /// Least recently used first.
    order: BTreeMap<u64, Id>,
    uses: u64,
    in_flight: Option<Id>,
    paused_until: Option<Instant>,
    flushing: bool,
}

impl Limiter {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            hasher: RandomState::new(),
            objects: Window::new(limits.per_object, MINUTE),
            topics: Window::new(limits.per_topic, MINUTE),
            program: Window::new(limits.per_second, SECOND),
            series: HashMap::new(),
            due: BTreeSet::new(),
            order: BTreeMap::new(),
            uses: 0,
            in_flight: None,
            paused_until: None,
            flushing: false,
        }
    }

    /// Takes up an occurrence. Also says how many earlier ones had to be forgotten for it.
    pub(super) fn observe(&mut self, draft: Draft, now: Instant) -> (Verdict, u32) {
        self.advance(now);
        let Keys { id, object, topic } = self.keys(&draft);
        if self.series.contains_key(&id) {
            self.repeat(id, draft.seen, now);
            return (Verdict::Repeat, 0);
        }
        if !self.objects.has_room(object) {
            return (Verdict::TooManyAboutObject, 0);
        }
        if !self.topics.has_room(topic) {
            return (Verdict::TooManyOfTopic, 0);
        }
        self.objects.hold(object);
        self.topics.hold(topic);
        let forgotten = self.make_room();
        self.series
            .insert(id, Series::new(draft, object, topic, now));
        self.due.insert((now, id));
        self.touch(id);
        (Verdict::New, forgotten)
    }

    /// The write that is due, or when to ask again. One write is in flight at a time.
    pub(super) fn next(&mut self, now: Instant) -> Next {
        self.advance(now);
        while let Some(&(due, id)) = self.due.first() {
            let start = self.earliest_write(now).max(due);
            if start > now {
                return Next::At(start);
            }
            let Some(series) = self.series.get(&id) else {
                self.due.remove(&(due, id));
                continue;
            };
            match self.plan(series, now) {
                Plan::Close => {
                    self.forget(id);
                }
                Plan::Wait(until) => self.schedule(id, until),
                // Whatever was spent until now is back in a minute.
                Plan::Write if !self.may_write(series) => self.schedule(id, now + MINUTE),
                Plan::Write => return Next::Write(self.begin(id, now)),
            }
        }
        Next::Idle
    }

    /// Takes note of how the write in flight went. Gives the number of occurrences that are lost by it.
    pub(super) fn done(&mut self, write: &Write, done: Done, now: Instant) -> u32 {
        self.in_flight = None;
        let Some(series) = self.series.get_mut(&write.id) else {
            return 0;
        };
        let is_creation = series.stored.is_none();
        match done {
            Done::Stored(stored) => {
                series.stored = Some(stored);
                series.unwritten -= write.adding;
                series.written = now;
                series.attempts = 0;
                series.repeat_told |= !is_creation || write.adding > 1;
                self.objects.spend(series.object, now);
                if is_creation {
                    self.topics.spend(series.topic, now);
                }
                self.schedule(write.id, now);
                0
            }
            Done::Later(delay) => {
                series.attempts += 1;
                let gives_up = series.attempts >= self.limits.attempts;
                if !is_creation {
                    self.objects.release(series.object);
                }
                self.paused_until = Some(now + delay);
                self.schedule(write.id, now + delay);
                if gives_up {
                    self.give_up(write.id, now)
                } else {
                    0
                }
            }
            Done::Refused => {
                if !is_creation {
                    self.objects.release(series.object);
                }
                self.give_up(write.id, now)
            }
        }
    }

    /// From now on everything that is not written yet is due, whatever the limits.
    pub(super) fn flush(&mut self, now: Instant) {
        self.flushing = true;
        self.paused_until = None;
        let ids: Vec<Id> = self.series.keys().copied().collect();
        for id in ids {
            self.schedule(id, now);
        }
    }

    /// Occurrences that are in no stored Event yet.
    pub(super) fn unwritten(&self) -> u32 {
        self.series.values().map(|series| series.unwritten).sum()
    }

    fn keys(&self, draft: &Draft) -> Keys {
        let Draft {
            regarding,
            related,
            reason,
            ..
        } = draft;
        let namespace = regarding.event_namespace();
        let uid_or_name = match &regarding.uid {
            Some(uid) => (uid.as_str(), "", ""),
            None => (&*regarding.kind, namespace, regarding.name.as_str()),
        };
        Keys {
            id: self.hasher.hash_one((regarding, related, reason)),
            object: self.hasher.hash_one((uid_or_name, reason.severity())),
            topic: self.hasher.hash_one((reason, namespace)),
        }
    }

    fn advance(&mut self, now: Instant) {
        for window in [&mut self.objects, &mut self.topics, &mut self.program] {
            window.advance(now);
        }
    }

    fn plan(&self, series: &Series, now: Instant) -> Plan {
        match (self.flushing, series.unwritten) {
            (false, _) => series.plan(now, &self.limits),
            (true, 0) => Plan::Close,
            (true, _) => Plan::Write,
        }
    }

    /// When limits of the whole program let the next write through.
    fn earliest_write(&self, now: Instant) -> Instant {
        let room = match self.program.has_room(PROGRAM) || self.flushing {
            true => now,
            false => self.program.next_return().unwrap_or(now),
        };
        self.paused_until.map_or(room, |until| room.max(until))
    }

    /// A creation got its token when it was observed.
    fn may_write(&self, series: &Series) -> bool {
        self.flushing || series.stored.is_none() || self.objects.has_room(series.object)
    }

    fn begin(&mut self, id: Id, now: Instant) -> Write {
        self.in_flight = Some(id);
        self.program.hold(PROGRAM);
        self.program.spend(PROGRAM, now);
        let series = &self.series[&id];
        self.due.remove(&(series.due, id));
        if series.stored.is_some() {
            self.objects.hold(series.object);
        }
        Write {
            id,
            draft: Arc::clone(&series.draft),
            stored: series.stored.clone(),
            adding: series.unwritten,
            last_seen: series.last_seen,
        }
    }

    fn repeat(&mut self, id: Id, seen: Timestamp, now: Instant) {
        let Some(series) = self.series.get_mut(&id) else {
            return;
        };
        series.unwritten = series.unwritten.saturating_add(1);
        series.seen = now;
        series.last_seen = series.last_seen.max(seen);
        let is_first = series.stored.is_some() && !series.repeat_told && series.unwritten == 1;
        self.touch(id);
        if is_first && self.in_flight != Some(id) {
            self.schedule(id, now);
        }
    }

    /// Counts that cannot be written are lost, but the series stays, so that its repeats do not try again each time.
    fn give_up(&mut self, id: Id, now: Instant) -> u32 {
        let Some(series) = self.series.get_mut(&id) else {
            return 0;
        };
        if series.stored.is_none() {
            return self.forget(id);
        }
        let lost = std::mem::take(&mut series.unwritten);
        series.written = now;
        series.attempts = 0;
        series.repeat_told = true;
        self.schedule(id, now);
        lost
    }

    fn schedule(&mut self, id: Id, due: Instant) {
        if let Some(series) = self.series.get_mut(&id) {
            self.due.remove(&(series.due, id));
            series.due = due;
            self.due.insert((due, id));
        }
    }

    fn touch(&mut self, id: Id) {
        self.uses += 1;
        if let Some(series) = self.series.get_mut(&id) {
            self.order.remove(&series.used);
            series.used = self.uses;
            self.order.insert(self.uses, id);
        }
    }

    fn make_room(&mut self) -> u32 {
        if self.series.len() < self.limits.tracked {
            return 0;
        }
        let in_flight = self.in_flight;
        let oldest = self
            .order
            .values()
            .copied()
            .find(|id| Some(*id) != in_flight);
        oldest.map_or(0, |id| self.forget(id))
    }

    /// Gives the number of occurrences that go with the series.
    fn forget(&mut self, id: Id) -> u32 {
        let Some(series) = self.series.remove(&id) else {
            return 0;
        };
        self.due.remove(&(series.due, id));
        self.order.remove(&series.used);
        if series.stored.is_none() {
            self.objects.release(series.object);
            self.topics.release(series.topic);
        }
        series.unwritten
    }
}
