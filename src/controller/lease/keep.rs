//! What the holder does with the lease: renews it, hears who asks for it, hands it over at the end.

use std::future::pending;
use std::time::Duration;

use futures::{StreamExt, pin_mut};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::runtime::watcher::Event;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::yielding::{self, Decision};
use super::{Elector, Lost, holder, renewal, spread};
use crate::events::{Effect, Note, Occurrence, Reason, Regarding};

/// Time to give the lease back at the end.
const HANDOVER: Duration = Duration::from_secs(1);
/// Time in which a candidate must say that it is ready.
const PATIENCE: Duration = Duration::from_secs(3);

/// The lease as the holder knows it.
pub(super) struct Held {
    lease: Lease,
    /// Who is asked for, and until when it may say that it is ready.
    asked: Option<(String, Instant)>,
    /// Who gets the lease at the end.
    successor: Option<String>,
}

impl Held {
    pub(super) fn new(lease: Lease) -> Self {
        Self {
            lease,
            asked: None,
            successor: None,
        }
    }
}

impl Elector {
    /// Renews until that fails for too long, or someone else holds the lease. Also hears who asks for it.
    pub(super) async fn keep(&self, held: &mut Held) -> Lost {
        let states = self.states();
        pin_mut!(states);
        let mut why = String::new();
        let mut renew_at = Instant::now() + spread(self.settings.retry);
        self.consider(held);
        loop {
            let patience = held.asked.as_ref().map(|(_, until)| *until);
            tokio::select! {
                biased;
                () = sleep_until(self.keeper.until()) => {
                    return Lost::NotRenewed { within: self.settings.renew, why };
                }
                () = sleep_until(renew_at) => {
                    why = self.renew(held).await.err().unwrap_or_default();
                    if !why.is_empty() && let Some(lost) = self.look_again(held, &why).await {
                        return lost;
                    }
                    let pause = match why.is_empty() {
                        true => self.settings.retry,
                        false => self.settings.retry.min(Duration::from_secs(1)),
                    };
                    renew_at = Instant::now() + spread(pause);
                }
                () = sleep_until(patience.unwrap_or_else(Instant::now)), if patience.is_some() => {
                    self.refuse(held, "did not say in time that it is ready").await;
                }
                event = states.next() => match event {
                    Some(Ok(Event::Apply(lease) | Event::InitApply(lease))) => {
                        if let Some(lost) = self.adopt(held, lease) {
                            return lost;
                        }
                    }
                    Some(Ok(Event::Delete(_))) => return Lost::Deleted,
                    Some(Ok(Event::Init | Event::InitDone)) => {}
                    // Renewals fail for the same cause, and tell.
                    Some(Err(error)) => tracing::debug!(%error, "The lease cannot be followed"),
                    None => pending().await,
                },
            }
        }
    }

    async fn renew(&self, held: &mut Held) -> Result<(), String> {
        let asked = Instant::now();
        let mut lease = held.lease.clone();
        self.sign(&mut lease, &self.post.identity, Timestamp::now());
        let renewed = timeout_at(self.keeper.until(), self.put(&lease)).await;
        held.lease = renewed.map_err(|elapsed| elapsed.to_string())??;
        self.hold_from(asked);
        Ok(())
    }

    /// A renewal failed: someone may have touched the lease without taking it.
    async fn look_again(&self, held: &mut Held, why: &str) -> Option<Lost> {
        tracing::warn!(error = why, "The lease could not be renewed, trying again");
        let current = self.call(self.leases.get(&self.settings.name)).await.ok()?;
        held.lease.spec = current.spec.clone();
        self.adopt(held, current)
    }

    /// Takes over what others wrote on the lease. What is older than our last renewal is our own.
    fn adopt(&self, held: &mut Held, lease: Lease) -> Option<Lost> {
        if let Some(holder) = holder(&lease).filter(|holder| *holder != self.post.identity) {
            return Some(Lost::Taken {
                holder: holder.to_owned(),
            });
        }
        if renewal(&lease) == renewal(&held.lease) {
            held.lease = lease;
            self.consider(held);
        }
        None
    }

    /// Whether someone asks for the lease, and may have it.
    fn consider(&self, held: &mut Held) {
        if held.successor.is_some() {
            return;
        }
        let now = Timestamp::now();
        match yielding::decide(&held.lease, &self.post.identity, now, self.fresh()) {
            Decision::Nothing => held.asked = None,
            Decision::Wait => {
                let wanted = yielding::wanted(&held.lease).unwrap_or_default();
                let is_known = held
                    .asked
                    .as_ref()
                    .is_some_and(|(known, _)| known == wanted);
                if !is_known {
                    held.asked = Some((wanted.to_owned(), Instant::now() + PATIENCE));
                }
            }
            Decision::Refuse(_) => held.asked = Some((String::new(), Instant::now())),
            Decision::Yield(candidate) => {
                tracing::info!(candidate, "Asked to yield the lease, ending in order");
                self.post.metrics.asked_to_yield(true);
                held.asked = None;
                held.successor = Some(candidate);
                self.post.ender.ask();
            }
        }
    }

    /// How long after a renewal an answer to it counts: it may have been the one before the last.
    fn fresh(&self) -> Duration {
        2 * self.settings.retry + Duration::from_secs(1)
    }

    /// Goes on leading, and says so on the lease.
    async fn refuse(&self, held: &mut Held, why: &str) {
        let now = Timestamp::now();
        let why = match yielding::decide(&held.lease, &self.post.identity, now, self.fresh()) {
            Decision::Refuse(why) => why,
            Decision::Nothing | Decision::Wait | Decision::Yield(_) => why,
        };
        let candidate = yielding::wanted(&held.lease).unwrap_or_default();
        let note = format!("{candidate} does not get the lease: {why}");
        tracing::warn!(
            candidate,
            why,
            "Asked to yield the lease, which is not possible"
        );
        self.post.metrics.asked_to_yield(false);
        yielding::close(&mut held.lease, Some(why));
        held.asked = None;
        match self.renew(held).await {
            Ok(()) => self.tell(&held.lease, note),
            // The next look at the lease finds the request again.
            Err(error) => tracing::debug!(error, "The lease was changed meanwhile"),
        }
    }

    fn tell(&self, lease: &Lease, note: String) {
        if let Some(emitter) = &self.emitter {
            let about = Regarding::of(lease);
            let occurrence = Occurrence::new(about, Reason::YieldRefused, Note::new(note));
            emitter.emit(Effect::Real, occurrence);
        }
    }

    /// Hands the lease over to who was asked for, or to anyone.
    pub(super) async fn give_back(&self, held: Held) {
        let Held {
            mut lease,
            successor,
            ..
        } = held;
        let given = timeout(HANDOVER, async {
            let first = self.put(&self.given(&lease, successor.as_deref())).await;
            if first.is_ok() {
                return first;
            }
            // A renewal that was cut off may have been stored.
            lease = self.call(self.leases.get(&self.settings.name)).await?;
            match holder(&lease) {
                Some(holder) if holder == self.post.identity => {
                    self.put(&self.given(&lease, successor.as_deref())).await
                }
                Some(_) | None => first,
            }
        });
        match given.await {
            Ok(Ok(given)) => {
                let to = holder(&given).unwrap_or("anyone");
                tracing::info!(to, "Lease given back");
            }
            Ok(Err(error)) => tracing::warn!(error, "The lease could not be given back"),
            Err(elapsed) => tracing::warn!(%elapsed, "The lease could not be given back"),
        }
    }

    /// The lease as it is left behind.
    fn given(&self, lease: &Lease, successor: Option<&str>) -> Lease {
        let now = Timestamp::now();
        let decision = yielding::decide(lease, &self.post.identity, now, self.fresh());
        let heir = match decision {
            Decision::Yield(candidate) if Some(&*candidate) == successor => Some(candidate),
            // Whoever was asked for has not been heard of for too long, or nobody was.
            Decision::Yield(_) | Decision::Nothing | Decision::Wait | Decision::Refuse(_) => None,
        };
        let mut lease = lease.clone();
        match heir {
            Some(heir) => {
                yielding::close(&mut lease, None);
                self.sign(&mut lease, &heir, now);
            }
            None => {
                yielding::held_by(&mut lease, None, None);
                let spec = lease.spec.get_or_insert_default();
                spec.holder_identity = Some(String::new());
                spec.lease_duration_seconds = Some(1);
                spec.renew_time = Some(MicroTime(now));
            }
        }
        lease
    }
}
