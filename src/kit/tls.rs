//! TLS for servers: a certificate source that follows its files, and the configuration that is current.
//!
//! Files are watched, and polled and compared by content besides, because a mounted Secret is swapped by a symlink and a
//! lost file event would be a lost renewal. A new pair is checked before it is used; a bad one leaves the old one in
//! place. Each connection takes the configuration that is current when it comes, so a reload never touches a handshake.

mod clients;
mod material;
mod metrics;
mod presented;
mod source;
mod watch;
mod wire;

use std::{io, path::PathBuf, sync::Arc};

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use rustls::ServerConfig;
use tokio::{io::BufReader, net::TcpStream};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use clients::Census;
pub use clients::ClientMode;
pub use material::Refused;
pub use metrics::Metrics;
pub use presented::Presented;
pub use source::Source;
use wire::Eye;

/// Where certificates come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The certificate and those that lead to its issuer, in PEM.
    pub certificate: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
    /// Who must have issued the certificate, in PEM; if not set, that is not looked at.
    pub ca: Option<PathBuf>,
    /// Certificates of those who may issue client certificates, in PEM.
    pub client_ca: Option<PathBuf>,
}

/// What a server wants of its TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where certificates come from.
    pub files: Files,
    /// Names that a certificate must have before it is used.
    pub names: Vec<String>,
    /// What is asked of clients.
    pub clients: ClientMode,
}

/// Which HTTP a server speaks over TLS: what it offers in the handshake, and what it understands after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocols {
    /// HTTP/2 and HTTP/1.1.
    #[default]
    All,
    /// HTTP/1.1 alone.
    Http1,
}

impl Protocols {
    /// Their names in the handshake, the preferred one first.
    fn names(self) -> Vec<Vec<u8>> {
        let names: &[&str] = match self {
            Self::All => &["h2", "http/1.1"],
            Self::Http1 => &["http/1.1"],
        };
        names.iter().map(|name| name.as_bytes().to_vec()).collect()
    }
}

/// Something about a certificate that people should hear of. Those who listen too slowly miss the oldest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A new pair is in use.
    InUse {
        /// Until when it holds.
        not_after: Timestamp,
    },
    /// Changed files could not be used.
    Refused {
        /// What is wrong with them.
        reason: Refused,
        /// Whether there is an earlier pair that stays in use.
        kept: bool,
    },
    /// The certificate in use ends soon and no new one has come.
    Expiring {
        /// When.
        not_after: Timestamp,
    },
    /// The certificate in use has ended.
    Expired {
        /// When.
        not_after: Timestamp,
    },
}

/// Bytes that are read from a connection at once; most requests fit.
const READ_AHEAD: usize = 8 * 1024;

/// The current TLS configuration of a server; none until the first good pair was read.
#[derive(Clone, Debug)]
pub struct ServerTls {
    current: Arc<ArcSwapOption<Current>>,
    protocols: Protocols,
    eye: Eye,
    metrics: Metrics,
}

/// What one connection needs.
#[derive(Debug)]
struct Current {
    config: Arc<ServerConfig>,
    census: Census,
}

impl ServerTls {
    fn new(metrics: Metrics) -> Self {
        Self {
            current: Arc::default(),
            protocols: Protocols::default(),
            eye: Eye::default(),
            metrics,
        }
    }

    /// Shakes hands with a client.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<BufReader<TcpStream>>> {
        let Some(current) = self.current.load_full() else {
            return Err(io::Error::other("there is no certificate yet"));
        };
        let acceptor = TlsAcceptor::from(Arc::clone(&current.config));
        let peer = stream.peer_addr(); // later it may be gone, and then nobody knows who it was
        // rustls asks for 4 KiB at a time, which is less than most requests.
        let stream = BufReader::with_capacity(READ_AHEAD, stream);
        let stream = acceptor.accept(stream).await?;
        let is_our_own = peer.is_ok_and(|peer| self.eye.is_at(peer));
        let (_, session) = stream.get_ref();
        if !is_our_own && let Some(client) = current.census.look(session.peer_certificates()) {
            self.metrics.met(client);
        }
        Ok(stream)
    }

    /// Which HTTP is spoken here.
    pub fn protocols(&self) -> Protocols {
        self.protocols
    }

    fn replace(&self, mut current: Current) {
        Arc::make_mut(&mut current.config).alpn_protocols = self.protocols.names();
        self.current.store(Some(Arc::new(current)));
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::registry::Registry;

    use super::*;
    use material::{
        Demands, check,
        tests::{in_time, pair},
    };

    #[test]
    fn what_is_offered_in_the_handshake_is_what_is_spoken() {
        let names = |protocols| {
            let checked = check(&pair(), &Demands::default(), in_time());
            let Ok(checked) = checked else {
                panic!("a good pair was refused");
            };
            let tls = ServerTls {
                protocols,
                ..ServerTls::new(Metrics::register(&mut Registry::default()))
            };
            tls.replace(checked.current);
            let current = tls.current.load_full().expect("a configuration");
            current.config.alpn_protocols.clone()
        };
        let (h2, h1) = (b"h2".to_vec(), b"http/1.1".to_vec());
        assert_eq!(names(Protocols::All), [h2, h1.clone()]);
        assert_eq!(names(Protocols::Http1), [h1]);
    }
}
