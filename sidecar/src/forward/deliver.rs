//! One request after the other, each until it is taken, refused or too old.

use std::time::Duration;

use agents::kit::shutdown::Shutdown;
use tokio::{
    sync::mpsc::Receiver,
    time::{sleep, timeout_at},
};

use super::{
    Item,
    metrics::{Cause, Metrics},
    verdict::{Verdict, wait},
    wire::Client,
};

/// How long a request is tried.
const OLDEST: Duration = Duration::from_secs(120);

/// Time between two log lines about the same trouble.
const QUIET: Duration = Duration::from_secs(60);

/// How one request went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Went {
    /// The target answers.
    Well,
    /// The target could not take it, and the program is about to end.
    Badly,
}

pub(super) struct Delivery {
    waiting: Receiver<Item>,
    carrier: Carrier,
}

/// What takes a request to the target.
struct Carrier {
    client: Client,
    metrics: Metrics,
    said: Option<std::time::Instant>,
}

impl Delivery {
    pub(super) fn new(waiting: Receiver<Item>, client: Client, metrics: Metrics) -> Self {
        let carrier = Carrier {
            client,
            metrics,
            said: None,
        };
        Self { waiting, carrier }
    }

    /// Delivers as long as something can come. At the end, what waits has the time that is left, as long as the target answers.
    pub(super) async fn run(mut self, shutdown: Shutdown) {
        let Self { waiting, carrier } = &mut self;
        let work = async {
            while let Some(item) = waiting.recv().await {
                if carrier.deliver(item, &shutdown).await == Went::Badly {
                    break;
                }
            }
        };
        let mut work = std::pin::pin!(work);
        let deadline = tokio::select! {
            () = &mut work => return,
            deadline = shutdown.started() => deadline,
        };
        // What is left then is counted as it is dropped.
        drop(timeout_at(deadline, work).await);
    }
}

impl Carrier {
    async fn deliver(&mut self, item: Item, shutdown: &Shutdown) -> Went {
        let mut tries = 0;
        loop {
            if item.since.elapsed() >= OLDEST {
                item.dropped(Cause::Expired);
                return Went::Well;
            }
            let verdict = self.client.send(&item).await;
            tries += 1;
            let asked = match verdict {
                Verdict::Taken => {
                    self.said = None;
                    item.sent();
                    return Went::Well;
                }
                Verdict::Refused => {
                    self.say("The target of forwarding refuses what it is sent");
                    item.dropped(Cause::Refused);
                    return Went::Well;
                }
                Verdict::Later(asked) => asked,
            };
            self.say("The target of forwarding cannot be reached or asks to wait");
            let delay = wait(tries, asked, fastrand::f64());
            tokio::select! {
                () = sleep(delay) => self.metrics.retried(),
                _ = shutdown.started() => return Went::Badly, // the item counts itself
            }
        }
    }

    /// Now and then, however much is lost: the metrics have the numbers.
    fn say(&mut self, trouble: &'static str) {
        if self.said.is_none_or(|last| last.elapsed() >= QUIET) {
            self.said = Some(std::time::Instant::now());
            tracing::warn!(trouble, "What came in is not forwarded");
        }
    }
}
