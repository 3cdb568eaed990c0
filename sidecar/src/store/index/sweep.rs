//! What is silent goes: series first, then whoever sent them.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, atomic::Ordering},
};

use super::{
    super::{
        Patience,
        hashing::Hashing,
        lock,
        shelf::{Slot, Swept},
    },
    Index, TARGET_INFO, counted,
};

impl Index {
    /// See [`crate::store::Store::sweep`].
    pub(in crate::store) fn sweep(&mut self, now: u64, patience: Patience) -> Swept {
        let heard = self.heard();
        let heard = |number: u32| heard.get(&number).copied().unwrap_or_default();
        let mut swept = Swept::default();
        for (name, shelf) in &self.shelves {
            // What a target says of itself is over when it is silent, not when nothing of it changes.
            let seen = |slot: &Slot| match **name == *TARGET_INFO {
                true => heard(slot.stream),
                false => slot.seen,
            };
            let gone = lock(&shelf.state).sweep(
                |slot| patience.hides(seen(slot), heard(slot.stream), now),
                |slot| patience.forgets(seen(slot), heard(slot.stream), now),
            );
            swept += counted(name, gone);
        }
        // Who holds one is about to write; the lock of the index keeps anyone else from getting it.
        self.streams.retain(|stream| {
            let seen = stream.seen.load(Ordering::Relaxed);
            !patience.forgets(seen, heard(stream.id), now) || Arc::strong_count(stream) > 1
        });
        self.forget_sources(now, patience);
        swept
    }

    /// When the target was last heard of that has this number, or a stream of this number.
    fn heard(&self) -> HashMap<u32, u64, Hashing> {
        let targets = self.identities.iter();
        let targets = targets.map(|(who, number)| (*number, self.census.heard(who)));
        let mut heard: HashMap<u32, u64, Hashing> = targets.collect();
        let of_streams: Vec<(u32, u64)> = self
            .streams
            .iter()
            .filter_map(|stream| Some((stream.id, *heard.get(&stream.identity)?)))
            .collect();
        heard.extend(of_streams);
        heard
    }

    /// Forgets targets and scopes that have been silent for long and that no stream has.
    fn forget_sources(&mut self, now: u64, patience: Patience) {
        let since = |ago: u64| now.saturating_sub(ago);
        let (shown, known) = (
            since(patience.target),
            since(patience.known * patience.target),
        );
        self.origins.retain(|_, origin| {
            let seen = origin.seen.load(Ordering::Relaxed);
            origin
                .is_described
                .fetch_and(seen >= shown, Ordering::Relaxed);
            seen >= known
        });
        let origins = self.origins.values();
        let numbers: BTreeSet<u32> = origins.map(|origin| origin.identity).collect();
        self.identities.retain(|_, number| numbers.contains(number));
        self.census.forget(shown, known);
        let scopes: BTreeSet<u32> = self.streams.iter().map(|stream| stream.scope).collect();
        self.scopes.retain(|_, scope| {
            scope.seen.load(Ordering::Relaxed) >= known || scopes.contains(&scope.id)
        });
        self.shelves
            .retain(|_, shelf| Arc::strong_count(shelf) > 1 || lock(&shelf.state).len() > 0);
    }
}
