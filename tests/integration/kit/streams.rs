//! Answers that come piece by piece, as those who read them see it when there is no room, nothing to say or no wish to read.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use ::http::{Request, Response};
use agents::kit::{
    http::{BoxError, Drained, Limits, Metrics, Server, Transport},
    shutdown::{Trigger, channel},
};
use bytes::Bytes;
use futures::{StreamExt as _, stream::BoxStream};
use http_body_util::{Either, Empty, Full, StreamBody};
use hyper::{
    body::{Frame, Incoming},
    client::conn::http2,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prometheus_client::{encoding::text::encode, registry::Registry};
use support::wait;
use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, TcpStream},
    sync::broadcast::{self, error::RecvError},
    task::{JoinHandle, JoinSet},
    time::{Instant, timeout},
};

use super::client::{DEADLINE, answer, connect, get, send};

type Frames = BoxStream<'static, Result<Frame<Bytes>, BoxError>>;
type Answer = Response<Either<Full<Bytes>, StreamBody<Frames>>>;

/// A server in this process whose `/stream` tells what it is told to, until it is told nothing more.
struct Running {
    address: SocketAddr,
    tell: Option<broadcast::Sender<&'static str>>,
    registry: Arc<Registry>,
    trigger: Trigger,
    serving: JoinHandle<Drained>,
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
        let tell = broadcast::Sender::new(16);
        let (trigger, shutdown) = channel();
        // Whoever is served does not keep the stream from ending.
        let told = tell.downgrade();
        let service = tower::service_fn(move |request: Request<Incoming>| {
            let answer = match (request.uri().path(), told.upgrade()) {
                ("/stream", Some(tell)) => Either::Right(StreamBody::new(frames(tell.subscribe()))),
                _ => Either::Left(Full::from("hello\n")),
            };
            std::future::ready(Ok::<Answer, Infallible>(Response::new(answer)))
        });
        Self {
            address,
            tell: Some(tell),
            registry: Arc::new(registry),
            trigger,
            serving: tokio::spawn(server.serve(service, shutdown)),
        }
    }

    /// A client whose answer has begun.
    async fn read(&self) -> TcpStream {
        let mut stream = connect(self.address).await;
        send(&mut stream, b"GET /stream HTTP/1.1\r\nHost: test\r\n\r\n").await;
        assert_eq!(answer(&mut stream).await.expect("a head").status, 200);
        stream
    }

    fn tell(&self, piece: &'static str) {
        let tell = self.tell.as_ref().expect("a stream that goes on");
        tell.send(piece).expect("a reader");
    }

    /// Waits until so many connections were closed for a cause.
    async fn closed(&self, cause: &str, count: usize) {
        let line =
            format!("http_connections_closed_total{{server=\"test\",cause=\"{cause}\"}} {count}\n");
        let closed = wait::retry("an end of connections", DEADLINE, || async {
            let mut page = String::new();
            encode(&mut page, &self.registry)?;
            anyhow::ensure!(page.contains(&line), "{page}");
            Ok(())
        });
        closed.await.expect("connections that are closed");
    }

    async fn end(self) -> Drained {
        self.trigger.start(Instant::now() + DEADLINE);
        self.serving.await.expect("no panic")
    }
}

fn frames(told: broadcast::Receiver<&'static str>) -> Frames {
    let pieces = futures::stream::unfold(told, |mut told| async move {
        match told.recv().await {
            Ok(piece) => Some((Ok(Frame::data(Bytes::from_static(piece.as_bytes()))), told)),
            Err(RecvError::Closed | RecvError::Lagged(_)) => None,
        }
    });
    pieces.boxed()
}

/// Reads one piece as it goes over the wire.
async fn expect(stream: &mut TcpStream, piece: &str) {
    let chunk = format!("{:X}\r\n{piece}\r\n", piece.len());
    let mut read = vec![0; chunk.len()];
    let came = timeout(DEADLINE, stream.read_exact(&mut read)).await;
    came.expect("a piece in time").expect("a piece");
    assert_eq!(String::from_utf8_lossy(&read), chunk);
}

#[tokio::test]
async fn one_who_reads_a_stream_makes_no_room_for_newcomers() {
    let limits = Limits {
        connections: 2,
        ..Limits::default()
    };
    let running = Running::start(limits).await;
    let mut reader = running.read().await;
    running.tell("first");
    expect(&mut reader, "first").await;
    let mut newcomers = JoinSet::new();
    for _ in 0..8 {
        newcomers.spawn(connect(running.address));
    }
    let idle = newcomers.join_all().await;
    running.closed("displaced", 7).await;
    running.tell("second");
    expect(&mut reader, "second").await;
    assert_eq!(get(running.address, "/").await.status, 200);
    drop((idle, reader));
    assert_eq!(running.end().await, Drained { cut: 0 });
}

#[tokio::test]
async fn a_stream_may_be_silent_for_longer_than_a_connection_may_rest() {
    let limits = Limits {
        idle: Duration::from_millis(100),
        head: Duration::from_millis(100),
        stall: Duration::from_millis(100),
        ..Limits::default()
    };
    let running = Running::start(limits).await;
    let mut reader = running.read().await;
    // Those who come later and rest are closed: time enough has passed for the reader, too.
    for count in 1..=3 {
        assert_eq!(get(running.address, "/").await.status, 200);
        let mut resting = connect(running.address).await;
        assert_eq!(answer(&mut resting).await, None);
        running.closed("head_deadline", count).await;
    }
    running.tell("at last");
    expect(&mut reader, "at last").await;
    drop(reader);
    assert_eq!(running.end().await, Drained { cut: 0 });
}

#[tokio::test]
async fn one_whose_stream_has_ended_makes_room() {
    let limits = Limits {
        connections: 1,
        ..Limits::default()
    };
    let mut running = Running::start(limits).await;
    let mut reader = running.read().await;
    let mut waiting = connect(running.address).await;
    send(&mut waiting, b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").await;
    running.tell("last");
    expect(&mut reader, "last").await;
    running.tell = None;
    assert_eq!(answer(&mut waiting).await.expect("an answer").status, 200);
    running.closed("displaced", 1).await;
    drop((reader, waiting));
    assert_eq!(running.end().await, Drained { cut: 0 });
}

#[tokio::test]
async fn one_who_takes_nothing_of_a_stream_is_cut_although_it_takes_all_else() {
    let limits = Limits {
        stall: Duration::from_secs(1),
        head: Duration::from_millis(200),
        ..Limits::default()
    };
    let running = Running::start(limits).await;
    let (mut sender, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(8)
        .handshake(TokioIo::new(connect(running.address).await))
        .await
        .expect("a handshake");
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    let mut ask = async |path: &str| {
        let request = Request::get(format!("http://test{path}")).body(Empty::<Bytes>::new());
        let answer = sender.send_request(request.expect("a request"));
        answer.await.expect("an answer")
    };
    let untaken = ask("/stream").await;
    running.tell("more than the window has room for");
    running.tell("and more");
    assert_eq!(ask("/").await.status(), 200);
    running.closed("stalled", 1).await;
    drop(untaken);
    tasks.shutdown().await;
    assert_eq!(running.end().await, Drained { cut: 0 });
}
