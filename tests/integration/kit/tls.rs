//! TLS: reloads under load, refusals, and client certificates.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use ::http::{Request, StatusCode};
use agents::kit::{
    http::{self, Limits, Server, Transport, text},
    readiness::Readiness,
    shutdown::{Trigger, channel},
    tls::{Files, Metrics, Source},
};
use hyper::body::Incoming;
use prometheus_client::{encoding::text::encode, registry::Registry};
use rustls::pki_types::CertificateDer;
use tokio::{net::TcpListener, task::JoinSet, time::timeout};

use super::{
    client::{DEADLINE, ask, connect},
    pki::{Authority, Client, Mount, Pair, shown},
};

/// A TLS server in this process, with its certificate source.
struct Running {
    address: SocketAddr,
    readiness: Readiness,
    registry: Registry,
    tasks: JoinSet<()>,
    trigger: Trigger,
}

impl Running {
    async fn start(files: Files) -> Self {
        let (trigger, shutdown) = channel();
        let (readiness, mut registry) = (Readiness::default(), Registry::default());
        let metrics = Metrics::register(&mut registry);
        let source = Source::new(files, readiness.gate("certificate"), metrics);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let server = Server {
            listener,
            transport: Transport::Tls(source.tls()),
            limits: Limits::default(),
            metrics: http::Metrics::register(&mut registry).of("test"),
        };
        let hello = tower::service_fn(async |_: Request<Incoming>| {
            Ok::<_, Infallible>(text(StatusCode::OK, "hello\n"))
        });
        let mut tasks = JoinSet::new();
        let ending = shutdown.clone();
        tasks.spawn(async move { source.run(ending).await.expect("a source") });
        tasks.spawn(async move {
            server.serve(hello, shutdown).await;
        });
        Self {
            address,
            readiness,
            registry,
            tasks,
            trigger,
        }
    }

    /// Tries until a handshake shows the wanted certificate; gives the time that took.
    async fn shows(&self, client: &Client, wanted: &CertificateDer<'_>) -> Duration {
        let start = Instant::now();
        let trying = async {
            loop {
                let stream = connect(self.address).await;
                if let Ok(stream) = client.connect(stream).await
                    && shown(&stream) == *wanted
                {
                    return start.elapsed();
                }
            }
        };
        timeout(DEADLINE, trying)
            .await
            .expect("the new certificate")
    }

    fn metrics(&self) -> String {
        let mut page = String::new();
        encode(&mut page, &self.registry).expect("a page");
        page
    }

    async fn end(mut self) {
        self.trigger.start(tokio::time::Instant::now() + DEADLINE);
        while let Some(ended) = self.tasks.join_next().await {
            ended.expect("no panic");
        }
    }
}

/// Clients that shake hands and ask, again and again, and count what fails.
struct Load {
    clients: JoinSet<()>,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
    failed: Arc<AtomicUsize>,
}

impl Load {
    fn start(address: SocketAddr, client: &Client, clients: usize) -> Self {
        let mut load = Self {
            clients: JoinSet::new(),
            stop: Arc::default(),
            done: Arc::default(),
            failed: Arc::default(),
        };
        for _ in 0..clients {
            let client = client.clone();
            let (stop, done, failed) = (
                Arc::clone(&load.stop),
                Arc::clone(&load.done),
                Arc::clone(&load.failed),
            );
            load.clients.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    match client.connect(connect(address).await).await {
                        Ok(mut stream) => {
                            assert_eq!(ask(&mut stream, "/").await.status, 200);
                            done.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error) => {
                            eprintln!("handshake failed: {error}");
                            failed.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
        load
    }

    async fn end(mut self) -> (usize, usize) {
        self.stop.store(true, Ordering::Relaxed);
        while let Some(ended) = self.clients.join_next().await {
            ended.expect("no panic");
        }
        let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        (count(&self.done), count(&self.failed))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_swapped_under_load_without_a_failed_handshake() {
    const SWAPS: usize = 8;
    let authority = Authority::new();
    let pairs: Vec<Pair> = (0..=SWAPS).map(|_| authority.issue()).collect();
    let mount = Mount::new(&pairs[0]);
    let running = Running::start(mount.files()).await;
    let client = authority.client(None);
    running.shows(&client, &pairs[0].certificate).await;
    let load = Load::start(running.address, &client, 4);
    let mut slowest = Duration::ZERO;
    for (round, pair) in pairs.iter().enumerate().skip(1) {
        if round == SWAPS / 2 {
            refuse_a_broken_pair(&running, &mount, &client, &pairs[round - 1]).await;
        }
        mount.swap(pair);
        slowest = slowest.max(running.shows(&client, &pair.certificate).await);
    }
    let (handshakes, failed) = load.end().await;
    eprintln!("{SWAPS} swaps, {handshakes} handshakes, {failed} failed, slowest swap {slowest:?}");
    assert_eq!(failed, 0, "of {handshakes} handshakes");
    assert!(handshakes >= 300, "only {handshakes} handshakes");
    assert!(slowest < Duration::from_secs(2), "a swap took {slowest:?}");
    running.end().await;
}

/// A key that fits another certificate is noticed, counted, and changes nothing on the wire.
async fn refuse_a_broken_pair(running: &Running, mount: &Mount, client: &Client, current: &Pair) {
    const REFUSED: &str = "certificate_reloads_total{result=\"refused\"} 1";
    let stranger = Authority::new().issue();
    mount.swap(&Pair {
        key_pem: stranger.key_pem,
        ..current.clone()
    });
    let noticing = async {
        while !running.metrics().contains(REFUSED) {
            running.shows(client, &current.certificate).await;
        }
    };
    timeout(DEADLINE, noticing).await.expect("a refusal");
    running.shows(client, &current.certificate).await;
    let gates = running.readiness.gates();
    assert_eq!(gates[0].closed, None, "the old pair still serves");
}

#[tokio::test]
async fn a_server_without_certificate_is_not_ready_and_waits_for_it() {
    let authority = Authority::new();
    let pair = authority.issue();
    let mount = Mount::new(&pair);
    mount.put("", "");
    let running = Running::start(mount.files()).await;
    let client = authority.client(None);
    let refused = client.connect(connect(running.address).await).await;
    assert!(refused.is_err(), "there is nothing to show yet");
    assert!(running.readiness.gates()[0].closed.is_some());
    mount.swap(&pair);
    running.shows(&client, &pair.certificate).await;
    assert_eq!(running.readiness.gates()[0].closed, None);
    let page = running.metrics();
    assert!(
        page.contains("certificate_reloads_total{result=\"ok\"} 1"),
        "{page}"
    );
    assert!(
        page.contains("certificate_not_after_timestamp_seconds "),
        "{page}"
    );
    running.end().await;
}

#[tokio::test]
async fn with_a_client_authority_only_its_clients_get_in() {
    let (servers, clients) = (Authority::new(), Authority::new());
    let pair = servers.issue();
    let mount = Mount::new(&pair);
    let folder = tempfile::tempdir().expect("a folder");
    let client_ca = folder.path().join("ca.crt");
    std::fs::write(&client_ca, clients.pem()).expect("a file");
    let running = Running::start(Files {
        client_ca: Some(client_ca),
        ..mount.files()
    })
    .await;
    let known = servers.client(Some(clients.issue()));
    running.shows(&known, &pair.certificate).await;
    let mut stream = known
        .connect(connect(running.address).await)
        .await
        .expect("a handshake");
    assert_eq!(ask(&mut stream, "/").await.status, 200);
    // In TLS 1.3 the client is done before the server has looked at its certificate, so the refusal comes with the read.
    for stranger in [servers.client(None), servers.client(Some(servers.issue()))] {
        if let Ok(mut stream) = stranger.connect(connect(running.address).await).await {
            use tokio::io::AsyncReadExt;
            let mut byte = [0];
            let read = timeout(DEADLINE, stream.read(&mut byte))
                .await
                .expect("an end");
            assert!(read.is_err(), "a stranger was let in");
        }
    }
    running.end().await;
}
