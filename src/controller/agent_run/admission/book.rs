//! The one place where runs are admitted and counted: what the stream and the metrics show is what admission decides from.
//! One decision at a time: two runs that ask at once cannot both get the last slot.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

use super::figures::figures;
use super::index::Index;
use super::load::Figures;
use super::{Decision, Limits, Ticket};
use crate::controller::cache::Key;

/// After so long a run that was admitted and has not begun gives its slot back: something else holds it up.
const PATIENCE: Duration = Duration::from_secs(60);

/// All runs, as admission sees them.
#[derive(Debug)]
pub(crate) struct Book {
    index: Mutex<Index>,
    /// Moves with every change.
    changed: watch::Sender<()>,
}

impl Book {
    pub(in crate::controller::agent_run) fn new(limits: Limits) -> Self {
        Self {
            index: Mutex::new(Index::new(limits)),
            changed: watch::Sender::new(()),
        }
    }

    /// Takes over how a run is now, or that it is gone.
    pub(in crate::controller::agent_run) fn note(
        &self,
        key: &Key,
        ticket: Option<Ticket>,
        now: Timestamp,
    ) {
        let mut index = self.open();
        let changed = match ticket {
            Some(ticket) => index.put(ticket, now),
            None => index.remove(key),
        };
        drop(index);
        if changed {
            self.changed.send_replace(());
        }
    }

    /// Whether a run may begin, as things are now.
    pub(in crate::controller::agent_run) fn consider(
        &self,
        key: &Key,
        uid: &str,
        now: Timestamp,
    ) -> Decision {
        let mut index = self.open();
        let decision = index.decide(key, uid, now);
        if matches!(decision, Decision::Wait(_)) {
            index.line_up(key, uid, now);
        }
        decision
    }

    /// Gives a run its slot, if it is still there to be given.
    pub(in crate::controller::agent_run) fn admit(
        &self,
        key: &Key,
        uid: &str,
        now: Timestamp,
    ) -> Decision {
        let mut index = self.open();
        let decision = index.decide(key, uid, now);
        if decision == Decision::Admit {
            index.admit(key, now);
            drop(index);
            self.changed.send_replace(());
        }
        decision
    }

    /// Takes back the slot of a run that could not begin; says whether it had one.
    pub(in crate::controller::agent_run) fn give_back(&self, uid: &str, now: Timestamp) -> bool {
        let had = self.open().give_back(uid, now);
        if had {
            self.changed.send_replace(());
        }
        had
    }

    /// Takes back the slots of those who have not begun for too long; says whether there were any.
    pub(crate) fn expire(&self, now: Timestamp) -> bool {
        let Ok(until) = now.checked_sub(PATIENCE) else {
            return false;
        };
        let late = self.open().admitted_until(until);
        let given = late.iter().filter(|uid| self.give_back(uid, now));
        given.count() > 0
    }

    /// Those in line who may begin now.
    pub(crate) fn next(&self, now: Timestamp) -> Vec<Key> {
        self.open().next(now)
    }

    /// How the queue stands; of each sort of scope so many one by one.
    pub(crate) fn figures(&self, most: usize) -> Figures {
        figures(&self.open(), most)
    }

    /// Tells of changes.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    fn open(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
