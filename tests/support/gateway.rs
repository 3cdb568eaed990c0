//! A way to the API server that notes what is written, and that can close after a write of one's choice: the write is
//! made, but whoever made it never hears of it. So a crash can be tried at every step without a line of code for it. It can
//! also hold requests back, or cut their connections.

use anyhow::{Context, Result, ensure};
use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::BodyExt;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kube::{Client, client::Body};
use serde_json::Value;
use std::{
    fs,
    future::pending,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;
use tokio::{net::TcpListener, sync::watch, task::JoinSet, time::timeout};

use crate::cluster;

/// What is written beside the objects: nobody's outcome depends on it.
const ASIDE: [&str; 4] = [
    "events",
    "leases",
    "selfsubjectaccessreviews",
    "selfsubjectrulesreviews",
];

/// A way to the API server, open until it is dropped.
pub struct Gateway {
    shared: Arc<Shared>,
    kubeconfig: PathBuf,
    closed: watch::Receiver<bool>,
    _folder: TempDir,
    _serving: JoinSet<()>,
}

struct Shared {
    client: Client,
    close_after: Option<usize>,
    writes: Mutex<Vec<String>>,
    /// Writes whose answer was passed on.
    answered: AtomicUsize,
    asides: Mutex<Vec<String>>,
    reads: Mutex<Vec<String>>,
    refused: Mutex<Vec<String>>,
    closed: watch::Sender<bool>,
    held: watch::Sender<Option<Which>>,
    cut: watch::Sender<Option<Which>>,
    /// Requests that were held back or cut so far.
    stopped: watch::Sender<usize>,
    altered: watch::Sender<Option<fn(&mut Value)>>,
    /// What answers say of the time, if not the truth.
    time: watch::Sender<Option<HeaderValue>>,
}

/// Which requests are held back or cut, by method and path.
type Which = fn(&Method, &str) -> bool;

impl Gateway {
    /// Opens a way to the API server of a kubeconfig, with all rights that it gives. It closes after so many writes.
    pub async fn open(kubeconfig: &Path, close_after: Option<usize>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let folder = TempDir::new()?;
        let own = folder.path().join("kubeconfig");
        let server = listener.local_addr()?;
        fs::write(
            &own,
            format!(
                "{{apiVersion: v1, kind: Config, current-context: way, \
                 clusters: [{{name: way, cluster: {{server: 'http://{server}'}}}}], \
                 users: [{{name: way, user: {{}}}}], \
                 contexts: [{{name: way, context: {{cluster: way, user: way}}}}]}}"
            ),
        )?;
        let (sender, closed) = watch::channel(false);
        let shared = Arc::new(Shared {
            client: cluster::client(kubeconfig).await?,
            close_after,
            writes: Mutex::default(),
            answered: AtomicUsize::new(0),
            asides: Mutex::default(),
            reads: Mutex::default(),
            refused: Mutex::default(),
            closed: sender,
            held: watch::Sender::new(None),
            cut: watch::Sender::new(None),
            stopped: watch::Sender::new(0),
            altered: watch::Sender::new(None),
            time: watch::Sender::new(None),
        });
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Arc::clone(&shared)));
        Ok(Self {
            shared,
            kubeconfig: own,
            closed,
            _folder: folder,
            _serving: serving,
        })
    }

    /// How to go this way.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// What was written so far, as method and resource, without names.
    pub fn writes(&self) -> Vec<String> {
        self.shared.writes().clone()
    }

    /// How many writes there were, if all of them were answered.
    pub fn answered(&self) -> Option<usize> {
        let answered = self.shared.answered.load(Ordering::SeqCst);
        (answered == self.shared.writes().len()).then_some(answered)
    }

    /// What was written beside that, such as Events.
    pub fn asides(&self) -> Vec<String> {
        locked(&self.shared.asides).clone()
    }

    /// What was read so far, as paths.
    pub fn reads(&self) -> Vec<String> {
        locked(&self.shared.reads).clone()
    }

    /// What the API server did not allow, as method and path.
    pub fn refused(&self) -> Vec<String> {
        locked(&self.shared.refused).clone()
    }

    /// Tells this time with every answer from now on, as a server whose clock is wrong.
    pub fn tell_time(&self, time: HeaderValue) {
        self.shared.time.send_replace(Some(time));
    }

    /// Holds such requests back from now on. Who breaks one off has never made it.
    pub fn hold(&self, held: Which) {
        self.shared.held.send_replace(Some(held));
    }

    /// Cuts the connections of such requests from now on, before they are made.
    pub fn cut(&self, cut: Which) {
        self.shared.cut.send_replace(Some(cut));
    }

    /// Waits until some request was held back.
    pub async fn until_holding(&self, deadline: Duration) -> Result<()> {
        self.until_stopped(1, deadline).await
    }

    /// Waits until so many requests were held back or cut.
    pub async fn until_stopped(&self, count: usize, deadline: Duration) -> Result<()> {
        let mut stopped = self.shared.stopped.subscribe();
        let waited = timeout(deadline, stopped.wait_for(|stopped| *stopped >= count)).await;
        waited.with_context(|| format!("not {count} requests were stopped in time"))??;
        Ok(())
    }

    /// Lets pass what was held back, and cuts nothing any more.
    pub fn release(&self) {
        self.shared.held.send_replace(None);
        self.shared.cut.send_replace(None);
    }

    /// Changes what the API server says about its kinds, as one with other CRDs would.
    pub fn alter_kinds(&self, alter: fn(&mut Value)) {
        self.shared.altered.send_replace(Some(alter));
    }

    /// Waits until the way is closed.
    pub async fn closed(&self, deadline: Duration) -> Result<()> {
        let mut closed = self.closed.clone();
        let waited = timeout(deadline, closed.wait_for(|closed| *closed)).await;
        let writes = self.shared.writes();
        waited.with_context(|| format!("still open after {writes:?}"))??;
        Ok(())
    }
}

impl Shared {
    fn writes(&self) -> MutexGuard<'_, Vec<String>> {
        locked(&self.writes)
    }

    /// Notes a write; says whether it is the last one.
    fn note(&self, write: String) -> bool {
        let mut writes = self.writes();
        writes.push(write);
        self.close_after == Some(writes.len())
    }

    async fn pass(&self, request: Request<Incoming>) -> Result<Response<Body>> {
        if *self.closed.borrow() {
            return pending().await;
        }
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let passes = |stop: &Option<Which>| !stop.is_some_and(|stop| stop(&method, &path));
        let mut held = self.held.subscribe();
        let is_cut = !passes(&self.cut.borrow());
        if is_cut || !passes(&held.borrow()) {
            self.stopped.send_modify(|stopped| *stopped += 1);
        }
        ensure!(!is_cut, "{method} {path} is cut");
        held.wait_for(passes).await?;
        if method == Method::GET {
            locked(&self.reads).push(path.clone());
        }
        let is_last = counted(&method, &path).map(|write| self.note(write));
        if is_last.is_none() && method != Method::GET {
            locked(&self.asides).push(format!("{method} {path}"));
        }
        let mut answer = self.forward(request).await?;
        if let Some(time) = &*self.time.borrow() {
            answer.headers_mut().insert(header::DATE, time.clone());
        }
        if matches!(answer.status().as_u16(), 401 | 403) {
            locked(&self.refused).push(format!("{method} {path}"));
        }
        if is_last == Some(true) {
            self.closed.send_replace(true);
            return pending().await;
        }
        self.answered
            .fetch_add(usize::from(is_last.is_some()), Ordering::SeqCst);
        let altered = *self.altered.borrow();
        match altered.filter(|_| is_about_kinds(&path)) {
            None => Ok(answer),
            Some(alter) => {
                let body = answer.into_body().collect_bytes().await?;
                let mut described = serde_json::from_slice(&body)?;
                alter(&mut described);
                let body = described.to_string().into_bytes();
                Ok(Response::new(Body::from(body)))
            }
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a program under test sends what it likes"
    )]
    async fn forward(&self, request: Request<Incoming>) -> Result<Response<Body>> {
        let (mut head, body) = request.into_parts();
        for own in ["host", "connection", "content-length"] {
            head.headers.remove(own);
        }
        let body = body.collect().await?.to_bytes();
        let request = Request::from_parts(head, Body::from(body.to_vec()));
        Ok(self.client.send(request).await?)
    }
}

/// Whether the API server says there which kinds it has, or what is in them.
fn is_about_kinds(path: &str) -> bool {
    let is_discovery = path.starts_with("/apis/") && path.split('/').count() == 4;
    is_discovery || path.starts_with("/openapi/v3/apis/")
}

fn locked<T>(list: &Mutex<T>) -> MutexGuard<'_, T> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a request writes, if that counts.
fn counted(method: &Method, path: &str) -> Option<String> {
    if *method == Method::GET {
        return None;
    }
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let from = parts.iter().position(|part| *part == "namespaces")?;
    let resource = parts.get(from + 2)?;
    let part = parts.get(from + 4).map(|part| format!("/{part}"));
    let is_aside = ASIDE.contains(resource);
    (!is_aside).then(|| format!("{method} {resource}{}", part.unwrap_or_default()))
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            let service = service_fn(|request| shared.pass(request));
            // Whoever is killed breaks off; that is what this is for.
            drop(
                http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await,
            );
        });
        while connections.try_join_next().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_of_objects_count_and_others_do_not() {
        let runs = "/apis/agents.proompteng.ai/v1alpha1/namespaces/x/agentruns";
        for (method, path, expected) in [
            (Method::GET, format!("{runs}/a"), None),
            (Method::PATCH, format!("{runs}/a"), Some("PATCH agentruns")),
            (
                Method::PATCH,
                format!("{runs}/a/status"),
                Some("PATCH agentruns/status"),
            ),
            (
                Method::POST,
                "/api/v1/namespaces/x/configmaps".to_owned(),
                Some("POST configmaps"),
            ),
            (
                Method::POST,
                "/apis/events.k8s.io/v1/namespaces/x/events".to_owned(),
                None,
            ),
            (
                Method::PUT,
                "/apis/coordination.k8s.io/v1/namespaces/x/leases/l".to_owned(),
                None,
            ),
            (
                Method::POST,
                "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned(),
                None,
            ),
        ] {
            assert_eq!(
                counted(&method, &path).as_deref(),
                expected,
                "{method} {path}"
            );
        }
    }
}
