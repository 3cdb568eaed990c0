//! The guard against servers on this machine, with names that lead where the test wants.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, PoisonError};

use opentelemetry::metrics::MeterProvider;
use opentelemetry::metrics::noop::NoopMeterProvider;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::*;

type Asked = Arc<Mutex<Vec<String>>>;

/// A server that gives each connection the next of its answers, and keeps what it was asked.
struct Server {
    address: SocketAddr,
    asked: Asked,
    _tasks: JoinSet<()>,
}

impl Server {
    async fn with(answers: &[&str]) -> Self {
        Self::start(answers, None).await
    }

    async fn start(answers: &[&str], tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let asked = Asked::default();
        let mut answers: VecDeque<String> = answers.iter().map(|text| (*text).into()).collect();
        let (seen, mut tasks) = (Arc::clone(&asked), JoinSet::new());
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let answer = answers.pop_front().unwrap_or_default();
                match &tls {
                    None => serve(stream, &answer, &seen).await,
                    Some(tls) => match tls.accept(stream).await {
                        Ok(stream) => serve(stream, &answer, &seen).await,
                        Err(_) => continue,
                    },
                }
            }
        });
        Self {
            address,
            asked,
            _tasks: tasks,
        }
    }

    fn asked(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.clone()
    }

    fn url(&self, host: &str, path: &str) -> Target {
        let url = format!("http://{host}:{}{path}", self.address.port());
        Target::parse(&url).expect("a target")
    }
}

/// Reads the head of a request and answers; an empty answer is none at all.
async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: &str, seen: &Asked) {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return,
            Ok(count) => head.extend_from_slice(&piece[..count]),
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    seen.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(head);
    if answer.is_empty() {
        // Hold the line until the caller gives up.
        drop(stream.read(&mut piece).await);
        return;
    }
    drop(stream.write_all(answer.as_bytes()).await);
    drop(stream.shutdown().await);
}

/// A name that leads somewhere else each time it is asked for.
struct Names(Arc<Mutex<VecDeque<IpAddr>>>);

impl Resolve for Names {
    fn resolve(&self, _: String, port: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        let next = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front();
        Box::pin(async move {
            let ip = next.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
            Ok(vec![SocketAddr::new(ip, port)])
        })
    }
}

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const METADATA: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254));

pub(super) fn settings() -> Settings {
    Settings {
        public: true,
        loopback: true,
        deadline: Duration::from_secs(10),
        ..Settings::default()
    }
}

pub(super) fn guard_with(settings: Settings, names: &[IpAddr], api: Vec<(String, u16)>) -> Guard {
    let meter = NoopMeterProvider::new().meter("test");
    let refused = meter.u64_counter("refused").build();
    let names = Names(Arc::new(Mutex::new(names.iter().copied().collect())));
    Guard::new(settings, api, names, refused).expect("a guard")
}

fn guard(names: &[IpAddr]) -> Guard {
    guard_with(settings(), names, Vec::new())
}

fn get(target: Target) -> Call {
    Call {
        method: Method::GET,
        target,
        headers: Vec::new(),
        credential: None,
        body: Bytes::new(),
        limit: 64,
    }
}

fn refused(answer: Result<Answer, Failure>) -> Refusal {
    match answer {
        Err(Failure::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";

#[tokio::test]
async fn a_call_is_answered() {
    let server = Server::with(&[OK]).await;
    let answer = guard(&[HERE])
        .call(get(server.url("a.test", "/x?y=1")))
        .await;
    let answer = answer.expect("an answer");
    assert_eq!((answer.status.as_u16(), &*answer.body), (200, &b"hi"[..]));
    let asked = server.asked().concat();
    assert!(asked.starts_with("GET /x?y=1 HTTP/1.1\r\n"), "{asked}");
    let host = format!("host: a.test:{}\r\n", server.address.port());
    assert!(asked.contains(&host), "{asked}");
}

#[tokio::test]
async fn our_own_machine_is_not_called_unless_a_test_says_so() {
    let server = Server::with(&[OK]).await;
    for (host, names) in [
        ("a.test", &[HERE][..]),
        ("127.0.0.1", &[]),
        ("[::ffff:127.0.0.1]", &[]),
    ] {
        let settings = Settings {
            loopback: false,
            ..settings()
        };
        let guard = guard_with(settings, names, Vec::new());
        let answer = guard.call(get(server.url(host, "/"))).await;
        assert_eq!(refused(answer), Refusal::Loopback, "{host}");
    }
    assert_eq!(server.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_name_is_asked_for_once_and_the_judged_address_is_called() {
    let server = Server::with(&[OK]).await;
    // Whoever asks a second time is led astray.
    let answer = guard(&[HERE, METADATA])
        .call(get(server.url("a.test", "/")))
        .await;
    assert_eq!(answer.expect("an answer").status, StatusCode::OK);
}

#[tokio::test]
async fn a_name_that_leads_elsewhere_a_moment_later_is_judged_anew() {
    let answer = "HTTP/1.1 302 Found\r\nlocation: /next\r\ncontent-length: 0\r\n\r\n";
    let server = Server::with(&[answer, OK]).await;
    let guard = guard(&[HERE, METADATA]);
    let answer = guard.call(get(server.url("a.test", "/"))).await;
    assert_eq!(refused(answer), Refusal::LinkLocal);
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn the_api_server_is_refused_by_name_and_by_address() {
    let server = Server::with(&[OK]).await;
    let port = server.address.port();
    for (host, names, api) in [
        ("a.test", &[HERE][..], "127.0.0.1"),
        ("a.test", &[HERE, HERE], "api.test"),
        ("kubernetes.default.svc", &[], "api.test"),
        ("kubernetes.default.svc.cluster.local", &[], "api.test"),
    ] {
        let guard = guard_with(settings(), names, vec![(api.to_owned(), port)]);
        let answer = guard.call(get(server.url(host, "/"))).await;
        assert_eq!(refused(answer), Refusal::ApiServer, "{host}, {api}");
    }
    assert_eq!(server.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_machine_of_the_api_server_is_refused_as_soon_as_it_is_known() {
    let server = Server::with(&[OK]).await;
    let machine = (server.address.ip().to_string(), server.address.port());
    let guard = guard(&[HERE; 3]);
    guard.keep_from(vec![machine]);
    let answer = guard.call(get(server.url("a.test", "/"))).await;
    assert_eq!(refused(answer), Refusal::ApiServer);
    assert_eq!(server.asked(), Vec::<String>::new());
    guard.keep_from(Vec::new());
    let answer = guard.call(get(server.url("a.test", "/"))).await;
    assert_eq!(answer.expect("an answer").status, StatusCode::OK);
}

#[tokio::test]
async fn an_answer_leads_on_within_the_server_only() {
    let other = Server::with(&[OK]).await;
    let location = format!("http://b.test:{}/", other.address.port());
    let away = format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
    let here = "HTTP/1.1 301 Moved\r\nlocation: /next\r\ncontent-length: 0\r\n\r\n";
    let server = Server::with(&[here, OK, &away, here, here, here, here, here]).await;
    let guard = guard(&[HERE; 8]);
    let followed = guard.call(get(server.url("a.test", "/"))).await;
    assert_eq!(followed.expect("an answer").status, StatusCode::OK);
    let mut call = get(server.url("a.test", "/"));
    call.credential = Credential::new("a.test", "Bearer secret");
    assert_eq!(refused(guard.call(call).await), Refusal::Redirect);
    assert_eq!(
        other.asked(),
        Vec::<String>::new(),
        "nobody was told the secret"
    );
    let round = guard.call(get(server.url("a.test", "/"))).await;
    assert_eq!(refused(round), Refusal::Redirect, "round in circles");
}

#[tokio::test]
async fn what_changes_something_is_not_sent_on() {
    let here = "HTTP/1.1 307 Elsewhere\r\nlocation: /next\r\ncontent-length: 0\r\n\r\n";
    let server = Server::with(&[here, OK]).await;
    let call = Call {
        method: Method::POST,
        ..get(server.url("a.test", "/"))
    };
    assert_eq!(refused(guard(&[HERE]).call(call).await), Refusal::Redirect);
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn a_credential_goes_to_its_host_over_tls_only() {
    let server = Server::with(&[OK]).await;
    let mut call = get(server.url("b.test", "/"));
    call.credential = Credential::new("a.test", "Bearer secret");
    assert!(!format!("{call:?}").contains("secret"));
    let answer = guard(&[HERE]).call(call.clone()).await;
    assert_eq!(refused(answer), Refusal::Credential, "another host");
    call.target = Target::parse("http://a.test/").expect("a target");
    let settings = Settings {
        loopback: false,
        ..settings()
    };
    let guard = guard_with(
        settings,
        &[IpAddr::V4(Ipv4Addr::new(1, 1, 1, 1))],
        Vec::new(),
    );
    assert_eq!(
        refused(guard.call(call).await),
        Refusal::Credential,
        "in the clear"
    );
    assert_eq!(server.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn who_says_nothing_is_left_after_the_deadline() {
    let server = Server::with(&[]).await;
    let deadline = Duration::from_millis(200);
    let settings = Settings {
        deadline,
        ..settings()
    };
    let guard = guard_with(settings, &[HERE], Vec::new());
    let answer = guard.call(get(server.url("a.test", "/"))).await;
    assert_eq!(answer.err(), Some(Failure::TimedOut(deadline)));
}

#[tokio::test]
async fn an_answer_has_a_size() {
    let long = "x".repeat(65);
    let declared = format!("HTTP/1.1 200 OK\r\ncontent-length: 65\r\n\r\n{long}");
    let endless = format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{long}");
    let failed = format!("HTTP/1.1 500 No\r\nretry-after: 7\r\nconnection: close\r\n\r\n{long}");
    let head = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(64 * 1024));
    let many: String = (0..100).map(|n| format!("x-{n}: y\r\n")).collect();
    let many = format!("HTTP/1.1 200 OK\r\n{many}\r\n");
    let server = Server::with(&[&declared, &endless, &failed, &head, &many]).await;
    let guard = guard(&[HERE; 5]);
    for row in ["declared", "undeclared"] {
        let answer = guard.call(get(server.url("a.test", "/"))).await;
        assert_eq!(answer.err(), Some(Failure::TooLarge(64)), "{row}");
    }
    let answer = guard.call(get(server.url("a.test", "/"))).await;
    let answer = answer.expect("a failure is told all the same");
    assert!(answer.may_pass() && answer.body.is_empty());
    assert_eq!(answer.retry_after(), Some(Duration::from_secs(7)));
    for row in ["a long head", "many headers"] {
        let answer = guard.call(get(server.url("a.test", "/"))).await;
        assert!(
            matches!(answer, Err(Failure::Unreachable(_))),
            "{row}: {answer:?}"
        );
    }
}

#[tokio::test]
async fn only_known_authorities_are_trusted() {
    let key = rcgen::generate_simple_self_signed(vec!["a.test".to_owned()]).expect("a pair");
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), key.cert.pem()).expect("a file");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(
            vec![key.cert.der().clone()],
            PrivateKeyDer::Pkcs8(key.signing_key.serialize_der().into()),
        )
        .expect("a pair that fits");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let server = Server::start(&[OK, OK], Some(acceptor)).await;
    let url = format!("https://a.test:{}/", server.address.port());
    let target = Target::parse(&url).expect("a target");
    let stranger = guard(&[HERE]).call(get(target.clone())).await;
    assert!(
        matches!(stranger, Err(Failure::Unreachable(_))),
        "{stranger:?}"
    );
    assert_eq!(server.asked(), Vec::<String>::new());
    let settings = Settings {
        authorities: Some(file.path().to_owned()),
        ..settings()
    };
    let known = guard_with(settings, &[HERE], Vec::new())
        .call(get(target))
        .await;
    assert_eq!(known.expect("an answer").status, StatusCode::OK);
}

#[test]
fn a_file_without_authorities_is_refused() {
    let empty = tempfile::NamedTempFile::new().expect("a file");
    for file in [empty.path(), Path::new("/nowhere")] {
        let refused = trusting(&[("PGSSLROOTCERT", Some(file))]);
        let words = refused.expect_err("no authorities").to_string();
        let start = format!("PGSSLROOTCERT {}: ", file.display());
        assert!(words.starts_with(&start), "{words}");
    }
}
