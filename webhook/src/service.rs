//! The service behind the admission port.

use std::convert::Infallible;

use agents::kit::http::{HttpService, text, traced};
use http::{Request, StatusCode};
use hyper::body::Incoming;
use tower::ServiceBuilder;

/// A service that knows no path yet.
pub fn service() -> impl HttpService {
    ServiceBuilder::new()
        .layer(traced())
        .service_fn(async |_: Request<Incoming>| {
            Ok::<_, Infallible>(text(StatusCode::NOT_FOUND, "no such path\n"))
        })
}
