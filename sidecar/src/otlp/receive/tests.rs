use super::*;
use crate::otlp::write::Writer;
use crate::store::{Limits, Rules};
use futures::{StreamExt, stream};
use http_body_util::{Full, StreamBody};
use hyper::body::Frame;
use prometheus_client::registry::Registry;

const MOST: usize = 4_096;

fn receiver() -> (Receiver, Arc<Store>) {
    let rules = Rules {
        limits: Limits::default(),
        ..Rules::default()
    };
    let store = Arc::new(Store::new(rules, crate::otlp::pairs));
    let receiving = Receiving {
        store: Arc::clone(&store),
        most: MOST,
        in_flight: 2 * MOST,
        memory: Watch::of(None),
        forward: None,
        metrics: Metrics::register(&mut Registry::default()),
        since: Instant::now(),
    };
    (Receiver::new(receiving), store)
}

/// A gauge `x` with one point; at time 0 it is refused.
fn request(time: u64) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.message(1, |target| {
        target.message(2, |scope| {
            scope.message(2, |metric| {
                metric.bytes(1, b"x");
                metric.message(5, |gauge| {
                    gauge.message(1, |point| {
                        point.fixed64(3, time);
                        point.double(4, 1.5);
                    });
                });
            });
        });
    });
    writer.into_bytes()
}

/// JSON that may be as large as it is, but not as large as it becomes.
fn swelling() -> Vec<u8> {
    let ones = vec!["1"; MOST / 4].join(",");
    let point = format!(r#"{{"timeUnixNano":"1","bucketCounts":[{ones}]}}"#);
    let metric = format!(r#"{{"name":"x","histogram":{{"dataPoints":[{point}]}}}}"#);
    format!(r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{metric}]}}]}}]}}"#).into_bytes()
}

struct Told {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
    trailers: HeaderMap,
}

fn post<B>(path: &str, headers: Headers<'_>, body: B) -> Request<B> {
    let mut request = Request::post(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body).unwrap()
}

async fn ask(receiver: &Receiver, path: &str, headers: Headers<'_>, body: Vec<u8>) -> Told {
    tell(receiver, post(path, headers, Full::new(Bytes::from(body)))).await
}

async fn tell<B>(receiver: &Receiver, request: Request<B>) -> Told
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    let response = receiver.shared.answer(request).await;
    let (head, mut body) = response.into_parts();
    let (mut bytes, mut trailers) = (Vec::new(), HeaderMap::new());
    while let Some(frame) = body.frame().await {
        match frame.unwrap().into_data() {
            Ok(data) => bytes.extend_from_slice(&data),
            Err(frame) => trailers = frame.into_trailers().unwrap(),
        }
    }
    Told {
        status: head.status.as_u16(),
        headers: head.headers,
        body: bytes,
        trailers,
    }
}

const PROTOBUF: (&str, &str) = ("content-type", "application/x-protobuf");
const JSON: (&str, &str) = ("content-type", "application/json; charset=utf-8");
const GRPC: (&str, &str) = ("content-type", "application/grpc+proto");

/// Path, headers and body of a request, and what is expected.
type Case<'a, T> = (&'a str, Headers<'a>, Vec<u8>, T);
type Headers<'a> = &'a [(&'a str, &'a str)];

fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0][..], &length, message].concat()
}

/// A body that does not say how long it is, in so many pieces of 1 KiB.
fn pieces(pieces: usize) -> impl Body<Data = Bytes, Error = Infallible> {
    let piece = || Ok::<_, Infallible>(Frame::data(Bytes::from(vec![0; 1_024])));
    StreamBody::new(stream::iter((0..pieces).map(move |_| piece())))
}

/// One that begins and never ends.
fn stalled() -> impl Body<Data = Bytes, Error = Infallible> {
    let begun = Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"x")));
    StreamBody::new(stream::iter([begun]).chain(stream::pending()))
}

#[tokio::test]
async fn a_request_is_taken_in_every_way() {
    let json = br#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"x","gauge":{"dataPoints":[{"timeUnixNano":"1","asDouble":1.5}]}}]}]}]}"#;
    let gzip = {
        use std::io::Write;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&request(1)).unwrap();
        encoder.finish().unwrap()
    };
    let cases: &[Case<'_, &[u8]>] = &[
        ("/v1/metrics", &[PROTOBUF], request(1), b""),
        ("/otlp/v1/metrics", &[PROTOBUF], request(1), b""),
        ("/v1/metrics", &[JSON], json.to_vec(), b"{}"),
        (
            "/v1/metrics",
            &[PROTOBUF, ("content-encoding", "gzip")],
            gzip,
            b"",
        ),
        (grpc::METRICS, &[GRPC], framed(&request(1)), &[0; 5]),
    ];
    for (path, headers, body, expected) in cases {
        let (receiver, store) = receiver();
        let told = ask(&receiver, path, headers, body.clone()).await;
        assert_eq!(
            (told.status, &told.body[..]),
            (200, *expected),
            "{path} {headers:?}"
        );
        assert_eq!(store.series(), 1, "{path} {headers:?}");
        if headers.contains(&GRPC) {
            assert_eq!(told.trailers["grpc-status"], "0");
        }
    }
}

#[tokio::test]
async fn a_refused_point_is_told_with_its_reason() {
    let (receiver, store) = receiver();
    let told = ask(&receiver, "/v1/metrics", &[PROTOBUF], request(0)).await;
    let said = String::from_utf8_lossy(&told.body);
    assert_eq!(told.status, 200);
    assert!(
        said.contains("1 refused (time, first \"x\"): the time is missing"),
        "{said}"
    );
    assert_eq!(store.series(), 0);
}

#[tokio::test]
async fn every_refusal_of_a_request_has_the_status_that_otlp_says() {
    let (receiver, _) = receiver();
    let cases: &[Case<'_, u16>] = &[
        ("/v1/metrics", &[PROTOBUF], vec![0x0a, 9], 400),
        ("/v1/metrics", &[JSON], b"{".to_vec(), 400),
        ("/v1/metrics", &[PROTOBUF], vec![0; MOST + 1], 413),
        ("/v1/metrics", &[JSON], swelling(), 413),
        (
            "/v1/metrics",
            &[("content-type", "text/plain")],
            vec![],
            415,
        ),
        (
            "/v1/metrics",
            &[PROTOBUF, ("content-encoding", "br")],
            vec![],
            415,
        ),
        ("/v1/traces", &[PROTOBUF], vec![], 501),
        ("/v1/profiles", &[PROTOBUF], vec![], 404),
    ];
    for (path, headers, body, status) in cases {
        let told = ask(&receiver, path, headers, body.clone()).await;
        assert_eq!(told.status, *status, "{path} {headers:?}");
    }
    let grpc: &[(&str, Vec<u8>, &str)] = &[
        (grpc::METRICS, framed(&[0x0a, 9]), "3"),
        (grpc::METRICS, framed(&vec![0; MOST + 1]), "8"),
        (grpc::TRACES, framed(&[]), "12"),
        ("/other.Service/Export", framed(&[]), "12"),
    ];
    for (path, body, code) in grpc {
        let told = ask(&receiver, path, &[GRPC], body.clone()).await;
        assert_eq!(
            (told.status, &told.headers["grpc-status"]),
            (200, &HeaderValue::from_static(code)),
            "{path}"
        );
    }
}

#[tokio::test]
async fn what_is_too_much_at_once_may_come_again() {
    let (receiver, _) = receiver();
    let mut others = receiver.shared.room.share();
    others.grow(2 * MOST).unwrap();
    let told = ask(&receiver, "/v1/metrics", &[PROTOBUF], request(1)).await;
    assert_eq!(
        (told.status, &told.headers["retry-after"]),
        (429, &HeaderValue::from_static("1"))
    );
    drop(others);
    assert_eq!(
        ask(&receiver, "/v1/metrics", &[PROTOBUF], request(1))
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn senders_that_stall_take_no_more_room_than_what_they_sent() {
    let cases: &[(&str, Headers<'_>)] = &[("/v1/metrics", &[PROTOBUF]), (grpc::METRICS, &[GRPC])];
    for (path, headers) in cases {
        let (receiver, _) = receiver();
        let mut waiting = Vec::new();
        // There is room for two requests that are as large as they may be.
        for number in 0..7 {
            let request = post(path, headers, stalled());
            let mut answer = Box::pin(receiver.shared.answer(request));
            let answered = answer.as_mut().now_or_never();
            assert!(answered.is_none(), "{path} {number}");
            waiting.push(answer);
        }
        let told = ask(&receiver, "/v1/metrics", &[PROTOBUF], request(1)).await;
        assert_eq!(told.status, 200, "{path}");
    }
}

#[tokio::test]
async fn a_body_that_outgrows_the_room_may_come_again() {
    let (receiver, _) = receiver();
    let room = &receiver.shared.room;
    let mut others = room.share();
    others.grow(2 * MOST - 2_048).unwrap();
    for (sent, status) in [(2, 400), (3, 429)] {
        let request = post("/v1/metrics", &[PROTOBUF], pieces(sent));
        assert_eq!(tell(&receiver, request).await.status, status, "{sent} KiB");
    }
    assert!(room.share().grow(2_048).is_ok(), "it took none with it");
}

/// A request of so many bytes: what nobody knows fills it up.
fn request_of(bytes: usize) -> Vec<u8> {
    let mut filler = Writer::default();
    let mut whole = request(1);
    // A tag of one byte and a length of two.
    filler.bytes(15, &vec![0; bytes - whole.len() - 3]);
    whole.extend(filler.into_bytes());
    assert_eq!(whole.len(), bytes);
    whole
}

#[tokio::test]
async fn a_message_of_exactly_the_limit_is_taken_and_none_that_is_longer() {
    for (bytes, status, code) in [(MOST, 200, "0"), (MOST + 1, 413, "8")] {
        let (receiver, _) = receiver();
        let message = request_of(bytes);
        let told = ask(&receiver, "/v1/metrics", &[PROTOBUF], message.clone()).await;
        assert_eq!(told.status, status, "{bytes}");
        let told = ask(&receiver, grpc::METRICS, &[GRPC], framed(&message)).await;
        let said = told.trailers.get("grpc-status");
        let said = said.or_else(|| told.headers.get("grpc-status"));
        assert_eq!(said, Some(&HeaderValue::from_static(code)), "{bytes}");
    }
}
