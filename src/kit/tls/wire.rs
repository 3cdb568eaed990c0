//! Whether the certificate on the wire is the one in use: a connection to our own port, as a client would make it.

use std::{
    fmt,
    future::pending,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::BoxFuture;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme,
    client::{
        Resumption,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
    version::TLS13,
};
use tokio::{
    net::TcpStream,
    time::{Instant, timeout},
};
use tokio_rustls::TlsConnector;

/// Time for one look at the wire.
const DEADLINE: Duration = Duration::from_secs(2);

/// How long a swap may go unconfirmed before that counts: a port that is busy is not a port with a wrong certificate.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is known of the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing yet about this certificate; there is still time.
    Waiting,
    /// It shows the certificate in use.
    Confirmed,
    /// It does not, or nobody could tell for too long.
    Doubtful(String),
}

/// What one look saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// The certificate in use.
    Same,
    /// Something else.
    Other,
    /// Nothing.
    Nothing(String),
}

/// Where we look at our own port from, so that a look is not taken for a client.
#[derive(Clone, Debug, Default)]
pub(super) struct Eye {
    /// Of the last look: when one has ended, the server may not be done with it yet.
    address: Arc<Mutex<Option<SocketAddr>>>,
}

impl Eye {
    fn looks_from(&self, address: SocketAddr) {
        *self.lock() = Some(canonical(address));
    }

    /// Whether this is where we look from.
    pub(super) fn is_at(&self, address: SocketAddr) -> bool {
        *self.lock() == Some(canonical(address))
    }

    fn lock(&self) -> MutexGuard<'_, Option<SocketAddr>> {
        // Nothing panics while the lock is held, so a poisoned one is as good as new.
        self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An IPv4 address is the same whichever kind of socket it is seen by.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Looks at our own port after each swap, until it shows what it should.
pub(super) struct Wire {
    port: SocketAddr,
    eye: Eye,
    wanted: Option<Wanted>,
    look: Option<BoxFuture<'static, Seen>>,
}

struct Wanted {
    leaf: CertificateDer<'static>,
    since: Instant,
    known: Known,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.wanted.as_ref().map(|wanted| &wanted.known);
        f.debug_struct("Wire")
            .field("port", &self.port)
            .field("known", &known)
            .finish_non_exhaustive()
    }
}

impl Wire {
    pub(super) fn new(port: SocketAddr, eye: Eye) -> Self {
        Self {
            port,
            eye,
            wanted: None,
            look: None,
        }
    }

    /// From now on the port should show this certificate.
    pub(super) fn expect(&mut self, leaf: CertificateDer<'static>) {
        self.wanted = Some(Wanted {
            leaf,
            since: Instant::now(),
            known: Known::Waiting,
        });
        self.look = None; // whatever it saw would be about the certificate before
        self.retry();
    }

    /// Looks again, unless it is known or a look is under way.
    pub(super) fn retry(&mut self) {
        if let Some(wanted) = &self.wanted
            && wanted.known != Known::Confirmed
            && self.look.is_none()
        {
            let (eye, leaf) = (self.eye.clone(), wanted.leaf.clone());
            self.look = Some(Box::pin(look(self.port, eye, leaf)));
        }
    }

    /// Waits for the look that is under way; forever if there is none. May be dropped and called again.
    pub(super) async fn looked(&mut self) {
        let Some(look) = &mut self.look else {
            return pending().await;
        };
        let seen = look.await;
        self.look = None;
        if let Some(wanted) = &mut self.wanted {
            wanted.known = judge(seen, &wanted.known, wanted.since.elapsed());
        }
    }

    /// What is known of the certificate that is expected.
    pub(super) fn known(&self) -> Known {
        let wanted = self.wanted.as_ref();
        wanted.map_or(Known::Waiting, |wanted| wanted.known.clone())
    }
}

fn judge(seen: Seen, before: &Known, waited: Duration) -> Known {
    match (seen, before) {
        (Seen::Same, _) => Known::Confirmed,
        (Seen::Other, _) => {
            Known::Doubtful("our port shows another certificate than the one in use".to_owned())
        }
        (Seen::Nothing(why), _) if waited >= PATIENCE => Known::Doubtful(format!(
            "our port could not be seen to show the certificate in use: {why}"
        )),
        (Seen::Nothing(_), before) => before.clone(),
    }
}

/// One look, by the first address that answers.
async fn look(port: SocketAddr, eye: Eye, leaf: CertificateDer<'static>) -> Seen {
    let looking = async {
        let mut last = Seen::Nothing("there is no address".to_owned());
        for address in addresses(port) {
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    if let Ok(address) = stream.local_addr() {
                        eye.looks_from(address);
                    }
                    return shake_hands(stream, leaf).await;
                }
                Err(error) => last = Seen::Nothing(error.to_string()),
            }
        }
        last
    };
    let late = Seen::Nothing(format!("no handshake within {DEADLINE:?}"));
    timeout(DEADLINE, looking).await.unwrap_or(late)
}

/// Where our own port can be reached: "any address" includes those of this host.
fn addresses(port: SocketAddr) -> Vec<SocketAddr> {
    let hosts: Vec<IpAddr> = match port.ip() {
        IpAddr::V6(ip) if ip.is_unspecified() => {
            vec![Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()]
        }
        IpAddr::V4(ip) if ip.is_unspecified() => vec![Ipv4Addr::LOCALHOST.into()],
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => vec![ip],
    };
    let at = |host| SocketAddr::new(host, port.port());
    hosts.into_iter().map(at).collect()
}

async fn shake_hands(stream: TcpStream, leaf: CertificateDer<'static>) -> Seen {
    let host = match stream.peer_addr() {
        Ok(address) => ServerName::IpAddress(address.ip().into()),
        Err(error) => return Seen::Nothing(error.to_string()),
    };
    let provider = Arc::new(ring::default_provider());
    let only = Only {
        leaf,
        provider: Arc::clone(&provider),
    };
    // Only TLS 1.3: there the server shows its certificate before it asks for one of ours.
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13]);
    let mut config = match builder {
        Ok(builder) => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(only))
            .with_no_client_auth(),
        Err(error) => return Seen::Nothing(error.to_string()),
    };
    config.resumption = Resumption::disabled();
    match TlsConnector::from(Arc::new(config))
        .connect(host, stream)
        .await
    {
        Ok(_) => Seen::Same,
        Err(error) if is_other(&error) => Seen::Other,
        Err(error) => Seen::Nothing(error.to_string()),
    }
}

fn is_other(error: &std::io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    matches!(inner, Some(Error::InvalidCertificate(_)))
}

/// Trusts one certificate and no other, whoever issued it; the server must have its key.
#[derive(Debug)]
struct Only {
    leaf: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Only {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        _rest: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match *leaf == self.leaf {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _leaf: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.2 is not offered".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, leaf, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let known = &self.provider.signature_verification_algorithms;
        known.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_look_that_sees_nothing_is_forgiven_and_a_wrong_certificate_is_not() {
        let nothing = || Seen::Nothing("busy".to_owned());
        let doubtful = |text: &str| Known::Doubtful(text.to_owned());
        let soon = Duration::from_secs(1);
        let other = "our port shows another certificate than the one in use";
        let cases = [
            (Seen::Same, Known::Waiting, soon, Known::Confirmed),
            (Seen::Same, doubtful(other), PATIENCE, Known::Confirmed),
            (nothing(), Known::Waiting, soon, Known::Waiting),
            (Seen::Other, Known::Waiting, soon, doubtful(other)),
            (nothing(), doubtful(other), soon, doubtful(other)),
            (
                nothing(),
                Known::Waiting,
                PATIENCE,
                doubtful("our port could not be seen to show the certificate in use: busy"),
            ),
        ];
        for (seen, before, waited, expected) in cases {
            assert_eq!(judge(seen, &before, waited), expected);
        }
    }

    #[test]
    fn our_own_look_is_known_by_either_kind_of_socket() {
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let eye = Eye::default();
        assert!(!eye.is_at(at("127.0.0.1:4000")));
        eye.looks_from(at("127.0.0.1:4000"));
        assert!(eye.is_at(at("127.0.0.1:4000")));
        assert!(eye.is_at(at("[::ffff:127.0.0.1]:4000")));
        assert!(!eye.is_at(at("127.0.0.1:4001")));
    }

    #[test]
    fn any_address_is_reached_by_the_loopback_ones() {
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let cases: [(&str, &[&str]); 3] = [
            ("[::]:8443", &["[::1]:8443", "127.0.0.1:8443"]),
            ("0.0.0.0:8443", &["127.0.0.1:8443"]),
            ("10.0.0.7:8443", &["10.0.0.7:8443"]),
        ];
        for (port, expected) in cases {
            let expected: Vec<_> = expected.iter().map(|text| at(text)).collect();
            assert_eq!(addresses(at(port)), expected);
        }
    }
}
