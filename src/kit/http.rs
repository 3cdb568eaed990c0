//! HTTP serving: one listener, one tower service, limits on everything a client can do, and a drain at the end.
//!
//! HTTP/1.1 and, unless the TLS configuration says otherwise, HTTP/2; plain or over TLS. Knows no path and no format; that is the service's business.

mod activity;
mod body;
mod connection;
mod crowd;
pub mod events;
mod guard;
mod metrics;
mod sending;
mod trace;

use std::{convert::Infallible, io, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper_util::server::conn::auto;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{Instant, sleep, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::Service;

pub use body::{BodyError, Come, TextBody, declares_more, read_body, text};
pub use metrics::{Metrics, ServerMetrics};
pub use trace::{Traced, Tracing, traced};

use super::{
    shutdown::Shutdown,
    tls::{Protocols, ServerTls},
};
use connection::{Context, Streams};
use crowd::Crowd;

/// An error of any kind.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A tower service that can be served: every service of ours that takes a request and always answers.
pub trait HttpService:
    Service<
        Request<Incoming>,
        Response = Response<Self::Answer>,
        Error = Infallible,
        Future: Send + 'static,
    > + Clone
    + Send
    + 'static
{
    /// The body of an answer.
    type Answer: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static;
}

impl<S, B> HttpService for S
where
    S: Service<
            Request<Incoming>,
            Response = Response<B>,
            Error = Infallible,
            Future: Send + 'static,
        > + Clone
        + Send
        + 'static,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Answer = B;
}

/// Longest pause after an accept that failed, e.g. for want of file descriptors.
const ACCEPT_BACKOFF: Duration = Duration::from_secs(1);

/// No server of HTTP/2 may ask for smaller frames.
const HTTP2_LEAST_FRAME: u32 = 16 * 1024;

/// What a client may take of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections open at once. For one more, the one that has waited longest with no request in flight is closed; if all
    /// have one, it waits until one has not. An answer that comes piece by piece is in flight to its last piece.
    pub connections: usize,
    /// Time for a TLS handshake.
    pub handshake: Duration,
    /// Time from the first byte of a request, or from the opening of a connection, to the end of its head.
    pub head: Duration,
    /// Time a connection may lie idle between requests. Longer than the 90 s of Go's client, so that it is the client
    /// who gives up first: a server that closes may hit a request that is just being sent.
    pub idle: Duration,
    /// Time in which a client must take something of what is there for it.
    pub stall: Duration,
    /// Time to answer, from the end of the head; reading the body counts.
    pub request: Duration,
    /// Number of header lines.
    pub headers: usize,
    /// Bytes of a request's head, and of what is read ahead of a body.
    pub head_bytes: u32,
    /// Requests at once on one HTTP/2 connection.
    pub streams: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            handshake: Duration::from_secs(5),
            head: Duration::from_secs(10),
            idle: Duration::from_secs(120),
            stall: Duration::from_secs(30),
            request: Duration::from_secs(30),
            headers: 64,
            head_bytes: 64 * 1024,
            streams: 128,
        }
    }
}

/// How bytes travel.
#[derive(Clone, Debug)]
pub enum Transport {
    /// As they are.
    Plain,
    /// The same over HTTP/1.1 alone, for streams: whoever takes nothing there holds up its connection, by which it is found.
    PlainHttp1,
    /// Over TLS, with whatever certificate is current.
    Tls(ServerTls),
}

impl Transport {
    fn protocols(&self) -> Protocols {
        match self {
            Self::Plain => Protocols::All,
            Self::PlainHttp1 => Protocols::Http1,
            Self::Tls(tls) => tls.protocols(),
        }
    }
}

/// A port that is already open, and how to serve on it.
#[derive(Debug)]
pub struct Server {
    /// What is bound.
    pub listener: TcpListener,
    /// Plain or TLS.
    pub transport: Transport,
    /// What a client may take.
    pub limits: Limits,
    /// Where to count.
    pub metrics: ServerMetrics,
}

/// How a drain went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were still busy at the deadline and were cut.
    pub cut: usize,
}

impl Server {
    /// Serves until the shutdown has started, then finishes what is in flight by its deadline and cuts the rest.
    ///
    /// From the announcement on, answers over HTTP/1.1 close their connection, so that clients look elsewhere.
    pub async fn serve(self, service: impl HttpService, shutdown: Shutdown) -> Drained {
        let Self {
            listener,
            transport,
            limits,
            metrics,
        } = self;
        let name = metrics.server;
        let streams = Streams {
            tracker: TaskTracker::new(),
            cut: CancellationToken::new(),
        };
        let context = Arc::new(Context {
            builder: builder(limits, transport.protocols(), streams.clone()),
            transport,
            limits,
            shutdown: shutdown.clone(),
            metrics: metrics.clone(),
        });
        let service = guard::guarded(service, limits.request, metrics.clone());
        let mut acceptor = Acceptor {
            listener,
            backoff: Duration::ZERO,
            metrics,
        };
        let mut crowd = Crowd::new(limits.connections);
        let mut next = None;
        let deadline = loop {
            if next.is_some() && !crowd.has_room() {
                crowd.make_room();
            }
            if let Some(stream) = next.take_if(|_| crowd.has_room()) {
                let (context, service) = (Arc::clone(&context), service.clone());
                crowd.admit(|activity| async move {
                    connection::run(&context, stream, activity, service).await;
                });
            }
            tokio::select! {
                deadline = shutdown.started() => break deadline,
                () = crowd.changes(next.is_some()) => {}
                stream = acceptor.accept(), if next.is_none() => next = Some(stream),
            }
        };
        drop(acceptor);
        drain(name, crowd.into_tasks(), streams, deadline).await
    }
}

async fn drain(
    server: &'static str,
    mut connections: JoinSet<()>,
    streams: Streams,
    deadline: Instant,
) -> Drained {
    let finished = async { while connections.join_next().await.is_some() {} };
    // What ran out of time is in the sets, which are looked at next.
    drop(timeout_at(deadline, finished).await);
    let drained = Drained {
        cut: connections.len(),
    };
    streams.cut.cancel();
    connections.shutdown().await;
    streams.tracker.close();
    streams.tracker.wait().await;
    match drained.cut {
        0 => tracing::info!(server, "Drained"),
        cut => tracing::warn!(server, cut, "Connections cut, the time to drain is over"),
    }
    drained
}

fn builder(limits: Limits, protocols: Protocols, streams: Streams) -> auto::Builder<Streams> {
    let builder = auto::Builder::new(streams);
    let mut builder = match protocols {
        Protocols::All => builder,
        Protocols::Http1 => builder.http1_only(),
    };
    builder
        .http1()
        // hyper's own timer would also cut connections that rest between requests; see `activity`.
        .header_read_timeout(None)
        .max_headers(limits.headers)
        .max_buf_size(limits.head_bytes as usize);
    builder
        .http2()
        .max_header_list_size(limits.head_bytes)
        // As much as is read ahead over HTTP/1.1: a body in many small frames costs twice as much.
        .max_frame_size(limits.head_bytes.max(HTTP2_LEAST_FRAME))
        .max_concurrent_streams(limits.streams);
    builder
}

struct Acceptor {
    listener: TcpListener,
    backoff: Duration,
    metrics: ServerMetrics,
}

impl Acceptor {
    /// The next connection.
    async fn accept(&mut self) -> TcpStream {
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    self.backoff = Duration::ZERO;
                    return stream;
                }
                Err(error) => self.pause(error).await,
            }
        }
    }

    async fn pause(&mut self, error: io::Error) {
        use io::ErrorKind::{ConnectionAborted, ConnectionReset};
        if matches!(error.kind(), ConnectionAborted | ConnectionReset) {
            return; // a client that was gone before it was served says nothing about us
        }
        self.metrics.accept_errors.inc();
        if self.backoff.is_zero() {
            tracing::warn!(%error, "Cannot accept connections");
        }
        self.backoff = (self.backoff * 2).clamp(Duration::from_millis(10), ACCEPT_BACKOFF);
        sleep(self.backoff).await;
    }
}
