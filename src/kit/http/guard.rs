//! What every request is protected by, whatever the service does: a deadline, and a net under panics.

use std::{any::Any, sync::Arc, time::Duration};

use http::{Response, StatusCode};
use tower::ServiceBuilder;
use tower_http::{
    catch_panic::{CatchPanicLayer, ResponseForPanic},
    timeout::TimeoutLayer,
};

use super::{
    HttpService, ServerMetrics,
    body::{TextBody, text},
    metrics::Failure,
};

/// The answer when the deadline has passed. No service of ours answers with it by itself, so it can be counted.
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
    ServiceBuilder::new()
        .map_response(move |response: Response<_>| {
            if response.status() == DEADLINE {
                metrics.failed(Failure::Deadline);
            }
            response
        })
        .layer(TimeoutLayer::with_status_code(DEADLINE, deadline))
        .layer(CatchPanicLayer::custom(panics))
        .service(service)
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
