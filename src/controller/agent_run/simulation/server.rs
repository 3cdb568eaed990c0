//! The model API server as the client sees it, with the faults of a real one: conflicts, refusals, answers that are lost,
//! and a controller that dies at any call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::world::{Propagation, Sort, finalizers, is_held, matches, name, uid};
use super::{Sim, world::NAMESPACE};
use crate::api::contract::finalizer;

/// One process of the controller, until it dies.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) sim: Arc<Mutex<Sim>>,
    /// The controller has died.
    pub(super) death: Arc<Notify>,
}

/// What a request is about.
struct Call {
    method: Method,
    sort: Sort,
    name: Option<String>,
    is_status: bool,
    selector: String,
    body: Value,
}

impl Call {
    fn makes_job(&self) -> bool {
        self.method == Method::POST && self.sort == Sort::Job
    }
}

type Answer = (StatusCode, Arc<Value>);

impl Server {
    pub(super) fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { server.answer(request).await }
        });
        Client::new(service, NAMESPACE)
    }

    pub(super) fn sim(&self) -> MutexGuard<'_, Sim> {
        self.sim.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, request: Request<Body>) -> Result<Response<Full<Bytes>>, String> {
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await;
        let body = body.map_err(|error| error.to_string())?;
        let body = serde_json::from_slice(&body).unwrap_or_default();
        let path = parts.uri.path().to_owned();
        let query = parts.uri.query().unwrap_or_default().to_owned();
        let (status, answer) = match read(parts.method, &path, &query, body) {
            Some(call) => {
                let fate = self.sim().fate(call.makes_job());
                if fate == Fate::DiesBefore {
                    self.die().await;
                }
                let answer = self.sim().handle(&call, fate);
                if fate == Fate::DiesAfter {
                    self.die().await;
                }
                answer
            }
            None => about_others(&path),
        };
        let bytes = serde_json::to_vec(&*answer).map_err(|error| error.to_string())?;
        let bytes = Bytes::from(bytes);
        let answer = Response::builder().status(status).body(Full::new(bytes));
        answer.map_err(|error| error.to_string())
    }

    async fn die(&self) {
        self.sim().world.say("the controller dies");
        self.death.notify_one();
        std::future::pending().await
    }
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Fine,
    /// It is refused for now.
    Refused,
    /// It is carried out, and the answer is lost.
    Unheard,
    DiesBefore,
    DiesAfter,
}

fn read(method: Method, path: &str, query: &str, body: Value) -> Option<Call> {
    let (_, path) = path.split_once("/namespaces/")?;
    let mut parts = path.split('/').skip(1);
    let sort = match parts.next()? {
        "agentruns" => Sort::Run,
        "jobs" => Sort::Job,
        "pods" => Sort::Pod,
        "configmaps" => Sort::ConfigMap,
        _ => return None,
    };
    let name = parts.next().map(str::to_owned);
    let selector = query
        .split('&')
        .find_map(|part| part.strip_prefix("labelSelector="));
    let selector = selector.unwrap_or_default();
    let selector = selector.replace("%2F", "/").replace("%3D", "=");
    Some(Call {
        method,
        sort,
        name,
        is_status: parts.next() == Some("status"),
        selector,
        body,
    })
}

/// Namespaces stay, and nothing else is asked for.
fn about_others(path: &str) -> Answer {
    if path == format!("/api/v1/namespaces/{NAMESPACE}") {
        let found = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": NAMESPACE}});
        return (StatusCode::OK, Arc::new(found));
    }
    refusal(StatusCode::NOT_FOUND, "NotFound")
}

fn refusal(code: StatusCode, reason: &str) -> Answer {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": reason, "reason": reason, "code": code.as_u16()});
    (code, Arc::new(status))
}

impl Sim {
    fn handle(&mut self, call: &Call, fate: Fate) -> Answer {
        self.churn();
        if fate == Fate::Refused {
            return refusal(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable");
        }
        let before = self.world.news.len();
        let answer = self.carry_out(call);
        let has_written = self.world.news.len() > before;
        if has_written {
            let what = call.name.as_deref().unwrap_or("");
            let part = if call.is_status { "/status" } else { "" };
            self.world.say(format!(
                "{} {:?} {what}{part} {fate:?}",
                call.method, call.sort
            ));
        }
        self.churn();
        if fate == Fate::Unheard && has_written {
            return refusal(StatusCode::GATEWAY_TIMEOUT, "Timeout");
        }
        if call.method == Method::POST && call.sort == Sort::Job && answer.0 == StatusCode::CREATED
        {
            self.truth.heard(&answer.1);
        }
        answer
    }

    fn carry_out(&mut self, call: &Call) -> Answer {
        let found = call.name.as_deref();
        let found = found.and_then(|name| self.world.take(call.sort, name));
        match (call.method.as_str(), found, &call.name) {
            ("GET", Some(object), _) => (StatusCode::OK, object),
            ("GET", None, None) => {
                let items = self.world.all(call.sort);
                let items = items.iter().map(Arc::as_ref);
                let items: Vec<&Value> =
                    items.filter(|item| matches(item, &call.selector)).collect();
                let list =
                    json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items});
                (StatusCode::OK, Arc::new(list))
            }
            ("POST", _, _) => self.create(call),
            ("PATCH", Some(object), _) => self.patch(call, &object),
            ("DELETE", Some(object), _) => {
                let wanted = call.body["preconditions"]["uid"].as_str();
                if wanted.is_some_and(|wanted| wanted != uid(&object)) {
                    return refusal(StatusCode::CONFLICT, "Conflict");
                }
                self.world
                    .delete(call.sort, name(&object), Propagation::Background);
                let done = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"});
                (StatusCode::OK, Arc::new(done))
            }
            (_, None, _) => refusal(StatusCode::NOT_FOUND, "NotFound"),
            _ => refusal(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed"),
        }
    }

    fn create(&mut self, call: &Call) -> Answer {
        let Some(made) = self.world.create(call.sort, call.body.clone()) else {
            return refusal(StatusCode::CONFLICT, "AlreadyExists");
        };
        if call.sort == Sort::Job {
            self.truth.job_made(&self.world, &made);
        }
        (StatusCode::CREATED, made)
    }

    fn patch(&mut self, call: &Call, object: &Value) -> Answer {
        let mut next = object.clone();
        let patch = json_patch::Patch::deserialize(&call.body);
        let applied = patch.map(|patch| json_patch::patch(&mut next, &patch));
        if !matches!(applied, Ok(Ok(()))) {
            return refusal(StatusCode::UNPROCESSABLE_ENTITY, "Invalid");
        }
        if next["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] {
            return refusal(StatusCode::CONFLICT, "Conflict");
        }
        let is_new = finalizers(&next).len() > finalizers(object).len();
        if is_new && !object["metadata"]["deletionTimestamp"].is_null() {
            return refusal(StatusCode::UNPROCESSABLE_ENTITY, "Invalid");
        }
        let was_held = is_held(object, finalizer::OUTCOME);
        if call.sort == Sort::Job && was_held && !is_held(&next, finalizer::OUTCOME) {
            self.truth.job_released(&self.world, object);
        }
        if call.is_status {
            self.truth.status_written(&self.world, object, &next);
        }
        let stored = self.world.put(call.sort, next);
        (StatusCode::OK, stored)
    }
}
