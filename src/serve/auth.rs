//! Who asks, and whether they may: the cluster itself says both, by TokenReview and SubjectAccessReview.
//!
//! Answers are kept for seconds, those that let nobody in for less. Where the program may not ask, nobody gets in.

mod cache;
mod review;

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, StatusCode, header};
use kube::Client;
use tokio::sync::Semaphore;
use tokio::time::timeout;

pub(super) use review::{Ask, Caller, Right};

use super::fault::{Fault, Reason};
use super::metrics::{Metrics, Review, Verdict};
use cache::{Cache, Key};

/// Longest token that is looked at; those of the cluster have about one KiB.
const LONGEST_TOKEN: usize = 16 * 1024;

/// Answers that are kept, of each sort.
const KEPT: usize = 4096;

/// Longest time that a refusal is kept: who was just given a right should not wait for it.
const REFUSAL_KEPT: Duration = Duration::from_secs(2);

/// Reviews at a time, so that a flood of wrong tokens does not become a flood at the API server.
const AT_ONCE: usize = 16;

/// Time for one review, the wait for its turn included.
const DEADLINE: Duration = Duration::from_secs(10);

/// Lets in who may come in.
pub(super) struct Gatekeeper {
    client: Client,
    audiences: Vec<String>,
    kept: Duration,
    turns: Semaphore,
    callers: Cache<Option<Arc<Caller>>>,
    rights: Cache<bool>,
    metrics: Metrics,
}

impl Gatekeeper {
    pub(super) fn new(
        client: Client,
        audiences: Vec<String>,
        kept: Duration,
        metrics: Metrics,
    ) -> Self {
        Self {
            client,
            audiences,
            kept,
            turns: Semaphore::new(AT_ONCE),
            callers: Cache::new(KEPT),
            rights: Cache::new(KEPT),
            metrics,
        }
    }

    /// Whose token it is.
    pub(super) async fn who(&self, headers: &HeaderMap) -> Result<Arc<Caller>, Fault> {
        let token = bearer(headers)?;
        let key = self.callers.key([token.as_bytes()]);
        let caller = match self.callers.get(&key) {
            Some(known) => known,
            None => self.review_token(token, key).await?,
        };
        caller.ok_or_else(|| {
            unauthenticated("the cluster does not know this token, or it has expired")
        })
    }

    async fn review_token(&self, token: &str, key: Key) -> Result<Option<Arc<Caller>>, Fault> {
        let asked = async {
            let _turn = self.turns.acquire().await;
            // Others who came with the same token may have asked while this one waited.
            if let Some(known) = self.callers.get(&key) {
                return Ok(known);
            }
            let found = review::token(&self.client, token, &self.audiences).await;
            let found = self.counted(Review::Token, found, Option::is_some)?;
            let found = found.map(Arc::new);
            self.callers
                .put(key, found.clone(), self.keep(found.is_some()));
            Ok(found)
        };
        timeout(DEADLINE, asked)
            .await
            .unwrap_or_else(|_| Err(too_slow()))
    }

    /// Whether the caller may do it.
    pub(super) async fn may(&self, caller: &Caller, ask: &Ask) -> Result<bool, Fault> {
        let key = self
            .rights
            .key(ask.parts().into_iter().chain([&*caller.identity]));
        if let Some(known) = self.rights.get(&key) {
            return Ok(known);
        }
        let asked = async {
            let _turn = self.turns.acquire().await;
            if let Some(known) = self.rights.get(&key) {
                return Ok(known);
            }
            let allowed = review::access(&self.client, caller, ask).await;
            let allowed = self.counted(Review::Access, allowed, |allowed| *allowed)?;
            self.rights.put(key, allowed, self.keep(allowed));
            Ok(allowed)
        };
        timeout(DEADLINE, asked)
            .await
            .unwrap_or_else(|_| Err(too_slow()))
    }

    /// Refuses who may not do it.
    pub(super) async fn demand(&self, caller: &Caller, ask: &Ask) -> Result<(), Fault> {
        match self.may(caller, ask).await? {
            true => Ok(()),
            false => Err(forbidden(caller, ask)),
        }
    }

    fn keep(&self, lets_in: bool) -> Duration {
        match lets_in {
            true => self.kept,
            false => self.kept.min(REFUSAL_KEPT),
        }
    }

    fn counted<T>(
        &self,
        review: Review,
        said: kube::Result<T>,
        lets_in: impl Fn(&T) -> bool,
    ) -> Result<T, Fault> {
        let verdict = match &said {
            Ok(said) if lets_in(said) => Verdict::Allowed,
            Ok(_) => Verdict::Denied,
            Err(_) => Verdict::Failed,
        };
        self.metrics.reviewed(review, verdict);
        said.map_err(|error| {
            let forbidden = matches!(&error, kube::Error::Api(status) if status.code == 403);
            if forbidden {
                not_permitted(review)
            } else {
                error.into()
            }
        })
    }
}

/// The token that a request brings.
fn bearer(headers: &HeaderMap) -> Result<&str, Fault> {
    let Some(given) = headers.get(header::AUTHORIZATION) else {
        return Err(unauthenticated("there is no bearer token"));
    };
    let given = given.to_str().unwrap_or_default();
    let token = match given.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
        _ => "",
    };
    let fits = !token.is_empty() && token.len() <= LONGEST_TOKEN;
    fits.then_some(token)
        .ok_or_else(|| unauthenticated("the header Authorization holds no bearer token"))
}

fn unauthenticated(message: &str) -> Fault {
    Fault::new(StatusCode::UNAUTHORIZED, Reason::Unauthenticated, message).next(
        "send `Authorization: Bearer TOKEN` with a token of the cluster, such as one of `kubectl create token NAME`",
    )
}

fn forbidden(caller: &Caller, ask: &Ask) -> Fault {
    let message = format!("{} is not allowed to {ask}", caller.name);
    Fault::new(StatusCode::FORBIDDEN, Reason::Forbidden, message)
        .next("ask whoever gives rights in this namespace for a role that allows it")
}

fn not_permitted(review: Review) -> Fault {
    let message = format!(
        "nobody can be let in: the control plane is not allowed to create {}",
        review.resource()
    );
    Fault::new(
        StatusCode::SERVICE_UNAVAILABLE,
        Reason::ReviewsNotPermitted,
        message,
    )
    .next("bind the ClusterRole system:auth-delegator to the service account of the control plane")
}

fn too_slow() -> Fault {
    let message = "the API server did not say in time who asks and what they may do";
    let status = StatusCode::SERVICE_UNAVAILABLE;
    Fault::new(status, Reason::ApiServerUnreachable, message)
        .next("try again")
        .again_after(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bearer_token_counts() {
        let token = |given: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, given.parse().unwrap());
            bearer(&headers).map(str::to_owned).ok()
        };
        assert_eq!(token("Bearer abc"), Some("abc".to_owned()));
        assert_eq!(token("bearer  abc "), Some("abc".to_owned()));
        for wrong in ["", "abc", "Bearer", "Bearer ", "Basic abc"] {
            assert_eq!(token(wrong), None, "{wrong}");
        }
        assert_eq!(
            token(&format!("Bearer {}", "x".repeat(LONGEST_TOKEN + 1))),
            None
        );
        let none = bearer(&HeaderMap::new()).unwrap_err();
        assert_eq!(none.status, StatusCode::UNAUTHORIZED);
    }
}
