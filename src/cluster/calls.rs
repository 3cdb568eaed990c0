//! Calls to the API server, told one by one in words of closed lists: no name of an object is among them.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode, Uri};
use tower::{Layer, Service};

use crate::api::kind::Kind;
use crate::closed_labels;

closed_labels! {
    /// What a call does.
    pub enum Verb {
        /// Reads one object.
        Get = "get",
        /// Reads many.
        List = "list",
        /// Follows them.
        Watch = "watch",
        /// Makes one.
        Create = "create",
        /// Replaces one.
        Update = "update",
        /// Changes one.
        Patch = "patch",
        /// Removes one.
        Delete = "delete",
        /// Anything else.
        Other = "other",
    }
}

closed_labels! {
    /// How it went.
    pub enum Code {
        /// Well.
        Success = "2xx",
        /// Elsewhere.
        Elsewhere = "3xx",
        /// Not allowed.
        Forbidden = "403",
        /// There is no such object.
        NotFound = "404",
        /// Someone else wrote first, or it is there already.
        Conflict = "409",
        /// Too many calls.
        Throttled = "429",
        /// Something else was wrong with it.
        Client = "4xx",
        /// The API server has trouble.
        Server = "5xx",
        /// No answer.
        NoAnswer = "none",
    }
}

/// Resources besides our own kinds that are told by name.
const KNOWN: [&str; 11] = [
    "configmaps",
    "customresourcedefinitions",
    "events",
    "jobs",
    "leases",
    "namespaces",
    "persistentvolumeclaims",
    "pods",
    "secrets",
    "selfsubjectaccessreviews",
    "validatingwebhookconfigurations",
];

/// Every other one.
const OTHER: &str = "other";

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// What it does.
    pub verb: Verb,
    /// To what.
    pub resource: &'static str,
    /// How it went.
    pub code: Code,
    /// Time to the head of the answer.
    pub took: Duration,
}

/// Who is told.
pub type Witness = Arc<dyn Fn(&Call) + Send + Sync>;

/// A layer that tells of each call.
#[derive(Clone)]
pub(super) struct Told(pub(super) Witness);

impl<S> Layer<S> for Told {
    type Service = Telling<S>;

    fn layer(&self, inner: S) -> Telling<S> {
        Telling {
            inner,
            witness: Arc::clone(&self.0),
        }
    }
}

/// A client that tells of its calls.
#[derive(Clone)]
pub(super) struct Telling<S> {
    inner: S,
    witness: Witness,
}

impl<S, A, B> Service<Request<A>> for Telling<S>
where
    S: Service<Request<A>, Response = Response<B>, Future: Send + 'static>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let (verb, resource) = read(request.method(), request.uri());
        let witness = Arc::clone(&self.witness);
        let started = Instant::now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            let status = answer.as_ref().ok().map(Response::status);
            witness(&Call {
                verb,
                resource,
                code: code(status),
                took: started.elapsed(),
            });
            answer
        })
    }
}

fn code(status: Option<StatusCode>) -> Code {
    let Some(status) = status else {
        return Code::NoAnswer;
    };
    match status.as_u16() {
        403 => Code::Forbidden,
        404 => Code::NotFound,
        409 => Code::Conflict,
        429 => Code::Throttled,
        100..=299 => Code::Success,
        300..=399 => Code::Elsewhere,
        400..=499 => Code::Client,
        _ => Code::Server,
    }
}

/// What a request is about, from its path: `/api/v1/...` or `/apis/GROUP/VERSION/...`, then perhaps `namespaces/NAME`,
/// then the resource, then perhaps a name and more.
fn read(method: &Method, uri: &Uri) -> (Verb, &'static str) {
    let mut parts = uri.path().trim_matches('/').split('/');
    let group = match parts.next() {
        Some("api") => parts.next().is_some(),
        Some("apis") => parts.next().is_some() && parts.next().is_some(),
        Some(_) | None => false,
    };
    let parts: Vec<&str> = parts.collect();
    let (resource, name) = match parts.as_slice() {
        _ if !group => (None, None),
        ["namespaces", _, resource, rest @ ..] => (Some(*resource), rest.first()),
        [resource, rest @ ..] => (Some(*resource), rest.first()),
        [] => (None, None),
    };
    let is_watch = uri.query().is_some_and(|query| {
        let mut words = query.split('&');
        words.any(|word| word == "watch=true" || word == "watch=1")
    });
    let verb = match (method, resource.is_some(), name.is_some()) {
        (&Method::GET, true, _) if is_watch => Verb::Watch,
        (&Method::GET, true, true) => Verb::Get,
        (&Method::GET, true, false) => Verb::List,
        (&Method::POST, true, _) => Verb::Create,
        (&Method::PUT, true, _) => Verb::Update,
        (&Method::PATCH, true, _) => Verb::Patch,
        (&Method::DELETE, true, _) => Verb::Delete,
        _ => Verb::Other,
    };
    (verb, resource.map_or(OTHER, known))
}

fn known(resource: &str) -> &'static str {
    let ours = Kind::ALL.map(Kind::plural);
    let mut all = ours.into_iter().chain(KNOWN);
    all.find(|known| *known == resource).unwrap_or(OTHER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_told_by_what_it_does_and_to_what() {
        for (method, path, verb, resource) in [
            (
                "GET",
                "/api/v1/namespaces/a/pods?labelSelector=x",
                Verb::List,
                "pods",
            ),
            ("GET", "/api/v1/namespaces/a/pods/p", Verb::Get, "pods"),
            ("GET", "/api/v1/pods?watch=true&x=1", Verb::Watch, "pods"),
            ("GET", "/api/v1/namespaces/a", Verb::Get, "namespaces"),
            ("GET", "/api/v1/namespaces", Verb::List, "namespaces"),
            (
                "POST",
                "/apis/batch/v1/namespaces/a/jobs",
                Verb::Create,
                "jobs",
            ),
            (
                "DELETE",
                "/apis/batch/v1/namespaces/a/jobs/j",
                Verb::Delete,
                "jobs",
            ),
            (
                "PATCH",
                "/apis/agents.proompteng.ai/v1alpha1/namespaces/a/agentruns/r/status",
                Verb::Patch,
                "agentruns",
            ),
            (
                "PUT",
                "/apis/coordination.k8s.io/v1/namespaces/a/leases/l",
                Verb::Update,
                "leases",
            ),
            (
                "GET",
                "/apis/x.io/v1/namespaces/a/things",
                Verb::List,
                "other",
            ),
            ("GET", "/version", Verb::Other, "other"),
            ("GET", "/apis", Verb::Other, "other"),
        ] {
            let (method, uri) = (method.parse().unwrap(), path.parse().unwrap());
            assert_eq!(read(&method, &uri), (verb, resource), "{method} {path}");
        }
    }

    #[test]
    fn a_code_is_of_a_closed_list() {
        for (status, expected) in [
            (200, "2xx"),
            (201, "2xx"),
            (400, "4xx"),
            (404, "404"),
            (409, "409"),
            (429, "429"),
            (503, "5xx"),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(code(Some(status)).as_str(), expected);
        }
        assert_eq!(code(None).as_str(), "none");
    }
}
