//! The cluster itself: its version, its clock, what it has, and what whoever asks may do.

use std::collections::{BTreeMap, BTreeSet};

use http::{Request, header};
use jiff::{SignedDuration, Timestamp, fmt::rfc2822};
use k8s_openapi::api::core::v1::Namespace;
use kube::client::Body;
use kube::{Api, Client, ResourceExt};
use tokio::time::timeout;

use super::{DEADLINE, Place, list, look};
use crate::api::kind::Kind;
use crate::cli::doctor::facts::{Labels, Seen, Unseen};
use crate::cluster::{Scope, Standing, may, standings};

/// What is seen of it.
pub(super) struct Cluster {
    pub(super) version: Seen<String>,
    pub(super) ahead: Seen<SignedDuration>,
    pub(super) kinds: Seen<Vec<(Kind, Standing)>>,
    pub(super) groups: Seen<BTreeSet<String>>,
    pub(super) namespaces: Seen<BTreeMap<String, Labels>>,
    pub(super) installer: Seen<Vec<String>>,
}

/// What an installation makes: where, group and resource.
const MADE: [(bool, &str, &str); 10] = [
    (true, "apiextensions.k8s.io", "customresourcedefinitions"),
    (
        true,
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
    ),
    (
        true,
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
    ),
    (true, "rbac.authorization.k8s.io", "clusterroles"),
    (true, "rbac.authorization.k8s.io", "clusterrolebindings"),
    (false, "rbac.authorization.k8s.io", "roles"),
    (false, "rbac.authorization.k8s.io", "rolebindings"),
    (false, "apps", "deployments"),
    (false, "", "services"),
    (false, "", "serviceaccounts"),
];

/// Looks at all of it.
pub(super) async fn look_at(place: &Place) -> Cluster {
    let Place { client, namespace } = place;
    let (version, ahead, kinds, groups, namespaces, installer) = tokio::join!(
        look("the version of the API server", client.apiserver_version()),
        clock(client),
        look("the kinds", standings(client)),
        look("the groups", client.list_api_groups()),
        labels(client),
        look("your rights", lacking(client, namespace)),
    );
    let groups = groups.map(|all| {
        let versions = all.groups.into_iter().flat_map(|group| group.versions);
        versions.map(|version| version.group_version).collect()
    });
    Cluster {
        version: version.map(|version| version.git_version),
        ahead,
        kinds,
        groups,
        namespaces,
        installer,
    }
}

/// How far the clock of the API server is ahead of ours. It tells whole seconds, so a second more or less means nothing.
async fn clock(client: &Client) -> Seen<SignedDuration> {
    let request = Request::get("/version").body(Body::empty());
    let request = request.map_err(|error| Unseen::Silent(error.to_string()))?;
    let before = Timestamp::now();
    let answer = timeout(DEADLINE, client.send(request)).await;
    let silent = || Unseen::Silent("the API server does not tell the time".to_owned());
    let answer = answer.map_err(|_| silent())?.map_err(|_| silent())?;
    let after = Timestamp::now();
    let told = answer.headers().get(header::DATE).ok_or_else(silent)?;
    let told = told.to_str().map_err(|_| silent())?;
    let told = rfc2822::parse(told).map_err(|_| silent())?.timestamp();
    let middle = before + after.duration_since(before) / 2;
    Ok(told.duration_since(middle))
}

/// The namespaces with their labels.
async fn labels(client: &Client) -> Seen<BTreeMap<String, Labels>> {
    let api: Api<Namespace> = Api::all(client.clone());
    let all = list("namespaces", &api, "").await?;
    let pairs = all
        .into_iter()
        .map(|one| (one.name_any(), one.labels().clone()));
    Ok(pairs.collect())
}

/// What whoever asks may not make.
async fn lacking(client: &Client, namespace: &str) -> kube::Result<Vec<String>> {
    let mut lacking = Vec::new();
    for (is_wide, group, resource) in MADE {
        let scope = match is_wide {
            true => Scope::Cluster,
            false => Scope::Namespace(namespace.to_owned()),
        };
        if !may(client, group, resource, "create", &scope).await? {
            lacking.push(format!("you may not create {resource} {scope}"));
        }
    }
    Ok(lacking)
}
