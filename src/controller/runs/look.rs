//! Reads that more than one kind of run needs.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::ListParams;
use kube::{Api, Resource, ResourceExt};

use super::Run;
use crate::api::contract::label;
use crate::controller::context::{Context, within_deadline};
use crate::controller::driver::fault::Fault;

/// Whether an object says that it was made for the run with this uid.
pub(in crate::controller) fn is_labelled<K: Resource>(object: &K, uid: Option<&str>) -> bool {
    let label = object.labels().get(label::RUN_UID).map(String::as_str);
    uid.is_some() && label == uid
}

/// Whether an object belongs to the one with this uid.
pub(in crate::controller) fn is_owned<K: Resource>(object: &K, uid: Option<&str>) -> bool {
    let mut owners = object.meta().owner_references.iter().flatten();
    uid.is_some() && owners.any(|owner| Some(owner.uid.as_str()) == uid)
}

/// Whether a Job was made for this very run. Anyone can write a label, so the API server must know the run as its owner
/// as well, or its uid must be the one that we have stored.
pub(in crate::controller) fn is_made_for<R: Run>(job: &Job, run: &R, bound: Option<&str>) -> bool {
    let uid = run.meta().uid.as_deref();
    let is_bound = bound.is_some() && job.meta().uid.as_deref() == bound;
    is_labelled(job, uid) && (is_owned(job, uid) || is_bound)
}

/// Objects that a finalizer of ours holds.
pub(in crate::controller) fn held<K: Resource>(
    objects: Vec<Arc<K>>,
    finalizer: &str,
) -> Vec<Arc<K>> {
    let held = objects.into_iter();
    held.filter(|object| is_held(&**object, finalizer))
        .collect()
}

/// Whether a finalizer of ours is on an object.
pub(in crate::controller) fn is_held<K: Resource>(object: &K, finalizer: &str) -> bool {
    let finalizers = object.meta().finalizers.as_deref().unwrap_or_default();
    finalizers.iter().any(|name| name == finalizer)
}

/// The pods of a run as they are stored now.
pub(in crate::controller) async fn list_pods<R: Run>(
    context: &Context,
    run: &R,
) -> Result<Vec<Arc<Pod>>, Fault> {
    let api: Api<Pod> = context.api(&run.namespace().unwrap_or_default());
    let uid = run.uid().unwrap_or_default();
    let params = ListParams::default().labels(&format!("{}={uid}", label::RUN_UID));
    let list = within_deadline("list the pods of the run", api.list(&params)).await?;
    Ok(list.items.into_iter().map(Arc::new).collect())
}

/// Whether a namespace is being deleted. Where that may not be asked, it counts as staying.
pub(in crate::controller) async fn is_terminating(context: &Context, namespace: &str) -> bool {
    let all: Api<Namespace> = Api::all(context.client.clone());
    let found = within_deadline("look up the namespace", all.get_metadata_opt(namespace)).await;
    match found {
        Ok(Some(namespace)) => namespace.metadata.deletion_timestamp.is_some(),
        Ok(None) => true,
        Err(fault) => {
            let fault = fault.sentence();
            tracing::debug!(
                namespace,
                fault,
                "Whether the namespace is going is not known"
            );
            false
        }
    }
}
