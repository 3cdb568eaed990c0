//! The look at the cluster before anything is done: whether the resources are there and may be used.

use std::fmt;

use futures::future::join_all;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};

use super::Scope;

/// Something that a program must be able to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Group of the resource; empty for the core group.
    pub group: &'static str,
    /// Version of the group.
    pub version: &'static str,
    /// The resource, with its subresource behind a slash if one is meant.
    pub resource: String,
    /// What is done with it.
    pub verbs: &'static [&'static str],
    /// Where.
    pub scope: Scope,
}

/// Everything that keeps a program from working, at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    problems: Vec<String>,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.as_slice() {
            [one] => write!(f, "the cluster is not fit for this program: {one}"),
            many => {
                let count = many.len();
                write!(
                    f,
                    "the cluster is not fit for this program, {count} things are missing:"
                )?;
                many.iter()
                    .try_for_each(|problem| write!(f, "\n  {problem}"))
            }
        }
    }
}

impl std::error::Error for Unfit {}

/// Why a program cannot begin.
#[derive(Debug)]
pub enum Obstacle {
    /// Waiting does not help.
    Lasting(Unfit),
    /// The API server did not answer.
    Passing(String),
}

/// Looks at everything that will be needed. Asks discovery and access reviews only, so it needs no right of its own.
///
/// # Errors
///
/// All that is missing, or that nobody answers.
pub async fn examine(client: &Client, needs: &[Need]) -> Result<(), Obstacle> {
    let mut problems = Vec::new();
    let looks = needs.iter().map(|need| look(client, need));
    for found in join_all(looks).await {
        problems.extend(found.map_err(|error| Obstacle::Passing(error.to_string()))?);
    }
    // A resource that is not installed is missing in each namespace; once is enough.
    problems.sort_unstable();
    problems.dedup();
    if problems.is_empty() {
        return Ok(());
    }
    Err(Obstacle::Lasting(Unfit { problems }))
}

async fn look(client: &Client, need: &Need) -> kube::Result<Vec<String>> {
    let Need {
        group,
        version,
        resource,
        verbs,
        scope,
    } = need;
    if !is_served(client, need).await? {
        let what = match group.is_empty() {
            true => resource.clone(),
            false => format!("{resource}.{group}"),
        };
        return Ok(vec![format!(
            "{what} {version} is not served; apply the CRDs"
        )]);
    }
    let mut lacking = Vec::new();
    for verb in *verbs {
        if !may(client, need, verb).await? {
            lacking.push(*verb);
        }
    }
    if lacking.is_empty() {
        return Ok(Vec::new());
    }
    let what = match group.is_empty() {
        true => resource.clone(),
        false => format!("{resource}.{group}"),
    };
    let verbs = lacking.join(", ");
    Ok(vec![format!(
        "no permission to {verbs} {what} {scope}; add it to the role of this program"
    )])
}

/// Whether the API server has the resource, by discovery.
async fn is_served(client: &Client, need: &Need) -> kube::Result<bool> {
    let listed = match need.group {
        "" => client.list_core_api_resources(need.version).await,
        group => {
            let version = format!("{group}/{}", need.version);
            client.list_api_group_resources(&version).await
        }
    };
    match listed {
        Ok(list) => Ok(list
            .resources
            .iter()
            .any(|known| known.name == need.resource)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether a call is allowed. Where the question itself is not, the call will tell.
async fn may(client: &Client, need: &Need, verb: &str) -> kube::Result<bool> {
    let (resource, subresource) = match need.resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (need.resource.as_str(), None),
    };
    let namespace = match &need.scope {
        Scope::Cluster => None,
        Scope::Namespace(namespace) => Some(namespace.clone()),
    };
    let question = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                group: Some(need.group.to_owned()),
                resource: Some(resource.to_owned()),
                subresource,
                verb: Some(verb.to_owned()),
                namespace,
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let answer = Api::all(client.clone())
        .create(&PostParams::default(), &question)
        .await;
    match answer {
        Ok(answer) => Ok(answer.status.is_none_or(|status| status.allowed)),
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(true),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_missing_is_said_in_one_message() {
        let unfit = |problems: &[&str]| {
            let problems = problems.iter().map(|text| (*text).to_owned()).collect();
            Unfit { problems }.to_string()
        };
        assert_eq!(
            unfit(&["no permission"]),
            "the cluster is not fit for this program: no permission"
        );
        assert_eq!(
            unfit(&["one", "two"]),
            "the cluster is not fit for this program, 2 things are missing:\n  one\n  two"
        );
    }
}
