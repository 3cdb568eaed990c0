//! An HTTP server of someone else, on this machine: it answers as a test wants and keeps what it was asked.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use agents::kit::http::read_body;
use anyhow::Result;
use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Allows controllers to call servers on this machine.
pub(in crate::controller) const LOOPBACK: (&str, &str) = ("AGENTS_EGRESS_ALLOW_LOOPBACK", "true");

/// What the server was asked.
#[derive(Clone, Debug)]
pub(in crate::controller) struct Asked {
    pub(in crate::controller) method: String,
    /// With the query.
    pub(in crate::controller) path: String,
    pub(in crate::controller) headers: HeaderMap,
    pub(in crate::controller) body: String,
    /// How many questions came before it.
    pub(in crate::controller) before: usize,
}

impl Asked {
    pub(in crate::controller) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    }
}

type Answers = Arc<dyn Fn(&Asked) -> Response<String> + Send + Sync>;

/// A server, open until it is dropped.
pub(in crate::controller) struct Endpoint {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    _serving: JoinSet<()>,
}

impl Endpoint {
    pub(in crate::controller) async fn start(
        answer: impl Fn(&Asked) -> Response<String> + Send + Sync + 'static,
    ) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let asked = Arc::default();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Arc::new(answer), Arc::clone(&asked)));
        Ok(Self {
            address,
            asked,
            _serving: serving,
        })
    }

    pub(in crate::controller) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Everything that it was asked so far.
    pub(in crate::controller) fn asked(&self) -> Vec<Asked> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.clone()
    }
}

async fn serve(listener: TcpListener, answers: Answers, asked: Arc<Mutex<Vec<Asked>>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (answers, asked) = (Arc::clone(&answers), Arc::clone(&asked));
        connections.spawn(async move {
            let service = service_fn(move |request| {
                let (answers, asked) = (Arc::clone(&answers), Arc::clone(&asked));
                async move { Ok::<_, Infallible>(answer(request, &answers, &asked).await) }
            });
            let stream = TokioIo::new(stream);
            // A caller that gives up is part of what is tested.
            drop(
                http1::Builder::new()
                    .serve_connection(stream, service)
                    .await,
            );
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    answers: &Answers,
    asked: &Mutex<Vec<Asked>>,
) -> Response<String> {
    let (head, body) = request.into_parts();
    let body = read_body(body, 1 << 20).await.unwrap_or_default();
    let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    let question = Asked {
        method: head.method.to_string(),
        path: head.uri.to_string(),
        headers: head.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
        before: asked.len(),
    };
    let answer = answers(&question);
    asked.push(question);
    answer
}

/// An answer with this status, these headers and this body.
pub(in crate::controller) fn said(
    status: u16,
    headers: &[(&str, &str)],
    body: &Value,
) -> Response<String> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(body.to_string()).expect("an answer")
}
