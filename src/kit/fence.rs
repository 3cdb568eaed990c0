//! Until when something may be done. Whoever holds a lease keeps the fence open, and nothing that is done behind it lasts
//! longer than it is open.

use std::{
    future::{Future, pending, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

/// Long enough to count as for ever.
const ALWAYS: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// What those look at who may only act while it is open. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Fence {
    until: watch::Receiver<Option<Instant>>,
}

/// Opens and closes a [`Fence`].
#[derive(Debug)]
pub struct Keeper {
    until: watch::Sender<Option<Instant>>,
}

/// A fence that is closed, and its keeper.
pub fn channel() -> (Keeper, Fence) {
    let (sender, until) = watch::channel(None);
    (Keeper { until: sender }, Fence { until })
}

impl Keeper {
    /// Keeps the fence open until then.
    pub fn open_until(&self, until: Instant) {
        self.until.send_replace(Some(until));
    }

    /// Keeps the fence open for good.
    pub fn open(&self) {
        self.open_until(Instant::now() + ALWAYS);
    }

    /// Closes the fence now.
    pub fn close(&self) {
        self.until.send_replace(None);
    }

    /// When the fence closes; now, if it is closed.
    pub fn until(&self) -> Instant {
        self.until.borrow().unwrap_or_else(Instant::now)
    }
}

impl Fence {
    /// One that is always open, for who needs no lease.
    pub fn always() -> Self {
        let (keeper, fence) = channel();
        keeper.open();
        fence
    }

    /// Whether it is open now.
    pub fn is_open(&self) -> bool {
        let until = *self.until.borrow();
        until.is_some_and(|until| Instant::now() < until)
    }

    /// Waits until it is opened for the first time.
    pub async fn opened(&self) {
        let mut until = self.until.clone();
        if until.wait_for(Option::is_some).await.is_err() {
            // Nobody keeps it any more: it will never open.
            pending().await
        }
    }

    /// Waits until it is closed.
    async fn closed(&self) {
        let mut changes = self.until.clone();
        loop {
            let until = *changes.borrow_and_update();
            let Some(until) = until.filter(|until| Instant::now() < *until) else {
                return;
            };
            tokio::select! {
                () = sleep_until(until) => {}
                Ok(()) = changes.changed() => {}
            }
        }
    }

    /// Carries out something as long as the fence is open; nothing if it closes before the end.
    ///
    /// The clock is read with every step, since a process that was stopped for a while must not send one word more.
    pub async fn guard<T>(&self, call: impl Future<Output = T>) -> Option<T> {
        let mut call = pin!(call);
        let mut closed = pin!(self.closed());
        poll_fn(|context| {
            if !self.is_open() || closed.as_mut().poll(context).is_ready() {
                return Poll::Ready(None);
            }
            call.as_mut().poll(context).map(Some)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    /// What becomes of a call that lasts so many seconds, behind a fence that is open for some, and for some more after a
    /// renewal. Also tells when it was over.
    async fn call(lasts: u64, open: Option<u64>, renewal: Option<(u64, u64)>) -> (bool, u64) {
        let seconds = Duration::from_secs;
        let begin = Instant::now();
        let (keeper, fence) = channel();
        if let Some(open) = open {
            keeper.open_until(begin + seconds(open));
        }
        let renewal = async {
            if let Some((at, open)) = renewal {
                sleep(seconds(at)).await;
                keeper.open_until(begin + seconds(open));
            }
            pending::<()>().await;
        };
        let done = tokio::select! {
            done = fence.guard(sleep(seconds(lasts))) => done.is_some(),
            () = renewal => false,
        };
        (done, begin.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_lasts_longer_than_the_fence_is_open() {
        for (row, lasts, open, renewal, expected) in [
            ("it was never opened", 1, None, None, (false, 0)),
            ("it is closed already", 1, Some(0), None, (false, 0)),
            ("it is over in time", 5, Some(20), None, (true, 5)),
            ("it would last longer", 15, Some(1), None, (false, 1)),
            ("it ends as the fence closes", 5, Some(5), None, (false, 5)),
            (
                "the fence stays open",
                15,
                Some(5),
                Some((4, 30)),
                (true, 15),
            ),
            ("not long enough", 15, Some(5), Some((4, 10)), (false, 10)),
            (
                "it is opened again too late",
                15,
                Some(5),
                Some((6, 30)),
                (false, 5),
            ),
        ] {
            assert_eq!(call(lasts, open, renewal).await, expected, "{row}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_fence_that_is_closed_by_its_keeper_ends_what_goes_on() {
        let (keeper, fence) = channel();
        keeper.open();
        let closing = async {
            sleep(Duration::from_secs(3)).await;
            keeper.close();
        };
        let (done, ()) = tokio::join!(fence.guard(pending::<()>()), closing);
        assert_eq!(done, None);
        assert!(!fence.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn one_for_who_needs_no_lease_is_always_open() {
        let fence = Fence::always();
        fence.opened().await;
        let day = Duration::from_secs(24 * 3600);
        assert_eq!(fence.guard(sleep(day)).await, Some(()));
    }
}
