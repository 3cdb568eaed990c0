//! Follows all objects of a kind, and tells what becomes of them.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::json;
use tokio::time::sleep;

use super::hub::{About, Hub, tell, tell_in_short};
use super::shelf::{Change, Shelf};
use super::status::{self, Known};
use crate::api::contract::control_plane_event;
use crate::api::kind::Kind;
use crate::api::text::sanitise::for_log;
use crate::cluster::{Scope, following};
use crate::serve::carry_out::leader::Lease;
use crate::serve::state::resource;

/// Time after a change until it is told how the control plane stands.
const STATUS_AFTER: Duration = Duration::from_millis(500);

/// What is told, and from what.
pub(in crate::serve) struct Board {
    pub(super) hub: Arc<Hub>,
    pub(super) shelf: Shelf,
    lease: Lease,
    notes: Mutex<Notes>,
}

#[derive(Debug, Default)]
struct Notes {
    /// Watches that are broken now.
    broken: HashSet<(Kind, Scope)>,
    heard_at: Option<Timestamp>,
    /// Namespaces about which something was told since it was last told how things stand.
    stirred: BTreeSet<Box<str>>,
}

impl Board {
    pub(in crate::serve) fn new(hub: Arc<Hub>, lease: Lease) -> Self {
        Self {
            hub,
            shelf: Shelf::default(),
            lease,
            notes: Mutex::default(),
        }
    }

    /// Follows one kind until it is dropped.
    pub(in crate::serve) async fn follow(&self, client: &Client, kind: Kind, scope: &Scope) {
        let resource = resource(kind);
        let objects: Api<DynamicObject> = match scope {
            Scope::Cluster => Api::all_with(client.clone(), &resource),
            Scope::Namespace(name) => Api::namespaced_with(client.clone(), name, &resource),
        };
        let mut round = 0;
        let mut wait = following::FIRST_WAIT;
        let mut events = watcher(objects.clone(), config()).boxed();
        let mut has_list = false;
        loop {
            match following::next(&mut events, has_list).await {
                Ok(Event::Init) => round += 1, // comes before anything is read
                Ok(event) => {
                    self.lock().heard_at = Some(Timestamp::now());
                    let is_whole = matches!(event, Event::InitDone);
                    self.take(kind, scope, event, round);
                    if is_whole {
                        has_list = true;
                        wait = following::FIRST_WAIT;
                        self.mended(kind, scope);
                    }
                }
                Err(why) => {
                    self.broken(kind, scope, &why);
                    sleep(wait.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
                    wait = following::longer(wait);
                    events = watcher(objects.clone(), config()).boxed();
                    has_list = false;
                }
            }
        }
    }

    fn take(&self, kind: Kind, scope: &Scope, event: Event<DynamicObject>, round: u64) {
        let changes = match event {
            Event::Init => Vec::new(),
            Event::InitApply(object) | Event::Apply(object) => {
                self.shelf.put(kind, object, round).into_iter().collect()
            }
            Event::Delete(object) => self.shelf.take(kind, object).into_iter().collect(),
            Event::InitDone => self.shelf.settle(kind, scope, round),
        };
        for Change { about, data, brief } in changes {
            if let Some(namespace) = &about.namespace {
                self.lock().stirred.insert(namespace.clone());
            }
            let name = control_plane_event::RESOURCE;
            tell_in_short(&self.hub, name, about, &data, Some(brief));
        }
    }

    /// Tells that all is known again, once the last broken watch has its list.
    fn mended(&self, kind: Kind, scope: &Scope) {
        let mut notes = self.lock();
        let was_broken = notes.broken.remove(&(kind, scope.clone()));
        let is_whole = notes.broken.is_empty();
        drop(notes);
        if was_broken && is_whole {
            let name = control_plane_event::READY;
            let ready = json!({"type": name, "namespace": null, "gap": false}).to_string();
            tell(&self.hub, name, About::default(), ready.as_bytes());
        }
    }

    /// Tells that a kind cannot be read, once until it can again.
    fn broken(&self, kind: Kind, scope: &Scope, why: &str) {
        let is_news = self.lock().broken.insert((kind, scope.clone()));
        if !is_news {
            return;
        }
        let why = for_log(why);
        tracing::warn!(kind = kind.as_str(), %scope, error = why, "Watch broke, trying again");
        let namespace = match scope {
            Scope::Cluster => None,
            Scope::Namespace(name) => Some(name.as_str().into()),
        };
        let message = format!("{kind} cannot be read now: {why}");
        let name = control_plane_event::ERROR;
        let data = json!({"type": name, "namespace": namespace, "message": message});
        let about = About {
            kind: Some(kind),
            namespace,
        };
        tell(&self.hub, name, about, data.to_string().as_bytes());
    }

    /// Tells how the control plane stands after changes, until it is dropped.
    pub(in crate::serve) async fn tell_status(&self) {
        let mut leader = self.lease.changes();
        loop {
            tokio::select! {
                Ok(()) = leader.changed() => {
                    let known: BTreeSet<_> = self.shelf.namespaces();
                    self.lock().stirred.extend(known);
                }
                () = sleep(STATUS_AFTER) => {}
            }
            let stirred = std::mem::take(&mut self.lock().stirred);
            for namespace in stirred {
                let data = self.status(&namespace).to_string();
                let about = About {
                    kind: None,
                    namespace: Some(namespace),
                };
                let name = control_plane_event::STATUS;
                tell(&self.hub, name, about, data.as_bytes());
            }
        }
    }

    /// How the control plane stands, for a namespace.
    pub(super) fn status(&self, namespace: &str) -> serde_json::Value {
        let leader = self.lease.leader();
        let (unread, heard_at) = {
            let notes = self.lock();
            let mut unread: Vec<_> = notes.broken.iter().map(|(kind, _)| kind.as_str()).collect();
            unread.sort_unstable();
            unread.dedup();
            (unread, notes.heard_at)
        };
        let lease = self.lease.place();
        status::message(&Known {
            now: Timestamp::now(),
            namespace,
            leader: leader.as_ref(),
            lease,
            unread,
            heard_at,
            untouched: self.shelf.untouched(Some(namespace)),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lists in pages, so that many objects are not read at once.
fn config() -> watcher::Config {
    watcher::Config::default().page_size(250)
}
