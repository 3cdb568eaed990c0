//! Follows one source for as long as the program runs: connects, listens, and tries again.

use std::{future::pending, sync::Arc, time::Duration};

use agents::kit::egress::Target;
use jiff::Timestamp;
use tokio::time::{Instant, sleep, timeout};

use super::{
    client::{Client, Stream},
    parse::{Item, Limits, Parser},
    shown::Shown,
    state::{Backoff, Cause, End, Next},
};

/// Events of one second; a source that has more of them is read only so fast.
const EVENTS: u64 = 1000;

const SECOND: Duration = Duration::from_secs(1);

/// Follows one source.
pub(super) struct Follower {
    pub(super) target: Target,
    pub(super) client: Client,
    pub(super) limits: Limits,
    /// How long a stream may say nothing, not even that it is alive.
    pub(super) silence: Duration,
    pub(super) shown: Arc<Shown>,
}

/// What is kept from one connection to the next.
#[derive(Default)]
struct Memory {
    backoff: Backoff,
    last_id: String,
    /// Whether the last try went wrong and that has been said.
    is_down: bool,
    /// Whether there ever was a stream.
    has_been_up: bool,
}

impl Follower {
    /// Follows until it is dropped.
    pub(super) async fn run(self) {
        let mut memory = Memory::default();
        loop {
            let (end, lasted) = self.connection(&mut memory).await;
            self.shown
                .at(Instant::now())
                .ended(end.cause, Instant::now());
            self.say(end.cause, &mut memory);
            match memory.backoff.next(end, lasted, fastrand::f64()) {
                Next::After(delay) => sleep(delay).await,
                Next::Never => pending().await,
            }
        }
    }

    /// One connection from its beginning to its end; says how long there was a stream.
    async fn connection(&self, memory: &mut Memory) -> (End, Option<Duration>) {
        if !self.shown.at(Instant::now()).can_resume() {
            memory.last_id.clear();
        }
        let opened = self.client.open(&self.target, &memory.last_id).await;
        let stream = match opened {
            Ok(stream) => stream,
            Err(end) => return (end, None),
        };
        let since = Instant::now();
        self.shown.at(since).opened(since);
        (memory.is_down, memory.has_been_up) = (false, true);
        tracing::info!(source = self.shown.name, url = %self.target, "Following a stream");
        let cause = self.listen(stream, memory).await;
        (cause.into(), Some(since.elapsed()))
    }

    async fn listen(&self, mut stream: Stream, memory: &mut Memory) -> Cause {
        let mut parser = Parser::new(self.limits, &memory.last_id);
        let mut pace = Pace::new(Instant::now());
        loop {
            let chunk = match timeout(self.silence, stream.next()).await {
                Ok(Ok(chunk)) => chunk,
                Ok(Err(cause)) => return cause,
                Err(_) => return Cause::Silent,
            };
            let events = self.take(&chunk, &mut parser, &mut memory.backoff);
            memory.last_id.clear();
            memory.last_id.push_str(parser.last_id());
            if let Some(rest) = pace.rest(events, Instant::now()) {
                sleep(rest).await;
            }
        }
    }

    /// Takes what has come; says how many events there were in it.
    fn take(&self, chunk: &[u8], parser: &mut Parser, backoff: &mut Backoff) -> u64 {
        let (now, time) = (Instant::now(), Timestamp::now());
        let mut shown = self.shown.at(now);
        shown.bytes += u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        let mut events = 0;
        parser.feed(chunk, &mut |item| match item {
            Item::Event(event) => {
                events += 1;
                shown.take(event, now, time);
            }
            Item::Retry(delay) => backoff.hint(delay),
            Item::Excess(excess) => shown.fault(excess.into()),
        });
        events
    }

    /// Says once that it is gone; that it still is, only to those who look closely.
    fn say(&self, cause: Cause, memory: &mut Memory) {
        let (source, url) = (&self.shown.name, &self.target);
        // A sidecar starts before what it stands beside.
        let is_early = cause == Cause::Unreachable && !memory.has_been_up;
        let cause = cause.as_str();
        if memory.is_down {
            tracing::debug!(source, %url, cause, "Stream is still not followed");
        } else if is_early {
            tracing::info!(source, %url, cause, "Stream is not there yet");
        } else {
            tracing::warn!(source, %url, cause, "Stream is not followed");
        }
        memory.is_down = true;
    }
}

/// How many events came in this second.
struct Pace {
    since: Instant,
    events: u64,
}

impl Pace {
    fn new(since: Instant) -> Self {
        Self { since, events: 0 }
    }

    /// How long to rest after so many more events, if there were too many.
    fn rest(&mut self, events: u64, now: Instant) -> Option<Duration> {
        if now.duration_since(self.since) >= SECOND {
            *self = Self::new(now);
        }
        self.events += events;
        let passed = now.duration_since(self.since);
        (self.events > EVENTS).then(|| SECOND.saturating_sub(passed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_events_in_a_second_are_taken_in_the_next() {
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        let mut pace = Pace::new(start);
        for (events, now, expected) in [
            (EVENTS, 100, None),
            (1, 400, Some(600)),
            (1, 1000, None),
            (EVENTS, 1500, Some(500)),
            (5, 9000, None),
            (EVENTS + 1, 20_000, Some(1000)),
        ] {
            let rest = pace.rest(events, after(now));
            assert_eq!(rest, expected.map(Duration::from_millis), "at {now} ms");
        }
    }
}
