//! What every reconciler works with: client, clock, lease, Events, metrics; and the ways to write.
//!
//! Every write goes through here: it never lasts longer than the lease is certainly ours, has a deadline, and names what
//! it is about.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use jiff::Timestamp;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch as JsonPatch, PatchOperation, ReplaceOperation};
use kube::api::{DeleteParams, GetParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::{NamespaceResourceScope, Request, request};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::agent_run::Deprecated;
use super::cache::Slim;
use super::driver::fault::{Class, Fault};
use super::driver::plan::Notice;
use super::driver::untold::Untold;
use super::egress::Egress;
use super::metrics::Metrics;
use super::policy::Rules;
use super::start::Fit;
use crate::api::contract::FIELD_MANAGER;
use crate::events::{Effect, Emitter, Note, Occurrence, Regarding};
use crate::kit::fence::Fence;

/// Time for one call.
pub(in crate::controller) const CALL: Duration = Duration::from_secs(15);

/// The one clock. What it shows is handed on as data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    shows: fn() -> Timestamp,
}

impl Default for Clock {
    fn default() -> Self {
        Self::shown_by(Timestamp::now)
    }
}

impl Clock {
    /// A clock that shows what someone says.
    pub(crate) const fn shown_by(shows: fn() -> Timestamp) -> Self {
        Self { shows }
    }

    pub(crate) fn now(self) -> Timestamp {
        (self.shows)()
    }
}

/// What is written and read.
pub(crate) trait Thing:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
{
}

impl<K> Thing for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
{
}

/// A Secret or ConfigMap of which only the names of its entries are kept.
#[derive(Clone, Deserialize)]
struct Entries {
    #[serde(default)]
    data: BTreeMap<String, IgnoredAny>,
}

/// What every reconciler works with.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
    /// Open while the lease is certainly ours.
    pub(crate) leadership: Fence,
    /// Whether the cluster has been found fit.
    pub(crate) fit: Fit,
    pub(crate) emitter: Emitter,
    /// What is still to be told of writes that got no answer.
    pub(crate) untold: Untold,
    pub(crate) egress: Egress,
    /// What runs and calls are judged by before they begin.
    pub(crate) rules: Rules,
    /// Sorts of tokens to be given up.
    pub(crate) deprecated: Deprecated,
}

impl Context {
    /// Waits until writes are allowed.
    pub(crate) async fn may_act(&self) {
        self.leadership.opened().await;
    }

    /// The objects of a kind in a namespace.
    pub(crate) fn api<K: Thing>(&self, namespace: &str) -> Api<K> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Reads an object as it is stored now.
    pub(crate) async fn look_up<K: Thing>(
        &self,
        what: &'static str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<K>, Fault> {
        let api: Api<K> = self.api(namespace);
        within_deadline(what, api.get_opt(name)).await
    }

    /// Whether an object is there. Asks for its metadata only, so that no secret is ever read.
    pub(crate) async fn is_there<K: Thing>(
        &self,
        what: &'static str,
        namespace: &str,
        name: &str,
    ) -> Result<bool, Fault> {
        let api: Api<K> = self.api(namespace);
        let found = within_deadline(what, api.get_metadata_opt(name)).await?;
        Ok(found.is_some())
    }

    /// The names of the entries of a Secret or ConfigMap, if it is there. The API server sends the values too; they are
    /// dropped unread.
    pub(crate) async fn entries<K: Thing>(
        &self,
        what: &'static str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<BTreeSet<String>>, Fault> {
        let path = K::url_path(&(), Some(namespace));
        let request = Request::new(path).get(name, &GetParams::default());
        let request = request.map_err(|error| Fault::new(what, Class::Spec, &error.to_string()))?;
        let found = within_deadline(what, self.client.request::<Entries>(request)).await;
        match found {
            Ok(found) => Ok(Some(found.data.into_keys().collect())),
            Err(fault) if fault.is_not_found() => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    pub(crate) async fn create<K: Thing>(
        &self,
        what: &'static str,
        object: &K,
    ) -> Result<K, Fault> {
        let params = PostParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PostParams::default()
        };
        let body = serde_json::to_vec(object);
        let body = body.map_err(|error| Fault::new(what, Class::Config, &error.to_string()))?;
        self.send(what, at(object).create(&params, body)).await
    }

    /// Changes an object, if it is still as it was seen.
    pub(crate) async fn change<K: Thing>(
        &self,
        what: &'static str,
        seen: &K,
        changes: Vec<Value>,
    ) -> Result<K, Fault> {
        let changes = serde_json::from_value(Value::Array(changes));
        let changes: Vec<PatchOperation> =
            changes.map_err(|error| Fault::new(what, Class::Config, &error.to_string()))?;
        let patch = Patch::<()>::Json(as_seen(seen, changes));
        let name = seen.name_any();
        self.send(what, at(seen).patch(&name, &manager(), &patch))
            .await
    }

    /// Replaces the status of an object, if the object is still as it was seen.
    pub(crate) async fn write_status<K: Thing>(&self, seen: &K, status: Value) -> Result<K, Fault> {
        const WHAT: &str = "write the status";
        let change = AddOperation {
            path: PointerBuf::from_tokens(["status"]),
            value: status,
        };
        let patch = as_seen(seen, vec![PatchOperation::Add(change)]);
        let patch = Patch::<()>::Json(patch);
        let name = seen.name_any();
        let request = at(seen).patch_subresource("status", &name, &manager(), &patch);
        self.send(WHAT, request).await
    }

    /// Deletes this very object and what belongs to it, in the background. One that is gone already counts as deleted.
    pub(crate) async fn delete<K: Thing>(&self, what: &'static str, seen: &K) -> Result<(), Fault> {
        let api: Api<K> = self.api(&seen.namespace().unwrap_or_default());
        let params = DeleteParams::background().preconditions(Preconditions {
            uid: seen.uid(),
            resource_version: None,
        });
        let name = seen.name_any();
        let deleted = async {
            match api.delete(&name, &params).await {
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                other => other.map(drop),
            }
        };
        self.write(what, deleted).await
    }

    /// Says what happened to an object. Call it when that is stored.
    pub(crate) fn tell<K: Resource<DynamicType = ()>>(&self, object: &K, notices: &[Notice]) {
        for Notice { reason, note, job } in notices {
            let mut occurrence =
                Occurrence::new(Regarding::of(object), *reason, Note::new(note.clone()));
            if let Some((name, uid)) = job {
                let namespace = object.meta().namespace.clone().unwrap_or_default();
                let related = Regarding::job(&namespace, name);
                occurrence = occurrence.related_to(match uid {
                    Some(uid) => related.with_uid(uid),
                    None => related,
                });
            }
            self.emitter.emit(Effect::Real, occurrence);
        }
    }

    /// Sends a write; what comes back is read without its managed fields.
    async fn send<K: Thing>(
        &self,
        what: &'static str,
        request: Result<http::Request<Vec<u8>>, request::Error>,
    ) -> Result<K, Fault> {
        let request = request.map_err(|error| Fault::new(what, Class::Spec, &error.to_string()))?;
        let Slim(written) = self.write(what, self.client.request(request)).await?;
        Ok(written)
    }

    async fn write<T>(
        &self,
        what: &'static str,
        call: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Fault> {
        let written = self.leadership.guard(within_deadline(what, call)).await;
        written.unwrap_or_else(|| {
            let why = "another process may hold the lease by now";
            Err(Fault::new(what, Class::Fenced, why))
        })
    }
}

/// The answer to a call, if it comes in time.
pub(in crate::controller) async fn within_deadline<T>(
    what: &'static str,
    call: impl Future<Output = kube::Result<T>>,
) -> Result<T, Fault> {
    match timeout(CALL, call).await {
        Ok(result) => result.map_err(|error| Fault::of(what, &error)),
        Err(_) => Err(Fault::new(
            what,
            Class::Retryable,
            "the API server did not answer in time",
        )),
    }
}

/// Requests about objects of the kind and namespace of this one.
fn at<K: Thing>(object: &K) -> Request {
    let namespace = object.namespace().unwrap_or_default();
    Request::new(K::url_path(&(), Some(&namespace)))
}

fn manager() -> PatchParams {
    PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

/// The changes, which the API server refuses with a conflict if someone else wrote since.
fn as_seen<K: Resource>(seen: &K, changes: Vec<PatchOperation>) -> JsonPatch {
    let version = ReplaceOperation {
        path: PointerBuf::from_tokens(["metadata", "resourceVersion"]),
        value: json!(seen.meta().resource_version),
    };
    let mut list = vec![PatchOperation::Replace(version)];
    list.extend(changes);
    JsonPatch(list)
}
