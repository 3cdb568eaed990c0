//! Runs that were admitted a moment ago, until their status shows it. One decision at a time: two runs that ask at once
//! cannot both get the last slot.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

/// After so long a run that was admitted and has not begun gives its slot back: something else holds it up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Who was admitted, and when.
#[derive(Debug, Default)]
pub(in crate::controller::agent_run) struct Ledger {
    admitted: Mutex<Admitted>,
}

/// Runs by uid.
pub(in crate::controller::agent_run) type Admitted = HashMap<String, Timestamp>;

impl Ledger {
    /// Everyone who was admitted lately. While it is held, nobody else is admitted.
    pub(in crate::controller::agent_run) fn open(
        &self,
        now: Timestamp,
    ) -> MutexGuard<'_, Admitted> {
        let mut admitted = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        admitted.retain(|_, at| at.checked_add(PATIENCE).is_ok_and(|over| over > now));
        admitted
    }
}
