//! What the API server did not take, and why. Bounded, and forgotten with the process: another one asks again.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::controller::cache::Key;

/// Refusals that are remembered.
const KEPT: usize = 1024;

/// The objects that were refused, each with the uid of its run and the words of the API server.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    refused: Mutex<VecDeque<(Key, Option<String>, String)>>,
}

impl Refusals {
    pub(super) fn note(&self, object: Key, run: Option<String>, why: String) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() == KEPT {
            refused.pop_front();
        }
        refused.push_back((object, run, why));
    }

    /// Why the object of this run was refused, if it was.
    pub(super) fn of(&self, object: &Key, run: Option<&str>) -> Option<String> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let mut refused = refused.iter().rev();
        let found = refused.find(|(key, uid, _)| key == object && uid.as_deref() == run);
        found.map(|(_, _, why)| why.clone())
    }
}
