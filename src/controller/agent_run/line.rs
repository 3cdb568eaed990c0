//! The line of runs that wait for a slot: who may begin, and who is woken when one frees.

use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;

use super::AgentRuns;
use super::admission::{self, Book, Decision, Ticket};
use crate::api::kinds::AgentRun;
use crate::controller::cache::{Key, Shelf};
use crate::controller::context::Clock;
use crate::controller::driver::fault::{Class, Fault};
use crate::controller::driver::queue::Priority;

/// Keeps the book up to date with every copy of a run, whoever changed it.
pub(super) fn keep_book(book: &Arc<Book>, runs: &Shelf<AgentRun>, clock: Clock) {
    let book = Arc::clone(book);
    runs.follow(Box::new(move |key, run| {
        book.note(key, run.map(Ticket::of), clock.now());
    }));
}

impl AgentRuns {
    /// Whether a run may begin, as things are now.
    pub(super) fn consider(&self, run: &AgentRun, now: Timestamp) -> Decision {
        let uid = run.uid().unwrap_or_default();
        self.book.consider(&Key::of(run), &uid, now)
    }

    /// Gives a run its slot. If another one was quicker, the run is looked at again.
    pub(super) fn admit(&self, run: &Arc<AgentRun>) -> Result<bool, Fault> {
        let now = self.context.clock.now();
        let uid = run.uid().unwrap_or_default();
        if self.book.admit(&Key::of(&**run), &uid, now) != Decision::Admit {
            let why = "another run was given the slot";
            return Err(Fault::new("begin the run", Class::Conflict, why));
        }
        Ok(false)
    }

    /// Takes back the slot of a run that the API server did not let begin, and wakes the next.
    pub(super) fn give_back(&self, run: &AgentRun, fault: &Fault) {
        let is_refused = match fault.class {
            Class::Spec | Class::Config | Class::Forbidden | Class::NameTaken => true,
            // It may have begun all the same, or tries again at once.
            Class::Retryable | Class::Panic | Class::Conflict | Class::Fenced => false,
        };
        let uid = run.uid().unwrap_or_default();
        if is_refused && self.book.give_back(&uid, self.context.clock.now()) {
            self.wake_next();
        }
    }

    /// Wakes those who may begin, if a run has left the line or given back its slot.
    pub(super) fn noted(&self, before: &AgentRun, after: Option<&AgentRun>) {
        if admission::makes_room(before, after) {
            self.wake_next();
        }
    }

    /// Takes back the slots of those who have not begun for too long.
    pub(in crate::controller) fn expire(&self) {
        if self.book.expire(self.context.clock.now()) {
            self.wake_next();
        }
    }

    fn wake_next(&self) {
        let Some(work) = self.work.get() else {
            return;
        };
        for key in self.book.next(self.context.clock.now()) {
            work.add(key, Priority::Create);
        }
    }
}
