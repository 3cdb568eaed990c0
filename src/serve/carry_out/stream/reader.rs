//! One reader: what it is sent, one piece after the other. It is asked for the next piece only when it has taken the last,
//! so nothing is kept for it but its place.

use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, Stream, StreamExt};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::hub::{Event, Filter, Kept};
use crate::api::contract::queue_event;
use crate::kit::http::BoxError;
use crate::kit::http::events::{Next, Place, lines};
use crate::kit::shutdown::Shutdown;

/// Time between two signs of life, and between two looks at whether the reader may still read.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);

/// Time for that look, during which nothing is sent.
const LOOK: Duration = Duration::from_secs(10);

/// What is sent to a reader before anything else, and where it should come back after a break.
const GREETING: &[u8] = b"retry: 1000\n: connected\n\n";

/// Asks whether the reader may still read; a word if not.
pub(super) type StillAllowed =
    Box<dyn Fn() -> BoxFuture<'static, Option<&'static str>> + Send + Sync>;

/// A reader that is being told.
pub(super) struct Reader {
    pub(super) place: Place<Kept>,
    pub(super) filter: Filter,
    pub(super) news: watch::Receiver<u64>,
    pub(super) shutdown: Shutdown,
    pub(super) still_allowed: StillAllowed,
    /// When it is asked next. Only the look itself moves it on: events in between must not, or a busy stream would never be asked.
    pub(super) next_look: Instant,
    /// Whether events have names.
    pub(super) named: bool,
    /// Whether objects are left out.
    pub(super) brief: bool,
}

/// One thing to send.
enum Piece {
    Event(Event),
    Comment,
    /// The last event of the stream.
    Last(Event),
}

impl Reader {
    /// All that is sent: a greeting, what there is, and what happens then.
    pub(super) fn pieces(
        self,
        first: BoxStream<'static, Event>,
    ) -> impl Stream<Item = Result<Bytes, BoxError>> + Send {
        let (named, brief) = (self.named, self.brief);
        let greeting = stream::iter([Bytes::from_static(GREETING)]);
        let first = first.flat_map(move |event| stream::iter(written(event, named, brief)));
        let rest = stream::unfold(Some(self), move |reader| async move {
            let mut reader = reader?;
            match reader.next().await {
                Piece::Event(event) => Some((written(event, named, brief), Some(reader))),
                Piece::Comment => {
                    let alive = Bytes::from_static(b": still here\n\n");
                    Some((vec![alive], Some(reader)))
                }
                Piece::Last(event) => Some((written(event, true, false), None)),
            }
        });
        let rest = rest.flat_map(stream::iter);
        greeting.chain(first).chain(rest).map(Ok)
    }

    async fn next(&mut self) -> Piece {
        loop {
            if self.next_look <= Instant::now() {
                return self.look().await;
            }
            // What comes after this look wakes the wait below.
            self.news.mark_unchanged();
            match self.place.next(|kept| self.filter.pick(kept)) {
                Next::Event(event) => return Piece::Event(event),
                Next::Missed(missed) => {
                    let name = queue_event::DROPPED;
                    let data = json!({"type": name, "reason": "slow", "missed": missed});
                    return Piece::Last(said(name, &data));
                }
                Next::Nothing => {}
            }
            tokio::select! {
                _ = self.shutdown.started() => return end("shutdown"),
                Ok(()) = self.news.changed() => {}
                () = sleep_until(self.next_look) => {}
            }
        }
    }

    /// A sign of life, if it may still read.
    async fn look(&mut self) -> Piece {
        // Who cannot be asked about in time reads on, as where nobody can be asked at all.
        let refused = timeout(LOOK, (self.still_allowed)()).await.unwrap_or(None);
        self.next_look = Instant::now() + HEARTBEAT;
        match refused {
            None => Piece::Comment,
            Some(why) => end(why),
        }
    }
}

fn end(why: &str) -> Piece {
    Piece::Last(said(
        queue_event::END,
        &json!({"type": queue_event::END, "reason": why}),
    ))
}

/// An event without an id: who comes back after it goes on where it was before.
pub(super) fn said(name: &'static str, data: &serde_json::Value) -> Event {
    Event {
        name,
        lines: lines(None, data.to_string().as_bytes()),
        brief: None,
    }
}

/// An event in pieces that others share.
fn written(event: Event, named: bool, brief: bool) -> Vec<Bytes> {
    let name = named.then(|| Bytes::from(format!("event: {}\n", event.name)));
    let mut pieces: Vec<_> = name.into_iter().collect();
    match event.brief.filter(|_| brief) {
        Some(end) => pieces.push([&event.lines[..end], b"}\n\n"].concat().into()),
        None => pieces.push(event.lines),
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::shutdown::channel;
    use crate::serve::carry_out::stream::hub::{About, Hub, hub, tell};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::time::advance;

    /// A reader of everything whom nobody lets read any more at the third look.
    fn reader(hub: &Arc<Hub>, shutdown: Shutdown) -> Reader {
        let (place, _) = hub.enter(None).unwrap();
        let looks = AtomicUsize::new(0);
        Reader {
            place,
            filter: Filter::default(),
            news: hub.news(),
            shutdown,
            still_allowed: Box::new(move || {
                let look = looks.fetch_add(1, Ordering::Relaxed);
                Box::pin(async move { (look == 2).then_some("forbidden") })
            }),
            next_look: Instant::now() + HEARTBEAT,
            named: true,
            brief: false,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_takes_too_long_holds_nobody_up() {
        let hub = Arc::new(hub(1));
        let (_trigger, shutdown) = channel();
        let mut reader = reader(&hub, shutdown);
        reader.still_allowed = Box::new(|| Box::pin(std::future::pending()));
        let begun = Instant::now();
        assert!(matches!(reader.next().await, Piece::Comment));
        assert_eq!(begun.elapsed(), HEARTBEAT + LOOK);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_is_looked_at_again_however_much_there_is_to_tell() {
        let hub = Arc::new(hub(1));
        let (_trigger, shutdown) = channel();
        let mut reader = reader(&hub, shutdown);
        let mut told = Vec::new();
        for second in 1..=60 {
            advance(Duration::from_secs(1)).await;
            tell(&hub, "x", About::default(), b"1");
            let is_last = loop {
                match reader.next().await {
                    Piece::Event(_) => break false,
                    Piece::Comment => told.push((second, "comment")),
                    Piece::Last(_) => break true,
                }
            };
            if is_last {
                told.push((second, "end"));
                break;
            }
        }
        assert_eq!(told, [(15, "comment"), (30, "comment"), (45, "end")]);
    }
}
