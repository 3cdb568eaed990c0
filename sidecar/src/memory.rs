//! How much memory there is, and when what comes in is turned away to stay within it.
//!
//! The kernel ends a container that takes more than its limit, and everything that was known is lost. So senders are told to
//! come back later before that, and what nobody sees is forgotten ([`Stage::Soft`]); if it gets closer still, that holds for requests
//! that were let in before, too ([`Stage::Hard`]).

mod cgroup;
mod metrics;

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use agents::kit::config::{self, Invalid, Reader, Setting};
use prometheus_client::registry::Registry;

use crate::{args::variable, store};

/// Of a hundred parts of the limit, those from which on senders come back later.
const SOFT: usize = 80;
/// Those from which on the same is said to who was let in already.
const HARD: usize = 90;
/// Least limit that one can work within: the program itself takes some of it.
const LEAST: &str = "16777216";

/// What operators can set.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Bytes, where the limit of the container does not count.
    pub limit: Option<usize>,
}

impl config::Settings for Settings {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("Memory");
        let limit = reader.optional(
            Setting::<usize>::new(
                variable::MEMORY_LIMIT,
                "Bytes of memory to stay within; that of the container if not set, and no bound if that has none",
            )
            .within(LEAST, "1099511627776"),
        );
        Ok(Self { limit: limit? })
    }
}

/// How close the limit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Far off.
    Free,
    /// Senders come back later.
    Soft,
    /// Those who were let in before, too.
    Hard,
}

/// What is taken of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// What the kernel counts for this process.
    pub resident: usize,
    /// What we know to be in use.
    pub known: usize,
}

/// How close the limit is.
///
/// An allocator keeps what it was given, so the kernel's number alone would have senders come back for ever; ours alone
/// knows nothing of what lies between. Hence both: the kernel's number decides as soon as half of it may be ours.
pub fn stage(limit: usize, taken: Use) -> Stage {
    let part = |percent: usize| limit / 100 * percent;
    let over = |percent| taken.resident >= part(percent) && taken.known >= part(percent) / 2;
    match (over(SOFT), over(HARD)) {
        (_, true) => Stage::Hard,
        (true, false) => Stage::Soft,
        (false, false) => Stage::Free,
    }
}

/// Limits of the store and of what is in flight that leave room for the rest.
pub fn within(limit: Option<usize>, limits: store::Limits) -> store::Limits {
    let Some(limit) = limit else { return limits };
    store::Limits {
        bytes: limits.bytes.min(limit),
        // Requests that come at once must not leap over both stages.
        bytes_per_request: limits.bytes_per_request.min(limit / 32),
        ..limits
    }
}

/// Watches over the memory.
#[derive(Clone, Debug)]
pub struct Watch {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limit: Option<usize>,
    last: AtomicU8,
}

impl Watch {
    /// With the limit that was set, or that of the container.
    pub fn start(settings: Settings, registry: &mut Registry) -> Self {
        let limit = settings.limit.or_else(cgroup::limit);
        let watch = Self::of(limit);
        registry.register_collector(Box::new(metrics::Shown(watch.clone())));
        match limit {
            Some(bytes) => tracing::info!(bytes, "Staying within a limit of memory"),
            None => tracing::info!("No limit of memory is known"),
        }
        watch
    }

    /// With this limit.
    pub fn of(limit: Option<usize>) -> Self {
        let last = AtomicU8::new(Stage::Free as u8);
        Self {
            shared: Arc::new(Shared { limit, last }),
        }
    }

    /// The limit, if there is one.
    pub fn limit(&self) -> Option<usize> {
        self.shared.limit
    }

    /// How close the limit is, with so much in use as far as we know. The kernel is asked only where that matters.
    pub fn stage(&self, known: usize) -> Stage {
        let Some(limit) = self.shared.limit else {
            return Stage::Free;
        };
        let at_most = Use {
            resident: usize::MAX,
            known,
        };
        let stage = match stage(limit, at_most) {
            Stage::Free => Stage::Free,
            Stage::Soft | Stage::Hard => {
                let resident = cgroup::resident().unwrap_or(known);
                stage(limit, Use { resident, known })
            }
        };
        self.say(stage, known, limit);
        stage
    }

    /// One line for each change, however many are turned away.
    fn say(&self, stage: Stage, known: usize, limit: usize) {
        let before = self.shared.last.swap(stage as u8, Ordering::Relaxed);
        if before == stage as u8 {
            return;
        }
        match stage {
            Stage::Free => tracing::info!(known, limit, "Memory is free again"),
            Stage::Soft | Stage::Hard => {
                tracing::warn!(
                    known,
                    limit,
                    ?stage,
                    "Memory is short: senders are told to come back"
                );
            }
        }
    }

    fn last(&self) -> u8 {
        self.shared.last.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 100 << 20;

    #[test]
    fn both_numbers_must_be_close_to_the_limit() {
        let mib = |resident: usize, known: usize| Use {
            resident: resident << 20,
            known: known << 20,
        };
        for (taken, expected) in [
            (mib(0, 0), Stage::Free),
            (mib(79, 79), Stage::Free),
            (mib(80, 40), Stage::Soft),
            (mib(80, 39), Stage::Free), // freed, and the allocator has kept it
            (mib(99, 44), Stage::Soft),
            (mib(90, 45), Stage::Hard),
            (mib(200, 200), Stage::Hard),
            (mib(50, 200), Stage::Free), // our number is a guess
        ] {
            assert_eq!(stage(LIMIT, taken), expected, "{taken:?}");
        }
    }

    #[test]
    fn without_a_limit_nothing_is_turned_away() {
        assert_eq!(Watch::of(None).stage(usize::MAX), Stage::Free);
        let limits = store::Limits::default();
        assert_eq!(within(None, limits), limits);
    }

    #[test]
    fn a_small_limit_makes_requests_small() {
        let limits = within(Some(64 << 20), store::Limits::default());
        assert_eq!(
            (limits.bytes, limits.bytes_per_request),
            (64 << 20, 2 << 20)
        );
        let limits = within(Some(8 << 30), store::Limits::default());
        assert_eq!(limits, store::Limits::default());
    }

    #[test]
    fn a_process_that_is_over_its_limit_is_so_by_both_numbers() {
        let watch = Watch::of(Some(1 << 20));
        assert_eq!(watch.stage(0), Stage::Free);
        assert_eq!(watch.stage(1 << 20), Stage::Hard);
        assert_eq!(watch.last(), Stage::Hard as u8);
        assert_eq!(watch.stage(0), Stage::Free);
    }
}
