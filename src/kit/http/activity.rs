//! What a connection is doing, and until when it may: the deadlines for heads, for idling and for taking what is sent, and
//! whether it should make room for another.
//!
//! hyper's header timer starts when the last answer is out, so it cannot tell a slow client from a resting one, and it
//! does not run at all while the protocol is being guessed. Hence this: the bytes are watched instead.

use std::{
    collections::HashMap,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use http::Version;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::Notify,
    time::Instant,
};

use super::{Limits, events::Stalled, metrics::Close};

/// What a connection waits for while nothing is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// The first byte.
    First,
    /// The rest of a head.
    Head,
    /// The next request.
    Next,
}

#[derive(Debug)]
struct State {
    waiting: Waiting,
    since: Instant,
    in_flight: usize,
    /// HTTP/2 also sends bytes that belong to no request, so they say nothing.
    multiplexed: bool,
    /// It was asked to make room. A request that was quicker than the asking takes that back.
    yielding: bool,
    /// Since when the client takes nothing of what is there for it.
    blocked: Option<Instant>,
    /// The same for each answer that is sent piece by piece: over HTTP/2 a client can hold up one and take all else.
    given: HashMap<u64, Instant>,
    /// Answers that were sent piece by piece so far.
    answers: u64,
    /// Who wants to know that the client was cut for that.
    reader: Option<Stalled>,
}

impl State {
    fn opened(now: Instant) -> Self {
        Self {
            waiting: Waiting::First,
            since: now,
            in_flight: 0,
            multiplexed: false,
            yielding: false,
            blocked: None,
            given: HashMap::new(),
            answers: 0,
            reader: None,
        }
    }

    fn read(&mut self, now: Instant) {
        let begins = match self.waiting {
            Waiting::First => true,
            Waiting::Next => !self.multiplexed,
            Waiting::Head => false,
        };
        if begins {
            self.waiting = Waiting::Head;
            self.since = now;
        }
    }

    /// A client that still takes an answer is not idle.
    fn wrote(&mut self, now: Instant) {
        self.blocked = None;
        match self.waiting {
            Waiting::Next => self.since = now,
            Waiting::First | Waiting::Head => {}
        }
    }

    fn blocked(&mut self, now: Instant) {
        self.blocked.get_or_insert(now);
    }

    fn begin(&mut self, version: Version) {
        self.in_flight += 1;
        self.multiplexed = version == Version::HTTP_2;
        self.yielding = false;
    }

    fn end(&mut self, now: Instant) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.waiting = Waiting::Next;
        self.since = now;
    }

    fn due(&self, limits: &Limits) -> Option<(Instant, Close)> {
        let (allowed, cause) = match self.waiting {
            Waiting::First | Waiting::Head => (limits.head, Close::HeadDeadline),
            Waiting::Next => (limits.idle, Close::Idle),
        };
        let waits = (self.in_flight == 0).then(|| (self.since + allowed, cause));
        let untaken = self.given.values().chain(&self.blocked).min();
        let stalls = untaken.map(|since| (*since + limits.stall, Close::Stalled));
        [stalls, waits]
            .into_iter()
            .flatten()
            .min_by_key(|(due, _)| *due)
    }

    /// Since when it has waited with nothing in flight.
    fn idle_since(&self) -> Option<Instant> {
        (self.in_flight == 0).then_some(self.since)
    }

    fn may_close(&self) -> bool {
        match self.waiting {
            Waiting::First | Waiting::Next => true,
            Waiting::Head => self.in_flight > 0,
        }
    }
}

/// The state of one connection, shared by its bytes, its requests, and the one who lets connections in.
#[derive(Clone, Debug)]
pub(super) struct Activity {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Tells the connection that it was asked to make room.
    asked: Notify,
    /// Tells the one who lets connections in that one of them can, or cannot, make room now.
    changed: Arc<Notify>,
}

impl Activity {
    /// A connection that was just accepted.
    pub(super) fn opened(changed: Arc<Notify>) -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State::opened(Instant::now())),
                asked: Notify::new(),
                changed,
            }),
        }
    }

    /// The handshake is over: time for the head runs from here.
    pub(super) fn shaken(&self) {
        self.lock().since = Instant::now();
    }

    /// Counts a request until the guard is dropped.
    pub(super) fn begin(&self, version: Version) -> InFlight {
        let was_yielding = {
            let mut state = self.lock();
            let before = state.yielding;
            state.begin(version);
            before
        };
        if was_yielding {
            self.shared.changed.notify_one();
        }
        InFlight(self.clone())
    }

    /// Since when it has waited with nothing in flight; none if something is.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        self.lock().idle_since()
    }

    /// Asks it to make room; says whether it will. It will not if a request has come meanwhile.
    pub(super) fn ask_to_yield(&self) -> bool {
        let mut state = self.lock();
        state.yielding = state.in_flight == 0;
        if state.yielding {
            self.shared.asked.notify_one();
        }
        state.yielding
    }

    /// Whether it was asked to make room, and will.
    pub(super) fn is_yielding(&self) -> bool {
        self.lock().yielding
    }

    /// Waits until it is asked to make room. What was asked may have been taken back since.
    pub(super) async fn asked(&self) {
        self.shared.asked.notified().await;
    }

    /// When the connection should be closed if nothing happens, and as what. While a request is in flight, only a client
    /// that takes nothing can be overdue.
    pub(super) fn due(&self, limits: &Limits) -> Option<(Instant, Close)> {
        self.lock().due(limits)
    }

    /// Keeps whom to tell if the client is cut because it takes nothing.
    pub(super) fn serves(&self, reader: Stalled) {
        self.lock().reader = Some(reader);
    }

    /// Tells whoever wants to know why the connection is closed.
    pub(super) fn closes(&self, cause: Close) {
        let reader = self.lock().reader.take();
        if let Some(reader) = reader.filter(|_| cause == Close::Stalled) {
            reader.set();
        }
    }

    /// Whether hyper may be told to close after what is in flight. Not while a head is coming in: that request would be
    /// lost, although its sender did nothing wrong.
    pub(super) fn may_close(&self) -> bool {
        self.lock().may_close()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while the lock is held, so a poisoned one is as good as new.
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct InFlight(Activity);

impl InFlight {
    /// Its answer is sent piece by piece.
    pub(super) fn giving(self) -> Giving {
        let number = {
            let mut state = self.0.lock();
            state.answers += 1;
            state.answers
        };
        let giving = Giving {
            number,
            in_flight: self,
        };
        giving.gave();
        giving
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.lock().end(Instant::now());
        self.0.shared.changed.notify_one();
    }
}

/// An answer that is sent piece by piece, from its head to its end.
#[derive(Debug)]
pub(super) struct Giving {
    number: u64,
    in_flight: InFlight,
}

impl Giving {
    /// There is something for the client to take.
    pub(super) fn gave(&self) {
        let mut state = self.in_flight.0.lock();
        state.given.insert(self.number, Instant::now());
    }

    /// The client has taken all that there was.
    pub(super) fn has_nothing(&self) {
        self.in_flight.0.lock().given.remove(&self.number);
    }
}

impl Drop for Giving {
    fn drop(&mut self) {
        self.has_nothing();
    }
}

/// A stream of bytes that notes its progress.
#[derive(Debug)]
pub(super) struct Watched<T> {
    pub(super) stream: T,
    pub(super) activity: Activity,
}

impl<T: AsyncRead + Unpin> AsyncRead for Watched<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.activity.lock().read(Instant::now());
        }
        polled
    }
}

impl<T: AsyncWrite + Unpin> Watched<T> {
    fn note(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        let mut state = self.activity.lock();
        match written {
            Poll::Ready(_) => state.wrote(Instant::now()),
            Poll::Pending => state.blocked(Instant::now()),
        }
        written
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Watched<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Over TLS, bytes that were written may still wait to be taken. A small write that finds room there counts as taken, so
        // who stalls is found late; streams are not served over TLS.
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        let mut state = self.activity.lock();
        match flushed {
            // There may have been nothing to flush, so this is no sign of life.
            Poll::Ready(_) => state.blocked = None,
            Poll::Pending => state.blocked(Instant::now()),
        }
        drop(state);
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// What may happen to a connection.
    enum Event {
        Read,
        Wrote,
        Blocked,
        Begin(Version),
        End,
    }

    /// Plays events one second apart; gives the seconds until the connection is due and as what, and whether it may close.
    fn play(events: &[Event]) -> (Option<(u64, Close)>, bool) {
        let opened = Instant::now();
        let mut state = State::opened(opened);
        let mut now = opened;
        for event in events {
            now += Duration::from_secs(1);
            match event {
                Event::Read => state.read(now),
                Event::Wrote => state.wrote(now),
                Event::Blocked => state.blocked(now),
                Event::Begin(version) => state.begin(*version),
                Event::End => state.end(now),
            }
        }
        let limits = Limits {
            head: Duration::from_secs(10),
            idle: Duration::from_secs(120),
            stall: Duration::from_secs(30),
            ..Limits::default()
        };
        let due = state.due(&limits);
        (
            due.map(|(due, cause)| (due.duration_since(now).as_secs(), cause)),
            state.may_close(),
        )
    }

    #[test]
    fn deadlines_follow_what_the_connection_does() {
        use Close::{HeadDeadline, Idle, Stalled};
        use Event::{Begin, Blocked, End, Read, Wrote};
        const H1: Version = Version::HTTP_11;
        const H2: Version = Version::HTTP_2;
        let cases = [
            (
                "silent after opening",
                vec![],
                Some((10, HeadDeadline)),
                true,
            ),
            (
                "first byte came",
                vec![Read],
                Some((10, HeadDeadline)),
                false,
            ),
            (
                "head comes slowly",
                vec![Read, Read, Read],
                Some((8, HeadDeadline)),
                false,
            ),
            ("being answered", vec![Read, Begin(H1), Read], None, true),
            (
                "resting between requests",
                vec![Read, Begin(H1), End],
                Some((120, Idle)),
                true,
            ),
            (
                "second head comes slowly",
                vec![Read, Begin(H1), End, Read, Read],
                Some((9, HeadDeadline)),
                false,
            ),
            (
                "client still takes the answer",
                vec![Read, Begin(H1), End, Wrote],
                Some((120, Idle)),
                true,
            ),
            (
                "client takes nothing of the answer",
                vec![Read, Begin(H1), End, Wrote, Blocked, Blocked],
                Some((29, Stalled)),
                true,
            ),
            (
                "client takes something again",
                vec![Read, Begin(H1), End, Blocked, Blocked, Wrote],
                Some((120, Idle)),
                true,
            ),
            (
                "client asks on and takes nothing",
                vec![Read, Begin(H2), Begin(H2), End, Blocked],
                Some((30, Stalled)),
                true,
            ),
            (
                "HTTP/2 ping while resting",
                vec![Read, Begin(H2), End, Read],
                Some((119, Idle)),
                true,
            ),
            (
                "one of two streams is done",
                vec![Read, Begin(H2), Begin(H2), End],
                None,
                true,
            ),
        ];
        for (name, events, due, may_close) in cases {
            assert_eq!(play(&events), (due, may_close), "{name}");
        }
    }

    #[test]
    fn an_answer_in_pieces_is_in_flight_and_overdue_only_while_its_client_takes_nothing() {
        let activity = Activity::opened(Arc::default());
        let limits = Limits::default();
        let cause = || activity.due(&limits).map(|(_, cause)| cause);
        let quick = activity.begin(Version::HTTP_2).giving();
        let slow = activity.begin(Version::HTTP_2).giving();
        quick.has_nothing();
        assert_eq!(cause(), Some(Close::Stalled), "one takes nothing");
        slow.has_nothing();
        assert_eq!(cause(), None, "neither has anything to take");
        assert!(!activity.ask_to_yield());
        slow.gave();
        assert_eq!(cause(), Some(Close::Stalled));
        drop(slow);
        assert_eq!((cause(), activity.idle_since()), (None, None));
        drop(quick);
        assert_eq!(cause(), Some(Close::Idle));
        assert!(activity.ask_to_yield());
    }

    #[test]
    fn a_connection_yields_only_while_nothing_is_in_flight() {
        let activity = Activity::opened(Arc::default());
        assert!(activity.idle_since().is_some());
        assert!(activity.ask_to_yield() && activity.is_yielding());
        let in_flight = activity.begin(Version::HTTP_11);
        assert_eq!(activity.idle_since(), None);
        assert!(!activity.is_yielding(), "the request was quicker");
        assert!(!activity.ask_to_yield(), "there is a request");
        drop(in_flight);
        assert!(activity.ask_to_yield() && activity.is_yielding());
    }
}
