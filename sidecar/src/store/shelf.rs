//! One family with its series: found again by the bytes of their attributes, read in the order of their labels.

use std::{
    hash::{BuildHasher, Hasher},
    num::NonZeroU64,
    sync::{Arc, Mutex},
};

use hashbrown::{HashTable, hash_table::Entry};

use super::{Cause, hashing::Hashing, lock, weight};
use crate::model::{Family, Labels, Series};

/// One family with its series.
#[derive(Debug)]
pub struct Shelf {
    pub(super) state: Mutex<State>,
}

/// What the lock of a shelf guards.
#[derive(Debug)]
pub(super) struct State {
    pub(super) family: Arc<Family>,
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    /// Which slot a stream means by these attributes.
    keys: HashTable<Key>,
    /// The slots by their labels.
    named: HashTable<u32>,
    /// The slots in the order of their labels, once someone has asked.
    order: Vec<u32>,
    is_ordered: bool,
    hasher: Hashing,
}

/// A series and what is known about it beside its value.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) series: Series,
    /// Who may write it.
    pub(super) stream: u32,
    /// When it was last written, by our clock.
    pub(super) seen: u64,
    /// Whether the page has it.
    pub(super) is_shown: bool,
    /// The hashes of the keys that it is found by, so that they can be dropped without looking through all.
    keys: [Option<NonZeroU64>; MOST_KEYS],
}

#[derive(Debug)]
struct Key {
    stream: u32,
    slot: u32,
    attributes: Box<[u8]>,
}

/// Encodings that one series is found by. A writer has one; others are read anew each time.
const MOST_KEYS: usize = 2;

impl Shelf {
    pub(super) fn new(family: Family) -> Self {
        Self {
            state: Mutex::new(State {
                family: Arc::new(family),
                slots: Vec::new(),
                free: Vec::new(),
                keys: HashTable::new(),
                named: HashTable::new(),
                order: Vec::new(),
                is_ordered: true,
                hasher: Hashing::default(),
            }),
        }
    }

    /// What all its series have in common, as it stands now.
    pub fn family(&self) -> Arc<Family> {
        Arc::clone(&lock(&self.state).family)
    }

    /// Visits at most `most` visible series in byte order of their labels, after `after` if given. Says whether there are
    /// more, and moves `after` on.
    pub fn read(
        &self,
        after: &mut Option<Labels>,
        most: usize,
        visit: &mut dyn FnMut(&Series),
    ) -> bool {
        let mut state = lock(&self.state);
        state.put_in_order();
        let State { slots, order, .. } = &*state;
        let labels = |at: &u32| Some(&slots.get(*at as usize)?.as_ref()?.series.labels);
        let from = match after {
            Some(after) => order.partition_point(|at| labels(at).is_some_and(|it| it <= after)),
            None => 0,
        };
        let rest = order.get(from..).unwrap_or_default();
        let (now, later) = rest.split_at(most.min(rest.len()));
        for slot in now
            .iter()
            .filter_map(|at| slots.get(*at as usize)?.as_ref())
        {
            if slot.is_shown {
                visit(&slot.series);
            }
        }
        if let Some(last) = now.last().and_then(labels) {
            *after = Some(last.clone());
        }
        !later.is_empty()
    }
}

impl State {
    /// How many series there are, hidden ones included.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// How many of them a stream writes.
    pub(super) fn len_of(&self, stream: u32) -> usize {
        let slots = self.slots.iter().flatten();
        slots.filter(|slot| slot.stream == stream).count()
    }

    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut Slot> {
        self.slots.get_mut(at as usize)?.as_mut()
    }

    /// The slot that a stream means by attributes, if it was told before.
    #[inline]
    pub(super) fn find(&self, stream: u32, attributes: &[u8]) -> Option<u32> {
        let hash = hash(&self.hasher, stream, attributes);
        let is_it = |key: &Key| key.stream == stream && *key.attributes == *attributes;
        self.keys.find(hash, is_it).map(|key| key.slot)
    }

    /// The slot with these labels.
    pub(super) fn find_named(&self, labels: &Labels) -> Option<u32> {
        let hash = self.hasher.hash_one(labels);
        let is_it = |at: &u32| {
            let slot = self.slots.get(*at as usize).and_then(Option::as_ref);
            slot.is_some_and(|slot| slot.series.labels == *labels)
        };
        self.named.find(hash, is_it).copied()
    }

    /// Puts a series on the shelf; none there has its labels.
    pub(super) fn put(&mut self, series: Series, stream: u32, seen: u64) -> u32 {
        let hash = self.hasher.hash_one(&series.labels);
        let slot = Slot {
            series,
            stream,
            seen,
            is_shown: true,
            keys: [None; MOST_KEYS],
        };
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                self.slots.push(None);
                (self.slots.len() - 1) as u32 // far fewer than 2^32, by the limits
            }
        };
        if let Some(place) = self.slots.get_mut(at as usize) {
            *place = Some(slot);
        }
        let Self {
            slots,
            named,
            hasher,
            ..
        } = self;
        named.insert_unique(hash, at, |at| named_hash(hasher, slots, *at));
        self.is_ordered = false;
        at
    }

    /// Remembers by which attributes a stream means a slot. Returns what that weighs.
    pub(super) fn remember(&mut self, stream: u32, attributes: &[u8], at: u32) -> usize {
        let Self {
            keys,
            hasher,
            slots,
            ..
        } = self;
        let slot = slots.get_mut(at as usize).and_then(Option::as_mut);
        let free = slot.and_then(|slot| slot.keys.iter_mut().find(|key| key.is_none()));
        let Some(free) = free else {
            return 0;
        };
        // One hash of 2^64 is none: what has it is read anew each time.
        let Some(hashed) = NonZeroU64::new(hash(hasher, stream, attributes)) else {
            return 0;
        };
        let entry = keys.entry(
            hashed.get(),
            |key| key.stream == stream && *key.attributes == *attributes,
            |key| hash(hasher, key.stream, &key.attributes),
        );
        let Entry::Vacant(place) = entry else {
            return 0;
        };
        *free = Some(hashed);
        place.insert(Key {
            stream,
            slot: at,
            attributes: attributes.into(),
        });
        attributes.len()
    }

    /// Drops the keys of a slot: who takes it over has others. Returns what they weighed.
    pub(super) fn drop_keys(&mut self, at: u32) -> usize {
        let Self {
            keys,
            hasher,
            slots,
            ..
        } = self;
        let Some(slot) = slots.get_mut(at as usize).and_then(Option::as_mut) else {
            return 0;
        };
        let mut weight = 0;
        for hashed in slot.keys.iter_mut().filter_map(Option::take) {
            let hashed = hashed.get();
            let is_it =
                |key: &Key| key.slot == at && hash(hasher, key.stream, &key.attributes) == hashed;
            if let Ok(entry) = keys.find_entry(hashed, is_it) {
                let (key, _) = entry.remove();
                weight += key.attributes.len();
            }
        }
        weight
    }

    /// Hides what is over, and forgets what has been for longer. Returns how many went of each, and their weight.
    pub(super) fn sweep(
        &mut self,
        is_over: impl Fn(&Slot) -> Option<Cause>,
        is_forgotten: impl Fn(&Slot) -> bool,
    ) -> Swept {
        let mut swept = Swept::default();
        for place in &mut self.slots {
            let Some(slot) = place else { continue };
            if slot.is_shown
                && let Some(cause) = is_over(slot)
            {
                slot.is_shown = false;
                swept.hide(cause);
            }
            if is_forgotten(slot) {
                swept.forgotten += 1;
                let series = &slot.series;
                swept.weight += weight::of_series(&series.labels, &[]);
                swept.weight += weight::of_value(&series.value);
                *place = None;
            }
        }
        if swept.forgotten > 0 {
            self.tidy(&mut swept);
        }
        swept
    }

    fn tidy(&mut self, swept: &mut Swept) {
        let Self {
            slots,
            keys,
            named,
            order,
            free,
            ..
        } = self;
        let is_there = |at: u32| slots.get(at as usize).is_some_and(Option::is_some);
        keys.retain(|key| {
            let stays = is_there(key.slot);
            if !stays {
                swept.weight += key.attributes.len();
            }
            stays
        });
        named.retain(|at| is_there(*at));
        order.retain(|at| is_there(*at));
        *free = (0..slots.len() as u32)
            .filter(|at| !is_there(*at))
            .collect();
        if free.len() == slots.len() {
            // An empty shelf gives back what it had.
            slots.clear();
            free.clear();
            slots.shrink_to_fit();
            keys.shrink_to(0, |_| 0);
            named.shrink_to(0, |_| 0);
        }
    }

    fn put_in_order(&mut self) {
        if self.is_ordered {
            return;
        }
        let Self { slots, order, .. } = self;
        order.clear();
        order.extend(
            (0..slots.len() as u32)
                .filter(|at| slots.get(*at as usize).is_some_and(Option::is_some)),
        );
        let labels = |at: &u32| {
            slots
                .get(*at as usize)
                .and_then(Option::as_ref)
                .map(|slot| &slot.series.labels)
        };
        order.sort_unstable_by(|one, other| labels(one).cmp(&labels(other)));
        self.is_ordered = true;
    }
}

/// What a sweep took away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Swept {
    /// No longer shown, by cause.
    pub(super) hidden: [usize; Cause::COUNT],
    /// No longer known.
    pub(super) forgotten: usize,
    /// What the forgotten ones took, about.
    pub(super) weight: usize,
}

impl Swept {
    fn hide(&mut self, cause: Cause) {
        if let Some(count) = self.hidden.get_mut(cause as usize) {
            *count += 1;
        }
    }
}

impl std::ops::AddAssign for Swept {
    fn add_assign(&mut self, other: Self) {
        for (count, more) in self.hidden.iter_mut().zip(other.hidden) {
            *count += more;
        }
        self.forgotten += other.forgotten;
        self.weight += other.weight;
    }
}

impl std::iter::Sum for Swept {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |mut sum, one| {
            sum += one;
            sum
        })
    }
}

#[inline]
fn hash(hasher: &Hashing, stream: u32, attributes: &[u8]) -> u64 {
    let mut state = hasher.build_hasher();
    state.write_u32(stream);
    state.write(attributes);
    state.finish()
}

fn named_hash(hasher: &Hashing, slots: &[Option<Slot>], at: u32) -> u64 {
    let slot = slots.get(at as usize).and_then(Option::as_ref);
    slot.map_or(0, |slot| hasher.hash_one(&slot.series.labels))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Kind, Number, Value};

    fn shelf() -> Shelf {
        Shelf::new(Family {
            name: "x".into(),
            kind: Kind::Gauge,
            help: "".into(),
            unit: "".into(),
        })
    }

    fn series(label: &str) -> Series {
        Series {
            labels: Labels::of([("a", label)]),
            start: 0,
            time: 1,
            value: Value::Number(Number::Integer(1)),
        }
    }

    fn page(shelf: &Shelf, most: usize) -> Vec<String> {
        let (mut after, mut page) = (None, Vec::new());
        while shelf.read(&mut after, most, &mut |series| {
            page.push(series.labels.as_str().to_owned());
        }) {}
        page
    }

    #[test]
    fn series_are_read_in_order_in_pieces_of_any_size() {
        let shelf = shelf();
        for label in ["c", "a", "d", "b"] {
            lock(&shelf.state).put(series(label), 1, 1);
        }
        for most in 1..6 {
            assert_eq!(
                page(&shelf, most),
                [r#"a="a""#, r#"a="b""#, r#"a="c""#, r#"a="d""#]
            );
        }
    }

    #[test]
    fn a_series_that_comes_in_between_two_pieces_moves_no_other() {
        let shelf = shelf();
        for label in ["b", "d"] {
            lock(&shelf.state).put(series(label), 1, 1);
        }
        let mut after = None;
        assert!(shelf.read(&mut after, 1, &mut |_| {}));
        lock(&shelf.state).put(series("a"), 1, 1);
        let mut rest = Vec::new();
        assert!(!shelf.read(&mut after, 9, &mut |series| {
            rest.push(series.labels.clone())
        }));
        assert_eq!(rest, [Labels::of([("a", "d")])]);
    }

    #[test]
    fn what_is_forgotten_leaves_nothing_and_its_place_is_used_again() {
        let shelf = shelf();
        let mut state = lock(&shelf.state);
        let old = state.put(series("old"), 1, 1);
        state.remember(1, b"old", old);
        let new = state.put(series("new"), 1, 9);
        state.remember(1, b"new", new);
        let is_old = |slot: &Slot| slot.seen < 5;
        let swept = state.sweep(|slot| is_old(slot).then_some(Cause::TargetSilent), is_old);
        assert_eq!((swept.hidden, swept.forgotten), ([0, 1, 0], 1));
        assert_eq!(
            swept.weight,
            weight::of_series(&Labels::of([("a", "old")]), b"old")
        );
        assert_eq!(
            (state.find(1, b"old"), state.find(1, b"new")),
            (None, Some(new))
        );
        assert_eq!(state.find_named(&Labels::of([("a", "old")])), None);
        assert_eq!(state.put(series("other"), 1, 9), old);
        drop(state);
        assert_eq!(page(&shelf, 9), [r#"a="new""#, r#"a="other""#]);
    }

    #[test]
    fn dropped_keys_leave_no_trace_and_make_place_for_others() {
        let shelf = shelf();
        let mut state = lock(&shelf.state);
        let at = state.put(series("a"), 1, 1);
        let other = state.put(series("b"), 1, 1);
        assert_eq!(state.remember(1, b"other", other), 5);
        for stream in 1..9 {
            assert_eq!(state.remember(stream, b"one", at), 3);
            assert_eq!(state.remember(stream, b"one", at), 0, "known already");
            assert_eq!(state.remember(stream, b"two two", at), 7);
            assert_eq!(state.remember(stream, b"three", at), 0, "one too many");
            assert_eq!(state.find(stream, b"two two"), Some(at));
            assert_eq!(state.keys.len(), 3);
            assert_eq!(state.drop_keys(at), 10);
            assert_eq!(state.find(stream, b"one"), None);
        }
        assert_eq!(state.drop_keys(at), 0);
        assert_eq!(
            (state.keys.len(), state.find(1, b"other")),
            (1, Some(other))
        );
    }

    #[test]
    fn the_same_attributes_of_another_stream_are_another_series() {
        let shelf = shelf();
        let mut state = lock(&shelf.state);
        let at = state.put(series("one"), 1, 1);
        state.remember(1, b"key", at);
        assert_eq!(state.find(1, b"key"), Some(at));
        assert_eq!(state.find(2, b"key"), None);
    }
    #[test]
    fn all_of_it_holds_if_every_hash_is_the_same() {
        let tests: [fn(); 5] = [
            series_are_read_in_order_in_pieces_of_any_size,
            a_series_that_comes_in_between_two_pieces_moves_no_other,
            what_is_forgotten_leaves_nothing_and_its_place_is_used_again,
            dropped_keys_leave_no_trace_and_make_place_for_others,
            the_same_attributes_of_another_stream_are_another_series,
        ];
        let known = include_str!("shelf.rs").matches("#[test]\n").count();
        assert_eq!(known, tests.len() + 1, "a test is not on the list");
        crate::store::hashing::same::with_one_hash(&tests);
    }
}
