//! A throw-away authority, and certificates in files that change as those of a mounted Secret do.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use agents::kit::tls::{ClientMode, Files, Options};
use rustls::{
    ClientConfig,
    pki_types::{CertificateDer, ServerName},
};
use support::pki;
pub(crate) use support::pki::Pair;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

const SERVER: &str = "webhook.test";

/// Issues certificates.
pub(crate) struct Authority(pki::Authority);

impl Authority {
    pub(crate) fn new() -> Self {
        Self(pki::Authority::make().expect("an authority"))
    }

    pub(crate) fn issue(&self) -> Pair {
        self.issue_for(&[SERVER, "localhost", "127.0.0.1"])
    }

    pub(crate) fn issue_for(&self, names: &[&str]) -> Pair {
        self.0.issue(names).expect("a certificate")
    }

    /// One that ends in so many days.
    pub(crate) fn issue_for_days(&self, days: i32) -> Pair {
        let names = [SERVER, "localhost", "127.0.0.1"];
        self.0.issue_for_days(&names, days).expect("a certificate")
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A client that trusts this authority, and has a certificate of its own if one is given.
    pub(crate) fn client(&self, own: Option<Pair>) -> Client {
        let config = self.0.client(own).expect("a client");
        Client {
            config: Arc::new(config),
        }
    }
}

/// Makes TLS connections.
#[derive(Clone)]
pub(crate) struct Client {
    config: Arc<ClientConfig>,
}

impl Client {
    /// The same client, but one that wants this protocol.
    pub(crate) fn speaking(mut self, protocol: &[u8]) -> Self {
        Arc::make_mut(&mut self.config).alpn_protocols = vec![protocol.to_vec()];
        self
    }

    pub(crate) async fn connect(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(SERVER).map_err(std::io::Error::other)?;
        TlsConnector::from(Arc::clone(&self.config))
            .connect(name, stream)
            .await
    }
}

/// How a swap of the certificate was seen from outside, in times since the swap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Swap {
    /// When the last handshake began that still showed the old certificate; nothing if none did.
    pub(crate) stale: Duration,
    /// When the new one had been seen.
    pub(crate) seen: Duration,
}

/// Holds swaps against the promise: whoever asks later than one second after a swap is shown the new certificate, each
/// time. How long a handshake then takes on a busy machine says nothing about the swap, so only the middle one is held to
/// the same second.
pub(crate) fn on_the_wire_in_time(swaps: &[Swap]) -> Result<(), String> {
    const PROMISED: Duration = Duration::from_secs(1);
    let mut seen: Vec<Duration> = swaps.iter().map(|swap| swap.seen).collect();
    seen.sort_unstable();
    let (Some(median), Some(longest)) = (seen.get(seen.len() / 2), seen.last()) else {
        return Err("nothing was measured".to_owned());
    };
    let stale = swaps.iter().map(|swap| swap.stale).max();
    let late = swaps.iter().filter(|swap| swap.stale > PROMISED).count();
    let said = format!(
        "{} certificates on the wire: seen after {median:?} in the middle and {longest:?} at most; the last handshake with an old one began after {stale:?}; {late} later than {PROMISED:?}",
        swaps.len()
    );
    eprintln!("{said}");
    match late == 0 && *median <= PROMISED {
        true => Ok(()),
        false => Err(said),
    }
}

/// The certificate that the other side showed.
pub(crate) fn shown(stream: &TlsStream<TcpStream>) -> CertificateDer<'static> {
    let (_, session) = stream.get_ref();
    let chain = session.peer_certificates().expect("a certificate");
    chain[0].clone().into_owned()
}

/// A folder that looks like a mounted Secret: files are links into a folder that is itself a link.
pub(crate) struct Mount {
    folder: TempDir,
    version: Mutex<u32>,
}

impl Mount {
    pub(crate) fn new(pair: &Pair) -> Self {
        let mount = Self {
            folder: TempDir::new().expect("a folder"),
            version: Mutex::new(0),
        };
        mount.put(&pair.certificate_pem, &pair.key_pem);
        for name in ["tls.crt", "tls.key"] {
            let target = Path::new("..data").join(name);
            symlink(target, mount.folder.path().join(name)).expect("a link");
        }
        mount
    }

    /// Where a server finds its files.
    pub(crate) fn files(&self) -> Files {
        Files {
            certificate: self.folder.path().join("tls.crt"),
            key: self.folder.path().join("tls.key"),
            ca: None,
            client_ca: None,
        }
    }

    /// The same, with nothing asked of names, issuer and clients.
    pub(crate) fn options(&self) -> Options {
        Options {
            files: self.files(),
            names: Vec::new(),
            clients: ClientMode::Off,
        }
    }

    pub(crate) fn swap(&self, pair: &Pair) {
        self.put(&pair.certificate_pem, &pair.key_pem);
    }

    /// Replaces all files at once, as the kubelet does.
    pub(crate) fn put(&self, certificate: &str, key: &str) {
        let mut version = self.version.lock().expect("one at a time");
        *version += 1;
        let name = format!("..{version}");
        let folder = self.folder.path();
        fs::create_dir(folder.join(&name)).expect("a folder");
        fs::write(folder.join(&name).join("tls.crt"), certificate).expect("a file");
        fs::write(folder.join(&name).join("tls.key"), key).expect("a file");
        symlink(&name, folder.join("..next")).expect("a link");
        fs::rename(folder.join("..next"), folder.join("..data")).expect("a swap");
    }
}
