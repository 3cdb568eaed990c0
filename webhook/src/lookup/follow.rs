//! Follows the cluster: one watch per kind and scope, each listed anew after a failure.
//!
//! A watch that fails is started afresh with a full list. That costs a list where resuming might have done, but whatever
//! was missed is then known for certain, and so is the moment from which the copy is right again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use agents::admission::known::{Known, Need, Shelve};
use agents::api::kind::Kind;
use agents::cluster::following::{FIRST_WAIT, longer, next};
use agents::cluster::{Obstacle, Scope, Unfit};
use agents::kit::readiness::Gate;
use agents::kit::shutdown::Shutdown;
use futures::{future::join_all, pin_mut};
use kube::core::{ApiResource, DynamicObject, DynamicResourceScope, PartialObjectMeta};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::health::Health;
use super::metrics::Metrics;
use super::settings::Settings;
use super::start::{api, examine};

/// Objects in one page of a list. An ImplementationSpec may hold a quarter of a megabyte, and a page is in memory whole.
const PAGE: u32 = 50;

/// Time between two looks at how old the copy is.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Keeps a look-up up to date.
pub struct Follower {
    client: Client,
    known: Arc<Known>,
    watches: Arc<[(Kind, Scope)]>,
    health: Arc<Health>,
    metrics: Metrics,
}

impl Follower {
    pub(super) fn new(
        client: Client,
        settings: &Settings,
        known: Arc<Known>,
        gate: Gate,
        metrics: Metrics,
    ) -> Self {
        let scopes = settings.namespaces.scopes();
        let watches: Arc<[(Kind, Scope)]> = Known::followed()
            .flat_map(|(kind, _)| scopes.iter().map(move |scope| (kind, scope.clone())))
            .collect();
        Self {
            client,
            known,
            health: Arc::new(Health::new(gate, watches.iter().cloned())),
            watches,
            metrics,
        }
    }

    /// Follows the cluster until the program ends.
    ///
    /// # Errors
    ///
    /// When the cluster lacks something that waiting does not bring: a CRD or a permission.
    pub async fn run(self, shutdown: Shutdown) -> Result<(), Unfit> {
        tokio::select! {
            _ = shutdown.started() => Ok(()),
            unfit = self.follow() => Err(unfit),
        }
    }

    async fn follow(&self) -> Unfit {
        let mut wait = FIRST_WAIT;
        loop {
            match examine(&self.client, &self.watches).await {
                Ok(()) => break,
                Err(Obstacle::Lasting(unfit)) => return unfit,
                Err(Obstacle::Passing(why)) => {
                    tracing::warn!(error = why, "The API server does not answer, trying again");
                    self.health
                        .waits_for(&format!("the API server does not answer: {why}"));
                    sleep(wait).await;
                    wait = longer(wait);
                }
            }
        }
        let watches = join_all(
            self.watches
                .iter()
                .map(|(kind, scope)| self.watch(*kind, scope)),
        );
        tokio::join!(watches, self.check());
        // Neither of them ends.
        std::future::pending().await
    }

    /// Shows from time to time how old the copy is.
    async fn check(&self) {
        let mut ticks = interval(CHECK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let now = Instant::now();
            self.health.show(now);
            for (kind, _) in Known::followed() {
                let stale = self.health.stale(kind, now);
                self.metrics.set_stale(kind, stale.as_secs());
            }
        }
    }

    async fn watch(&self, kind: Kind, scope: &Scope) {
        let Some((need, shelf)) = self.known.shelf(kind) else {
            return;
        };
        let watch = Watch {
            follower: self,
            kind,
            scope,
            shelf,
        };
        match need {
            Need::Whole => watch.run(|object: &DynamicObject| &object.data).await,
            Need::Names => {
                watch
                    .run(|_: &PartialObjectMeta<DynamicObject>| &Value::Null)
                    .await;
            }
        }
    }
}

/// One watch.
struct Watch<'a> {
    follower: &'a Follower,
    kind: Kind,
    scope: &'a Scope,
    shelf: &'a dyn Shelve,
}

impl Watch<'_> {
    /// Runs for ever, with a longer wait after each failure that follows on another.
    async fn run<K>(&self, content: fn(&K) -> &Value)
    where
        K: kube::Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned
            + Send
            + 'static,
    {
        let Follower {
            client,
            health,
            metrics,
            ..
        } = self.follower;
        let objects: Api<K> = api(client, self.kind, self.scope);
        let mut wait = FIRST_WAIT;
        loop {
            let mut has_list = false;
            let config = watcher::Config::default().page_size(PAGE);
            let events = watcher(objects.clone(), config);
            pin_mut!(events);
            let broken = loop {
                match next(&mut events, has_list).await {
                    Ok(event) => has_list |= self.take(event, content),
                    Err(why) => break why,
                }
            };
            metrics.count_error(self.kind);
            health.broke(self.kind, self.scope, &broken, Instant::now());
            tracing::warn!(kind = %self.kind, scope = ?self.scope, error = broken, "Watch broke, listing anew");
            wait = if has_list { FIRST_WAIT } else { longer(wait) };
            sleep(wait).await;
        }
    }

    /// Takes over one event; says whether the list is complete with it.
    fn take<K: kube::Resource>(&self, event: Event<K>, content: fn(&K) -> &Value) -> bool {
        let Self {
            follower,
            kind,
            scope,
            shelf,
        } = self;
        match event {
            Event::Init => {
                shelf.begin(scope);
                return false;
            }
            Event::InitApply(object) => {
                shelf.stage(scope, &home(&object), &object.name_any(), content(&object));
                return false;
            }
            Event::InitDone => {
                shelf.complete(scope);
                follower.health.listed(*kind, scope, Instant::now());
                tracing::debug!(%kind, ?scope, "Listed");
            }
            Event::Apply(object) => {
                shelf.put(&home(&object), &object.name_any(), content(&object));
            }
            Event::Delete(object) => shelf.remove(&home(&object), &object.name_any()),
        }
        follower.metrics.set_objects(*kind, shelf.count());
        true
    }
}

fn home<K: kube::Resource>(object: &K) -> String {
    object.namespace().unwrap_or_default()
}
