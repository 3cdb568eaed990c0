//! How the index counts: every place that a run takes, it gives back in the same way.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;

use super::{Index, Line, Seat, owner};
use crate::controller::agent_run::admission::scope::Scope;
use crate::controller::agent_run::admission::ticket::Place;
use crate::controller::cache::Key;

impl Index {
    /// Counts a run anew whose place may have changed without its ticket.
    pub(super) fn again(&mut self, key: &Key, now: Timestamp) {
        if let Some(seat) = self.take(key) {
            let ticket = seat.ticket.clone();
            self.put(ticket, now);
        }
    }

    pub(super) fn sit(&mut self, seat: Arc<Seat>, now: Timestamp) {
        self.count_place(&seat, now);
        if let Some(owner) = owner(&seat.ticket) {
            let keys = self.keys.entry(owner).or_default();
            keys.insert(seat.ticket.key.clone());
        }
        for scope in seat.blocked_in() {
            let reasons = self.blocked.entry(scope.clone()).or_default();
            *reasons
                .entry(seat.ticket.blocked.unwrap_or_default())
                .or_default() += 1;
        }
        self.seats.insert(seat.ticket.key.clone(), seat);
    }

    fn count_place(&mut self, seat: &Arc<Seat>, now: Timestamp) {
        match seat.place {
            Place::Waiting => {
                for scope in seat.scopes.iter() {
                    let line = self.waiting.entry(scope.clone()).or_default();
                    line.insert(Arc::clone(seat));
                }
                self.change_group(seat, |line| {
                    line.insert(Arc::clone(seat));
                });
            }
            Place::Running { since } => {
                for scope in seat.scopes.iter() {
                    *self.running.entry(scope.clone()).or_default() += 1;
                }
                self.count_begun(seat, since, now);
            }
            Place::Ended {
                began: Some(began), ..
            } => self.count_begun(seat, began, now),
            Place::Ended { began: None, .. } | Place::Aside => {}
        }
    }

    pub(super) fn take(&mut self, key: &Key) -> Option<Arc<Seat>> {
        let seat = self.seats.remove(key)?;
        match seat.place {
            Place::Waiting => {
                for scope in seat.scopes.iter() {
                    if let Some(line) = self.waiting.get_mut(scope) {
                        line.remove(&seat);
                        drop_if(&mut self.waiting, scope, Line::is_empty);
                    }
                }
                self.change_group(&seat, |line| {
                    line.remove(&seat);
                });
            }
            Place::Running { since } => {
                for scope in seat.scopes.iter() {
                    if let Some(count) = self.running.get_mut(scope) {
                        *count = count.saturating_sub(1);
                        drop_if(&mut self.running, scope, |count| *count == 0);
                    }
                }
                self.forget_begun(&seat, since);
            }
            Place::Ended {
                began: Some(began), ..
            } => self.forget_begun(&seat, began),
            Place::Ended { began: None, .. } | Place::Aside => {}
        }
        self.forget_words(&seat);
        Some(seat)
    }

    fn forget_words(&mut self, seat: &Seat) {
        if let Some(owner) = owner(&seat.ticket)
            && let Some(keys) = self.keys.get_mut(&owner)
        {
            keys.remove(&seat.ticket.key);
            drop_if(&mut self.keys, &owner, BTreeSet::is_empty);
        }
        for scope in seat.blocked_in() {
            if let Some(reasons) = self.blocked.get_mut(scope) {
                let reason = seat.ticket.blocked.unwrap_or_default();
                if let Some(count) = reasons.get_mut(reason) {
                    *count = count.saturating_sub(1);
                }
                reasons.retain(|_, count| *count > 0);
                drop_if(&mut self.blocked, scope, BTreeMap::is_empty);
            }
        }
    }

    /// Changes the line of a group, and with it who is its head.
    fn change_group(&mut self, seat: &Seat, change: impl FnOnce(&mut Line)) {
        let line = self.groups.entry(Arc::clone(&seat.scopes)).or_default();
        if let Some(head) = line.first() {
            self.heads.remove(head);
        }
        change(line);
        match line.first() {
            Some(head) => {
                self.heads.insert(Arc::clone(head));
            }
            None => drop(self.groups.remove(&seat.scopes)),
        }
    }

    fn count_begun(&mut self, seat: &Seat, at: Timestamp, now: Timestamp) {
        if !self.is_new(at, now) {
            return;
        }
        for scope in seat.scopes.iter() {
            if scope.in_window(&self.limits).is_none() {
                continue;
            }
            let kept = self.begun(scope, now).len();
            let times = self.begun.entry(scope.clone()).or_default();
            times.drain(..times.len() - kept);
            let place = times.partition_point(|other| *other <= at);
            times.insert(place, at);
        }
    }

    fn forget_begun(&mut self, seat: &Seat, at: Timestamp) {
        for scope in seat.scopes.iter() {
            if let Some(times) = self.begun.get_mut(scope)
                && let Ok(place) = times.binary_search(&at)
            {
                times.remove(place);
                drop_if(&mut self.begun, scope, Vec::is_empty);
            }
        }
    }
}

impl Seat {
    /// Scopes in which it counts as held back.
    fn blocked_in(&self) -> impl Iterator<Item = &Scope> {
        let is_held =
            self.ticket.blocked.is_some() && matches!(self.place, Place::Waiting | Place::Aside);
        self.scopes.iter().filter(move |_| is_held)
    }
}

/// What counts nothing takes no memory.
fn drop_if<K, V>(map: &mut HashMap<K, V>, key: &K, is_nothing: impl Fn(&V) -> bool)
where
    K: std::hash::Hash + Eq,
{
    if map.get(key).is_some_and(is_nothing) {
        map.remove(key);
    }
}
