//! All runs that matter to admission, counted by scope and in line, brought up to date with each change of a run.
//!
//! Runs of the same scopes stand behind each other: when the first of them is refused, so are the others. So one look goes
//! along the heads of those lines only, and no further than somebody can still come in.

mod tally;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Bound;
use std::sync::Arc;

use jiff::Timestamp;

use super::limits::Limits;
use super::room::Room;
use super::scope::Scope;
use super::ticket::Place;
use super::{Decision, Ticket, duplicate};
use crate::controller::cache::Key;

/// A run and what it counts for. Ordered as the line is.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) ticket: Ticket,
    /// Where it stands, admissions of a moment ago included.
    pub(super) place: Place,
    pub(super) scopes: Arc<[Scope]>,
}

impl Ord for Seat {
    fn cmp(&self, other: &Self) -> Ordering {
        self.ticket.order().cmp(&other.ticket.order())
    }
}

impl PartialOrd for Seat {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Seat {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Seat {}

/// Who stands in a line, the first first.
pub(super) type Line = BTreeSet<Arc<Seat>>;

/// Whose idempotency key it is: namespace, agent, key.
type Owner = (String, String, String);

/// All runs that matter.
#[derive(Debug)]
pub(crate) struct Index {
    limits: Limits,
    seats: HashMap<Key, Arc<Seat>>,
    /// Runs that were admitted a moment ago, by uid, until their status shows it.
    admitted: HashMap<String, (Timestamp, Key)>,
    /// Runs that were let in and could not begin, by uid: they hold nobody back until they ask again.
    aside: HashSet<String>,
    running: HashMap<Scope, usize>,
    /// When runs began, the oldest first; only where that is limited.
    begun: HashMap<Scope, Vec<Timestamp>>,
    waiting: HashMap<Scope, Line>,
    /// How many are held back, by reason.
    blocked: HashMap<Scope, BTreeMap<&'static str, usize>>,
    /// Those in line by their scopes.
    groups: HashMap<Arc<[Scope]>, Line>,
    /// The first of each group.
    heads: Line,
    keys: HashMap<Owner, BTreeSet<Key>>,
    /// Runs that all looks have touched so far.
    #[cfg(test)]
    pub(super) steps: std::cell::Cell<usize>,
}

impl Index {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            seats: HashMap::new(),
            admitted: HashMap::new(),
            aside: HashSet::new(),
            running: HashMap::new(),
            begun: HashMap::new(),
            waiting: HashMap::new(),
            blocked: HashMap::new(),
            groups: HashMap::new(),
            heads: Line::new(),
            keys: HashMap::new(),
            #[cfg(test)]
            steps: Default::default(),
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let Self {
            seats,
            admitted,
            aside,
            running,
            begun,
            waiting,
            blocked,
            groups,
            heads,
            keys,
            ..
        } = self;
        (seats.is_empty()
            && admitted.is_empty()
            && aside.is_empty()
            && keys.is_empty()
            && heads.is_empty())
            && (running.is_empty() && begun.is_empty() && waiting.is_empty())
            && (blocked.is_empty() && groups.is_empty())
    }

    #[cfg(test)]
    fn step(&self, steps: usize) {
        self.steps.set(self.steps.get() + steps);
    }

    #[cfg(not(test))]
    fn step(&self, _: usize) {}

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Takes over how a run is now; says whether that changes anything.
    pub(super) fn put(&mut self, ticket: Ticket, now: Timestamp) -> bool {
        let known = self.seats.get(&ticket.key);
        if known.is_some_and(|seat| seat.ticket == ticket) {
            return false;
        }
        let was_known = self.take(&ticket.key.clone()).is_some();
        if !self.matters(&ticket, now) {
            self.forget(&ticket.uid);
            return was_known;
        }
        let place = match (ticket.place, self.admitted.get(&ticket.uid)) {
            (Place::Waiting | Place::Aside, Some((since, _))) => Place::Running { since: *since },
            (Place::Waiting, None) if self.aside.contains(&ticket.uid) => Place::Aside,
            (Place::Waiting | Place::Aside, None) => ticket.place,
            // Its status shows it now.
            (Place::Running { .. } | Place::Ended { .. }, _) => {
                self.forget(&ticket.uid);
                ticket.place
            }
        };
        let scopes = Scope::all_of(&ticket);
        let scopes = match self.groups.get_key_value(&scopes) {
            Some((known, _)) => Arc::clone(known),
            None => scopes,
        };
        self.sit(
            Arc::new(Seat {
                ticket,
                place,
                scopes,
            }),
            now,
        );
        true
    }

    /// Forgets a run that is gone; says whether it was known.
    pub(super) fn remove(&mut self, key: &Key) -> bool {
        let gone = self.take(key);
        if let Some(seat) = &gone {
            self.forget(&seat.ticket.uid);
        }
        gone.is_some()
    }

    /// Gives a run its slot, which it keeps until its status shows it.
    pub(super) fn admit(&mut self, key: &Key, now: Timestamp) {
        if let Some(seat) = self.seats.get(key) {
            let uid = seat.ticket.uid.clone();
            self.aside.remove(&uid);
            self.admitted.entry(uid).or_insert((now, key.clone()));
            self.again(key, now);
        }
    }

    /// Takes back the slot of a run that was admitted and has not begun, and sets it aside; says whether it had one.
    pub(super) fn give_back(&mut self, uid: &str, now: Timestamp) -> bool {
        let Some((_, key)) = self.admitted.remove(uid) else {
            return false;
        };
        self.aside.insert(uid.to_owned());
        self.again(&key, now);
        true
    }

    /// Puts a run that was set aside back in line.
    pub(super) fn line_up(&mut self, key: &Key, uid: &str, now: Timestamp) {
        if self.aside.remove(uid) {
            self.again(key, now);
        }
    }

    fn forget(&mut self, uid: &str) {
        self.admitted.remove(uid);
        self.aside.remove(uid);
    }

    /// Runs that were admitted at this time or before, and have not begun.
    pub(super) fn admitted_until(&self, time: Timestamp) -> Vec<String> {
        let late = self.admitted.iter().filter(|(_, (at, _))| *at <= time);
        late.map(|(uid, _)| uid.clone()).collect()
    }

    /// Decides about one run. The time matters for what counts as "within a short time" only.
    pub(super) fn decide(&self, key: &Key, uid: &str, now: Timestamp) -> Decision {
        let me = self.seats.get(key).filter(|seat| seat.ticket.uid == uid);
        let Some(me) = me else {
            return Decision::Admit;
        };
        if matches!(me.place, Place::Running { .. }) {
            return Decision::Admit;
        }
        if let Some(duplicate) = self.duplicate(me, now) {
            return duplicate;
        }
        if self.is_wide(me, now) {
            return Decision::Admit;
        }
        let (room, _) = self.walk(Some(me), now);
        match room.refusal(me) {
            Some(refusal) => Decision::Wait(room.told(me, refusal)),
            None => Decision::Admit,
        }
    }

    /// Whether there is room for one even if everyone in line came in before it: then nobody needs to go along the line.
    fn is_wide(&self, me: &Seat, now: Timestamp) -> bool {
        let is_wide = |scope: &Scope| {
            let line = self.waiting.get(scope).map_or(0, Line::len);
            let fits = |used: usize, limit: Option<usize>| {
                limit.is_none_or(|limit| used.saturating_add(line) < limit)
            };
            fits(self.running(scope), scope.at_a_time(&self.limits))
                && fits(self.begun(scope, now).len(), scope.in_window(&self.limits))
        };
        me.scopes.iter().all(is_wide)
    }

    /// Those in line who may begin now.
    pub(super) fn next(&self, now: Timestamp) -> Vec<Key> {
        let (_, entered) = self.walk(None, now);
        entered.iter().map(|seat| seat.ticket.key.clone()).collect()
    }

    /// Lets in who can come in, in their order, up to one who asks.
    fn walk(&self, me: Option<&Seat>, now: Timestamp) -> (Room<'_>, Vec<&Arc<Seat>>) {
        let mut room = Room::new(self, now);
        let mut entered = Vec::new();
        let mut heads = self.heads.iter().peekable();
        // Those behind one who was let in.
        let mut seconds: BTreeSet<&Arc<Seat>> = BTreeSet::new();
        while !room.is_closed() {
            let second = seconds.first().copied();
            let seat = match (heads.peek().copied(), second) {
                (Some(head), Some(second)) if second < head => seconds.pop_first(),
                (Some(_), _) => heads.next(),
                (None, _) => seconds.pop_first(),
            };
            let Some(seat) = seat.filter(|seat| me.is_none_or(|me| seat.as_ref() < me)) else {
                break;
            };
            self.step(1);
            if room.refusal(seat).is_some() {
                continue;
            }
            room.enter(seat);
            entered.push(seat);
            let behind = (Bound::Excluded(seat), Bound::Unbounded);
            let group = self.groups.get(&seat.scopes);
            seconds.extend(group.and_then(|line| line.range::<Arc<Seat>, _>(behind).next()));
        }
        (room, entered)
    }

    fn duplicate(&self, me: &Seat, now: Timestamp) -> Option<Decision> {
        let keep = self.limits.keys?;
        let same = self.keys.get(&owner(&me.ticket)?)?;
        let others = same.iter().filter_map(|key| self.seats.get(key));
        duplicate(others, me, keep, now)
    }

    pub(super) fn running(&self, scope: &Scope) -> usize {
        self.running.get(scope).copied().unwrap_or_default()
    }

    /// When runs of a scope began that count, the oldest first.
    pub(super) fn begun(&self, scope: &Scope, now: Timestamp) -> &[Timestamp] {
        let all = self.begun.get(scope).map(Vec::as_slice);
        let all = all.unwrap_or_default();
        let first = all.partition_point(|at| !self.is_new(*at, now));
        &all[first..]
    }

    /// How many wait before one, up to so many.
    pub(super) fn waiting_before(&self, scope: &Scope, seat: &Seat, most: usize) -> usize {
        let line = self.waiting.get(scope).into_iter().flatten();
        let before = line.take_while(|other| other.as_ref() < seat);
        let before = before.take(most).count();
        self.step(before);
        before
    }

    /// Those in line of each scope.
    pub(super) fn lines(&self) -> &HashMap<Scope, Line> {
        &self.waiting
    }

    /// How many run, of each scope.
    pub(super) fn runners(&self) -> &HashMap<Scope, usize> {
        &self.running
    }

    /// How many are held back and why, of each scope.
    pub(super) fn held_back(&self) -> &HashMap<Scope, BTreeMap<&'static str, usize>> {
        &self.blocked
    }

    /// Whether it counts as lately.
    fn is_new(&self, at: Timestamp, now: Timestamp) -> bool {
        let over = at.checked_add(self.limits.window);
        over.is_ok_and(|over| over > now)
    }

    /// Whether a run can matter to others; one that ended long ago without a key cannot.
    fn matters(&self, ticket: &Ticket, now: Timestamp) -> bool {
        match ticket.place {
            Place::Waiting | Place::Aside | Place::Running { .. } => true,
            Place::Ended { began: None, .. } => false,
            Place::Ended {
                began: Some(began), ..
            } => ticket.idempotency.is_some() || self.is_new(began, now),
        }
    }
}

fn owner(ticket: &Ticket) -> Option<Owner> {
    let key = ticket.idempotency.clone()?;
    Some((ticket.key.namespace.clone(), ticket.agent.clone(), key))
}
