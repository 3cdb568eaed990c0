//! A throw-away certificate in files.

use anyhow::Result;
use rustls::{
    ClientConfig, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};
use support::pki::Authority;
use tempfile::TempDir;

/// Name in the certificate.
pub const SERVER: &str = "localhost";

/// A certificate in files, and those who trust it.
pub struct Identity {
    folder: TempDir,
    authority: Authority,
}

impl Identity {
    /// A new authority, and a certificate for [`SERVER`].
    pub fn make() -> Result<Self> {
        let authority = Authority::make()?;
        let pair = authority.issue(&[SERVER])?;
        let identity = Self {
            folder: TempDir::new()?,
            authority,
        };
        fs::write(identity.certificate_file(), pair.certificate_pem)?;
        fs::write(identity.key_file(), pair.key_pem)?;
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

    /// The certificate of the authority, in PEM.
    pub fn authority_pem(&self) -> String {
        self.authority.pem()
    }

    /// What a server needs to show the certificate.
    pub fn server(&self) -> Result<Arc<ServerConfig>> {
        server(&self.certificate_file(), &self.key_file())
    }

    /// What a client needs to trust it.
    pub fn client(&self) -> Result<Arc<ClientConfig>> {
        Ok(Arc::new(self.authority.client(None)?))
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
