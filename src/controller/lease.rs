//! Only the holder of the lease writes. The others keep their copies up to date and wait.
//!
//! Nobody's clock is compared with anybody else's: a lease is over when it has not been renewed for its duration, measured
//! here. The holder stops writing before that time can be over anywhere, and a holder that could not renew ends, so that
//! nothing half done is carried on. [`keep`] is the part of the holder, [`yielding`] says when it
//! hands the lease over to someone by name, [`version`] who asks for it without being told.

mod keep;
mod settings;
mod version;
mod yielding;

use std::future::pending;
use std::time::Duration;

use futures::{Stream, StreamExt, pin_mut};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::PostParams;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};

use super::metrics::Metrics;
use super::stream::Key;
use crate::api::contract::FIELD_MANAGER;
use crate::events::Emitter;
use crate::kit::fence::{self, Fence, Keeper};
use crate::kit::readiness::Readiness;
use crate::kit::shutdown::{Ender, Shutdown};
use keep::Held;
pub(crate) use settings::Settings;
use version::Version;

/// Time for those who tell what was done, before that.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Time between two looks of a candidate at whether it is.
const GLANCE: Duration = Duration::from_millis(20);
/// Time between two looks of a standby at what its pod is told.
const LOOK: Duration = Duration::from_secs(1);

/// Why this process must not go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Lost {
    #[error("{holder} holds the lease now")]
    Taken { holder: String },
    #[error("someone deleted the lease")]
    Deleted,
    #[error("the lease could not be renewed within {within:?}: {why}")]
    NotRenewed { within: Duration, why: String },
}

/// What an elector is part of.
pub(crate) struct Post {
    /// Tells this process from every other.
    pub(crate) identity: String,
    pub(crate) metrics: Metrics,
    /// Whether this process could take over now.
    pub(crate) readiness: Readiness,
    /// Ends this process when it has been asked to yield.
    pub(crate) ender: Ender,
    /// What those who read the queue of this process must show.
    pub(crate) key: Key,
}

/// Seeks the lease and keeps it.
pub(crate) struct Elector {
    leases: Api<Lease>,
    settings: Settings,
    keeper: Keeper,
    post: Post,
    /// Tells of what was refused.
    emitter: Option<Emitter>,
    version: Version,
}

impl Elector {
    /// The task, which the caller must run, and what is open while the lease is certainly ours.
    pub(crate) fn new(client: Client, settings: Settings, post: Post) -> (Self, Fence) {
        let (keeper, fence) = fence::channel();
        post.metrics.leading(false);
        let namespace = settings
            .namespace
            .clone()
            .unwrap_or_else(|| client.default_namespace().to_owned());
        let elector = Self {
            leases: Api::namespaced(client, &namespace),
            settings,
            keeper,
            post,
            emitter: None,
            version: Version::default(),
        };
        (elector, fence)
    }

    /// The same, telling by this emitter, which must not write while the lease is not ours.
    pub(crate) fn telling(self, emitter: Emitter) -> Self {
        Self {
            emitter: Some(emitter),
            ..self
        }
    }

    /// Seeks the lease, keeps it, and gives it back when the program ends and `said` has come. Run it as support, so that
    /// it outlives the work.
    ///
    /// # Errors
    ///
    /// When the lease was ours and is not any more.
    pub(crate) async fn run(
        mut self,
        said: impl Future<Output = ()>,
        shutdown: Shutdown,
    ) -> Result<(), Lost> {
        if !self.settings.enabled {
            self.keeper.open();
            self.post.metrics.leading(true);
            shutdown.started().await;
            return Ok(());
        }
        self.version = self.look().await;
        let Post {
            identity, metrics, ..
        } = &self.post;
        tracing::info!(identity, "Seeking the lease");
        let lease = tokio::select! {
            _ = shutdown.started() => return Ok(()),
            lease = self.seek() => lease,
        };
        tracing::info!(identity, "Leading");
        metrics.leading(true);
        let mut held = Held::new(lease);
        let kept = tokio::select! {
            _ = shutdown.started() => Ok(()),
            lost = self.keep(&mut held) => Err(lost),
        };
        if kept.is_ok() {
            // Nobody works any more. What is left to tell is told while the lease is ours.
            let _ = timeout(LAST_WORDS, said).await;
        }
        self.keeper.close();
        metrics.leading(false);
        kept?;
        self.give_back(held).await;
        Ok(())
    }

    /// All changes of the lease.
    fn states(&self) -> impl Stream<Item = watcher::Result<Event<Lease>>> {
        let selector = format!("metadata.name={}", self.settings.name);
        let config = watcher::Config::default().fields(&selector);
        watcher(self.leases.clone(), config).default_backoff()
    }

    /// Waits for the lease to be free, and takes it.
    async fn seek(&self) -> Lease {
        let states = self.states();
        pin_mut!(states);
        let mut seen: Option<Lease> = None;
        let mut free_at = None;
        let mut is_listed = false;
        let mut version = self.version.clone();
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let answer = seen.as_ref();
            let answer = answer.and_then(|lease| yielding::answer(lease, &self.post.identity));
            tokio::select! {
                event = states.next() => match event {
                    Some(Ok(Event::Apply(lease) | Event::InitApply(lease))) => {
                        // Notes that others put on the lease keep nobody in office.
                        if seen.as_ref().map(renewal) != Some(renewal(&lease)) {
                            free_at = Some(Instant::now() + self.wait_for(&lease, &version));
                        }
                        is_listed = true;
                        seen = Some(lease);
                    }
                    // Whoever held it may not know yet that it is gone, so its time still counts.
                    Some(Ok(Event::Delete(_))) => seen = None,
                    Some(Ok(Event::Init)) => is_listed = false,
                    Some(Ok(Event::InitDone)) => {
                        if !is_listed {
                            seen = None;
                        }
                        free_at.get_or_insert_with(Instant::now);
                    }
                    Some(Err(error)) => tracing::warn!(%error, "The lease cannot be followed, trying again"),
                    None => pending().await,
                },
                () = sleep(GLANCE), if answer.is_some() => {
                    if let (true, Some(lease), Some(answer)) = (self.is_ready(), &mut seen, answer) {
                        self.say(lease, answer).await;
                    }
                }
                _ = looks.tick(), if self.settings.labels.is_some() => {
                    version = self.look().await;
                    self.ask(&version, seen.as_mut()).await;
                }
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

    /// Says on the lease that this process is ready to hold it.
    async fn say(&self, lease: &mut Lease, answer: String) {
        let mut said = lease.clone();
        yielding::say(&mut said, answer);
        match self.put(&said).await {
            Ok(stored) => {
                tracing::info!("Asked to take the lease over, and ready");
                *lease = stored;
            }
            Err(error) => tracing::debug!(error, "The lease was changed meanwhile"),
        }
    }

    fn is_ready(&self) -> bool {
        let gates = self.post.readiness.gates();
        gates.iter().all(|gate| gate.closed.is_none())
    }

    /// How long to wait for a lease in this state before it is free. A canary comes after the others: it may be about to end
    /// like the one that held it.
    fn wait_for(&self, lease: &Lease, version: &Version) -> Duration {
        let behind = match version.is_canary {
            true => self.settings.retry,
            false => Duration::ZERO,
        };
        match holder(lease) {
            None => behind,
            Some(holder) if holder == self.post.identity => Duration::ZERO,
            Some(_) => {
                let spec = lease.spec.as_ref();
                let seconds = spec.and_then(|spec| spec.lease_duration_seconds);
                let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
                behind + seconds.map_or(self.settings.duration, Duration::from_secs)
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
            self.sign(&mut lease, &self.post.identity, now);
            return self.call(self.leases.create(&params(), &lease)).await;
        };
        let mut lease = seen.clone();
        self.sign(&mut lease, &self.post.identity, now);
        self.put(&lease).await
    }

    /// Writes a holder into a lease; a change of hands is counted.
    fn sign(&self, lease: &mut Lease, holder: &str, now: Timestamp) {
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() != Some(holder) {
            let before = spec.lease_transitions.unwrap_or(-1);
            spec.lease_transitions = Some(before.saturating_add(1));
            spec.acquire_time = Some(MicroTime(now));
            spec.holder_identity = Some(holder.to_owned());
        }
        let seconds = self.settings.duration.as_secs();
        spec.lease_duration_seconds = i32::try_from(seconds).ok();
        spec.renew_time = Some(MicroTime(now));
        let is_own = holder == self.post.identity;
        let revision = self.version.revision.clone().filter(|_| is_own);
        let key = is_own.then(|| self.post.key.text().to_owned());
        yielding::held_by(lease, revision, key);
    }

    /// Ours from the moment before the call that was answered, for the time in which it must be renewed.
    fn hold_from(&self, asked: Instant) {
        self.keeper.open_until(asked + self.settings.renew);
    }

    async fn put(&self, lease: &Lease) -> Result<Lease, String> {
        let params = params();
        self.call(self.leases.replace(&self.settings.name, &params, lease))
            .await
    }

    async fn call<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, String> {
        match timeout(self.settings.retry, call).await {
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(elapsed) => Err(elapsed.to_string()),
        }
    }
}

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

/// What changes with every renewal and every change of hands.
fn renewal(lease: &Lease) -> (Option<&str>, Option<Timestamp>) {
    let spec = lease.spec.as_ref();
    let time = spec.and_then(|spec| spec.renew_time.as_ref());
    (holder(lease), time.map(|time| time.0))
}

/// A little more or less, so that those who wait do not come all at once.
fn spread(pause: Duration) -> Duration {
    pause.mul_f64(0.8 + 0.4 * fastrand::f64())
}
