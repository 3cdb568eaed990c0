//! One watch: feeds a shelf and tells each change, deletions included.
//!
//! A watch that fails is started afresh with a full list, so whatever was missed is known for certain, and so is the
//! moment from which the copy is right again.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, pin_mut};
use kube::core::NamespaceResourceScope;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::health::Health;
use super::shelf::{Change, Kept, Shelf};
use super::slim::Slim;
use crate::cluster::Scope;
use crate::controller::context::CALL;
use crate::controller::metrics::Metrics;

/// Objects in one page of a list: a run may hold a quarter of a megabyte, and a page is in memory whole.
const PAGE: u32 = 100;

/// Wait before the first and, after doubling, before each further try.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Time after which a watch should have told what we wrote.
const CONFIRM: Duration = Duration::from_secs(10);

/// Who is told about changes.
pub(crate) type Told<K> = Arc<dyn Fn(&Change<K>) + Send + Sync>;

/// What is watched, where it goes, and who is told.
pub(crate) struct Feed<K> {
    pub(crate) client: Client,
    pub(crate) scope: Scope,
    /// Label that objects must have; all if there is none.
    pub(crate) label: Option<&'static str>,
    /// Takes out what nobody needs before it is kept.
    pub(crate) prune: fn(&mut K),
    pub(crate) shelf: Arc<Shelf<K>>,
    pub(crate) told: Told<K>,
}

impl<K> Feed<K>
where
    K: Kept + kube::Resource<Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    /// Says that nothing may be decided before this has listed once.
    pub(crate) fn expect(&self, health: &Health) {
        health.expect(&self.name());
    }

    fn name(&self) -> String {
        // Objects of one kind may be followed for several owners, each with a label of its own.
        match self.label {
            Some(label) => format!("{} with {label} {}", K::plural(&()), self.scope),
            None => format!("{} {}", K::plural(&()), self.scope),
        }
    }

    /// Follows for ever.
    pub(crate) async fn run(self, health: Arc<Health>, metrics: Metrics) {
        let watch = self.name();
        let kind = K::kind(&());
        let mut wait = FIRST_WAIT;
        let mut confirm = interval(CONFIRM);
        confirm.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let mut config = watcher::Config::default().page_size(PAGE);
            if let Some(label) = self.label {
                config = config.labels(label);
            }
            let events = watcher(self.scope.api::<Slim<K>>(&self.client), config);
            pin_mut!(events);
            let mut has_list = false;
            let broken = loop {
                let event = tokio::select! {
                    event = events.next() => event,
                    _ = confirm.tick() => {
                        self.confirm().await;
                        continue;
                    }
                };
                match event {
                    Some(Ok(event)) => {
                        if self.take(event).await {
                            has_list = true;
                            health.listed(&watch);
                        }
                    }
                    Some(Err(error)) => break error.to_string(),
                    None => break "the watch ended".to_owned(),
                }
            };
            metrics.watch_broke(&kind);
            health.broke(&watch, &broken);
            tracing::warn!(%watch, error = broken, "Watch broke, listing anew");
            wait = if has_list {
                FIRST_WAIT
            } else {
                (2 * wait).min(LONGEST_WAIT)
            };
            sleep(wait.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
        }
    }

    /// Takes over one event; says whether a list is complete with it.
    async fn take(&self, event: Event<Slim<K>>) -> bool {
        let Self { scope, shelf, .. } = self;
        match event.modify(|Slim(object)| (self.prune)(object)) {
            Event::Init => shelf.begin(scope),
            Event::InitApply(Slim(object)) => shelf.stage(scope, object),
            Event::InitDone => {
                let listed = shelf.complete(scope);
                for change in &listed.changes {
                    (self.told)(change);
                }
                for key in listed.doubtful {
                    self.look_up(&key).await;
                }
                return true;
            }
            Event::Apply(Slim(object)) => self.tell(shelf.apply(object)),
            Event::Delete(Slim(object)) => self.tell(shelf.delete(object)),
        }
        false
    }

    /// Asks for what we wrote and the watch has not told: it may have gone before the answer came. Nothing is heard meanwhile,
    /// so the first that gets no answer is the last for now.
    async fn confirm(&self) {
        for key in self.shelf.overdue(&self.scope) {
            if !self.look_up(&key).await {
                return;
            }
        }
    }

    /// Asks for an object that we wrote and of which no news came. Says whether there was an answer; where there is none, it
    /// is asked for again later.
    async fn look_up(&self, key: &super::Key) -> bool {
        let Some(known) = self.shelf.get(key) else {
            return true;
        };
        let api: Api<K> = Api::namespaced(self.client.clone(), &key.namespace);
        let why = match timeout(CALL, api.get_opt(&key.name)).await {
            Ok(Ok(Some(mut object))) => {
                (self.prune)(&mut object);
                self.tell(self.shelf.apply(object));
                return true;
            }
            Ok(Ok(None)) => {
                self.tell(self.shelf.forget(key, &known));
                return true;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer in time".to_owned(),
        };
        tracing::warn!(%key, error = why, "An object of which no news came could not be looked up");
        false
    }

    fn tell(&self, change: Option<Change<K>>) {
        if let Some(change) = change {
            (self.told)(&change);
        }
    }
}
