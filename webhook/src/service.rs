//! The service behind the admission port: method, path, content type, body and time; no rules.
//!
//! `budget` is how long an answer may take, `receive` reads the body, `work` is who gets to work at once, `answer` is one
//! review from bytes to bytes.

mod answer;
mod budget;
mod claim;
mod receive;
mod sampler;
#[cfg(test)]
mod tests;
mod work;

use std::convert::Infallible;
use std::sync::Arc;

use agents::kit::http::{BoxError, HttpService, TextBody, traced};
use agents::kit::telemetry::Requests;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, header};
use http_body_util::Full;
use hyper::body::Body;
use tokio::time::Instant;
use tower::ServiceBuilder;

pub use answer::{Admission, Answer, Rules, Side};
use budget::Budget;
use receive::{Undecided, receive};
pub use work::Room;

use crate::refusal::Refusal;
use crate::review::uid_of;
use crate::subject::Door;

/// Bytes of a body. etcd takes 1.5 MiB per request, so no stored object is larger, and the API server reads no object
/// above 3 MiB. A review holds two of them, the new and the old one, each at most 3 MiB as JSON (6 MiB), and around them
/// who asks, what and how: groups, extra values and options, for which 1 MiB is plenty.
pub const BODY_LIMIT: usize = 7 * 1024 * 1024;

/// The service for all doors.
pub fn service(admission: Arc<Admission>, room: Room, requests: Requests) -> impl HttpService {
    let room = Arc::new(room);
    ServiceBuilder::new()
        .layer(traced(requests))
        .service_fn(move |request| {
            let (admission, room) = (Arc::clone(&admission), Arc::clone(&room));
            async move { Ok::<_, Infallible>(respond(&admission, &room, request).await) }
        })
}

/// Answers one request, whatever it is.
pub async fn respond<B>(
    admission: &Arc<Admission>,
    room: &Room,
    request: Request<B>,
) -> Response<TextBody>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let (head, body) = request.into_parts();
    let Some(door) = Door::at(head.uri.path()) else {
        return response(admission.refuse(None, "", &Refusal::UnknownPath));
    };
    let answer = match head.method {
        Method::POST if is_json(&head.headers) => {
            let budget = Budget::of(head.uri.query(), Instant::now());
            admit(admission, room, door, budget, body).await
        }
        Method::POST => admission.refuse(Some(door), "", &Refusal::WrongType),
        _ => admission.refuse(Some(door), "", &Refusal::WrongMethod),
    };
    response(answer)
}

/// Reads the body and answers, within the time and the room that there are.
async fn admit<B>(
    admission: &Arc<Admission>,
    room: &Room,
    door: Door,
    budget: Budget,
    body: B,
) -> Answer
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let _in_flight = admission.metrics().begin();
    match receive(admission.metrics(), room, budget, body).await {
        Ok((place, body)) => place.work(admission, door, budget, body).await,
        Err(Undecided { refusal, come }) => {
            let uid = uid_of(&come).unwrap_or_default();
            admission.refuse(Some(door), &uid, &refusal)
        }
    }
}

/// Whether the body is declared as JSON. Checked before a byte of it is read.
fn is_json(headers: &HeaderMap) -> bool {
    let given = headers.get(header::CONTENT_TYPE);
    let Some(given) = given.and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let essence = given.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

fn response(answer: Answer) -> Response<TextBody> {
    let Answer { status, body } = answer;
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
