//! A CPU profile of the running process, as folded stacks: one line per stack, ready for any flame graph tool.
//!
//! Off unless switched on, and only in builds with the feature `profile`: the sampling library needs an old release of
//! nix, which no ordinary build should carry.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use http::{Response, StatusCode};
use tokio::sync::Semaphore;

use crate::kit::{
    config::Value,
    http::{TextBody, text},
};

/// The longest profile that can be asked for.
pub(super) const LONGEST: Duration = Duration::from_secs(60);

const USUAL: Duration = Duration::from_secs(10);

/// Whether profiles can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profiling(pub bool);

impl Value for Profiling {
    const EXPECTED: &'static str = match cfg!(feature = "profile") {
        true => bool::EXPECTED,
        false => "no, since this build has no profiler (it needs the feature profile)",
    };
    const SWITCH: bool = true;

    fn parse(text: &str) -> Option<Self> {
        let on = bool::parse(text)?;
        (!on || cfg!(feature = "profile")).then_some(Self(on))
    }
}

/// Takes profiles, one at a time.
#[derive(Clone, Debug)]
pub(super) struct Profiler {
    profiling: Profiling,
    turn: Arc<Semaphore>,
}

impl Profiler {
    pub(super) fn new(profiling: Profiling) -> Self {
        Self {
            profiling,
            turn: Arc::new(Semaphore::new(1)),
        }
    }

    /// The answer to a request for a profile.
    pub(super) fn answer(&self, query: &str) -> BoxFuture<'static, Response<TextBody>> {
        let Self {
            profiling: Profiling(on),
            turn,
        } = self.clone();
        let length = length(query);
        Box::pin(async move {
            let Ok(length) = length else {
                let limit = LONGEST.as_secs();
                let message = format!("seconds must be a whole number from 1 to {limit}\n");
                return text(StatusCode::BAD_REQUEST, message);
            };
            if !on {
                return text(StatusCode::NOT_FOUND, "profiles are switched off\n");
            }
            let Ok(_turn) = turn.try_acquire() else {
                return text(StatusCode::TOO_MANY_REQUESTS, "a profile is being taken\n");
            };
            match folded(length).await {
                Ok(stacks) => text(StatusCode::OK, stacks),
                Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
            }
        })
    }
}

/// How long a query wants to measure.
fn length(query: &str) -> Result<Duration, ()> {
    let mut words = query.split('&');
    let Some(seconds) = words.find_map(|word| word.strip_prefix("seconds=")) else {
        return Ok(USUAL);
    };
    let length = Duration::from_secs(seconds.parse().map_err(drop)?);
    match (Duration::from_secs(1)..=LONGEST).contains(&length) {
        true => Ok(length),
        false => Err(()),
    }
}

#[cfg(feature = "profile")]
async fn folded(length: Duration) -> Result<String, pprof::Error> {
    use std::collections::BTreeMap;

    /// Samples per second; odd, so as not to run in step with timers.
    const FREQUENCY: i32 = 99;

    let guard = pprof::ProfilerGuardBuilder::default()
        .frequency(FREQUENCY)
        // Unwinding from within these may deadlock.
        .blocklist(&["libc", "libgcc", "pthread", "vdso"])
        .build()?;
    tokio::time::sleep(length).await;
    let report = guard.report().build()?;
    let mut stacks = BTreeMap::new();
    for (frames, samples) in &report.data {
        let names = frames
            .frames
            .iter()
            .rev()
            .flatten()
            .map(pprof::Symbol::name);
        let names: Vec<_> = std::iter::once(frames.thread_name_or_id())
            .chain(names)
            .collect();
        *stacks.entry(names.join(";")).or_insert(0) += samples;
    }
    let lines = stacks
        .iter()
        .map(|(stack, samples)| format!("{stack} {samples}\n"));
    Ok(lines.collect())
}

#[cfg(not(feature = "profile"))]
async fn folded(_: Duration) -> Result<String, &'static str> {
    Err("this build has no profiler")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_profile_is_bounded() {
        let seconds = |seconds| Ok(Duration::from_secs(seconds));
        assert_eq!(length(""), seconds(10));
        assert_eq!(length("seconds=3&x"), seconds(3));
        assert_eq!(length("x&seconds=60"), seconds(60));
        for wrong in ["seconds=0", "seconds=61", "seconds=-1", "seconds="] {
            assert_eq!(length(wrong), Err(()), "{wrong}");
        }
    }

    #[tokio::test]
    async fn a_profile_is_refused_unless_switched_on() {
        let response = Profiler::new(Profiling(false)).answer("").await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
    }

    #[cfg(feature = "profile")]
    #[tokio::test(flavor = "multi_thread")]
    async fn profiles_are_taken_one_at_a_time() {
        let profiler = Profiler::new(Profiling(true));
        let work = std::thread::spawn(|| (0..200_000_000_u64).fold(0, |a, b| a ^ b.rotate_left(3)));
        let (first, second) = tokio::join!(profiler.answer("seconds=1"), profiler.answer(""));
        assert_eq!(first.status(), StatusCode::OK);
        assert_eq!(second.status(), StatusCode::TOO_MANY_REQUESTS);
        drop(work.join());
    }
}
