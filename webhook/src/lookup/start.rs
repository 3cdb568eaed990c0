//! The look at the cluster before anything is followed: whether the CRDs are there and may be listed and watched.

use std::fmt;
use std::time::Duration;

use agents::api::contract::VERSION;
use agents::api::kind::Kind;
use futures::future::join_all;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::{ListParams, PostParams};
use kube::core::{ApiResource, DynamicObject, DynamicResourceScope};
use kube::{Api, Client};
use tokio::time::timeout;

use super::shelf::Scope;

/// Time for the look at one watch. A connection that is half open would hold up readiness for minutes.
const LOOK: Duration = Duration::from_secs(10);

/// Everything that keeps the look-ups from working, at once.
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

/// What a look at one watch gave.
enum Found {
    Fit,
    /// It will not work, and what to do about it.
    Unfit(String),
    /// The API server did not answer, which may pass.
    NoAnswer(String),
}

/// Why nothing can be followed.
pub(super) enum Obstacle {
    /// Waiting does not help.
    Lasting(Unfit),
    /// The API server did not answer.
    Passing(String),
}

/// The objects of a kind within a scope.
pub(super) fn api<K>(client: &Client, kind: Kind, scope: &Scope) -> Api<K>
where
    K: kube::Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
{
    let resource = ApiResource {
        group: kind.group().to_owned(),
        version: VERSION.to_owned(),
        api_version: kind.api_version(),
        kind: kind.as_str().to_owned(),
        plural: kind.plural().to_owned(),
    };
    match scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespace(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
    }
}

/// Looks at every watch that will be needed.
pub(super) async fn examine(client: &Client, watches: &[(Kind, Scope)]) -> Result<(), Obstacle> {
    let looks = watches.iter().map(|(kind, scope)| async {
        let looked = timeout(LOOK, look(client, *kind, scope)).await;
        looked.unwrap_or_else(|_| Found::NoAnswer(format!("no answer within {LOOK:?}")))
    });
    let mut problems = Vec::new();
    let mut silence = None;
    for found in join_all(looks).await {
        match found {
            Found::Fit => {}
            Found::Unfit(problem) => problems.push(problem),
            Found::NoAnswer(why) => silence = Some(why),
        }
    }
    match (problems.is_empty(), silence) {
        // A kind that is not installed is missing in each namespace; once is enough.
        (false, _) => {
            problems.sort_unstable();
            problems.dedup();
            Err(Obstacle::Lasting(Unfit { problems }))
        }
        (true, Some(why)) => Err(Obstacle::Passing(why)),
        (true, None) => Ok(()),
    }
}

async fn look(client: &Client, kind: Kind, scope: &Scope) -> Found {
    let objects: Api<DynamicObject> = api(client, kind, scope);
    let one = ListParams::default().limit(1);
    match objects.list_metadata(&one).await {
        Ok(_) => match may_watch(client, kind, scope).await {
            true => Found::Fit,
            false => Found::Unfit(not_allowed("watch", kind, scope)),
        },
        Err(kube::Error::Api(status)) if status.code == 404 => Found::Unfit(format!(
            "{}.{} is not installed; apply the CRDs",
            kind.plural(),
            kind.group()
        )),
        Err(kube::Error::Api(status)) if status.code == 403 => {
            Found::Unfit(not_allowed("list", kind, scope))
        }
        Err(error) => Found::NoAnswer(error.to_string()),
    }
}

fn not_allowed(verb: &str, kind: Kind, scope: &Scope) -> String {
    let place = match scope {
        Scope::Cluster => "in all namespaces".to_owned(),
        Scope::Namespace(namespace) => format!("in namespace {namespace}"),
    };
    format!(
        "no permission to {verb} {}.{} {place}; add it to the role of this program",
        kind.plural(),
        kind.group()
    )
}

/// Whether a watch is allowed. Where the question itself is not, the watch will tell.
async fn may_watch(client: &Client, kind: Kind, scope: &Scope) -> bool {
    let namespace = match scope {
        Scope::Cluster => None,
        Scope::Namespace(namespace) => Some(namespace.clone()),
    };
    let question = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                group: Some(kind.group().to_owned()),
                resource: Some(kind.plural().to_owned()),
                verb: Some("watch".to_owned()),
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
        Ok(answer) => answer.status.is_none_or(|status| status.allowed),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::fixtures::silent_cluster;

    #[tokio::test(start_paused = true)]
    async fn an_api_server_that_never_answers_is_given_up_and_asked_again() {
        let watches = [Kind::Agent, Kind::Memory].map(|kind| (kind, Scope::Cluster));
        let started = Instant::now();
        let Err(Obstacle::Passing(why)) = examine(&silent_cluster(), &watches).await else {
            panic!("silence is no answer");
        };
        assert_eq!(why, "no answer within 10s");
        assert!(started.elapsed() < 2 * LOOK, "side by side");
    }

    #[test]
    fn all_that_is_missing_is_said_in_one_message() {
        let unfit = |problems: &[&str]| {
            let problems = problems.iter().map(|text| (*text).to_owned()).collect();
            Unfit { problems }.to_string()
        };
        let team = Scope::Namespace("team".to_owned());
        let (list, watch) = (
            not_allowed("list", Kind::Agent, &team),
            not_allowed("watch", Kind::Memory, &Scope::Cluster),
        );
        assert_eq!(
            unfit(&[&list]),
            "the cluster is not fit for this program: no permission to list agents.agents.proompteng.ai in namespace \
             team; add it to the role of this program"
        );
        assert_eq!(
            unfit(&[&list, &watch]),
            "the cluster is not fit for this program, 2 things are missing:\n  no permission to list \
             agents.agents.proompteng.ai in namespace team; add it to the role of this program\n  no permission to watch \
             memories.agents.proompteng.ai in all namespaces; add it to the role of this program"
        );
    }
}
