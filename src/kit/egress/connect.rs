//! From a target to a stream: resolve once, judge each address, connect to one that was judged.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::address::Refusal;
use super::{Failure, Inner, Target};

/// Most addresses of one name that are tried.
const TRIES: usize = 4;
/// Time for one of them.
const CONNECT: Duration = Duration::from_secs(3);

/// Names by which the API server is known inside every cluster.
const API_SERVER: [&str; 3] = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"];

/// What both kinds of stream can do.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send {}
impl<S: AsyncRead + AsyncWrite + Send> Stream for S {}

/// A stream to the target.
pub(super) async fn connect(
    inner: &Inner,
    target: &Target,
) -> Result<Pin<Box<dyn Stream>>, Failure> {
    let addresses = judged(inner, &target.host, target.port).await?;
    let stream = reach(&addresses).await?;
    match target.is_tls {
        false => Ok(Box::pin(stream)),
        true => Ok(Box::pin(encrypt(&inner.tls, &target.host, stream).await?)),
    }
}

/// The same stream, with a server that has proven to be this host.
pub(super) async fn encrypt(
    tls: &Arc<ClientConfig>,
    host: &str,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, Failure> {
    let name = ServerName::try_from(host.to_owned());
    let name = name.map_err(|_| Failure::Refused(Refusal::Url))?;
    let connector = TlsConnector::from(Arc::clone(tls));
    let encrypted = connector.connect(name, stream).await;
    encrypted.map_err(|error| unreachable("TLS with it failed", &error))
}

/// The addresses of a host that may be called; why not, if there are none.
pub(super) async fn judged(
    inner: &Inner,
    host: &str,
    port: u16,
) -> Result<Vec<SocketAddr>, Failure> {
    if is_api_server(host) {
        return Err(Failure::Refused(Refusal::ApiServer));
    }
    let found = resolve(inner, host, port).await;
    let found = found.map_err(|error| unreachable("its name leads nowhere", &error))?;
    let mut api_server = Vec::new();
    for (its_host, its_port) in inner.places() {
        // A host of the API server that leads nowhere now leads nobody there either.
        let found = resolve(inner, &its_host, its_port).await;
        api_server.extend(found.unwrap_or_default());
    }
    let mut refusal = None;
    let mut addresses = Vec::new();
    for address in found.into_iter().take(TRIES) {
        match inner.rules.judge(host, address, &api_server) {
            Ok(()) => addresses.push(address),
            Err(refused) => refusal = refusal.or(Some(refused)),
        }
    }
    match (addresses.is_empty(), refusal) {
        (false, _) => Ok(addresses),
        (true, Some(refusal)) => Err(Failure::Refused(refusal)),
        (true, None) => Err(Failure::Unreachable("its name leads nowhere".to_owned())),
    }
}

fn is_api_server(host: &str) -> bool {
    let below = host.strip_prefix("kubernetes.default.svc.");
    API_SERVER.contains(&host) || below.is_some()
}

async fn resolve(inner: &Inner, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    match host.parse::<IpAddr>() {
        Ok(ip) => Ok(vec![SocketAddr::new(ip, port)]),
        Err(_) => inner.resolver.resolve(host.to_owned(), port).await,
    }
}

/// A connection to the first address that answers.
pub(super) async fn reach(addresses: &[SocketAddr]) -> Result<TcpStream, Failure> {
    let mut last = Failure::Unreachable("nobody is there".to_owned());
    for address in addresses {
        last = match timeout(CONNECT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => unreachable("no connection to it", &error),
            Err(_) => Failure::TimedOut(CONNECT),
        };
    }
    Err(last)
}

/// What went wrong, by its kind: the words of an error may name an address.
pub(super) fn unreachable(what: &str, error: &io::Error) -> Failure {
    let tls = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    Failure::Unreachable(match tls {
        Some(tls) => format!("{what}: {tls}"),
        None => format!("{what}: {}", error.kind()),
    })
}
