//! HTTP: limits, deadlines and drain, as a client sees them.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use ::http::{Request, Response, StatusCode};
use agents::kit::{
    http::{Drained, Limits, Metrics, Server, TextBody, Transport, read_body, text},
    shutdown::{Trigger, channel},
};
use hyper::body::Incoming;
use prometheus_client::{encoding::text::encode, registry::Registry};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinHandle,
    time::{Instant, timeout},
};

use support::wait;

use super::client::{DEADLINE, answer, ask, connect, get, send};

/// More than the system keeps for a client who does not take it.
const LARGE: usize = 32 * 1024 * 1024;

/// A server in this process whose `/hold` answers when it is released.
struct Running {
    address: SocketAddr,
    held: Arc<Held>,
    registry: Registry,
    trigger: Trigger,
    serving: JoinHandle<Drained>,
}

#[derive(Default)]
struct Held {
    entered: Notify,
    release: Notify,
}

impl Running {
    #[expect(clippy::disallowed_methods, reason = "the handle is kept and awaited")]
    async fn start(limits: Limits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut registry = Registry::default();
        let server = Server {
            listener,
            transport: Transport::Plain,
            limits,
            metrics: Metrics::register(&mut registry).of("test"),
        };
        let held = Arc::new(Held::default());
        let (trigger, shutdown) = channel();
        let service = tower::service_fn({
            let held = Arc::clone(&held);
            move |request| serve(Arc::clone(&held), request)
        });
        Self {
            address,
            held,
            registry,
            trigger,
            serving: tokio::spawn(server.serve(service, shutdown)),
        }
    }

    /// A client whose request is being answered.
    async fn hold(&self) -> TcpStream {
        let mut stream = connect(self.address).await;
        send(&mut stream, b"GET /hold HTTP/1.1\r\nHost: test\r\n\r\n").await;
        let entered = timeout(DEADLINE, self.held.entered.notified()).await;
        entered.expect("the request should be in flight");
        stream
    }

    async fn end(self) -> Drained {
        self.trigger.start(Instant::now() + DEADLINE);
        self.serving.await.expect("no panic")
    }

    fn metrics(&self) -> String {
        let mut page = String::new();
        encode(&mut page, &self.registry).expect("a page");
        page
    }
}

async fn serve(
    held: Arc<Held>,
    request: Request<Incoming>,
) -> Result<Response<TextBody>, Infallible> {
    match request.uri().path() {
        "/hold" => {
            let released = held.release.notified();
            held.entered.notify_one();
            released.await;
            Ok(text(StatusCode::OK, "released\n"))
        }
        "/body" => match read_body(request.into_body(), 10).await {
            Ok(body) => Ok(text(StatusCode::OK, body)),
            Err(error) => Ok(error.response()),
        },
        "/panic" => panic!("in a handler"),
        "/large" => Ok(text(StatusCode::OK, vec![b'x'; LARGE])),
        _ => Ok(text(StatusCode::OK, "hello\n")),
    }
}

#[tokio::test]
async fn a_drain_finishes_what_is_in_flight_and_takes_nothing_new() {
    let running = Running::start(Limits::default()).await;
    let mut busy = running.hold().await;
    let mut idle = connect(running.address).await;
    assert_eq!(ask(&mut idle, "/").await.status, 200);
    running.trigger.start(Instant::now() + DEADLINE);
    // That the idle connection is closed shows that the drain has begun.
    assert_eq!(answer(&mut idle).await, None);
    let refused = TcpStream::connect(running.address).await;
    assert!(refused.is_err(), "the port should be closed");
    running.held.release.notify_waiters();
    let answer = answer(&mut busy).await.expect("an answer");
    assert_eq!((answer.status, answer.body.as_str()), (200, "released\n"));
    assert!(answer.head.contains("connection: close"), "{}", answer.head);
    let drained = timeout(DEADLINE, running.serving)
        .await
        .expect("an end in time");
    assert_eq!(drained.expect("no panic"), Drained { cut: 0 });
}

#[tokio::test]
async fn the_deadline_of_a_drain_cuts_the_rest_and_says_how_much() {
    let running = Running::start(Limits::default()).await;
    let mut clients = [running.hold().await, running.hold().await];
    let start = Instant::now();
    running.trigger.start(start + Duration::from_millis(200));
    for client in &mut clients {
        assert_eq!(answer(client).await, None, "the answer never comes");
    }
    let drained = timeout(DEADLINE, running.serving)
        .await
        .expect("an end in time");
    assert_eq!(drained.expect("no panic"), Drained { cut: 2 });
    assert!(start.elapsed() >= Duration::from_millis(200));
}

#[tokio::test]
async fn an_announced_server_still_serves_but_asks_to_be_left() {
    let running = Running::start(Limits::default()).await;
    let mut old = connect(running.address).await;
    let before = ask(&mut old, "/").await;
    assert!(
        !before.head.contains("connection: close"),
        "{}",
        before.head
    );
    running.trigger.announce();
    let after = ask(&mut old, "/").await;
    assert_eq!(after.status, 200);
    assert!(after.head.contains("connection: close"), "{}", after.head);
    assert_eq!(answer(&mut old).await, None);
    assert_eq!(get(running.address, "/").await.status, 200);
    assert_eq!(running.end().await, Drained { cut: 0 });
}

#[tokio::test]
async fn a_request_that_is_half_sent_when_the_drain_begins_is_still_answered() {
    let running = Running::start(Limits::default()).await;
    let mut slow = connect(running.address).await;
    send(&mut slow, b"GET / HTTP/1.1\r\nHo").await;
    let mut idle = connect(running.address).await;
    assert_eq!(ask(&mut idle, "/").await.status, 200);
    running.trigger.start(Instant::now() + DEADLINE);
    assert_eq!(answer(&mut idle).await, None);
    send(&mut slow, b"st: test\r\n\r\n").await;
    assert_eq!(answer(&mut slow).await.expect("an answer").status, 200);
    let drained = timeout(DEADLINE, running.serving)
        .await
        .expect("an end in time");
    assert_eq!(drained.expect("no panic"), Drained { cut: 0 });
}

#[tokio::test]
async fn a_client_that_dawdles_is_cut() {
    let limits = Limits {
        head: Duration::from_millis(200),
        ..Limits::default()
    };
    let running = Running::start(limits).await;
    let mut silent = connect(running.address).await;
    let mut slow = connect(running.address).await;
    send(&mut slow, b"GET / HTTP/1.1\r\nHost: te").await;
    let mut guessing = connect(running.address).await;
    send(&mut guessing, b"PRI * HT").await;
    let mut second = connect(running.address).await;
    assert_eq!(ask(&mut second, "/").await.status, 200);
    send(&mut second, b"GET /again HT").await;
    for client in [&mut silent, &mut slow, &mut guessing, &mut second] {
        assert_eq!(answer(client).await, None);
    }
    let page = running.metrics();
    let counted = "http_connections_closed_total{server=\"test\",cause=\"head_deadline\"} 4";
    assert!(page.contains(counted), "{page}");
    assert_eq!(running.end().await, Drained { cut: 0 });
}

#[tokio::test]
async fn a_connection_that_rests_too_long_is_closed() {
    let limits = Limits {
        idle: Duration::from_millis(200),
        ..Limits::default()
    };
    let running = Running::start(limits).await;
    let mut resting = connect(running.address).await;
    assert_eq!(ask(&mut resting, "/").await.status, 200);
    assert_eq!(answer(&mut resting).await, None);
    let page = running.metrics();
    let counted = "http_connections_closed_total{server=\"test\",cause=\"idle\"} 1";
    assert!(page.contains(counted), "{page}");
    assert_eq!(running.end().await, Drained { cut: 0 });
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_an_answer_is_cut() {
    let limits = Limits {
        stall: Duration::from_secs(3),
        ..Limits::default()
    };
    let running = Running::start(limits).await;
    let mut stalled = connect(running.address).await;
    send(&mut stalled, b"GET /large HTTP/1.1\r\nHost: test\r\n\r\n").await;
    let taken = get(running.address, "/large").await;
    assert_eq!(taken.body.len(), LARGE);
    let counted = "http_connections_closed_total{server=\"test\",cause=\"stalled\"} 1";
    let cut = wait::retry("an end of who stalls", DEADLINE, || async {
        let page = running.metrics();
        anyhow::ensure!(page.contains(counted), "{page}");
        Ok(())
    });
    cut.await.expect("a client that is cut");
    assert_eq!(running.end().await, Drained { cut: 0 });
}

#[tokio::test]
async fn a_handler_that_takes_too_long_is_answered_for() {
    let limits = Limits {
        request: Duration::from_millis(100),
        ..Limits::default()
    };
    let running = Running::start(limits).await;
    let mut client = running.hold().await;
    assert_eq!(answer(&mut client).await.expect("an answer").status, 504);
    let page = running.metrics();
    let counted = "http_request_failures_total{server=\"test\",cause=\"deadline\"} 1";
    assert!(page.contains(counted), "{page}");
    assert_eq!(running.end().await, Drained { cut: 0 });
}

#[tokio::test]
async fn a_handler_that_panics_is_answered_for_and_the_next_request_works() {
    let running = Running::start(Limits::default()).await;
    let mut client = connect(running.address).await;
    assert_eq!(ask(&mut client, "/panic").await.status, 500);
    assert_eq!(ask(&mut client, "/").await.status, 200);
    let page = running.metrics();
    let counted = "http_request_failures_total{server=\"test\",cause=\"panic\"} 1";
    assert!(page.contains(counted), "{page}");
    assert_eq!(running.end().await, Drained { cut: 0 });
}

#[tokio::test]
async fn a_body_over_the_cap_is_413_declared_or_not() {
    let running = Running::start(Limits::default()).await;
    let declared = "POST /body HTTP/1.1\r\nHost: test\r\nContent-Length: 11\r\n\r\n";
    let chunked = "POST /body HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n\
        b\r\nhello world\r\n0\r\n\r\n";
    for request in [declared, chunked] {
        let mut client = connect(running.address).await;
        send(&mut client, request.as_bytes()).await;
        let answer = answer(&mut client).await.expect("an answer");
        assert_eq!(answer.status, 413);
        assert_eq!(
            answer.body,
            "the body is larger than the 10 bytes allowed\n"
        );
    }
    assert_eq!(running.end().await, Drained { cut: 0 });
}

#[tokio::test]
async fn heads_that_are_too_large_are_refused() {
    let running = Running::start(Limits::default()).await;
    let many = "X-A: b\r\n".repeat(100);
    let long = format!("X-A: {}\r\n", "b".repeat(100 * 1024));
    for headers in [many, long] {
        let mut client = connect(running.address).await;
        let request = format!("GET / HTTP/1.1\r\nHost: test\r\n{headers}\r\n");
        send(&mut client, request.as_bytes()).await;
        assert_eq!(answer(&mut client).await.expect("an answer").status, 431);
    }
    assert_eq!(running.end().await, Drained { cut: 0 });
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_their_turn() {
    let limits = Limits {
        connections: 1,
        ..Limits::default()
    };
    let running = Running::start(limits).await;
    let mut first = running.hold().await;
    let mut second = connect(running.address).await;
    send(&mut second, b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").await;
    let page = running.metrics();
    assert!(
        page.contains("http_connections{server=\"test\"} 1"),
        "{page}"
    );
    running.held.release.notify_waiters();
    assert_eq!(answer(&mut first).await.expect("an answer").status, 200);
    drop(first);
    assert_eq!(answer(&mut second).await.expect("an answer").status, 200);
    drop(second);
    assert_eq!(running.end().await, Drained { cut: 0 });
}

/// One connection closed for want of room.
const DISPLACED: &str = "http_connections_closed_total{server=\"test\",cause=\"displaced\"} 1";

#[tokio::test]
async fn when_there_is_no_room_the_one_that_has_rested_longest_makes_some() {
    let limits = Limits {
        connections: 2,
        ..Limits::default()
    };
    let running = Running::start(limits).await;
    let mut first = connect(running.address).await;
    assert_eq!(ask(&mut first, "/").await.status, 200);
    let mut second = connect(running.address).await;
    assert_eq!(ask(&mut second, "/").await.status, 200);
    assert_eq!(ask(&mut first, "/").await.status, 200);
    assert_eq!(get(running.address, "/").await.status, 200);
    assert_eq!(answer(&mut second).await, None, "it has rested longest");
    assert_eq!(ask(&mut first, "/").await.status, 200);
    let page = running.metrics();
    assert!(page.contains(DISPLACED), "{page}");
    assert_eq!(running.end().await, Drained { cut: 0 });
}

#[tokio::test]
async fn one_that_was_busy_makes_room_as_soon_as_it_rests() {
    let limits = Limits {
        connections: 1,
        ..Limits::default()
    };
    let running = Running::start(limits).await;
    let mut busy = running.hold().await;
    let mut waiting = connect(running.address).await;
    send(&mut waiting, b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").await;
    running.held.release.notify_waiters();
    assert_eq!(answer(&mut busy).await.expect("an answer").status, 200);
    assert_eq!(answer(&mut waiting).await.expect("an answer").status, 200);
    assert_eq!(answer(&mut busy).await, None, "it made room");
    let page = running.metrics();
    assert!(page.contains(DISPLACED), "{page}");
    assert_eq!(running.end().await, Drained { cut: 0 });
}

#[tokio::test]
async fn one_that_says_nothing_makes_room_for_one_that_asks() {
    let limits = Limits {
        connections: 1,
        ..Limits::default()
    };
    let running = Running::start(limits).await;
    let mut silent = connect(running.address).await;
    assert_eq!(get(running.address, "/").await.status, 200);
    assert_eq!(answer(&mut silent).await, None);
    let page = running.metrics();
    assert!(page.contains(DISPLACED), "{page}");
    assert_eq!(running.end().await, Drained { cut: 0 });
}
