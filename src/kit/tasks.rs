//! Tasks with an owner: each has a name, the first that ends unasked ends the program, and nothing is forgotten.
//!
//! Work ends first, support (admin endpoint, certificate source) only when no work is left, so that a draining program
//! can still be watched. Signals come in from outside; nothing here touches the process.

use std::{
    any::Any,
    collections::HashMap,
    error::Error,
    future::{Future, pending},
    pin::{Pin, pin},
    time::Duration,
};

use futures::{Stream, StreamExt};
use tokio::{
    task::{Id, JoinError, JoinSet},
    time::{Instant, sleep, timeout_at},
};

use super::shutdown::{Farewell, Shutdown, Signal, Trigger, channel};

/// Time that support tasks get to end, once no work is left.
const SUPPORT_DEADLINE: Duration = Duration::from_secs(2);

/// Time after the deadline in which a task may still say what it had to cut.
const BACKSTOP: Duration = Duration::from_secs(1);

type TaskResult = Result<(), Box<dyn Error + Send + Sync>>;

/// How long the end of a program may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grace {
    /// Time between not being ready any more and taking nothing new, after SIGTERM.
    pub linger: Duration,
    /// Time to finish what is in flight.
    pub drain: Duration,
}

/// Why a program ended, if not because it was asked to and could.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// A task gave up.
    #[error("task {name} failed")]
    Failed {
        /// The task.
        name: &'static str,
        /// What it said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A task panicked.
    #[error("task {name} panicked: {message}")]
    Panicked {
        /// The task.
        name: &'static str,
        /// The message of the panic.
        message: String,
    },
    /// A task came to its end although nobody asked for it.
    #[error("task {name} ended by itself, it should run as long as the program")]
    Unasked {
        /// The task.
        name: &'static str,
    },
    /// Tasks were still running after the deadline.
    #[error("tasks did not end in time and were cut: {}", names.join(", "))]
    Overdue {
        /// The tasks.
        names: Vec<&'static str>,
    },
    /// A second signal did not let the drain finish.
    #[error("ended at once by a second signal, {signal}")]
    Forced {
        /// The second signal.
        signal: Signal,
    },
}

/// All tasks of a program.
#[derive(Debug)]
pub struct Tasks {
    work: Group,
    support: Group,
    farewell: Farewell,
}

impl Default for Tasks {
    fn default() -> Self {
        let work = Group::new();
        Self {
            farewell: Farewell::new(work.shutdown.clone()),
            work,
            support: Group::new(),
        }
    }
}

impl Tasks {
    /// Starts a task that does what the program is for; it must end when the shutdown has started.
    pub fn work<F>(&mut self, name: &'static str, task: impl FnOnce(Shutdown) -> F)
    where
        F: Future<Output = TaskResult> + Send + 'static,
    {
        self.work.spawn(name, task);
    }

    /// Starts a task that others need until the very end.
    pub fn support<F>(&mut self, name: &'static str, task: impl FnOnce(Shutdown) -> F)
    where
        F: Future<Output = TaskResult> + Send + 'static,
    {
        self.support.spawn(name, task);
    }

    /// What ends the lingering early, for programs that know when nobody waits for them any more.
    pub fn farewell(&self) -> Farewell {
        self.farewell.clone()
    }

    /// Runs until a signal comes or a task ends, then ends all in order. `announce` is called once, as soon as the end
    /// is certain. A second signal ends everything at once.
    pub async fn run(
        mut self,
        signals: impl Stream<Item = Signal>,
        grace: Grace,
        announce: impl FnOnce(),
    ) -> Result<(), Ended> {
        let mut signals = pin!(signals);
        let cause = tokio::select! {
            signal = next_signal(signals.as_mut()) => Ok(signal),
            ended = self.unasked_end() => Err(ended),
        };
        announce();
        self.work.trigger.announce();
        self.support.trigger.announce();
        match &cause {
            Ok(signal) => tracing::info!(%signal, "Shutdown announced"),
            Err(ended) => tracing::error!(error = ended as &dyn Error, "Shutdown announced"),
        }
        let first = cause.as_ref().ok().copied();
        tokio::select! {
            biased;
            signal = second_signal(first, signals) => Err(Ended::Forced { signal }),
            result = self.end(cause, grace) => result,
        }
    }

    async fn end(&mut self, cause: Result<Signal, Ended>, grace: Grace) -> Result<(), Ended> {
        let Self {
            work,
            support,
            farewell,
        } = self;
        let cause = match cause {
            Ok(Signal::Terminate) => tokio::select! {
                () = sleep(grace.linger) => Ok(()),
                () = farewell.said() => Ok(()),
                ended = unasked_end(work, support) => Err(ended),
            },
            // Someone at a terminal, or the program itself, for whom no load balancer has to be waited for.
            Ok(Signal::Interrupt | Signal::Own) => Ok(()),
            Err(ended) => Err(ended),
        };
        tracing::info!(drain = ?grace.drain, "Draining");
        let worked = work.end(Instant::now() + grace.drain).await;
        let supported = support.end(Instant::now() + SUPPORT_DEADLINE).await;
        cause.and(worked).and(supported)
    }

    async fn unasked_end(&mut self) -> Ended {
        unasked_end(&mut self.work, &mut self.support).await
    }
}

/// The next signal; never, if no more can come.
async fn next_signal(mut signals: Pin<&mut impl Stream<Item = Signal>>) -> Signal {
    match signals.next().await {
        Some(signal) => signal,
        None => pending().await,
    }
}

/// The signal that ends everything at once: the second from outside, since a program asks itself for an orderly end only.
async fn second_signal(
    first: Option<Signal>,
    mut signals: Pin<&mut impl Stream<Item = Signal>>,
) -> Signal {
    let mut is_asked = first != Some(Signal::Own);
    loop {
        match next_signal(signals.as_mut()).await {
            Signal::Own => {}
            signal @ (Signal::Terminate | Signal::Interrupt) if is_asked => return signal,
            Signal::Terminate | Signal::Interrupt => is_asked = true,
        }
    }
}

async fn unasked_end(work: &mut Group, support: &mut Group) -> Ended {
    let (name, result) = tokio::select! {
        end = work.next_end() => end,
        end = support.next_end() => end,
    };
    result.err().unwrap_or(Ended::Unasked { name })
}

#[derive(Debug)]
struct Group {
    trigger: Trigger,
    shutdown: Shutdown,
    tasks: JoinSet<TaskResult>,
    names: HashMap<Id, &'static str>,
}

impl Group {
    fn new() -> Self {
        let (trigger, shutdown) = channel();
        Self {
            trigger,
            shutdown,
            tasks: JoinSet::new(),
            names: HashMap::new(),
        }
    }

    fn spawn<F>(&mut self, name: &'static str, task: impl FnOnce(Shutdown) -> F)
    where
        F: Future<Output = TaskResult> + Send + 'static,
    {
        let task = task(self.shutdown.clone());
        let handle = self.tasks.spawn(task);
        self.names.insert(handle.id(), name);
    }

    /// The next task that ends, whatever the way; never, if there is none.
    async fn next_end(&mut self) -> (&'static str, Result<(), Ended>) {
        let Some(joined) = self.tasks.join_next_with_id().await else {
            return pending().await;
        };
        let id = joined.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let name = self.names.remove(&id).unwrap_or("unknown");
        let result = match joined {
            Ok((_, Ok(()))) => Ok(()),
            Ok((_, Err(source))) => Err(Ended::Failed { name, source }),
            Err(error) => Err(Ended::Panicked {
                name,
                message: panic_message(error),
            }),
        };
        (name, result)
    }

    /// Asks all tasks to end and cuts those that do not. The first failure is the result, further ones are logged.
    async fn end(&mut self, deadline: Instant) -> Result<(), Ended> {
        self.trigger.start(deadline);
        let mut first = Ok(());
        while !self.tasks.is_empty() {
            let Ok((name, result)) = timeout_at(deadline + BACKSTOP, self.next_end()).await else {
                let names = self.cut();
                return first.and(Err(Ended::Overdue { names }));
            };
            if let Err(ended) = &result {
                tracing::error!(
                    task = name,
                    error = ended as &dyn Error,
                    "Task failed to end"
                );
            }
            first = first.and(result);
        }
        first
    }

    fn cut(&mut self) -> Vec<&'static str> {
        self.tasks.abort_all();
        let mut names: Vec<_> = self.names.drain().map(|(_, name)| name).collect();
        names.sort_unstable();
        names
    }
}

fn panic_message(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(payload) => panic_text(&*payload).to_owned(),
        Err(cancelled) => cancelled.to_string(),
    }
}

/// The text that a panic was raised with.
pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests;
