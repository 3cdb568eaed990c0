//! TLS: reloads, refusals, and client certificates.

mod alone;

use std::{
    cell::Cell,
    convert::Infallible,
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use ::http::{Request, StatusCode, Version};
use agents::kit::{
    http::{self, Limits, Server, Transport, text},
    readiness::Readiness,
    shutdown::{Trigger, channel},
    tls::{ClientMode, Files, Metrics, Notice, Options, Source},
};
use anyhow::{bail, ensure};
use hyper::{body::Incoming, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prometheus_client::{encoding::text::encode, registry::Registry};
use rustls::pki_types::CertificateDer;
use support::wait;
use tokio::{
    net::TcpListener,
    sync::{Notify, broadcast},
    task::JoinSet,
    time::timeout,
};

use super::{
    client::{DEADLINE, answer, ask, connect, send},
    pki::{Authority, Client, Mount, Swap, shown},
};

/// A TLS server in this process, with its certificate source.
struct Running {
    address: SocketAddr,
    /// Lets an answer to `/hold` go.
    release: Arc<Notify>,
    readiness: Readiness,
    registry: Registry,
    notices: broadcast::Receiver<Notice>,
    tasks: JoinSet<()>,
    trigger: Trigger,
}

impl Running {
    async fn start(options: Options) -> Self {
        Self::start_with(options, Limits::default()).await
    }

    async fn start_with(options: Options, limits: Limits) -> Self {
        let (trigger, shutdown) = channel();
        let (readiness, mut registry) = (Readiness::default(), Registry::default());
        let metrics = Metrics::register(&mut registry);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let gate = readiness.gate("certificate");
        let source = Source::new(options, gate, metrics).seen_on(address);
        let notices = source.notices();
        let server = Server {
            listener,
            transport: Transport::Tls(source.tls()),
            limits,
            metrics: http::Metrics::register(&mut registry).of("test"),
        };
        let release = Arc::new(Notify::new());
        let hello = tower::service_fn({
            let release = Arc::clone(&release);
            move |request: Request<Incoming>| {
                let release = Arc::clone(&release);
                async move {
                    if request.uri().path() == "/hold" {
                        release.notified().await;
                    }
                    Ok::<_, Infallible>(text(StatusCode::OK, "hello\n"))
                }
            }
        });
        let mut tasks = JoinSet::new();
        let ending = shutdown.clone();
        tasks.spawn(async move { source.run(ending).await.expect("a source") });
        tasks.spawn(async move {
            server.serve(hello, shutdown).await;
        });
        Self {
            address,
            release,
            readiness,
            registry,
            notices,
            tasks,
            trigger,
        }
    }

    /// Waits until the program is ready, which it is once its own look at the wire has shown the certificate in use.
    async fn ready(&self) {
        let open = || async {
            let gates = self.readiness.gates();
            ensure!(gates[0].closed.is_none(), "{gates:?}");
            Ok(())
        };
        wait::retry("an open gate", DEADLINE, open).await.unwrap();
    }

    /// Waits until the gate is open and says this besides, or nothing.
    async fn ready_but(&self, note: Option<&str>) {
        let says = || async {
            let gate = self.readiness.gates().remove(0);
            let said = gate.note.as_deref();
            let is_it = note.map_or(said.is_none(), |note| {
                said.is_some_and(|said| said.starts_with(note))
            });
            ensure!(gate.closed.is_none() && is_it, "{gate:?}");
            Ok(())
        };
        let what = note.unwrap_or("an open gate without a note");
        wait::retry(what, DEADLINE, says).await.unwrap();
    }

    /// The next thing that people should hear of.
    async fn notice(&mut self) -> Notice {
        let notice = timeout(DEADLINE, self.notices.recv()).await;
        notice.expect("a notice in time").expect("a notice")
    }

    /// Tries until a handshake shows the wanted certificate; says how that went.
    async fn shows(&self, client: &Client, wanted: &CertificateDer<'_>) -> Swap {
        let (start, stale) = (Instant::now(), Cell::new(Duration::ZERO));
        let look = || async {
            let begun = start.elapsed();
            let stream = client.connect(connect(self.address).await).await?;
            if shown(&stream) != *wanted {
                stale.set(begun);
                bail!("another certificate");
            }
            Ok(start.elapsed())
        };
        let seen = wait::retry("the new certificate", DEADLINE, look).await;
        Swap {
            stale: stale.get(),
            seen: seen.unwrap(),
        }
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

#[tokio::test]
async fn a_server_without_certificate_is_not_ready_and_waits_for_it() {
    let authority = Authority::new();
    let pair = authority.issue();
    let mount = Mount::new(&pair);
    mount.put("", "");
    let running = Running::start(mount.options()).await;
    let client = authority.client(None);
    let refused = client.connect(connect(running.address).await).await;
    assert!(refused.is_err(), "there is nothing to show yet");
    assert!(running.readiness.gates()[0].closed.is_some());
    mount.swap(&pair);
    running.shows(&client, &pair.certificate).await;
    running.ready().await;
    let page = running.metrics();
    assert!(page.contains("certificate_on_wire 1"), "{page}");
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
    let running = Running::start(with_clients(&mount, client_ca, ClientMode::Require)).await;
    running.ready().await;
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

/// The same files, and an authority for client certificates.
fn with_clients(mount: &Mount, client_ca: PathBuf, clients: ClientMode) -> Options {
    let options = mount.options();
    Options {
        files: Files {
            client_ca: Some(client_ca),
            ..options.files
        },
        clients,
        ..options
    }
}

#[tokio::test]
async fn clients_are_counted_before_they_are_kept_out() {
    let (servers, clients) = (Authority::new(), Authority::new());
    let pair = servers.issue();
    let mount = Mount::new(&pair);
    let folder = tempfile::tempdir().expect("a folder");
    let client_ca = folder.path().join("ca.crt");
    std::fs::write(&client_ca, clients.pem()).expect("a file");
    let running = Running::start(with_clients(&mount, client_ca, ClientMode::Observe)).await;
    running.ready().await;
    let comers = [
        servers.client(None),
        servers.client(Some(clients.issue())),
        servers.client(Some(servers.issue())),
    ];
    for comer in comers {
        let stream = comer.connect(connect(running.address).await).await;
        let mut stream = stream.expect("a handshake");
        assert_eq!(ask(&mut stream, "/").await.status, 200);
    }
    let page = running.metrics();
    for line in [
        // One, though we looked at our own port as well.
        "tls_clients_total{certificate=\"none\"} 1",
        "tls_clients_total{certificate=\"trusted\"} 1",
        "tls_clients_total{certificate=\"untrusted\"} 1",
        "tls_client_names_total{issuer=\"rcgen self signed cert\",subject=\"rcgen self signed cert\"} 2",
    ] {
        assert!(page.contains(line), "{line} is not in {page}");
    }
    running.end().await;
}

#[tokio::test]
async fn a_pair_for_another_name_or_of_another_issuer_is_refused_and_said_so() {
    let authority = Authority::new();
    let pair = authority.issue();
    let mount = Mount::new(&pair);
    let folder = tempfile::tempdir().expect("a folder");
    let ca = folder.path().join("ca.crt");
    std::fs::write(&ca, authority.pem()).expect("a file");
    let options = mount.options();
    let mut running = Running::start(Options {
        files: Files {
            ca: Some(ca),
            ..options.files
        },
        names: vec!["webhook.test".to_owned()],
        ..options
    })
    .await;
    running.ready().await;
    assert!(matches!(running.notice().await, Notice::InUse { .. }));
    let strangers = [
        (
            authority.issue_for(&["other.test"]),
            "the certificate is not for webhook.test; it is for other.test",
        ),
        (
            Authority::new().issue(),
            "the certificate does not lead to the CA file: ",
        ),
    ];
    for (stranger, expected) in strangers {
        mount.swap(&stranger);
        let Notice::Refused { reason, kept } = running.notice().await else {
            panic!("the pair should have been refused");
        };
        assert!(reason.to_string().starts_with(expected), "{reason}");
        assert!(kept, "the old pair stays");
        running
            .shows(&authority.client(None), &pair.certificate)
            .await;
        let note = format!("files on disk refused: {expected}");
        running.ready_but(Some(&note)).await;
    }
    mount.swap(&pair);
    running.ready_but(None).await;
    running.end().await;
}

#[tokio::test]
async fn a_handshake_that_dawdles_or_is_none_is_cut_and_the_next_client_is_served() {
    let authority = Authority::new();
    let pair = authority.issue();
    let mount = Mount::new(&pair);
    let limits = Limits {
        handshake: Duration::from_millis(500),
        ..Limits::default()
    };
    let running = Running::start_with(mount.options(), limits).await;
    let client = authority.client(None);
    running.shows(&client, &pair.certificate).await;
    let mut silent = connect(running.address).await;
    let mut babbling = connect(running.address).await;
    send(&mut babbling, b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").await;
    for stream in [&mut silent, &mut babbling] {
        assert_eq!(answer(stream).await, None);
    }
    let page = running.metrics();
    for cause in ["handshake_deadline", "handshake_failed"] {
        let counter = format!("closed_total{{server=\"test\",cause=\"{cause}\"}} ");
        let counted = page.contains(&counter) && !page.contains(&format!("{counter}0\n"));
        assert!(counted, "{page}");
    }
    running.shows(&client, &pair.certificate).await;
    running.end().await;
}

#[tokio::test]
async fn http2_is_negotiated_and_its_streams_are_drained() {
    let authority = Authority::new();
    let pair = authority.issue();
    let mount = Mount::new(&pair);
    let running = Running::start(mount.options()).await;
    running
        .shows(&authority.client(None), &pair.certificate)
        .await;
    let client = authority.client(None).speaking(b"h2");
    let stream = client.connect(connect(running.address).await).await;
    let stream = TokioIo::new(stream.expect("a handshake"));
    let handshake = http2::handshake(TokioExecutor::new(), stream).await;
    let (mut sender, connection) = handshake.expect("HTTP/2");
    let mut connections = JoinSet::new();
    connections.spawn(connection);
    let request = |path: &str| {
        let request = Request::get(format!("https://webhook.test{path}"));
        request.body(String::new()).expect("a request")
    };
    let held = sender.send_request(request("/hold"));
    let quick = sender.send_request(request("/")).await.expect("an answer");
    assert_eq!(
        (quick.status(), quick.version()),
        (StatusCode::OK, Version::HTTP_2)
    );
    running
        .trigger
        .start(tokio::time::Instant::now() + DEADLINE);
    running.release.notify_one();
    let held = timeout(DEADLINE, held).await.expect("an answer in time");
    assert_eq!(held.expect("an answer").status(), StatusCode::OK);
    // The server says that it goes away, and closes when nothing is in flight.
    let closed = timeout(DEADLINE, connections.join_next())
        .await
        .expect("an end in time");
    assert!(closed.expect("a connection").expect("no panic").is_ok());
    running.end().await;
}
