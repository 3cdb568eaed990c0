//! One page for one or several readers, each at its own speed within bounds.

use std::{
    collections::{HashMap, VecDeque},
    fmt, io,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::{
    sync::{OnceCell, OwnedSemaphorePermit},
    time::{Instant, Sleep, sleep_until},
};

use super::{
    super::{
        compress::Compressor,
        metrics::{Cut, Metrics},
        render::{PIECE, Render},
    },
    Key, lock,
};

/// The most pieces that wait for slower readers.
const WINDOW: usize = 16;
/// How long a reader may keep others from going on.
const STALL: Duration = Duration::from_secs(1);

/// A page that is waiting or being written.
pub(super) struct Tape {
    pub(super) begun: OnceCell<()>,
    state: Mutex<State>,
    metrics: Metrics,
}

#[derive(Default)]
struct State {
    reel: Option<Reel>,
    /// Pieces that some reader has not had yet.
    pieces: VecDeque<Bytes>,
    /// Which piece of the page the first of them is.
    first: usize,
    readers: HashMap<usize, Reader>,
    next_reader: usize,
    /// Whether something was written, so that nobody can join any more.
    is_closed: bool,
    is_done: bool,
}

/// Who reads, and how far.
struct Reader {
    at: usize,
    since: Instant,
    deadline: Instant,
    waker: Option<Waker>,
}

/// Makes what writes a page, once the first piece of it is asked for: what it tells is then as new as whoever joined last.
pub(super) type Prepare = Box<dyn FnOnce() -> Result<Render, fmt::Error> + Send>;

/// What writes the page. It goes when the page is written or nobody reads it, and with it its turn.
pub(super) struct Reel {
    prepare: Option<Prepare>,
    render: Option<Render>,
    compressor: Compressor,
    key: Key,
    piece: Vec<u8>,
    _turn: OwnedSemaphorePermit,
}

impl Reel {
    pub(super) fn new(prepare: Prepare, key: Key, turn: OwnedSemaphorePermit) -> Self {
        Self {
            prepare: Some(prepare),
            render: None,
            compressor: Compressor::new(key.1),
            key,
            piece: Vec::with_capacity(PIECE + PIECE / 2),
            _turn: turn,
        }
    }

    /// The next bytes that are not none, and whether they are the last.
    fn next(&mut self) -> Result<(Bytes, bool), Broken> {
        if let Some(prepare) = self.prepare.take() {
            self.render = Some(prepare().map_err(Broken::Unwritable)?);
        }
        let Some(render) = &mut self.render else {
            return Err(Broken::Cut);
        };
        loop {
            let has_more = render.piece(&mut self.piece);
            let bytes = self.compressor.push(&mut self.piece, !has_more);
            let bytes = bytes.map_err(Broken::Compress)?;
            if !bytes.is_empty() || !has_more {
                return Ok((bytes, !has_more));
            }
        }
    }
}

impl Tape {
    /// A page that waits, and who waits for it.
    pub(super) fn with_reader(metrics: Metrics, deadline: Instant) -> (Arc<Self>, PageBody) {
        let tape = Arc::new(Self {
            begun: OnceCell::new(),
            state: Mutex::default(),
            metrics,
        });
        let id = lock(&tape.state).admit(deadline);
        let body = PageBody::of(&tape, id);
        (tape, body)
    }

    /// One more reader, if the page can still be had from its beginning.
    pub(super) fn join(self: &Arc<Self>, deadline: Instant) -> Option<PageBody> {
        let mut state = lock(&self.state);
        let id = (!state.is_closed).then(|| state.admit(deadline))?;
        Some(PageBody::of(self, id))
    }

    pub(super) fn begin(&self, reel: Reel) {
        let mut state = lock(&self.state);
        let now = Instant::now();
        state
            .readers
            .values_mut()
            .for_each(|reader| reader.since = now);
        state.reel = Some(reel);
    }

    /// Cuts readers whose time is over. Says when that of the next will be.
    pub(super) fn cut_overdue(&self, now: Instant) -> Option<Instant> {
        let mut state = lock(&self.state);
        state.cut(&self.metrics, Cut::Deadline, |reader| {
            reader.deadline <= now
        });
        state.readers.values().map(|reader| reader.deadline).min()
    }
}

impl State {
    /// One more reader, from the beginning.
    fn admit(&mut self, deadline: Instant) -> usize {
        let id = self.next_reader;
        self.next_reader += 1;
        let reader = Reader {
            at: 0,
            since: Instant::now(),
            deadline,
            waker: None,
        };
        self.readers.insert(id, reader);
        id
    }

    /// Cuts some readers. With the last of them goes what writes for them.
    fn cut(&mut self, metrics: &Metrics, cause: Cut, is_cut: impl Fn(&Reader) -> bool) {
        let before = self.readers.len();
        self.readers.retain(|_, reader| !is_cut(reader));
        (self.readers.len()..before).for_each(|_| metrics.cut(cause));
        self.tidy();
    }

    /// Forgets pieces that all have had, and tells those who waited for room.
    fn tidy(&mut self) {
        let slowest = self.readers.values().map(|reader| reader.at).min();
        let had = slowest.map_or(self.pieces.len(), |slowest| slowest - self.first);
        self.pieces.drain(..had.min(self.pieces.len()));
        self.first += had;
        if self.readers.is_empty() && self.reel.take().is_some() {
            self.is_closed = true;
        }
        if had > 0 {
            self.readers
                .values_mut()
                .filter_map(|reader| reader.waker.take())
                .for_each(Waker::wake);
        }
    }

    /// The piece that a reader has not had, if it has been written.
    fn take(&mut self, id: usize) -> Option<Bytes> {
        let reader = self.readers.get_mut(&id)?;
        let piece = self.pieces.get(reader.at - self.first)?.clone();
        reader.at += 1;
        reader.since = Instant::now();
        self.tidy();
        Some(piece)
    }

    fn write(&mut self, metrics: &Metrics) -> Result<(), Broken> {
        self.is_closed = true;
        let Some(reel) = &mut self.reel else {
            self.is_done = true;
            return Ok(());
        };
        let (bytes, is_last) = reel.next()?;
        if !bytes.is_empty() {
            self.pieces.push_back(bytes);
        }
        if is_last {
            if let Some(render) = &reel.render {
                metrics.written(reel.key.0.format, render.tally());
            }
            self.is_done = true;
            self.reel = None; // others need not wait until it is read
        }
        Ok(())
    }
}

/// A page as the body of an answer.
pub struct PageBody {
    tape: Arc<Tape>,
    id: usize,
    /// While others have to catch up.
    pause: Option<Pin<Box<Sleep>>>,
}

impl PageBody {
    fn of(tape: &Arc<Tape>, id: usize) -> Self {
        Self {
            tape: Arc::clone(tape),
            id,
            pause: None,
        }
    }
}

impl fmt::Debug for PageBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageBody").finish_non_exhaustive()
    }
}

/// A page broke off.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// Its reader was too slow.
    #[error("the page was read too slowly and was cut")]
    Cut,
    /// The program could not write its own metrics.
    #[error("the program's own metrics cannot be written")]
    Unwritable(#[source] fmt::Error),
    /// It could not be compressed.
    #[error("the page could not be compressed")]
    Compress(#[source] io::Error),
}

impl Body for PageBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = &mut *self;
        loop {
            let now = Instant::now();
            let wake_at = {
                let mut state = lock(&this.tape.state);
                let metrics = &this.tape.metrics;
                if state
                    .readers
                    .get(&this.id)
                    .is_some_and(|reader| reader.deadline <= now)
                {
                    state.cut(metrics, Cut::Deadline, |reader| reader.deadline <= now);
                }
                if !state.readers.contains_key(&this.id) {
                    return Poll::Ready(Some(Err(Broken::Cut)));
                }
                if let Some(piece) = state.take(this.id) {
                    return Poll::Ready(Some(Ok(Frame::data(piece))));
                }
                if state.is_done {
                    return Poll::Ready(None);
                }
                match state.room(metrics, now) {
                    None => {
                        state.write(metrics)?;
                        continue;
                    }
                    Some(wake_at) => {
                        if let Some(reader) = state.readers.get_mut(&this.id) {
                            reader.waker = Some(context.waker().clone());
                        }
                        wake_at
                    }
                }
            };
            let pause = this.pause.insert(Box::pin(sleep_until(wake_at)));
            if pause.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

impl State {
    /// Makes room for one more piece by cutting who stalls. Says when there will be some if there is none yet.
    fn room(&mut self, metrics: &Metrics, now: Instant) -> Option<Instant> {
        if self.pieces.len() < WINDOW {
            return None;
        }
        let first = self.first;
        self.cut(metrics, Cut::Stalled, |reader| {
            reader.at == first && reader.since + STALL <= now
        });
        if self.pieces.len() < WINDOW {
            return None;
        }
        let slowest = self.readers.values().filter(|reader| reader.at == first);
        slowest.map(|reader| reader.since + STALL).min()
    }
}

impl Drop for PageBody {
    fn drop(&mut self) {
        let mut state = lock(&self.tape.state);
        state.readers.remove(&self.id);
        state.tidy();
    }
}
