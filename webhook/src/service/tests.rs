use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use agents::api::kind::Kind;
use agents::api::registration::rung::Rung;
use futures::future::join_all;
use futures::stream::{self, FuturesUnordered};
use futures::{FutureExt, StreamExt};
use http::StatusCode;
use http_body_util::{BodyExt, Empty, StreamBody};
use hyper::body::{Frame, SizeHint};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};

use agents::kit::http::read_body;
use tokio::time::timeout_at;

use super::claim::Claim;
use super::*;
use crate::fixtures::{object, review, webhook, webhook_with};
use crate::metrics::Metrics;

type Asked = Request<Full<Bytes>>;

fn asked(path: &str, body: impl Into<Bytes>) -> Asked {
    Request::post(path)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(body.into()))
        .unwrap()
}

fn good() -> Vec<u8> {
    let workspace = object(Kind::Workspace, json!({"size": "1Gi"}));
    serde_json::to_vec(&review("CREATE", Some(&workspace), None)).unwrap()
}

async fn told(response: Response<TextBody>) -> (StatusCode, Value) {
    let status = response.status();
    assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
    let body = read_body(response.into_body(), BODY_LIMIT).await.unwrap();
    let answer: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
    (status, answer["response"].clone())
}

fn admission() -> Arc<Admission> {
    Arc::new(webhook(Rung::Deny, json!({})))
}

#[tokio::test]
async fn what_is_no_review_gets_a_clear_answer_and_the_next_one_is_served() {
    let (admission, room) = (admission(), Room::new(8));
    let cut = good()[..good().len() - 9].to_vec();
    let mut plain = asked("/validate", good());
    plain.headers_mut().remove(header::CONTENT_TYPE);
    let mut get = asked("/validate", "");
    *get.method_mut() = Method::GET;
    for (row, request, status, reason, uid) in [
        ("unknown path", asked("/", good()), 404, "NotFound", ""),
        ("GET", get, 405, "MethodNotAllowed", ""),
        ("no type", plain, 415, "UnsupportedMediaType", ""),
        ("empty", asked("/mutate", ""), 400, "BadRequest", ""),
        (
            "cut off",
            asked("/mutate", cut),
            400,
            "BadRequest",
            "705ab4f5",
        ),
        (
            "too large",
            asked("/mutate", vec![b' '; BODY_LIMIT + 1]),
            413,
            "RequestEntityTooLarge",
            "",
        ),
        (
            "no time",
            asked("/mutate?timeout=0s", good()),
            503,
            "Timeout",
            "705ab4f5",
        ),
    ] {
        let response = respond(&admission, &room, request).await;
        let (code, response) = told(response).await;
        assert_eq!(code, status, "{row}");
        assert_eq!(response["status"]["reason"], reason, "{row}");
        assert_eq!(response["uid"], uid, "{row}");
        assert_eq!(response["allowed"], false, "{row}");
    }
    for path in ["/validate", "/mutate?timeout=3s"] {
        let response = respond(&admission, &room, asked(path, good())).await;
        let (code, response) = told(response).await;
        assert_eq!(code, 200);
        assert_eq!(response["allowed"], true);
    }
}

#[tokio::test]
async fn a_large_review_is_judged_apart_and_answered_all_the_same() {
    let (admission, room) = (admission(), Room::new(8));
    let mut workspace = object(Kind::Workspace, json!({"size": "much"}));
    workspace["metadata"]["annotations"] = json!({"x": "y".repeat(200_000)});
    let body = serde_json::to_vec(&review("CREATE", Some(&workspace), None)).unwrap();
    let (code, response) = told(respond(&admission, &room, asked("/validate", body)).await).await;
    assert_eq!(code, 200);
    assert_eq!(response["allowed"], false);
}

#[tokio::test]
async fn more_than_there_is_room_for_is_turned_away_at_once() {
    let (admission, room) = (admission(), Room::new(1));
    let held = room.enter();
    let (code, response) = told(respond(&admission, &room, asked("/validate", good())).await).await;
    assert_eq!(code, 503);
    assert_eq!(response["status"]["reason"], "TooManyRequests");
    assert_eq!(response["uid"], "705ab4f5", "its body was read");
    drop(held);
    let (code, _) = told(respond(&admission, &room, asked("/validate", good())).await).await;
    assert_eq!(code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_given_up_before_the_api_server_does() {
    let (admission, room) = (admission(), Room::new(8));
    let never = StreamBody::new(stream::pending::<Result<Frame<Bytes>, BoxError>>());
    let request = Request::post("/validate?timeout=2s")
        .header(header::CONTENT_TYPE, "application/json; charset=utf-8")
        .body(never)
        .unwrap();
    let started = Instant::now();
    let (code, response) = told(respond(&admission, &room, request).await).await;
    assert_eq!(code, 503);
    assert_eq!(response["status"]["reason"], "Timeout");
    assert!(started.elapsed() < Duration::from_secs(2));
}

/// A request whose body is announced but never comes.
fn dawdling(length: Option<u64>) -> Request<Dawdling> {
    Dawdling::announcing(length).asked()
}

/// A body of which a beginning comes.
struct Dawdling {
    length: Option<u64>,
    beginning: Vec<Bytes>,
    breaks_off: bool,
}

impl Dawdling {
    fn announcing(length: Option<u64>) -> Self {
        Self {
            length,
            beginning: Vec::new(),
            breaks_off: false,
        }
    }

    /// The same, of which these bytes come, in pieces.
    fn beginning(self, bytes: &[u8]) -> Self {
        let pieces = bytes.chunks(16 * 1024).rev();
        Self {
            beginning: pieces.map(Bytes::copy_from_slice).collect(),
            ..self
        }
    }

    fn asked(self) -> Request<Self> {
        Request::post("/validate?timeout=30s")
            .header(header::CONTENT_TYPE, "application/json")
            .body(self)
            .unwrap()
    }
}

impl Body for Dawdling {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.beginning.pop() {
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            None if self.breaks_off => Poll::Ready(Some(Err("reset".into()))),
            None => Poll::Pending,
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

/// A good review with so many bytes.
fn good_of(bytes: usize) -> Vec<u8> {
    let mut body = good();
    body.resize(bytes.max(body.len()), b' ');
    body
}

const LARGE: usize = 65 * 1024;

#[tokio::test(start_paused = true)]
async fn who_sends_nothing_holds_up_no_review_whatever_was_announced() {
    let (admission, room) = (admission(), Room::new(512));
    let mut slow: FuturesUnordered<_> = [Some(LARGE as u64); 64]
        .into_iter()
        .chain([None; 64])
        .chain([Some(1024); 600])
        .map(|length| respond(&admission, &room, dawdling(length)))
        .collect();
    assert!(slow.next().now_or_never().is_none(), "all are waiting");
    for size in [0, LARGE, BODY_LIMIT] {
        let request = asked("/validate?timeout=5s", good_of(size));
        let (code, _) = told(respond(&admission, &room, request).await).await;
        assert_eq!(code, 200, "{size} bytes");
        assert!(slow.next().now_or_never().is_none(), "all still wait");
    }
    let late = slow.collect::<Vec<_>>().await;
    assert!(late.iter().all(|response| response.status() == 503));
}

#[tokio::test(start_paused = true)]
async fn who_stops_in_the_middle_of_a_large_body_holds_up_large_ones_alone_and_not_for_long() {
    let (admission, room) = (admission(), Room::new(512));
    let half = good_of(LARGE);
    let stopping = || Dawdling::announcing(Some(BODY_LIMIT as u64)).beginning(&half);
    let mut slow: FuturesUnordered<_> = (0..4)
        .map(|_| respond(&admission, &room, stopping().asked()))
        .collect();
    assert!(slow.next().now_or_never().is_none(), "all are waiting");
    let (code, _) = told(respond(&admission, &room, asked("/validate", good())).await).await;
    assert_eq!(code, 200, "a small one, while all are waiting");
    let (started, request) = (
        Instant::now(),
        asked("/validate?timeout=5s", good_of(LARGE)),
    );
    let large = async { told(respond(&admission, &room, request).await).await };
    let ((code, _), late) = tokio::join!(large, slow.collect::<Vec<_>>());
    assert_eq!(code, 200, "a large one, once a slow one was given up");
    assert!(started.elapsed() < Duration::from_millis(4800));
    assert!(late.iter().all(|response| response.status() == 503));
}

#[tokio::test(start_paused = true)]
async fn large_reviews_that_wait_for_each_other_hold_no_place_among_all() {
    let (admission, room) = (admission(), Room::new(8));
    let half = good_of(LARGE);
    let mut slow: FuturesUnordered<_> = (0..100)
        .map(|_| Dawdling::announcing(None).beginning(&half).asked())
        .map(|request| respond(&admission, &room, request))
        .collect();
    assert!(slow.next().now_or_never().is_none(), "all are waiting");
    let (code, _) = told(respond(&admission, &room, asked("/validate", good())).await).await;
    assert_eq!(code, 200);
}

/// What becomes of a body that is not decided about: status and reason, with the uid in any case.
async fn undecided(row: &str, room: &Room, body: Dawdling) -> (u16, String) {
    let (admission, request) = (admission(), body.asked());
    let (code, response) = told(respond(&admission, room, request).await).await;
    assert_eq!(response["uid"], "705ab4f5", "{row}");
    let reason = response["status"]["reason"].as_str().unwrap();
    (code.as_u16(), reason.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_refusal_names_the_question_as_soon_as_its_uid_has_come() {
    let long = || Dawdling::announcing(None).beginning(&good_of(LARGE));
    let announced = |length: usize| Dawdling::announcing(Some(length as u64));
    let broken = |body| Dawdling {
        breaks_off: true,
        ..body
    };
    let cut = &good()[..good().len() - 9];
    let free = Room::new(8);
    for (row, body, expected) in [
        (
            "small late",
            announced(1000).beginning(cut),
            (503, "Timeout"),
        ),
        ("large late", long(), (503, "Timeout")),
        (
            "small cut off",
            broken(announced(1000).beginning(cut)),
            (400, "BadRequest"),
        ),
        ("large cut off", broken(long()), (400, "BadRequest")),
        (
            "too large, and not announced",
            long().beginning(&good_of(BODY_LIMIT + 1)),
            (413, "RequestEntityTooLarge"),
        ),
    ] {
        let found = undecided(row, &free, body).await;
        assert_eq!((found.0, &*found.1), expected, "{row}");
    }
    let full = Room::new(1);
    let held = full.enter();
    let found = undecided("large shed", &full, long()).await;
    assert_eq!(found, (503, "TooManyRequests".to_owned()));
    drop(held);
    let crowded = Room::new(8);
    let held = join_all((0..4).map(|_| crowded.enter_large())).await;
    let found = undecided("large without a place", &crowded, long()).await;
    assert_eq!(found, (503, "Timeout".to_owned()));
    drop(held);
}

#[tokio::test]
async fn a_small_body_that_does_not_say_how_long_it_is_is_judged() {
    let (admission, room) = (admission(), Room::new(8));
    let frames: Vec<Result<_, BoxError>> = vec![Ok(Frame::data(Bytes::from(good())))];
    let request = Request::post("/validate")
        .header(header::CONTENT_TYPE, "application/json")
        .body(StreamBody::new(stream::iter(frames)))
        .unwrap();
    let (code, response) = told(respond(&admission, &room, request).await).await;
    assert_eq!((code.as_u16(), &response["allowed"]), (200, &json!(true)));
}

#[tokio::test]
async fn no_body_at_all_is_no_review() {
    let (admission, room) = (admission(), Room::new(8));
    let request = Request::post("/validate")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Empty::new().map_err(BoxError::from))
        .unwrap();
    let (code, _) = told(respond(&admission, &room, request).await).await;
    assert_eq!(code, 400);
}

/// What a registry shows of these series.
fn counted(registry: &Registry, series: &[&str]) -> Vec<u64> {
    let mut page = String::new();
    encode(&mut page, registry).unwrap();
    let of = |name: &str| {
        let lines = page.lines().filter(|line| line.starts_with(name));
        let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        values.sum()
    };
    series.iter().map(|name| of(name)).collect()
}

#[test]
fn a_panic_fails_one_review_by_its_name_and_nothing_else() {
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    let admission = webhook_with(Rung::Deny, json!({}), metrics);
    let answer = admission.caught(|| panic!("a fault of our own"));
    assert_eq!(answer, None);
    let answer = admission.fail(Door::Mutate, &good());
    assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
    let told: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(told["response"]["uid"], "705ab4f5");
    assert_eq!(told["response"]["status"]["code"], 500);
    // Not every fault is a panic: what is answered with 500 and what panicked is counted apart.
    admission.fail(Door::Mutate, &good());
    let failed = "refusals_total{cause=\"failed\"}";
    assert_eq!(counted(&registry, &["panics_total", failed]), [1, 2]);
    assert_eq!(admission.answer(Door::Mutate, &good()).status, 200);
}

#[tokio::test]
async fn a_review_that_was_answered_late_is_not_counted_as_decided() {
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    let admission = Arc::new(webhook_with(Rung::Deny, json!({}), metrics));
    let room = Room::new(8);
    let request = asked("/validate?timeout=1ms", good_of(BODY_LIMIT));
    let (code, response) = told(respond(&admission, &room, request).await).await;
    assert_eq!(
        (code, &response["uid"]),
        (StatusCode::SERVICE_UNAVAILABLE, &json!("705ab4f5"))
    );
    // All places are free again, so whoever worked on it has ended.
    let all = join_all((0..4).map(|_| room.enter_large()));
    let places = timeout_at(Instant::now() + Duration::from_secs(60), all).await;
    assert!(places.unwrap().iter().all(Option::is_some));
    let series = [
        "late_total",
        "reviews_total",
        "calls_total{door=\"validate\"",
    ];
    assert_eq!(counted(&registry, &series), [1, 0, 1]);
}

#[test]
fn whoever_comes_second_with_an_answer_keeps_quiet() {
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    let admission = webhook_with(Rung::Deny, json!({}), metrics);
    let unreadable = b"{}".to_vec();
    let mut foreign = review("CREATE", Some(&object(Kind::Workspace, json!({}))), None);
    foreign["request"]["resource"]["resource"] = json!("others");
    let foreign = serde_json::to_vec(&foreign).unwrap();
    for body in [good(), unreadable, foreign] {
        let claim = Claim::default();
        assert!(claim.take());
        let answer = admission.answer_if_wanted(Door::Validate, &body, &claim);
        assert_eq!(answer, None);
    }
    let series = [
        "reviews_total",
        "calls_total",
        "refusals_total",
        "unknown_reviews_total",
    ];
    assert_eq!(counted(&registry, &series), [0; 4]);
}
