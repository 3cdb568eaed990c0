//! From the bytes of the files to a TLS configuration, or a sentence on what is wrong with them. Reads nothing.

use std::{path::PathBuf, sync::Arc};

use jiff::Timestamp;
use rustls::{
    RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
    sign::{CertifiedKey, SingleCertAndKey},
    version::{TLS12, TLS13},
};
use x509_parser::{parse_x509_certificate, prelude::Validity};

/// The content of the files.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Material {
    pub(super) certificate: Vec<u8>,
    pub(super) key: Vec<u8>,
    pub(super) client_ca: Option<Vec<u8>>,
}

/// What is wrong with the files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A file is not there or cannot be read.
    #[error("{} cannot be read: {reason}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// The certificate file has no certificate, or one that cannot be understood.
    #[error("the certificate file has no usable PEM certificate: {reason}")]
    Certificate {
        /// What is wrong.
        reason: String,
    },
    /// The key file has no usable key, or the key of another certificate.
    #[error("the key file does not fit the certificate: {reason}")]
    Key {
        /// What is wrong.
        reason: String,
    },
    /// The certificate is too old.
    #[error("the certificate expired at {not_after}")]
    Expired {
        /// When.
        not_after: Timestamp,
    },
    /// The certificate is not valid yet.
    #[error("the certificate is not valid before {not_before}; is a clock wrong?")]
    Early {
        /// When it will be.
        not_before: Timestamp,
    },
    /// The file of client authorities is of no use.
    #[error("the client CA file has no usable PEM certificate: {reason}")]
    ClientCa {
        /// What is wrong.
        reason: String,
    },
}

/// A configuration that can be served with, and until when.
pub(super) struct Checked {
    pub(super) config: Arc<ServerConfig>,
    pub(super) not_after: Timestamp,
}

/// Everything that must hold before a pair is used.
pub(super) fn check(material: &Material, now: Timestamp) -> Result<Checked, Refused> {
    let provider = Arc::new(ring::default_provider());
    let chain =
        certificates(&material.certificate).map_err(|reason| Refused::Certificate { reason })?;
    let not_after = validity(&chain, now)?;
    let key =
        certified_key(chain, &material.key, &provider).map_err(|reason| Refused::Key { reason })?;
    let verifier = client_verifier(material.client_ca.as_deref(), &provider)
        .map_err(|reason| Refused::ClientCa { reason })?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(|error| Refused::Key {
            reason: error.to_string(),
        })?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(key)));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Checked {
        config: Arc::new(config),
        not_after,
    })
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let chain = chain.map_err(|error| error.to_string())?;
    match chain.is_empty() {
        true => Err("there is none".to_owned()),
        false => Ok(chain),
    }
}

/// When the first certificate ends, if it holds now and all of the chain can be understood.
fn validity(chain: &[CertificateDer<'_>], now: Timestamp) -> Result<Timestamp, Refused> {
    let wrong = |reason: String| Refused::Certificate { reason };
    let mut periods = Vec::with_capacity(chain.len());
    for certificate in chain {
        let parsed = parse_x509_certificate(certificate);
        let (_, parsed) = parsed.map_err(|error| wrong(error.to_string()))?;
        periods.push(parsed.validity().clone());
    }
    let Some(Validity {
        not_before,
        not_after,
    }) = periods.first()
    else {
        return Err(wrong("there is none".to_owned()));
    };
    let time = |seconds| Timestamp::from_second(seconds).map_err(|error| wrong(error.to_string()));
    let (not_before, not_after) = (time(not_before.timestamp())?, time(not_after.timestamp())?);
    if now < not_before {
        return Err(Refused::Early { not_before });
    }
    if now >= not_after {
        return Err(Refused::Expired { not_after });
    }
    Ok(not_after)
}

fn certified_key(
    chain: Vec<CertificateDer<'static>>,
    pem: &[u8],
    provider: &CryptoProvider,
) -> Result<CertifiedKey, String> {
    let key = PrivateKeyDer::from_pem_slice(pem).map_err(|error| error.to_string())?;
    CertifiedKey::from_der(chain, key, provider).map_err(|error| error.to_string())
}

fn client_verifier(
    pem: Option<&[u8]>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let Some(pem) = pem else {
        return Ok(WebPkiClientVerifier::no_client_auth());
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem)? {
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map(|verifier| verifier as Arc<dyn ClientCertVerifier>)
        .map_err(|error| error.to_string())
}

#[cfg(test)]
pub(super) mod tests;
