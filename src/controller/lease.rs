//! Only the holder of the lease writes. The others keep their copies up to date and wait.
//!
//! Nobody's clock is compared with anybody else's: a lease is over when it has not changed for its duration, measured
//! here. The holder stops writing before that time can be over anywhere, and a holder that could not renew ends, so that
//! nothing half done is carried on.

mod settings;

use std::time::Duration;

use futures::{StreamExt, pin_mut};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::PostParams;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::metrics::Metrics;
use crate::api::contract::FIELD_MANAGER;
use crate::kit::shutdown::Shutdown;
pub(crate) use settings::Settings;

/// Time to give the lease back at the end.
const HANDOVER: Duration = Duration::from_secs(1);

/// Why this process must not go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Lost {
    #[error("{holder} holds the lease now")]
    Taken { holder: String },
    #[error("the lease could not be renewed within {within:?}: {why}")]
    NotRenewed { within: Duration, why: String },
}

/// Whether this process may write. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Leadership {
    until: watch::Receiver<Option<Instant>>,
}

impl Leadership {
    /// Nobody else seeks it.
    #[cfg(test)]
    pub(crate) fn for_ever() -> Self {
        let far = Instant::now() + Duration::from_secs(365 * 24 * 3600);
        Self {
            until: watch::channel(Some(far)).1,
        }
    }

    /// Whether the lease is certainly still ours.
    pub(crate) fn is_held(&self) -> bool {
        self.until
            .borrow()
            .is_some_and(|until| Instant::now() < until)
    }

    /// Waits until the lease is ours.
    pub(crate) async fn held(&self) {
        let mut until = self.until.clone();
        if until.wait_for(Option::is_some).await.is_err() {
            // Nobody seeks the lease any more: it will never be ours.
            std::future::pending().await
        }
    }
}

/// Seeks the lease and keeps it.
pub(crate) struct Elector {
    leases: Api<Lease>,
    settings: Settings,
    identity: String,
    until: watch::Sender<Option<Instant>>,
    metrics: Metrics,
}

impl Elector {
    /// The task, which the caller must run, and what tells how it stands.
    pub(crate) fn new(
        client: Client,
        settings: Settings,
        identity: String,
        metrics: Metrics,
    ) -> (Self, Leadership) {
        let (until, receiver) = watch::channel(None);
        let namespace = settings
            .namespace
            .clone()
            .unwrap_or_else(|| client.default_namespace().to_owned());
        let elector = Self {
            leases: Api::namespaced(client, &namespace),
            settings,
            identity,
            until,
            metrics,
        };
        (elector, Leadership { until: receiver })
    }

    /// Seeks the lease, keeps it, and gives it back when the program ends. Run it as support, so that it outlives the
    /// work.
    ///
    /// # Errors
    ///
    /// When the lease was ours and is not any more.
    pub(crate) async fn run(self, shutdown: Shutdown) -> Result<(), Lost> {
        self.metrics.leading(false);
        if !self.settings.enabled {
            self.until.send_replace(Some(Instant::now() + ALWAYS));
            self.metrics.leading(true);
            shutdown.started().await;
            return Ok(());
        }
        let mut lease = tokio::select! {
            _ = shutdown.started() => return Ok(()),
            lease = self.seek() => lease,
        };
        tracing::info!(identity = self.identity, "Leading");
        self.metrics.leading(true);
        let lost = tokio::select! {
            _ = shutdown.started() => None,
            lost = self.keep(&mut lease) => Some(lost),
        };
        self.until.send_replace(None);
        self.metrics.leading(false);
        match lost {
            Some(lost) => Err(lost),
            None => {
                self.give_back(lease).await;
                Ok(())
            }
        }
    }

    /// Waits for the lease to be free, and takes it.
    async fn seek(&self) -> Lease {
        let selector = format!("metadata.name={}", self.settings.name);
        let config = watcher::Config::default().fields(&selector);
        let states = watcher(self.leases.clone(), config).default_backoff();
        pin_mut!(states);
        let mut seen: Option<Lease> = None;
        let mut free_at = None;
        loop {
            tokio::select! {
                event = states.next() => match event {
                    Some(Ok(watcher::Event::Apply(lease) | watcher::Event::InitApply(lease))) => {
                        let known = seen.as_ref().map(|lease| &lease.metadata.resource_version);
                        if known != Some(&lease.metadata.resource_version) {
                            free_at = Some(Instant::now() + self.wait_for(&lease));
                        }
                        seen = Some(lease);
                    }
                    Some(Ok(watcher::Event::Delete(_))) => {
                        free_at = Some(Instant::now());
                        seen = None;
                    }
                    Some(Ok(watcher::Event::Init)) => {}
                    Some(Ok(watcher::Event::InitDone)) => {
                        free_at.get_or_insert_with(Instant::now);
                    }
                    Some(Err(error)) => tracing::warn!(%error, "The lease cannot be followed, trying again"),
                    None => std::future::pending().await,
                },
                () = sleep_until(free_at.unwrap_or_else(Instant::now)), if free_at.is_some() => {
                    let asked = Instant::now();
                    match self.take(seen.as_ref()).await {
                        Ok(lease) => {
                            self.hold_from(asked);
                            return lease;
                        }
                        Err(error) => {
                            tracing::debug!(%error, "The lease could not be taken");
                            free_at = Some(Instant::now() + spread(self.settings.retry));
                        }
                    }
                }
            }
        }
    }

    /// How long to wait for a lease in this state before it is free.
    fn wait_for(&self, lease: &Lease) -> Duration {
        let spec = lease.spec.as_ref();
        let holder = spec.and_then(|spec| spec.holder_identity.as_deref());
        match holder {
            None | Some("") => Duration::ZERO,
            Some(holder) if holder == self.identity => Duration::ZERO,
            Some(_) => {
                let seconds = spec.and_then(|spec| spec.lease_duration_seconds);
                let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
                seconds.map_or(self.settings.duration, Duration::from_secs)
            }
        }
    }

    async fn take(&self, seen: Option<&Lease>) -> Result<Lease, String> {
        let now = Timestamp::now();
        let Some(seen) = seen else {
            let mut lease = Lease {
                metadata: ObjectMeta {
                    name: Some(self.settings.name.clone()),
                    ..ObjectMeta::default()
                },
                spec: None,
            };
            self.sign(&mut lease, now);
            return self.call(self.leases.create(&params(), &lease)).await;
        };
        let mut lease = seen.clone();
        self.sign(&mut lease, now);
        self.call(self.leases.replace(&self.settings.name, &params(), &lease))
            .await
    }

    /// Writes us into a lease; a change of hands is counted.
    fn sign(&self, lease: &mut Lease, now: Timestamp) {
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() != Some(&self.identity) {
            let before = spec.lease_transitions.unwrap_or(-1);
            spec.lease_transitions = Some(before.saturating_add(1));
            spec.acquire_time = Some(MicroTime(now));
            spec.holder_identity = Some(self.identity.clone());
        }
        let seconds = self.settings.duration.as_secs();
        spec.lease_duration_seconds = i32::try_from(seconds).ok();
        spec.renew_time = Some(MicroTime(now));
    }

    /// Renews until that fails for too long, or someone else holds the lease.
    async fn keep(&self, lease: &mut Lease) -> Lost {
        let mut why = String::new();
        loop {
            let until = self.until.borrow().unwrap_or_else(Instant::now);
            let pause = match why.is_empty() {
                true => self.settings.retry,
                false => self.settings.retry.min(Duration::from_secs(1)),
            };
            tokio::select! {
                biased;
                () = sleep_until(until) => {
                    return Lost::NotRenewed { within: self.settings.renew, why };
                }
                () = sleep(spread(pause)) => {}
            }
            let asked = Instant::now();
            self.sign(lease, Timestamp::now());
            let params = params();
            let renewal = self.leases.replace(&self.settings.name, &params, lease);
            match self.call(renewal).await {
                Ok(renewed) => {
                    *lease = renewed;
                    self.hold_from(asked);
                    why.clear();
                    continue;
                }
                Err(error) => why = error,
            }
            tracing::warn!(error = why, "The lease could not be renewed, trying again");
            // Someone may have touched it without taking it.
            if let Ok(current) = self.call(self.leases.get(&self.settings.name)).await {
                match holder(&current) {
                    Some(holder) if holder != self.identity => {
                        return Lost::Taken {
                            holder: holder.to_owned(),
                        };
                    }
                    Some(_) | None => *lease = current,
                }
            }
        }
    }

    async fn give_back(&self, mut lease: Lease) {
        let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        spec.renew_time = Some(MicroTime(Timestamp::now()));
        let params = params();
        let back = self.leases.replace(&self.settings.name, &params, &lease);
        match timeout(HANDOVER, back).await {
            Ok(Ok(_)) => tracing::info!("Lease given back"),
            Ok(Err(error)) => tracing::warn!(%error, "The lease could not be given back"),
            Err(elapsed) => tracing::warn!(%elapsed, "The lease could not be given back"),
        }
    }

    /// Ours from the moment before the call that was answered, for the time in which it must be renewed.
    fn hold_from(&self, asked: Instant) {
        self.until.send_replace(Some(asked + self.settings.renew));
    }

    async fn call<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, String> {
        match timeout(self.settings.retry, call).await {
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(elapsed) => Err(elapsed.to_string()),
        }
    }
}

/// Long enough to count as for ever.
const ALWAYS: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

fn params() -> PostParams {
    PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    }
}

fn holder(lease: &Lease) -> Option<&str> {
    let holder = lease.spec.as_ref()?.holder_identity.as_deref()?;
    (!holder.is_empty()).then_some(holder)
}

/// A little more or less, so that those who wait do not come all at once.
fn spread(pause: Duration) -> Duration {
    pause.mul_f64(0.8 + 0.4 * fastrand::f64())
}
