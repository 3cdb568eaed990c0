//! The line of runs that wait for a slot: who may begin, and who is woken when one frees.

use std::sync::Arc;

use jiff::Timestamp;
use kube::{Resource, ResourceExt};

use super::AgentRuns;
use super::admission::{self, Admitted, Decision, Ticket};
use crate::api::kinds::AgentRun;
use crate::controller::driver::fault::{Class, Fault};
use crate::controller::driver::queue::Priority;

impl AgentRuns {
    /// Whether a run may begin, as things are now.
    pub(super) fn consider(&self, run: &AgentRun, now: Timestamp) -> Decision {
        let admitted = self.ledger.open(now);
        self.decide(run, &admitted, now)
    }

    /// Gives a run its slot. If another one was quicker, the run is looked at again.
    pub(super) fn admit(&self, run: &Arc<AgentRun>) -> Result<bool, Fault> {
        let now = self.context.clock.now();
        let mut admitted = self.ledger.open(now);
        if self.decide(run, &admitted, now) != Decision::Admit {
            let why = "another run was given the slot";
            return Err(Fault::new("begin the run", Class::Conflict, why));
        }
        let uid = run.uid().unwrap_or_default();
        admitted.entry(uid).or_insert(now);
        Ok(false)
    }

    fn decide(&self, run: &AgentRun, admitted: &Admitted, now: Timestamp) -> Decision {
        let all = self.tickets(Some(run), admitted, now);
        let uid = run.uid().unwrap_or_default();
        admission::decide(&all, &uid, &self.settings.limits, now)
    }

    /// All runs that can matter to this one, or to anyone in line.
    fn tickets(&self, run: Option<&AgentRun>, admitted: &Admitted, now: Timestamp) -> Vec<Ticket> {
        let limits = &self.settings.limits;
        self.shelves.runs.select(|other| {
            let admitted = other.meta().uid.as_ref().and_then(|uid| admitted.get(uid));
            Ticket::if_it_matters(other, admitted.copied(), run, (limits, now))
        })
    }

    /// Wakes those who may begin, if a run has left the line or given back its slot.
    pub(super) fn noted(&self, before: &AgentRun, after: Option<&AgentRun>) {
        if !admission::makes_room(before, after) {
            return;
        }
        let Some(work) = self.work.get() else {
            return;
        };
        let now = self.context.clock.now();
        let all = self.tickets(None, &self.ledger.open(now), now);
        for key in admission::next(&all, &self.settings.limits, now) {
            work.add(key, Priority::Create);
        }
    }
}
