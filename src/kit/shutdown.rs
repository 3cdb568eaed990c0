//! The end of a program, in two steps that its tasks can wait for, and the signals that ask for it.
//!
//! *Announced*: the program will end; it is no longer ready but still serves, so that callers can look elsewhere.
//! *Started*: nothing new is begun, what is in flight is finished by a deadline. Who triggers what is decided in
//! [`super::tasks`].

use std::{fmt, io, sync::Arc};

use futures::{Stream, stream};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{Notify, mpsc, watch},
    time::Instant,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Running,
    Announced,
    Started { deadline: Instant },
}

/// What a task waits on to learn that it should end.
#[derive(Clone, Debug)]
pub struct Shutdown {
    stage: watch::Receiver<Stage>,
}

/// The other end of [`Shutdown`].
#[derive(Debug)]
pub struct Trigger {
    stage: watch::Sender<Stage>,
}

/// A trigger and what it triggers.
pub fn channel() -> (Trigger, Shutdown) {
    let (sender, receiver) = watch::channel(Stage::Running);
    (Trigger { stage: sender }, Shutdown { stage: receiver })
}

impl Trigger {
    /// Says that the program will end.
    pub fn announce(&self) {
        self.stage.send_if_modified(|stage| {
            let first = *stage == Stage::Running;
            if first {
                *stage = Stage::Announced;
            }
            first
        });
    }

    /// Says that everything must be over by the deadline.
    pub fn start(&self, deadline: Instant) {
        self.stage.send_replace(Stage::Started { deadline });
    }
}

impl Shutdown {
    /// Whether the program has said that it will end.
    pub fn is_announced(&self) -> bool {
        match *self.stage.borrow() {
            Stage::Running => false,
            Stage::Announced | Stage::Started { .. } => true,
        }
    }

    /// Waits until nothing new may be begun; gives the time by which everything must be over.
    ///
    /// A trigger that is gone cannot start anything any more, so it counts as started with no time left.
    pub async fn started(&self) -> Instant {
        let mut stage = self.stage.clone();
        let started = stage
            .wait_for(|stage| matches!(stage, Stage::Started { .. }))
            .await;
        match started.as_deref() {
            Ok(Stage::Started { deadline }) => *deadline,
            Ok(Stage::Running | Stage::Announced) | Err(_) => Instant::now(),
        }
    }
}

/// Says that nobody waits for the program any more: what it lingers for has come. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Farewell {
    shutdown: Shutdown,
    said: Arc<Notify>,
}

impl Farewell {
    /// A farewell to a program that ends with `shutdown`.
    pub(super) fn new(shutdown: Shutdown) -> Self {
        Self {
            shutdown,
            said: Arc::default(),
        }
    }

    /// Ends the lingering. As long as no end is announced, it means nothing.
    pub fn say(&self) {
        if self.shutdown.is_announced() {
            self.said.notify_one();
        }
    }

    /// Waits until it is said.
    pub(super) async fn said(&self) {
        self.said.notified().await;
    }
}

/// A request from outside to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// What Kubernetes sends.
    Terminate,
    /// What Ctrl-C sends.
    Interrupt,
    /// What the program itself asked for, see [`Ender`].
    Own,
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "SIGINT",
            Self::Own => "a request of the program itself",
        })
    }
}

/// Asks the program to end in order, from inside. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Ender {
    asked: mpsc::Sender<()>,
}

impl Ender {
    /// Asks for the end. To ask again changes nothing.
    pub fn ask(&self) {
        // One that is full holds the same request already; one that is closed belongs to a program that has ended.
        let _ = self.asked.try_send(());
    }
}

/// An ender, and the signal that comes of it.
pub fn ender() -> (Ender, impl Stream<Item = Signal> + Send + Unpin) {
    let (asked, mut requests) = mpsc::channel(1);
    let requests = stream::poll_fn(move |cx| {
        let received = requests.poll_recv(cx);
        received.map(|some| some.map(|()| Signal::Own))
    });
    (Ender { asked }, requests)
}

/// The signals that reach this process, from now on.
pub fn signals() -> io::Result<impl Stream<Item = Signal> + Send + Unpin> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let terminate = stream::poll_fn(move |cx| {
        let received = terminate.poll_recv(cx);
        received.map(|some| some.map(|()| Signal::Terminate))
    });
    let interrupt = stream::poll_fn(move |cx| {
        let received = interrupt.poll_recv(cx);
        received.map(|some| some.map(|()| Signal::Interrupt))
    });
    Ok(stream::select(terminate, interrupt))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_shutdown_is_announced_before_it_is_started() {
        let (trigger, shutdown) = channel();
        assert!(!shutdown.is_announced());
        trigger.announce();
        assert!(shutdown.is_announced());
        let deadline = Instant::now();
        trigger.start(deadline);
        assert_eq!(shutdown.started().await, deadline);
        assert!(shutdown.is_announced());
    }

    #[tokio::test]
    async fn an_announcement_does_not_take_back_a_start() {
        let (trigger, shutdown) = channel();
        let deadline = Instant::now();
        trigger.start(deadline);
        trigger.announce();
        assert_eq!(shutdown.started().await, deadline);
    }

    #[tokio::test]
    async fn a_lost_trigger_ends_those_who_wait() {
        let (trigger, shutdown) = channel();
        drop(trigger);
        assert!(shutdown.started().await <= Instant::now());
    }
}
