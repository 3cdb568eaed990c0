//! One reader: what it is sent, one piece after the other. It is asked for the next piece only when it has taken the last,
//! so nothing is kept for it but its place.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use hyper::body::Frame;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::sleep;

use super::message::event;
use crate::api::contract::queue_event;
use crate::kit::http::events::{Next, Place};
use crate::kit::shutdown::Shutdown;

/// Time between two signs of life.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Time after which a reader should come back.
const RETRY: Duration = Duration::from_secs(2);

/// What is sent to a reader.
pub(super) type Frames = BoxStream<'static, Result<Frame<Bytes>, Infallible>>;

/// A reader that is being told.
pub(super) struct Reader {
    pub(super) place: Place<Bytes>,
    pub(super) news: watch::Receiver<u64>,
    pub(super) shutdown: Shutdown,
    /// What it is told first, unless it goes on where it left off.
    pub(super) first: Option<Bytes>,
}

/// Where the telling is.
enum Stage {
    Greeting(Reader),
    First(Reader),
    Following(Reader),
    Over,
}

impl Reader {
    pub(super) fn frames(self) -> Frames {
        let pieces = stream::unfold(Stage::Greeting(self), |stage| async move {
            let (piece, stage) = step(stage).await?;
            Some((Ok(Frame::data(piece)), stage))
        });
        pieces.boxed()
    }

    /// The next piece, and whether it is the last.
    async fn follow(&mut self) -> (Bytes, bool) {
        loop {
            // What comes after this look wakes the wait below.
            self.news.mark_unchanged();
            match self.place.next(|event| Some(event.clone())) {
                Next::Event(event) => return (event, false),
                Next::Missed(missed) => {
                    let data = json!({"reason": "slow", "missed": missed}).to_string();
                    return (event(queue_event::DROPPED, None, data.as_bytes()), true);
                }
                Next::Nothing => {}
            }
            tokio::select! {
                _ = self.shutdown.started() => {
                    let data = json!({"reason": "shutdown"}).to_string();
                    return (event(queue_event::END, None, data.as_bytes()), true);
                }
                Ok(()) = self.news.changed() => {}
                () = sleep(HEARTBEAT) => return (Bytes::from_static(b": still here\n\n"), false),
            }
        }
    }
}

async fn step(stage: Stage) -> Option<(Bytes, Stage)> {
    match stage {
        Stage::Greeting(reader) => {
            let retry = format!("retry: {}\n\n", RETRY.as_millis());
            Some((retry.into(), Stage::First(reader)))
        }
        Stage::First(mut reader) => match reader.first.take() {
            Some(first) => Some((first, Stage::Following(reader))),
            None => Some(followed(reader).await),
        },
        Stage::Following(reader) => Some(followed(reader).await),
        Stage::Over => None,
    }
}

async fn followed(mut reader: Reader) -> (Bytes, Stage) {
    match reader.follow().await {
        (piece, false) => (piece, Stage::Following(reader)),
        (piece, true) => (piece, Stage::Over),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::time::Instant;

    use super::super::{Hub, ROOM};
    use super::*;
    use crate::kit::shutdown::channel;

    /// The next piece, and after how long it came.
    async fn next(frames: &mut Frames) -> (String, Duration) {
        let start = Instant::now();
        let frame = frames.next().await.unwrap().unwrap();
        let piece = frame.into_data().unwrap();
        let piece = String::from_utf8(piece.to_vec()).unwrap();
        (piece, start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_hears_nothing_gets_a_sign_of_life() {
        const BEAT: &str = ": still here\n\n";
        let (trigger, shutdown) = channel();
        let hub = Arc::new(Hub::new(ROOM));
        let (place, _) = hub.enter(None).unwrap();
        let reader = Reader {
            place,
            news: hub.news(),
            shutdown,
            first: Some(Bytes::from_static(b"first")),
        };
        let mut frames = reader.frames();
        for expected in ["retry: 2000\n\n", "first"] {
            let (piece, after) = next(&mut frames).await;
            assert_eq!((piece.as_str(), after), (expected, Duration::ZERO));
        }
        for _ in 0..3 {
            let (piece, after) = next(&mut frames).await;
            assert_eq!(piece, BEAT);
            // Timers have a grain of one millisecond.
            assert_eq!(after.as_secs(), HEARTBEAT.as_secs());
        }
        // It counts from the last piece, whatever that was.
        tokio::time::advance(HEARTBEAT / 2).await;
        hub.publish(|id| event(queue_event::QUEUE, Some(id), b"{}"));
        let (piece, after) = next(&mut frames).await;
        assert!(piece.starts_with("event: queue\nid: "), "{piece}");
        assert_eq!(after, Duration::ZERO);
        let (piece, after) = next(&mut frames).await;
        assert_eq!(
            (piece.as_str(), after.as_secs()),
            (BEAT, HEARTBEAT.as_secs())
        );
        // Nobody waits for one at the end.
        trigger.start(Instant::now());
        let (piece, after) = next(&mut frames).await;
        assert!(piece.contains(queue_event::END), "{piece}");
        assert_eq!(after, Duration::ZERO);
        assert!(frames.next().await.is_none());
    }
}
