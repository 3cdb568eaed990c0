//! A receiver of OTLP that keeps every request as it came, by gRPC or by HTTP, and answers as it is told. It is served by the
//! kit itself.

use std::{
    collections::VecDeque,
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use agents::kit::{
    http::{Drained, Limits, Metrics, Server, TextBody, Transport, read_body, text},
    shutdown::{Trigger, channel},
};
use anyhow::{Context, Result};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use tokio::{
    net::TcpListener,
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinHandle,
    time::{Instant, timeout},
};

/// No test waits longer than this for anything.
const DEADLINE: Duration = Duration::from_secs(60);
/// More than any test sends.
const MOST_BYTES: usize = 64 << 20;

/// One request.
#[derive(Clone, Debug)]
pub struct Taken {
    /// Where it went.
    pub path: String,
    /// What it said of itself.
    pub headers: HeaderMap,
    /// Its bytes; over gRPC with their frame.
    pub body: Bytes,
}

/// A receiver that runs.
pub struct Sink {
    /// Where it listens.
    pub address: SocketAddr,
    taken: UnboundedReceiver<Taken>,
    trigger: Trigger,
    serving: JoinHandle<Drained>,
}

impl Sink {
    /// Starts one at an address, which turns the first requests away with these statuses and takes all others.
    pub async fn start(address: SocketAddr, refusals: &[StatusCode]) -> Result<Self> {
        Self::start_over(Transport::Plain, address, refusals).await
    }

    /// The same, over TLS for instance.
    #[expect(clippy::disallowed_methods, reason = "the handle is kept and awaited")]
    pub async fn start_over(
        transport: Transport,
        address: SocketAddr,
        refusals: &[StatusCode],
    ) -> Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let (sender, taken) = unbounded_channel();
        let server = Server {
            listener,
            transport,
            limits: Limits::default(),
            metrics: Metrics::default().of("sink"),
        };
        let refusals: Arc<Mutex<VecDeque<_>>> =
            Arc::new(Mutex::new(refusals.iter().copied().collect()));
        let service = tower::service_fn(move |request: Request<Incoming>| {
            let (sender, refusals) = (sender.clone(), Arc::clone(&refusals));
            async move {
                let refusal = refusals
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .pop_front();
                Ok::<_, Infallible>(take(request, refusal, &sender).await)
            }
        });
        let (trigger, shutdown) = channel();
        Ok(Self {
            address,
            taken,
            trigger,
            serving: tokio::spawn(server.serve(service, shutdown)),
        })
    }

    /// The next request that was taken.
    pub async fn next(&mut self) -> Result<Taken> {
        let next = timeout(DEADLINE, self.taken.recv()).await;
        next.context("nothing was sent in time")?
            .context("the receiver has ended")
    }

    /// Ends it.
    pub async fn end(self) -> Result<()> {
        self.trigger.start(Instant::now() + DEADLINE);
        self.serving.await?;
        Ok(())
    }
}

async fn take(
    request: Request<Incoming>,
    refusal: Option<StatusCode>,
    sender: &UnboundedSender<Taken>,
) -> Response<TextBody> {
    let (head, body) = request.into_parts();
    let Ok(body) = read_body(body, MOST_BYTES).await else {
        return text(StatusCode::BAD_REQUEST, "no body");
    };
    if let Some(status) = refusal {
        let mut response = text(status, "");
        let later = HeaderValue::from_static("1");
        response.headers_mut().insert(header::RETRY_AFTER, later);
        return response;
    }
    // Who no longer looks has seen enough.
    drop(sender.send(Taken {
        path: head.uri.path().to_owned(),
        headers: head.headers,
        body,
    }));
    let mut response = text(StatusCode::OK, "");
    let headers = response.headers_mut();
    headers.insert("grpc-status", HeaderValue::from_static("0")); // by HTTP nobody looks at it
    response
}
