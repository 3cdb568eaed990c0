//! The look at the cluster before anything is done: whether the resources are there, new enough, and may be used.

mod schema;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::time::Duration;

use futures::future::join_all;
use http::Request;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReview,
    SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::Value;
use tokio::time::timeout;

pub use schema::APPLY;

use super::Scope;
use crate::api::contract::VERSION;
use crate::api::kind::Kind;

/// Time for the whole look. A connection that is half open would hold up the start for minutes.
const LOOK: Duration = Duration::from_secs(30);

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

impl Need {
    /// Of objects of a kind of ours, or of a part of each such as `/status`.
    pub fn of(kind: Kind, part: &str, verbs: &'static [&'static str], scope: Scope) -> Self {
        Self {
            group: kind.group(),
            version: VERSION,
            resource: format!("{}{part}", kind.plural()),
            verbs,
            scope,
        }
    }

    /// Of a resource that Kubernetes itself has.
    pub fn other(
        group: &'static str,
        resource: &str,
        verbs: &'static [&'static str],
        scope: &Scope,
    ) -> Self {
        Self {
            group,
            version: "v1",
            resource: resource.to_owned(),
            verbs,
            scope: scope.clone(),
        }
    }
}

/// Everything that keeps a program from working, at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    problems: Vec<String>,
}

impl Unfit {
    /// All that is missing, each once: a resource that is not installed is missing in every namespace. None if nothing is.
    pub fn of(mut problems: Vec<String>) -> Option<Self> {
        problems.sort_unstable();
        problems.dedup();
        (!problems.is_empty()).then_some(Self { problems })
    }
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

/// Looks at everything that will be needed. Asks discovery, OpenAPI and access reviews only, so it needs no right of its own.
///
/// # Errors
///
/// All that is missing, or that nobody answers.
pub async fn examine(client: &Client, needs: &[Need]) -> Result<(), Obstacle> {
    in_time(async {
        let (mut problems, served) = look_at_all(client, needs).await?;
        problems.extend(outdated(client, needs, &served).await?);
        Ok(problems)
    })
    .await
}

/// The same for who only reads: what an older schema lacks it does not see, and can do without. Nor does it hold ours then.
///
/// # Errors
///
/// The same.
pub async fn examine_rights(client: &Client, needs: &[Need]) -> Result<(), Obstacle> {
    in_time(async { Ok(look_at_all(client, needs).await?.0) }).await
}

async fn in_time(
    look: impl Future<Output = Result<Vec<String>, Obstacle>>,
) -> Result<(), Obstacle> {
    let problems = timeout(LOOK, look).await.unwrap_or_else(|_| {
        let why = format!("no answer within {} s", LOOK.as_secs());
        Err(Obstacle::Passing(why))
    })?;
    Unfit::of(problems).map_or(Ok(()), |unfit| Err(Obstacle::Lasting(unfit)))
}

/// What is missing, and what there is.
async fn look_at_all(client: &Client, needs: &[Need]) -> Result<(Vec<String>, Served), Obstacle> {
    let silent = |error: kube::Error| Obstacle::Passing(error.to_string());
    let served = served(client, needs).await.map_err(silent)?;
    let mut problems = Vec::new();
    let looks = needs.iter().map(|need| look(client, need, &served));
    for found in join_all(looks).await {
        problems.extend(found.map_err(silent)?);
    }
    Ok((problems, served))
}

/// Groups with their versions, and the resources that the API server has in each.
type Served = HashMap<(&'static str, &'static str), HashSet<String>>;

/// Asks discovery, once for each group.
async fn served(client: &Client, needs: &[Need]) -> kube::Result<Served> {
    let groups: HashSet<_> = needs
        .iter()
        .map(|need| (need.group, need.version))
        .collect();
    let asked = groups.into_iter().map(|(group, version)| async move {
        let listed = match group {
            "" => client.list_core_api_resources(version).await,
            group => {
                let version = format!("{group}/{version}");
                client.list_api_group_resources(&version).await
            }
        };
        let names = match listed {
            Ok(list) => list.resources.into_iter().map(|known| known.name).collect(),
            Err(kube::Error::Api(status)) if status.code == 404 => HashSet::new(),
            Err(error) => return Err(error),
        };
        Ok(((group, version), names))
    });
    join_all(asked).await.into_iter().collect()
}

/// How the API server stands to a kind of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has the kind with every field.
    Current,
    /// It does not have the kind.
    Missing,
    /// It has the kind without some fields, in a sentence.
    Lacking(String),
}

/// How the API server stands to each kind of ours. Asks discovery and OpenAPI only.
///
/// # Errors
///
/// When it does not answer.
pub async fn standings(client: &Client) -> kube::Result<Vec<(Kind, Standing)>> {
    let needs = Kind::ALL.map(|kind| Need::of(kind, "", &[], Scope::Cluster));
    let served = served(client, &needs).await?;
    let kinds = kinds_served(&needs, &served);
    let described = described(client, &kinds).await?;
    let standing = |kind: Kind| match kinds.contains(&kind) {
        false => Standing::Missing,
        true => match schema::problem(kind, &described[kind.group()]) {
            Ok(None) => Standing::Current,
            Ok(Some(lacking)) | Err(lacking) => Standing::Lacking(lacking),
        },
    };
    let each = Kind::ALL.map(|kind| (kind, standing(kind)));
    Ok(each.to_vec())
}

/// The kinds that are needed and served.
fn kinds_served(needs: &[Need], served: &Served) -> Vec<Kind> {
    let is_served = |kind: &Kind| {
        let is_it = |need: &&Need| need.group == kind.group() && need.resource == kind.plural();
        let need = needs.iter().find(is_it);
        let known = need.and_then(|need| served.get(&(need.group, need.version)));
        known.is_some_and(|known| known.contains(kind.plural()))
    };
    Kind::ALL.into_iter().filter(is_served).collect()
}

/// How the API server describes the groups of these kinds.
async fn described(client: &Client, kinds: &[Kind]) -> kube::Result<HashMap<&'static str, Value>> {
    let groups: HashSet<&str> = kinds.iter().map(|kind| kind.group()).collect();
    let asked = groups.into_iter().map(|group| async move {
        let request = Request::get(schema::path(group)).body(Vec::new());
        let request = request.map_err(kube::Error::HttpError)?;
        Ok((group, client.request::<Value>(request).await?))
    });
    join_all(asked).await.into_iter().collect()
}

/// What is served of our kinds in an older version.
async fn outdated(
    client: &Client,
    needs: &[Need],
    served: &Served,
) -> Result<Vec<String>, Obstacle> {
    let kinds = kinds_served(needs, served);
    let described = described(client, &kinds).await;
    let described = described.map_err(|error| Obstacle::Passing(error.to_string()))?;
    let mut problems = Vec::new();
    for kind in kinds {
        let found = schema::problem(kind, &described[kind.group()]);
        problems.extend(found.map_err(Obstacle::Passing)?);
    }
    Ok(problems)
}

async fn look(client: &Client, need: &Need, served: &Served) -> kube::Result<Option<String>> {
    let Need {
        group,
        version,
        resource,
        verbs,
        scope,
    } = need;
    let what = match group.is_empty() {
        true => resource.clone(),
        false => format!("{resource}.{group}"),
    };
    let known = served.get(&(*group, *version));
    if !known.is_some_and(|known| known.contains(resource.as_str())) {
        let remedy = schema::remedy(group);
        return Ok(Some(format!("{what} {version} is not served; {remedy}")));
    }
    let mut lacking = Vec::new();
    for verb in *verbs {
        if !may(client, group, resource, verb, scope).await? {
            lacking.push(*verb);
        }
    }
    let verbs = lacking.join(", ");
    Ok((!lacking.is_empty()).then(|| not_allowed(&verbs, &what, scope)))
}

/// That a role lacks a right, and what to do about it.
pub fn not_allowed(verbs: &str, what: &str, scope: &Scope) -> String {
    format!("no permission to {verbs} {what} {scope}; add it to the role of this program")
}

/// Whether a call is allowed. Where the question itself is not, the call will tell.
///
/// # Errors
///
/// When the API server does not answer.
pub async fn may(
    client: &Client,
    group: &str,
    resource: &str,
    verb: &str,
    scope: &Scope,
) -> kube::Result<bool> {
    let question = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes(group, resource, verb, scope)),
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

/// Whether a call of a ServiceAccount is allowed, as those say who may ask that about others.
///
/// # Errors
///
/// When the API server does not answer, or does not allow the question.
pub async fn allows(
    client: &Client,
    (namespace, account): (&str, &str),
    (group, resource, verb): (&str, &str, &str),
    scope: &Scope,
) -> kube::Result<bool> {
    let groups = [
        "system:authenticated".to_owned(),
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{namespace}"),
    ];
    let question = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(format!("system:serviceaccount:{namespace}:{account}")),
            groups: Some(groups.to_vec()),
            resource_attributes: Some(attributes(group, resource, verb, scope)),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let reviews = Api::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &question).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// A call as reviews of access name it.
fn attributes(group: &str, resource: &str, verb: &str, scope: &Scope) -> ResourceAttributes {
    let (resource, subresource) = match resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (resource, None),
    };
    let namespace = match scope {
        Scope::Cluster => None,
        Scope::Namespace(namespace) => Some(namespace.clone()),
    };
    ResourceAttributes {
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        subresource,
        verb: Some(verb.to_owned()),
        namespace,
        ..ResourceAttributes::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_missing_is_said_in_one_message() {
        let unfit = |problems: &[&str]| {
            let problems = problems.iter().map(|text| (*text).to_owned()).collect();
            Unfit::of(problems).map(|unfit| unfit.to_string())
        };
        assert_eq!(
            unfit(&["no permission"]),
            Some("the cluster is not fit for this program: no permission".to_owned())
        );
        assert_eq!(
            unfit(&["one", "two"]),
            Some(
                "the cluster is not fit for this program, 2 things are missing:\n  one\n  two"
                    .to_owned()
            )
        );
    }
}
