//! The certificates that a server shows, judged from outside: whose they are, who says so, and until when. For whoever looks
//! at a server that is not their own; nothing is sent to it.

use std::{io, sync::Arc};

use jiff::Timestamp;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::material::{self, Refused};

/// A chain of certificates, the server's own first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presented {
    chain: Vec<CertificateDer<'static>>,
}

impl Presented {
    /// The chain in a PEM text.
    ///
    /// # Errors
    ///
    /// When there is no certificate in it.
    pub fn from_pem(pem: &[u8]) -> Result<Self, Refused> {
        let chain = material::certificates(pem);
        let chain = chain.map_err(|reason| Refused::Certificate { reason })?;
        Ok(Self { chain })
    }

    /// What a server shows in a handshake, after which the connection is closed. The caller sets the deadline.
    ///
    /// # Errors
    ///
    /// When nobody is there, or speaks something else.
    pub async fn by(host: &str, port: u16) -> io::Result<Self> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Onlooker(provider)))
            .with_no_client_auth();
        let stream = TcpStream::connect((host, port)).await?;
        let stream = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await?;
        let shown = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let chain = shown.iter().map(|one| one.clone().into_owned()).collect();
        Ok(Self { chain })
    }

    /// When it ends, and from when on a new one is overdue.
    ///
    /// # Errors
    ///
    /// When it does not hold now.
    pub fn term(&self, now: Timestamp) -> Result<(Timestamp, Timestamp), Refused> {
        let term = material::validity(&self.chain, now)?;
        Ok((term.not_after, term.overdue()))
    }

    /// Whether it is for this name.
    ///
    /// # Errors
    ///
    /// When it is for others.
    pub fn is_for(&self, name: &str) -> Result<(), Refused> {
        material::identity::names(&self.chain, &[name.to_owned()])
    }

    /// Whether it was issued by one of these authorities, in PEM.
    ///
    /// # Errors
    ///
    /// When it was not, or these are none.
    pub fn leads_to(&self, authorities: &[u8], now: Timestamp) -> Result<(), Refused> {
        let roots = material::certificates(authorities);
        let roots = roots.map_err(|reason| Refused::Ca { reason })?;
        material::identity::leads_to(&self.chain, roots, &ring::default_provider(), now)
    }
}

/// Looks at certificates and trusts nobody: who looks sends nothing, and judges afterwards.
#[derive(Debug)]
struct Onlooker(Arc<CryptoProvider>);

impl ServerCertVerifier for Onlooker {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::ToSpan;

    #[test]
    fn a_chain_is_judged_by_name_authority_and_time() {
        let made = rcgen::generate_simple_self_signed(["hook.test".to_owned()]).unwrap();
        let other = rcgen::generate_simple_self_signed(["hook.test".to_owned()]).unwrap();
        let now = Timestamp::now();
        let shown = Presented::from_pem(made.cert.pem().as_bytes()).unwrap();
        assert!(shown.term(now).unwrap().0 > now);
        assert_eq!(shown.is_for("hook.test"), Ok(()));
        assert!(matches!(
            shown.is_for("else.test"),
            Err(Refused::Name { .. })
        ));
        assert_eq!(shown.leads_to(made.cert.pem().as_bytes(), now), Ok(()));
        assert!(shown.leads_to(other.cert.pem().as_bytes(), now).is_err());
        let early = now.checked_sub((24 * 365 * 100).hours()).unwrap();
        assert!(matches!(shown.term(early), Err(Refused::Early { .. })));
        assert!(Presented::from_pem(b"").is_err());
    }
}
