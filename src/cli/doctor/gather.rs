//! Looks at everything that checks need: each look has a deadline and a limit, and one that fails does not hold up the others.

mod cluster;
mod metrics;
mod programs;
mod webhook;

use std::future::Future;
use std::time::Duration;

use http::Request;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::api::ListParams;
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::facts::{Facts, Seen, Unseen};
use super::values::Values;
use crate::api::contract::label;
use crate::api::kinds::AgentRun;
use crate::cluster::Namespaces;

/// Time for one look.
const DEADLINE: Duration = Duration::from_secs(10);

/// Objects of one page, and of all pages.
const PAGE: u32 = 500;
const MOST: usize = 20_000;

/// Who looks, and where.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) client: Client,
    /// The namespace of the release.
    pub(super) namespace: String,
}

/// Everything that can be seen.
pub(super) async fn gather(place: &Place, values: Values) -> Facts {
    let (cluster, installed, webhook, jobs, runs) = tokio::join!(
        cluster::look_at(place),
        programs::look_at(place),
        webhook::look_at(place),
        everywhere::<Job>(place, "Jobs", label::RUN_UID),
        everywhere::<AgentRun>(place, "AgentRuns", ""),
    );
    let (certificate, sidecars, (monitors, prometheuses)) = tokio::join!(
        webhook::certificate(place, &webhook.registered, &installed.programs),
        metrics::sidecars(place, &installed.programs),
        metrics::monitors(place),
    );
    let territory = programs::territory(&installed.programs);
    let jobs = jobs.map(|all| within(all, territory.as_ref()));
    let runs = runs.map(|all| within(all, territory.as_ref()));
    let here = Timestamp::now();
    let now = cluster.ahead.as_ref().map_or(here, |ahead| here + *ahead);
    Facts {
        namespace: place.namespace.clone(),
        values,
        now,
        version: cluster.version,
        ahead: cluster.ahead,
        kinds: cluster.kinds,
        groups: cluster.groups,
        namespaces: cluster.namespaces,
        installer: cluster.installer,
        programs: installed.programs,
        lacking: installed.lacking,
        lease: installed.lease,
        pods: installed.pods,
        registered: webhook.registered,
        others: webhook.others,
        certificate,
        endpoints: webhook.endpoints,
        probe: webhook.probe,
        monitors,
        prometheuses,
        sidecars,
        jobs,
        runs,
    }
}

/// Only what lies where the controllers of this release work: others answer for the rest.
fn within<K: ResourceExt>(mut all: Vec<K>, territory: Option<&Namespaces>) -> Vec<K> {
    if let Some(Namespaces::Some(names)) = territory {
        all.retain(|one| one.namespace().is_some_and(|own| names.contains(&own)));
    }
    all
}

/// One look, within its time.
async fn look<T>(what: &str, call: impl Future<Output = kube::Result<T>>) -> Seen<T> {
    let silent = || format!("{what}: no answer within {} s", DEADLINE.as_secs());
    let answer = timeout(DEADLINE, call).await;
    let answer = answer.map_err(|_| Unseen::Silent(silent()))?;
    answer.map_err(|error| {
        let kube::Error::Api(status) = &error else {
            return Unseen::Silent(format!("{what}: {error}"));
        };
        match status.code {
            404 => Unseen::Absent(what.to_owned()),
            401 | 403 => Unseen::Forbidden(status.message.clone()),
            _ => Unseen::Silent(format!("{what}: {}", status.message)),
        }
    })
}

/// What the API server has at a path.
async fn get<T: DeserializeOwned>(client: &Client, what: &str, path: &str) -> Seen<T> {
    let request = Request::get(path).body(Vec::new());
    let request = request.map_err(|error| Unseen::Silent(error.to_string()))?;
    look(what, client.request(request)).await
}

/// All objects, page by page.
async fn list<K>(what: &str, api: &Api<K>, labels: &str) -> Seen<Vec<K>>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let mut params = ListParams::default().limit(PAGE).labels(labels);
    let mut all = Vec::new();
    loop {
        let page = look(what, api.list(&params)).await?;
        all.extend(page.items);
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            return Ok(all);
        }
        if all.len() >= MOST {
            let words = format!("{what}: there are more than {MOST}");
            return Err(Unseen::Silent(words));
        }
    }
}

/// All objects of the cluster, or of the namespace where only that may be read.
async fn everywhere<K>(place: &Place, what: &str, labels: &str) -> Seen<Vec<K>>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let all = list(what, &Api::<K>::all(place.client.clone()), labels).await;
    match all {
        Err(Unseen::Forbidden(_)) => {
            let here = Api::<K>::namespaced(place.client.clone(), &place.namespace);
            list(what, &here, labels).await
        }
        seen => seen,
    }
}
