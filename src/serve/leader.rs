//! Who leads the controllers, as their lease says. Nobody's clock is compared with anybody else's: a lease is held as
//! long as it was seen to be renewed within its duration, measured here.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, pin_mut};
use k8s_openapi::api::coordination::v1::Lease as Object;
use kube::runtime::watcher::watch_object;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::api::contract::annotation;

/// Longest duration that a lease is believed to have.
const LONGEST: Duration = Duration::from_secs(3600);

/// Pause after a look that failed.
const PAUSE: Duration = Duration::from_secs(2);

/// Who leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leader {
    /// As it calls itself: its pod, and what tells it from another.
    pub(super) holder: String,
    /// Whether the lease is still held.
    pub(super) is_held: bool,
    /// What it wants to be shown by those who read its queue.
    pub(super) key: Option<Key>,
}

/// What is shown to a controller before it tells how its queue stands.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key(pub(super) String);

/// Never the key itself: it would end up in a log.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl Leader {
    /// The pod that holds the lease.
    pub(super) fn pod(&self) -> &str {
        self.holder
            .rsplit_once('_')
            .map_or(&self.holder, |(pod, _)| pod)
    }
}

/// The lease of the controllers. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    place: Arc<(String, String)>,
    /// The namespace of the pods that can hold it.
    pods: Arc<str>,
    leader: watch::Receiver<Option<Leader>>,
}

/// Follows the lease.
pub(super) struct Follower {
    leases: Api<Object>,
    name: String,
    leader: watch::Sender<Option<Leader>>,
}

impl Lease {
    /// What tells who leads, and the task that follows the lease, which the caller must run.
    pub(super) fn new(
        client: Client,
        (namespace, name): (String, String),
        pods: &str,
    ) -> (Self, Follower) {
        let (sender, leader) = watch::channel(None);
        let follower = Follower {
            leases: Api::namespaced(client, &namespace),
            name: name.clone(),
            leader: sender,
        };
        let place = Arc::new((namespace, name));
        let pods = pods.into();
        let lease = Self {
            place,
            pods,
            leader,
        };
        (lease, follower)
    }

    /// Namespace and name of the lease.
    pub(super) fn place(&self) -> (&str, &str) {
        (&self.place.0, &self.place.1)
    }

    /// The namespace in which the pod is that leads; the lease can be in another.
    pub(super) fn pods(&self) -> &str {
        &self.pods
    }

    /// Who leads, or led last.
    pub(super) fn leader(&self) -> Option<Leader> {
        self.leader.borrow().clone()
    }

    /// Wakes when that changes.
    pub(super) fn changes(&self) -> watch::Receiver<Option<Leader>> {
        self.leader.clone()
    }
}

impl Follower {
    /// Follows until it is dropped.
    pub(super) async fn run(self) {
        loop {
            let changes = watch_object(self.leases.clone(), &self.name);
            pin_mut!(changes);
            let mut over = None;
            loop {
                let change = tokio::select! {
                    change = changes.next() => change,
                    () = until(over) => {
                        self.leader.send_if_modified(let_go);
                        over = None;
                        continue;
                    }
                };
                match change {
                    Some(Ok(lease)) => over = self.seen(lease),
                    Some(Err(error)) => {
                        tracing::debug!(%error, "Watch of the lease broke");
                        sleep(PAUSE).await;
                    }
                    None => break,
                }
            }
            sleep(PAUSE).await;
        }
    }

    /// Keeps who leads; until when that holds without a renewal.
    fn seen(&self, lease: Option<Object>) -> Option<Instant> {
        let key = lease.as_ref().and_then(|lease| {
            let annotations = lease.metadata.annotations.as_ref()?;
            annotations.get(annotation::QUEUE_KEY).cloned().map(Key)
        });
        let spec = lease.and_then(|lease| lease.spec);
        let holder = spec.as_ref().and_then(|spec| spec.holder_identity.clone());
        let holder = holder.filter(|holder| !holder.is_empty());
        let seconds = spec.and_then(|spec| spec.lease_duration_seconds);
        let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let held = Duration::from_secs(seconds.unwrap_or_default()).min(LONGEST);
        let now = holder.map(|holder| Leader {
            holder,
            is_held: true,
            key,
        });
        let over = now.is_some().then(|| Instant::now() + held);
        self.leader.send_if_modified(|leader| {
            let is_news = *leader != now;
            *leader = now;
            is_news
        });
        over
    }
}

/// The lease was not renewed in time.
fn let_go(leader: &mut Option<Leader>) -> bool {
    match leader {
        Some(leader) => std::mem::replace(&mut leader.is_held, false),
        None => false,
    }
}

async fn until(over: Option<Instant>) {
    match over {
        Some(over) => sleep_until(over).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pod_is_what_stands_before_the_last_mark() {
        let pod = |holder: &str| {
            let leader = Leader {
                holder: holder.to_owned(),
                is_held: true,
                key: None,
            };
            leader.pod().to_owned()
        };
        assert_eq!(pod("agents-controllers-5d_0af7"), "agents-controllers-5d");
        assert_eq!(pod("alone"), "alone");
    }
}
