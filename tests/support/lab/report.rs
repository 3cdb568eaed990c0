//! What the lab tells the person who started it: one line per fact, with the time since the start.
//!
//! Writes to standard error only, so that commands such as `lab kubectl` keep a clean standard output.

use anyhow::{Result, bail};
use std::{
    io::{self, Write},
    time::{Duration, Instant},
};

/// A clock and a voice.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    started: Instant,
    quiet: bool,
}

impl Report {
    /// Starts the clock.
    pub fn start() -> Self {
        Self {
            started: Instant::now(),
            quiet: false,
        }
    }

    /// The same, but silent about milestones: for labs that nobody watches.
    pub fn quiet(self, quiet: bool) -> Self {
        Self { quiet, ..self }
    }

    /// Time since the clock was started.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Says how far something has come.
    pub fn milestone(&self, text: impl AsRef<str>) {
        if !self.quiet {
            self.line(text);
        }
    }

    /// Says one thing.
    pub fn line(&self, text: impl AsRef<str>) {
        let seconds = self.elapsed().as_secs_f64();
        // A lab in the background goes on when nobody listens any more.
        let _ = writeln!(io::stderr(), "[{seconds:>6.1}s] {}", text.as_ref());
    }
}

/// Says what a test measured, past the capture of its output.
pub fn measured(text: impl AsRef<str>) {
    let _ = writeln!(io::stderr(), "measured: {}", text.as_ref());
}

/// How often a promise may be tried.
const TRIES: usize = 3;

/// Holds the time that something takes against what is promised. A machine that does something else meanwhile says
/// nothing about it, so it may try again; whatever else is wrong fails at once.
pub async fn in_time(promised: Duration, take: impl AsyncFn() -> Result<Duration>) -> Result<()> {
    let mut times = Vec::new();
    while times.len() < TRIES {
        let took = take().await?;
        if took < promised {
            return Ok(());
        }
        times.push(took);
    }
    bail!("promised is less than {promised:?}, measured {times:?}")
}

/// A duration as people say it: `4.2 s`, `95 s`, `6 min 10 s`.
pub fn spoken(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", duration.as_secs_f64()),
        10..120 => format!("{seconds} s"),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[tokio::test]
    async fn a_promise_is_kept_if_one_of_three_tries_keeps_it() {
        let promised = Duration::from_secs(8);
        for (seconds, kept) in [([9, 8, 7], true), ([7, 9, 9], true), ([9, 8, 9], false)] {
            let tries = Cell::new(0);
            let take = async || {
                let took = seconds[tries.replace(tries.get() + 1)];
                Ok(Duration::from_secs(took))
            };
            assert_eq!(in_time(promised, take).await.is_ok(), kept, "{seconds:?}");
        }
        let wrong = in_time(promised, async || bail!("it is wrong")).await;
        assert_eq!(wrong.unwrap_err().to_string(), "it is wrong");
    }

    #[test]
    fn durations_are_spoken_in_the_unit_people_would_use() {
        let spoken_of = |millis| spoken(Duration::from_millis(millis));
        assert_eq!(
            [4_200, 95_000, 370_000].map(spoken_of),
            ["4.2 s", "95 s", "6 min 10 s"]
        );
    }
}
