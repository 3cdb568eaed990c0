//! The one task that writes Events: takes up what was emitted, and carries out what `limiter` plans, one write at a time.
//!
//! Decides nothing about which occurrence is written; only how long to wait after a failure.

#[cfg(test)]
mod tests;

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, sleep_until};

use super::event::Draft;
use super::limiter::{Done, Limiter, Next, Verdict, Write};
use super::metrics::{Group, Limit, Loss, Metrics};
use super::settings::Limits;
use super::store::{Failed, Store, Written};

const FIRST_DELAY: Duration = Duration::from_millis(500);
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// The task behind every [`super::Emitter`]. Run it as a support task, so that it ends after all who emit.
#[must_use = "without it no Event is written"]
pub struct Writer {
    /// None where Events are switched off.
    work: Option<Work>,
}

impl Writer {
    pub(super) fn new(work: Option<Work>) -> Self {
        Self { work }
    }

    /// Writes until `shutdown` gives the time by which all must be over; then writes what is left, as far as it gets.
    pub async fn run(self, shutdown: impl Future<Output = Instant>) {
        match self.work {
            Some(work) => work.run(shutdown).await,
            None => {
                shutdown.await;
            }
        }
    }
}

pub(super) struct Work {
    queue: Receiver<Draft>,
    limiter: Limiter,
    store: Arc<Store>,
    preferred: Group,
    /// Failures since the API server last answered.
    failures: u32,
    metrics: Metrics,
}

/// A write in flight.
type Delivery = BoxFuture<'static, (Write, Result<Written, Failed>)>;

impl Work {
    pub(super) fn new(
        queue: Receiver<Draft>,
        limits: Limits,
        store: Store,
        metrics: Metrics,
    ) -> Self {
        Self {
            queue,
            limiter: Limiter::new(limits),
            store: Arc::new(store),
            preferred: Group::Events,
            failures: 0,
            metrics,
        }
    }

    async fn run(mut self, shutdown: impl Future<Output = Instant>) {
        let mut shutdown = pin!(shutdown.fuse());
        let mut delivery: Option<Delivery> = None;
        let mut deadline = None;
        let mut is_open = true;
        loop {
            let wake = self.plan(&mut delivery);
            if deadline.is_some() && delivery.is_none() && wake.is_none() {
                break;
            }
            tokio::select! {
                end = &mut shutdown => {
                    deadline = Some(end);
                    self.take_up_the_rest();
                    is_open = false;
                }
                draft = self.queue.recv(), if is_open => match draft {
                    Some(draft) => self.observe(draft),
                    None => is_open = false,
                },
                (write, result) = in_flight(&mut delivery) => {
                    delivery = None;
                    self.record(&write, result);
                }
                () = reached(wake) => {}
                () = reached(deadline) => break,
            }
        }
        let lost = self.limiter.unwritten();
        self.metrics.count_dropped(Loss::Shutdown, lost);
    }

    fn take_up_the_rest(&mut self) {
        self.queue.close();
        while let Ok(draft) = self.queue.try_recv() {
            self.observe(draft);
        }
        self.limiter.flush(now());
    }

    /// Starts the write that is due, if there is none in flight; else says when the next one is.
    fn plan(&mut self, delivery: &mut Option<Delivery>) -> Option<Instant> {
        if delivery.is_some() {
            return None;
        }
        match self.limiter.next(now()) {
            Next::Write(write) => {
                let (store, preferred) = (Arc::clone(&self.store), self.preferred);
                *delivery = Some(Box::pin(async move {
                    let result = store.carry_out(preferred, &write).await;
                    (write, result)
                }));
                None
            }
            Next::At(at) => Some(at.into()),
            Next::Idle => None,
        }
    }

    fn observe(&mut self, draft: Draft) {
        let (verdict, evicted) = self.limiter.observe(draft, now());
        self.metrics.count_dropped(Loss::Evicted, evicted);
        match verdict {
            Verdict::New => {}
            Verdict::Repeat => self.metrics.count_aggregated(),
            Verdict::TooManyAboutObject => self.metrics.count_suppressed(Limit::Object),
            Verdict::TooManyOfTopic => self.metrics.count_suppressed(Limit::Topic),
        }
    }

    fn record(&mut self, write: &Write, result: Result<Written, Failed>) {
        let cause = result.as_ref().err().map(|failed| failed.cause.as_str());
        let done = match result {
            Ok(Written {
                group,
                is_new,
                stored,
            }) => {
                self.preferred = group;
                self.failures = 0;
                match is_new {
                    true => self
                        .metrics
                        .count_emitted(write.draft.reason.severity(), group),
                    false => self.metrics.count_updated(),
                }
                Done::Stored(stored)
            }
            Err(failed) if failed.may_pass() => {
                let delay = backoff(self.failures, fastrand::f64()).max(failed.retry_after);
                self.failures = self.failures.saturating_add(1);
                Done::Later(delay.min(LONGEST_DELAY))
            }
            Err(_) => Done::Refused,
        };
        let lost = self.limiter.done(write, done, now());
        if lost > 0 {
            let namespace = write.draft.regarding.event_namespace();
            let reason = write.draft.reason.as_str();
            tracing::warn!(namespace, reason, cause, lost, "Event could not be written");
        }
        self.metrics.count_dropped(Loss::Undelivered, lost);
    }
}

fn now() -> std::time::Instant {
    Instant::now().into_std()
}

async fn reached(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}

async fn in_flight(delivery: &mut Option<Delivery>) -> (Write, Result<Written, Failed>) {
    match delivery {
        Some(delivery) => delivery.await,
        None => pending().await,
    }
}

/// Doubles with each failure up to a bound; `jitter` from 0 to 1 spreads many writers over the upper half.
fn backoff(failures: u32, jitter: f64) -> Duration {
    let doubled = FIRST_DELAY.saturating_mul(2_u32.saturating_pow(failures));
    doubled.min(LONGEST_DELAY).mul_f64(0.5 + jitter / 2.0)
}
