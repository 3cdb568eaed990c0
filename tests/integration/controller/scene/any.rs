//! Objects of any kind of ours in a scene, without a type of their own.

use agents::api::contract::VERSION;
use agents::api::kind::Kind;
use anyhow::{Context, Result};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};
use support::wait;

use super::{DEADLINE, Scene};

fn resource(kind: Kind) -> ApiResource {
    let group = GroupVersionKind::gvk(kind.group(), VERSION, kind.as_str());
    ApiResource::from_gvk_with_plural(&group, kind.plural())
}

impl Scene {
    /// The objects of a kind.
    pub(in crate::controller) fn any(&self, kind: Kind) -> Api<DynamicObject> {
        Api::namespaced_with(self.here.client.clone(), &self.here.name, &resource(kind))
    }

    /// Makes an object.
    pub(crate) async fn make(&self, kind: Kind, name: &str, spec: Value) -> Result<DynamicObject> {
        let mut object = DynamicObject::new(name, &resource(kind));
        object.data = json!({ "spec": spec });
        let made = self.any(kind).create(&PostParams::default(), &object).await;
        made.with_context(|| format!("{kind} {name}"))
    }

    /// Changes an object.
    pub(in crate::controller) async fn merge(
        &self,
        kind: Kind,
        name: &str,
        patch: Value,
    ) -> Result<()> {
        let patch = Patch::Merge(patch);
        self.any(kind)
            .patch(name, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    /// Changes the status of an object, as someone else would.
    pub(in crate::controller) async fn merge_status(
        &self,
        kind: Kind,
        name: &str,
        status: Value,
    ) -> Result<()> {
        let patch = Patch::Merge(json!({ "status": status }));
        self.any(kind)
            .patch_status(name, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    /// Waits until an object is as wanted.
    pub(crate) async fn until_any(
        &self,
        kind: Kind,
        name: &str,
        wanted: impl Fn(&DynamicObject) -> bool,
    ) -> Result<DynamicObject> {
        let what = format!("{kind} {name}");
        let objects = self.any(kind);
        let found = wait::until_any(&objects, &what, name, DEADLINE, |object| {
            object.is_some_and(&wanted)
        });
        found.await?.context("it was there a moment ago")
    }

    /// Waits until status and reason of `Ready` are these, about the newest spec.
    pub(in crate::controller) async fn until_ready(
        &self,
        kind: Kind,
        name: &str,
        expected: &str,
    ) -> Result<DynamicObject> {
        self.until_any(kind, name, |object| {
            let status = &object.data["status"];
            let conditions = status["conditions"].as_array();
            let mut ready = conditions.into_iter().flatten();
            let ready = ready.find(|entry| entry["type"] == "Ready");
            let word = |field| ready.and_then(|ready| ready[field].as_str()).unwrap_or("");
            let is_current = status["observedGeneration"].as_i64() == object.metadata.generation;
            is_current && format!("{} {}", word("status"), word("reason")) == expected
        })
        .await
    }

    /// Waits until an object is gone.
    pub(in crate::controller) async fn until_gone(&self, kind: Kind, name: &str) -> Result<()> {
        let what = format!("no {kind} {name}");
        let objects = self.any(kind);
        let gone = wait::until_any(&objects, &what, name, DEADLINE, |object| object.is_none());
        gone.await.map(drop)
    }
}
