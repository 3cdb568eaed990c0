//! The look at the cluster before anything is followed: whether the CRDs are there and may be listed and watched.

use std::time::Duration;

use agents::api::contract::VERSION;
use agents::api::kind::Kind;
use agents::cluster::{self, Obstacle, Scope, Unfit};
use futures::future::join_all;
use kube::api::ListParams;
use kube::core::{ApiResource, DynamicObject, DynamicResourceScope};
use kube::{Api, Client};
use tokio::time::timeout;

/// Time for the look at one watch. A connection that is half open would hold up readiness for minutes.
const LOOK: Duration = Duration::from_secs(10);

/// What a look at one watch gave.
enum Found {
    Fit,
    /// It will not work, and what to do about it.
    Unfit(String),
    /// The API server did not answer, which may pass.
    NoAnswer(String),
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
    match (Unfit::of(problems), silence) {
        (Some(unfit), _) => Err(Obstacle::Lasting(unfit)),
        (None, Some(why)) => Err(Obstacle::Passing(why)),
        (None, None) => Ok(()),
    }
}

async fn look(client: &Client, kind: Kind, scope: &Scope) -> Found {
    let objects: Api<DynamicObject> = api(client, kind, scope);
    let one = ListParams::default().limit(1);
    match objects.list_metadata(&one).await {
        Ok(_) => match may_watch(client, kind, scope).await {
            true => Found::Fit,
            false => Found::Unfit(lacking("watch", kind, scope)),
        },
        Err(kube::Error::Api(status)) if status.code == 404 => Found::Unfit(format!(
            "{}.{} is not installed; run `{}`",
            kind.plural(),
            kind.group(),
            cluster::APPLY
        )),
        Err(kube::Error::Api(status)) if status.code == 403 => {
            Found::Unfit(lacking("list", kind, scope))
        }
        Err(error) => Found::NoAnswer(error.to_string()),
    }
}

fn lacking(verb: &str, kind: Kind, scope: &Scope) -> String {
    let what = format!("{}.{}", kind.plural(), kind.group());
    cluster::not_allowed(verb, &what, scope)
}

/// Whether a watch is allowed. Where nobody answers that, the watch will tell.
async fn may_watch(client: &Client, kind: Kind, scope: &Scope) -> bool {
    let allowed = cluster::may(client, kind.group(), kind.plural(), "watch", scope);
    allowed.await.unwrap_or(true)
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
            Unfit::of(problems).map(|unfit| unfit.to_string())
        };
        let team = Scope::Namespace("team".to_owned());
        let (list, watch) = (
            lacking("list", Kind::Agent, &team),
            lacking("watch", Kind::Memory, &Scope::Cluster),
        );
        assert_eq!(
            unfit(&[&list]),
            Some("the cluster is not fit for this program: no permission to list agents.agents.proompteng.ai in namespace \
             team; add it to the role of this program".to_owned())
        );
        assert_eq!(
            unfit(&[&list, &watch]),
            Some("the cluster is not fit for this program, 2 things are missing:\n  no permission to list \
             agents.agents.proompteng.ai in namespace team; add it to the role of this program\n  no permission to watch \
             memories.agents.proompteng.ai in all namespaces; add it to the role of this program".to_owned())
        );
    }
}
