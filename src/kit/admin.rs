//! The admin endpoint: is it alive, is it ready, what does it measure, where does its time go.
//!
//! Paths come from the caller, since they are part of the contract with the cluster. Metrics are those of one
//! registry; what cannot be counted as it happens is a collector in it.

mod build;
mod exposition;
mod process;
mod profile;

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt, ready};
use http::{HeaderMap, Method, Request, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use prometheus_client::registry::Registry;
use tower::Service;

use super::{
    http::{BoxError, Limits, TextBody, text},
    readiness::{GateState, Readiness},
    telemetry::Identity,
};
use profile::Profiler;
pub use profile::Profiling;

/// Where each answer is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paths {
    /// Whether the process answers.
    pub livez: &'static str,
    /// Whether all gates are open.
    pub readyz: &'static str,
    /// All metrics; none where they only go out over OTLP.
    pub metrics: Option<&'static str>,
    /// A CPU profile.
    pub profile: &'static str,
}

/// The body of any page: text that is there, or one that is made while it is sent.
pub type PageBody = UnsyncBoxBody<Bytes, BoxError>;

/// Pages of a program's own, asked for before all others.
pub trait Pages: Send + Sync {
    /// The answer to a request, if it is for one of them.
    fn answer(&self, head: &Parts) -> Option<BoxFuture<'static, Response<PageBody>>>;
}

/// Makes the pages of a program, given what it measures.
pub type MakePages = Box<dyn FnOnce(Arc<Registry>) -> Arc<dyn Pages> + Send>;

/// What a client of the admin endpoint may take: few connections, but a profile takes its time.
pub fn limits() -> Limits {
    Limits {
        connections: 64,
        request: profile::LONGEST + Duration::from_secs(10),
        ..Limits::default()
    }
}

/// A registry with what every program says about itself: which build it is, and what its process uses.
pub fn registry(identity: Identity) -> Registry {
    let mut registry = Registry::default();
    build::register(identity, &mut registry);
    registry.register_collector(Box::new(process::Process));
    registry
}

/// The service behind the admin port.
#[derive(Clone)]
pub struct Admin {
    paths: Paths,
    readiness: Readiness,
    registry: Arc<Registry>,
    profiler: Profiler,
    pages: Option<Arc<dyn Pages>>,
}

impl Admin {
    /// A service that shows these gates and this registry.
    pub fn new(
        paths: Paths,
        readiness: Readiness,
        registry: Registry,
        profiling: Profiling,
        pages: Option<MakePages>,
    ) -> Self {
        let registry = Arc::new(registry);
        Self {
            paths,
            readiness,
            pages: pages.map(|make| make(Arc::clone(&registry))),
            registry,
            profiler: Profiler::new(profiling),
        }
    }

    fn metrics(&self, headers: &HeaderMap) -> Response<TextBody> {
        let accept = headers.get(header::ACCEPT);
        let accept = accept.and_then(|accept| accept.to_str().ok());
        let format = exposition::Format::accepted(accept.unwrap_or_default());
        match exposition::render(&self.registry, format) {
            Ok(page) => {
                let mut response = text(StatusCode::OK, page);
                let headers = response.headers_mut();
                headers.insert(header::CONTENT_TYPE, format.content_type());
                response
            }
            Err(_) => text(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the metrics cannot be written\n",
            ),
        }
    }
}

impl<B> Service<Request<B>> for Admin {
    type Response = Response<PageBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<PageBody>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Paths {
            livez,
            readyz,
            metrics,
            profile,
        } = self.paths;
        let (head, _) = request.into_parts();
        let reads = [Method::GET, Method::HEAD].contains(&head.method);
        let own = self.pages.as_ref().filter(|_| reads);
        if let Some(answer) = own.and_then(|pages| pages.answer(&head)) {
            return answer.map(Ok).boxed();
        }
        let (path, query) = (head.uri.path(), head.uri.query());
        let query = query.unwrap_or_default();
        let known = [livez, readyz, profile].contains(&path) || metrics == Some(path);
        let response = if !known {
            text(StatusCode::NOT_FOUND, "no such path\n")
        } else if !reads {
            text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n")
        } else if path == livez {
            text(StatusCode::OK, "alive\n")
        } else if path == readyz {
            let verbose = query.split('&').any(|word| word == "verbose");
            let (status, page) = ready_page(&self.readiness.gates(), verbose);
            text(status, page)
        } else if metrics == Some(path) {
            self.metrics(&head.headers)
        } else {
            let profile = self.profiler.answer(query);
            return profile.map(|page| Ok(whole(page))).boxed();
        };
        ready(Ok(whole(response))).boxed()
    }
}

/// A page that is there as a whole.
pub fn whole(page: Response<TextBody>) -> Response<PageBody> {
    page.map(|body| body.map_err(|never| match never {}).boxed_unsync())
}

/// The answer about readiness. Brief, it names what is closed; verbose, it lists all gates with their reasons.
fn ready_page(gates: &[GateState], verbose: bool) -> (StatusCode, Bytes) {
    let closed: Vec<_> = gates.iter().filter(|gate| gate.closed.is_some()).collect();
    let (status, mut page) = match closed.is_empty() {
        true => (StatusCode::OK, "ready\n".to_owned()),
        false => {
            let names: Vec<_> = closed.iter().map(|gate| gate.name).collect();
            let page = format!("not ready, closed: {}\n", names.join(", "));
            (StatusCode::SERVICE_UNAVAILABLE, page)
        }
    };
    if verbose {
        for GateState { name, closed, note } in gates {
            page += &match (closed, note) {
                (None, None) => format!("[+] {name}\n"),
                (None, Some(note)) => format!("[+] {name}: {note}\n"),
                (Some(reason), _) => format!("[-] {name}: {reason}\n"),
            };
        }
    }
    (status, page.into())
}

#[cfg(test)]
mod tests;
