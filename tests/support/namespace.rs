//! A namespace of its own for every test.

use crate::{
    kubectl::Kubectl,
    lab::{self, Lab},
    wait,
};
use anyhow::Result;
use k8s_openapi::api::core::v1::{Namespace as Object, ServiceAccount};
use kube::{Api, Client, Resource, api::PostParams, core::NamespaceResourceScope};
use std::{
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// A namespace that no other test uses, in a cluster that others may share.
///
/// A lab is thrown away as a whole, so its namespaces are left alone: their removal takes seconds each. In an
/// existing cluster the removal is ordered, not awaited, when the value is dropped.
pub struct Namespace {
    /// Its name.
    pub name: String,
    /// A client for the cluster, bound to the runtime of the calling test.
    pub client: Client,
    /// `kubectl` in this namespace.
    pub kubectl: Kubectl,
    remove: Option<Command>,
}

impl Namespace {
    /// The objects of one kind in it.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType: Default>,
    {
        Api::namespaced(self.client.clone(), &self.name)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Some(command) = &mut self.remove {
            // The test has its verdict already; a namespace that stays is seen by the cluster's owner.
            let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
        }
    }
}

/// A fresh namespace in the control plane all tests share; `area` makes it recognisable.
pub async fn namespace(area: &str) -> Result<Namespace> {
    namespace_in(lab::shared().await?, area).await
}

/// A fresh namespace in a given lab.
pub async fn namespace_in(lab: &Lab, area: &str) -> Result<Namespace> {
    const DEADLINE: Duration = Duration::from_secs(30);
    let client = lab.client().await?;
    let name = unique(area);
    let mut object = Object::default();
    object.metadata.name = Some(name.clone());
    let all: Api<Object> = Api::all(client.clone());
    all.create(&PostParams::default(), &object).await?;
    // Without it pods are refused.
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &name);
    wait::until(&accounts, "default", DEADLINE, |_| true).await?;
    let remove = lab.is_foreign().then(|| {
        let mut command = Command::new(lab.kubectl_program());
        command.env("KUBECONFIG", lab.kubeconfig()).args([
            "delete",
            "namespace",
            &name,
            "--wait=false",
        ]);
        command
    });
    let kubectl = lab.kubectl().in_namespace(&name);
    Ok(Namespace {
        name,
        client,
        kubectl,
        remove,
    })
}

/// Unique also among the test runs that use the same existing cluster.
fn unique(area: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let run = since_epoch.as_millis() % 0xff_ffff;
    format!("{area}-{run:x}-{:x}-{count}", std::process::id())
}
