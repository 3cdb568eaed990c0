//! What every request is protected by, whatever the service does: a deadline, and a net under panics.

use std::{any::Any, sync::Arc, time::Duration};

use http::{Request, Response, StatusCode};
use http_body_util::Either;
use hyper::body::Incoming;
use tokio::time::timeout;
use tower::{ServiceBuilder, ServiceExt, service_fn};
use tower_http::catch_panic::{CatchPanicLayer, ResponseForPanic};

use super::{
    HttpService, ServerMetrics,
    body::{TextBody, text},
    metrics::Failure,
};

/// The answer when the deadline has passed.
const DEADLINE: StatusCode = StatusCode::GATEWAY_TIMEOUT;

/// The service behind its guards.
pub(super) fn guarded(
    service: impl HttpService,
    deadline: Duration,
    metrics: ServerMetrics,
) -> impl HttpService {
    // Layers are cloned for every request, and one count is cheaper to clone than a bundle of handles.
    let metrics = Arc::new(metrics);
    let panics = PanicAnswer {
        metrics: Arc::clone(&metrics),
    };
    let service = ServiceBuilder::new()
        .layer(CatchPanicLayer::custom(panics))
        .service(service);
    service_fn(move |request: Request<Incoming>| {
        let (service, metrics) = (service.clone(), Arc::clone(&metrics));
        async move {
            // The work is polled before the clock: what is answered at once never sets a timer.
            match timeout(deadline, service.oneshot(request)).await {
                Ok(answered) => answered.map(|response| response.map(Either::Left)),
                Err(_) => {
                    metrics.failed(Failure::Deadline);
                    let mut response = Response::new(Either::Right(TextBody::default()));
                    *response.status_mut() = DEADLINE;
                    Ok(response)
                }
            }
        }
    })
}

/// Counts a panic and answers for the one who panicked. The panic hook has logged it already.
#[derive(Clone)]
struct PanicAnswer {
    metrics: Arc<ServerMetrics>,
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
