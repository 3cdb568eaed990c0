//! A throw-away authority and a certificate of it.

use anyhow::Result;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use std::{fs, path::PathBuf, sync::Arc};
use tempfile::TempDir;

/// Name in the certificate.
pub const SERVER: &str = "localhost";

/// A certificate in files, and those who trust it.
pub struct Identity {
    folder: TempDir,
    certificate: CertificateDer<'static>,
    key_pem: String,
    roots: RootCertStore,
}

impl Identity {
    /// A new authority, and a certificate for [`SERVER`].
    pub fn make() -> Result<Self> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let key = KeyPair::generate()?;
        let params = CertificateParams::new([SERVER.to_owned()])?;
        let certificate = params.signed_by(&key, &issuer)?;
        let mut roots = RootCertStore::empty();
        roots.add(issuer.der().clone())?;
        let identity = Self {
            folder: TempDir::new()?,
            certificate: certificate.der().clone(),
            key_pem: key.serialize_pem(),
            roots,
        };
        fs::write(identity.certificate_file(), certificate.pem())?;
        fs::write(identity.key_file(), &identity.key_pem)?;
        Ok(identity)
    }

    /// The certificate, in PEM.
    pub fn certificate_file(&self) -> PathBuf {
        self.folder.path().join("tls.crt")
    }

    /// Its key, in PEM.
    pub fn key_file(&self) -> PathBuf {
        self.folder.path().join("tls.key")
    }

    /// What a server needs to show the certificate.
    pub fn server(&self) -> Result<Arc<ServerConfig>> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes())?;
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key)?;
        Ok(Arc::new(config))
    }

    /// What a client needs to trust it.
    pub fn client(&self) -> Result<Arc<ClientConfig>> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(self.roots.clone())
            .with_no_client_auth();
        Ok(Arc::new(config))
    }
}
