//! Tokens that come back a fixed time after they were spent: never more than `limit` of one key in any span of time.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// A bucket of tokens for each key. A key whose tokens are all back takes no memory.
#[derive(Debug)]
pub(super) struct Window {
    limit: usize,
    span: Duration,
    taken: HashMap<u64, usize>,
    /// In the order in which they come back, since each stays away equally long.
    spent: VecDeque<(Instant, u64)>,
}

impl Window {
    pub(super) fn new(limit: usize, span: Duration) -> Self {
        Self {
            limit,
            span,
            taken: HashMap::new(),
            spent: VecDeque::new(),
        }
    }

    /// Gives back what was spent long enough ago.
    pub(super) fn advance(&mut self, now: Instant) {
        while let Some(&(back, key)) = self.spent.front()
            && back <= now
        {
            self.spent.pop_front();
            self.release(key);
        }
    }

    pub(super) fn has_room(&self, key: u64) -> bool {
        self.taken.get(&key).copied().unwrap_or(0) < self.limit
    }

    /// Takes a token for something that is going to happen; it stays away until released or spent.
    pub(super) fn hold(&mut self, key: u64) {
        *self.taken.entry(key).or_default() += 1;
    }

    /// Gives back a token that was held for nothing.
    pub(super) fn release(&mut self, key: u64) {
        if let Some(taken) = self.taken.get_mut(&key) {
            *taken -= 1;
            if *taken == 0 {
                self.taken.remove(&key);
            }
        }
    }

    /// Says that what a token was held for has happened.
    pub(super) fn spend(&mut self, key: u64, now: Instant) {
        self.spent.push_back((now + self.span, key));
    }

    /// When the next spent token comes back.
    pub(super) fn next_return(&self) -> Option<Instant> {
        self.spent.front().map(|(back, _)| *back)
    }
}
