//! A throw-away authority and a certificate of it.

use anyhow::Result;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};
use tempfile::TempDir;

/// Name in the certificate.
pub const SERVER: &str = "localhost";

/// A certificate in files, and those who trust it.
pub struct Identity {
    folder: TempDir,
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
            roots,
        };
        fs::write(identity.certificate_file(), certificate.pem())?;
        fs::write(identity.key_file(), key.serialize_pem())?;
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
        server(&self.certificate_file(), &self.key_file())
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

/// What a server needs to show a certificate that is in files.
pub fn server(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = vec![CertificateDer::from_pem_file(certificate)?];
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;
    Ok(Arc::new(config))
}
