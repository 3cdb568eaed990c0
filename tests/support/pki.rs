//! A throw-away authority and certificates of it, in memory. That of a lab, which lives in files, is in [`crate::lab::pki`].

use anyhow::Result;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use std::sync::Arc;

/// Issues certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key.
#[derive(Clone)]
pub struct Pair {
    /// The certificate.
    pub certificate: CertificateDer<'static>,
    /// The same, in PEM.
    pub certificate_pem: String,
    /// Its key, in PEM.
    pub key_pem: String,
}

impl Authority {
    /// One that nobody knows yet.
    pub fn make() -> Result<Self> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate()?;
        Ok(Self(CertifiedIssuer::self_signed(params, key)?))
    }

    /// A certificate for host names and addresses.
    pub fn issue(&self, names: &[&str]) -> Result<Pair> {
        let key = KeyPair::generate()?;
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        let certificate = CertificateParams::new(names)?.signed_by(&key, &self.0)?;
        Ok(Pair {
            certificate: certificate.der().clone(),
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        })
    }

    /// Its own certificate, in PEM.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// What a client needs to trust it, and to show a certificate of its own if one is given.
    pub fn client(&self, own: Option<Pair>) -> Result<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone())?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        Ok(match own {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let key = PrivateKeyDer::from_pem_slice(pair.key_pem.as_bytes())?;
                builder.with_client_auth_cert(vec![pair.certificate], key)?
            }
        })
    }
}
