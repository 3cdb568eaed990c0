//! The workers: take from the queue, reconcile, put back; as many at a time as allowed, and none before we lead.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout_at};

use super::fault::{Class, Fault};
use super::plan::Next;
use super::queue::{Figures, Priority, Queue};
use super::{Reconciler, attempt, tell};
use crate::cluster::Scope;
use crate::controller::cache::Key;
use crate::controller::context::Context;
use crate::kit::shutdown::Shutdown;

/// Time until something is looked at again that waits for nothing in particular.
const NEVER: Duration = Duration::from_secs(24 * 3600);

/// The work of one kind, as those see it who ask for some. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    /// What the queue is called where people look at it.
    pub(crate) name: &'static str,
    shared: Arc<Shared>,
    /// Where the kind is worked on; it may be followed in more places.
    scopes: Arc<[Scope]>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    wake: Notify,
}

impl Work {
    pub(crate) fn new(name: &'static str, scopes: Vec<Scope>) -> Self {
        Self {
            name,
            shared: Arc::default(),
            scopes: scopes.into(),
        }
    }

    /// Asks for an object to be looked at, unless it lies where nobody works.
    pub(crate) fn add(&self, key: Key, priority: Priority) {
        let mut scopes = self.scopes.iter();
        if !scopes.any(|scope| scope.covers(&key.namespace)) {
            return;
        }
        self.queue().add(key, priority, Instant::now());
        self.shared.wake.notify_one();
    }

    /// How it stands.
    pub(crate) fn figures(&self) -> Figures {
        self.queue().figures(Instant::now())
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.shared
            .queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// How the workers of one kind go about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Objects that are worked on at a time.
    pub(crate) workers: usize,
    /// Time between two looks at every object.
    pub(crate) sweep: Duration,
}

/// Works until the program ends, then finishes what is in hand.
pub(crate) async fn run<R: Reconciler>(
    reconciler: Arc<R>,
    context: Arc<Context>,
    work: Work,
    pace: Pace,
    shutdown: Shutdown,
) {
    context.metrics.expect(R::KIND);
    tokio::select! {
        _ = shutdown.started() => return,
        () = context.may_act() => {}
    }
    let mut crew = Crew {
        name: work.name,
        reconciler,
        context,
        work,
        tasks: JoinSet::new(),
        keys: HashMap::new(),
    };
    let mut sweeps = interval_at(Instant::now() + pace.sweep, pace.sweep);
    sweeps.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        crew.fill(pace.workers);
        let due = crew.work.queue().next_due();
        let due = due.unwrap_or_else(|| Instant::now() + NEVER);
        tokio::select! {
            deadline = shutdown.started() => return crew.finish(deadline).await,
            Some(ended) = crew.tasks.join_next_with_id() => crew.note(ended),
            () = crew.work.shared.wake.notified(), if crew.tasks.len() < pace.workers => {}
            () = sleep_until(due), if crew.tasks.len() < pace.workers => {}
            _ = sweeps.tick() => crew.sweep(),
        }
    }
}

/// Those at work.
struct Crew<R> {
    name: &'static str,
    reconciler: Arc<R>,
    context: Arc<Context>,
    work: Work,
    tasks: JoinSet<Result<Next, Fault>>,
    keys: HashMap<Id, (Key, Instant)>,
}

impl<R: Reconciler> Crew<R> {
    fn fill(&mut self, workers: usize) {
        while self.tasks.len() < workers {
            let Some((key, waited)) = self.work.queue().take(Instant::now()) else {
                return;
            };
            self.context.metrics.taken(self.name, waited);
            let task = attempt(
                Arc::clone(&self.reconciler),
                Arc::clone(&self.context),
                key.clone(),
            );
            let handle = self.tasks.spawn(task);
            self.keys.insert(handle.id(), (key, Instant::now()));
        }
    }

    fn note(&mut self, ended: Result<(Id, Result<Next, Fault>), JoinError>) {
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let Some((key, since)) = self.keys.remove(&id) else {
            return;
        };
        self.context.metrics.worked(self.name, since.elapsed());
        let fault = match ended {
            Ok((_, Ok(next))) => {
                let again = due(next, &self.context);
                return self.work.queue().done(&key, again, Instant::now());
            }
            Ok((_, Err(fault))) => fault,
            // Showing a fault panicked, too: that must not end the work on other objects, nor come back at once.
            Err(error) => {
                tracing::error!(kind = %R::KIND, %key, %error, "Reconcile panicked");
                self.context.metrics.panicked(R::KIND);
                Fault::new("show a fault", Class::Panic, "it panicked")
            }
        };
        let spread = 0.5 + fastrand::f64();
        let delay = |failures| fault.class.delay(failures).mul_f64(spread);
        let failures = self.work.queue().failed(&key, Instant::now(), delay);
        if let Some(reason) = fault.class.persists(failures) {
            tell(&*self.reconciler, &self.context, &key, (reason, &fault));
        }
    }

    fn sweep(&self) {
        let strays = self.reconciler.strays();
        for key in self.reconciler.shelf().keys().into_iter().chain(strays) {
            self.work.add(key, Priority::Resync);
        }
    }

    async fn finish(mut self, deadline: Instant) {
        while let Ok(Some(_)) = timeout_at(deadline, self.tasks.join_next()).await {}
    }
}

/// When a time of the calendar is, on the clock that sleeps are measured with.
fn due(next: Next, context: &Context) -> Option<Instant> {
    let at = match next {
        Next::Wait => return None,
        Next::At(at) => at,
    };
    let wait = at.duration_since(context.clock.now());
    let wait = Duration::try_from(wait).unwrap_or_default().min(NEVER);
    // A little later than asked for, so that the time is over when it is looked at.
    Some(Instant::now() + wait + Duration::from_millis(5))
}
