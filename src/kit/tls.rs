//! TLS for servers: a certificate source that follows its files, and the configuration that is current.
//!
//! Files are polled and compared by content, because a mounted Secret is swapped by a symlink and a lost file event
//! would be a lost renewal. A new pair is checked before it is used; a bad one leaves the old one in place. Each
//! connection takes the configuration that is current when it comes, so a reload never touches a handshake.

mod material;
mod metrics;
mod source;

use std::{io, path::PathBuf, sync::Arc};

use arc_swap::ArcSwapOption;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

pub use material::Refused;
pub use metrics::Metrics;
pub use source::Source;

/// Where certificates come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The certificate and those that lead to its issuer, in PEM.
    pub certificate: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
    /// Certificates of those who may issue client certificates; if set, a client must have one.
    pub client_ca: Option<PathBuf>,
}

/// The current TLS configuration of a server; none until the first good pair was read.
#[derive(Clone, Debug, Default)]
pub struct ServerTls {
    current: Arc<ArcSwapOption<ServerConfig>>,
}

impl ServerTls {
    /// Shakes hands with a client.
    pub async fn accept<T>(&self, stream: T) -> io::Result<TlsStream<T>>
    where
        T: AsyncRead + AsyncWrite + Unpin,
    {
        let Some(config) = self.current.load_full() else {
            return Err(io::Error::other("there is no certificate yet"));
        };
        TlsAcceptor::from(config).accept(stream).await
    }

    fn replace(&self, config: Arc<ServerConfig>) {
        self.current.store(Some(config));
    }
}
