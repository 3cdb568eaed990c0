//! One connection from handshake to close.

use std::{
    convert::Infallible,
    future::Future,
    pin::{Pin, pin},
    task::{self, Poll, ready},
};

use http::{HeaderValue, Request, Response, Version, header};
use hyper::{body::Incoming, rt::Executor, service::service_fn};
use hyper_util::{rt::TokioIo, server::conn::auto};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::{Instant, Sleep, sleep_until, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt;

use super::{
    HttpService, Limits, ServerMetrics, Transport,
    activity::{Activity, Watched},
    metrics::Close,
    sending::{self, sent},
};
use crate::kit::shutdown::Shutdown;

/// What all connections of a server share.
pub(super) struct Context {
    pub(super) builder: auto::Builder<Streams>,
    pub(super) transport: Transport,
    pub(super) limits: Limits,
    pub(super) shutdown: Shutdown,
    pub(super) metrics: ServerMetrics,
}

/// Owner of the tasks that hyper starts for HTTP/2 streams.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    pub(super) tracker: TaskTracker,
    pub(super) cut: CancellationToken,
}

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let cut = self.cut.clone();
        self.tracker
            .spawn(async move { cut.run_until_cancelled(stream).await });
    }
}

/// Serves one connection to its end.
pub(super) async fn run(
    context: &Context,
    stream: TcpStream,
    activity: Activity,
    service: impl HttpService,
) {
    let open = context.metrics.open();
    // Answers are small and complete: waiting for more to send would only delay them.
    drop(stream.set_nodelay(true));
    let close = match &context.transport {
        Transport::Plain | Transport::PlainHttp1 => {
            converse(context, stream, activity, service).await
        }
        Transport::Tls(tls) => {
            let handshake = timeout(context.limits.handshake, tls.accept(stream));
            let shaken = tokio::select! {
                shaken = handshake => shaken,
                () = activity.asked() => return open.closed(Close::Displaced),
            };
            match shaken {
                Ok(Ok(stream)) => converse(context, stream, activity, service).await,
                Ok(Err(error)) => {
                    tracing::debug!(%error, "Handshake failed");
                    Close::HandshakeFailed
                }
                Err(_) => Close::HandshakeDeadline,
            }
        }
    };
    open.closed(close);
}

/// HTTP over a stream of bytes.
async fn converse<T>(
    context: &Context,
    stream: T,
    activity: Activity,
    service: impl HttpService,
) -> Close
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    activity.shaken();
    let answers = service_fn({
        let (activity, shutdown) = (activity.clone(), context.shutdown.clone());
        move |request| answer(request, service.clone(), activity.clone(), shutdown.clone())
    });
    let io = TokioIo::new(Watched {
        stream,
        activity: activity.clone(),
    });
    let mut connection = pin!(context.builder.serve_connection(io, answers));
    let mut started = pin!(context.shutdown.started());
    let mut displaced = pin!(displaced(&activity));
    let mut timer = pin!(sleep_until(Instant::now() + context.limits.head));
    let (mut draining, mut told) = (false, false);
    std::future::poll_fn(|cx| {
        loop {
            if let Poll::Ready(result) = connection.as_mut().poll(cx) {
                return Poll::Ready(Close::after(result));
            }
            draining = draining || started.as_mut().poll(cx).is_ready();
            if draining && !told && activity.may_close() {
                told = true;
                connection.as_mut().graceful_shutdown();
                continue;
            }
            if displaced.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Close::Displaced);
            }
            return overdue(timer.as_mut(), &activity, &context.limits, cx);
        }
    })
    .await
}

/// Ready once the connection has been at what it is doing for too long.
fn overdue(
    mut timer: Pin<&mut Sleep>,
    activity: &Activity,
    limits: &Limits,
    cx: &mut task::Context<'_>,
) -> Poll<Close> {
    loop {
        let due = activity.due(limits);
        // The timer is moved only if it would be late; a request that comes and goes in between costs nothing.
        if let Some((due, _)) = due.filter(|(due, _)| *due < timer.deadline()) {
            timer.as_mut().reset(due);
        }
        ready!(timer.as_mut().poll(cx));
        match due {
            Some((due, cause)) if due <= Instant::now() => {
                activity.closes(cause);
                return Poll::Ready(cause);
            }
            Some((due, _)) => timer.as_mut().reset(due),
            None => timer.as_mut().reset(Instant::now() + limits.head),
        }
    }
}

/// Waits until the connection was asked to make room and can.
async fn displaced(activity: &Activity) {
    loop {
        activity.asked().await;
        if activity.is_yielding() {
            return;
        }
    }
}

async fn answer<S: HttpService>(
    request: Request<Incoming>,
    service: S,
    activity: Activity,
    shutdown: Shutdown,
) -> Result<Response<sending::Answer<S::Answer>>, Infallible> {
    let version = request.version();
    let in_flight = activity.begin(version);
    let mut response = service.oneshot(request).await?;
    if let Some(reader) = response.extensions_mut().remove() {
        activity.serves(reader);
    }
    // HTTP/2 has a frame for this, which hyper sends when the drain starts.
    if version != Version::HTTP_2 && shutdown.is_announced() {
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(sent(response, in_flight))
}
