//! One series: what happened first, how often since, and what of it is stored.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;

use crate::events::event::{Draft, Stored};
use crate::events::settings::Limits;

/// One Event and what it has to say next.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) draft: Arc<Draft>,
    pub(super) object: u64,
    pub(super) topic: u64,
    pub(super) stored: Option<Stored>,
    pub(super) unwritten: u32,
    pub(super) seen: Instant,
    pub(super) last_seen: Timestamp,
    pub(super) written: Instant,
    /// Whether the first repeat was told already.
    pub(super) repeat_told: bool,
    pub(super) attempts: u32,
    pub(super) due: Instant,
    /// Position in the order of use.
    pub(super) used: u64,
}

/// What a series wants.
pub(super) enum Plan {
    Write,
    Wait(Instant),
    Close,
}

impl Series {
    pub(super) fn new(draft: Draft, object: u64, topic: u64, now: Instant) -> Self {
        Self {
            object,
            topic,
            stored: None,
            unwritten: 1,
            seen: now,
            last_seen: draft.seen,
            written: now,
            repeat_told: false,
            attempts: 0,
            due: now,
            used: 0,
            draft: Arc::new(draft),
        }
    }

    /// What is to be done, if nothing but the series itself counted.
    pub(super) fn plan(&self, now: Instant, limits: &Limits) -> Plan {
        let end = self.seen + limits.quiet;
        let beat = self.written + limits.heartbeat;
        match (&self.stored, self.unwritten) {
            (None, _) => Plan::Write,
            (Some(_), 0) if now >= end => Plan::Close,
            (Some(_), 0) => Plan::Wait(end),
            (Some(_), _) if !self.repeat_told || now >= beat || now >= end => Plan::Write,
            (Some(_), _) => Plan::Wait(beat.min(end)),
        }
    }
}
