//! What every request is protected by, whatever the service does: a deadline, and a net under panics.

use std::{any::Any, convert::Infallible, future::Future, time::Duration};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use hyper::body::{Body, Incoming};
use tower::{Service, ServiceBuilder};
use tower_http::{
    catch_panic::{CatchPanicLayer, ResponseForPanic},
    timeout::TimeoutLayer,
};

use super::{
    BoxError, ServerMetrics,
    body::{TextBody, text},
    metrics::Failure,
};

/// The answer when the deadline has passed. No service of ours answers with it by itself, so it can be counted.
const DEADLINE: StatusCode = StatusCode::GATEWAY_TIMEOUT;

/// The service behind its guards.
pub(super) fn guarded<S, B>(
    service: S,
    deadline: Duration,
    metrics: ServerMetrics,
) -> impl Service<
    Request<Incoming>,
    Response = Response<impl Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static>,
    Error = Infallible,
    Future = impl Future + Send + 'static,
> + Clone
+ Send
+ 'static
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Default + Send + 'static,
    B::Error: Into<BoxError>,
{
    let panics = PanicAnswer {
        metrics: metrics.clone(),
    };
    ServiceBuilder::new()
        .map_response(move |response: Response<_>| {
            if response.status() == DEADLINE {
                metrics.failed(Failure::Deadline);
            }
            response
        })
        .layer(CatchPanicLayer::custom(panics))
        .layer(TimeoutLayer::with_status_code(DEADLINE, deadline))
        .service(service)
}

/// Counts a panic and answers for the one who panicked. The panic hook has logged it already.
#[derive(Clone)]
struct PanicAnswer {
    metrics: ServerMetrics,
}

impl ResponseForPanic for PanicAnswer {
    type ResponseBody = TextBody;

    fn response_for_panic(&mut self, _: Box<dyn Any + Send>) -> Response<TextBody> {
        self.metrics.failed(Failure::Panic);
        text(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal error, see the log\n",
        )
    }
}
