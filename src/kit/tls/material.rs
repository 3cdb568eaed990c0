//! From the bytes of the files to a TLS configuration, or a sentence on what is wrong with them. Reads nothing.

pub(super) mod identity;

use std::{path::PathBuf, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use rustls::{
    RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::{CertifiedKey, SingleCertAndKey},
    version::{TLS12, TLS13},
};
use x509_parser::{parse_x509_certificate, prelude::Validity};

use super::{
    Current,
    clients::{self, ClientMode},
};

/// What a pair must satisfy besides being one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Demands {
    pub(super) names: Vec<String>,
    pub(super) clients: ClientMode,
}

/// The content of the files.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Material {
    pub(super) certificate: Vec<u8>,
    pub(super) key: Vec<u8>,
    pub(super) ca: Option<Vec<u8>>,
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
    /// The certificate is for someone else.
    #[error("the certificate is not for {name}; it is for {}", shown(has))]
    Name {
        /// The name that it should have.
        name: String,
        /// The names that it has.
        has: Vec<String>,
    },
    /// The certificate was not issued by the authority that clients trust.
    #[error("the certificate does not lead to the CA file: {reason}")]
    Chain {
        /// Where the chain breaks.
        reason: String,
    },
    /// The file of the authority is of no use.
    #[error("the CA file has no usable PEM certificate: {reason}")]
    Ca {
        /// What is wrong.
        reason: String,
    },
    /// The file of client authorities is of no use.
    #[error("the client CA file has no usable PEM certificate: {reason}")]
    ClientCa {
        /// What is wrong.
        reason: String,
    },
}

/// Most names in a sentence.
const SHOWN_NAMES: usize = 5;

fn shown(names: &[String]) -> String {
    match names.len() {
        0 => "nobody".to_owned(),
        count if count > SHOWN_NAMES => format!("{} and more", names[..SHOWN_NAMES].join(", ")),
        _ => names.join(", "),
    }
}

/// A configuration that can be served with, and for how long.
pub(super) struct Checked {
    pub(super) current: Current,
    pub(super) leaf: CertificateDer<'static>,
    pub(super) term: Term,
}

/// The time in which a certificate holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) not_before: Timestamp,
    pub(super) not_after: Timestamp,
}

impl Term {
    /// From when on a new certificate is overdue: less than a tenth of its life is left. Issuers renew far earlier.
    pub(super) fn overdue(self) -> Timestamp {
        let life = self.not_after.duration_since(self.not_before);
        self.not_after
            .checked_sub(SignedDuration::from_secs(life.as_secs() / 10))
            .unwrap_or(self.not_after)
    }
}

/// Everything that must hold before a pair is used.
pub(super) fn check(
    material: &Material,
    demands: &Demands,
    now: Timestamp,
) -> Result<Checked, Refused> {
    let provider = Arc::new(ring::default_provider());
    let chain =
        certificates(&material.certificate).map_err(|reason| Refused::Certificate { reason })?;
    let term = validity(&chain, now)?;
    identity::names(&chain, &demands.names)?;
    if let Some(ca) = &material.ca {
        let roots = certificates(ca).map_err(|reason| Refused::Ca { reason })?;
        identity::leads_to(&chain, roots, &provider, now)?;
    }
    let leaf = chain.first().cloned();
    let leaf = leaf.ok_or_else(|| Refused::Certificate {
        reason: "there is none".to_owned(),
    })?;
    let key =
        certified_key(chain, &material.key, &provider).map_err(|reason| Refused::Key { reason })?;
    let current = current(key, material, demands, provider)?;
    Ok(Checked {
        current,
        leaf,
        term,
    })
}

fn current(
    key: CertifiedKey,
    material: &Material,
    demands: &Demands,
    provider: Arc<CryptoProvider>,
) -> Result<Current, Refused> {
    let issuers = material.client_ca.as_deref().map(roots).transpose();
    let (verifier, census) = issuers
        .and_then(|issuers| clients::verifier(demands.clients, issuers, &provider))
        .map_err(|reason| Refused::ClientCa { reason })?;
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(|error| Refused::Key {
            reason: error.to_string(),
        })?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(key)));
    Ok(Current {
        config: Arc::new(config),
        census,
    })
}

fn roots(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem)? {
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    Ok(roots)
}

pub(super) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let chain = chain.map_err(|error| error.to_string())?;
    match chain.is_empty() {
        true => Err("there is none".to_owned()),
        false => Ok(chain),
    }
}

/// The time in which the first certificate holds, if that is now and all of the chain can be understood.
pub(super) fn validity(chain: &[CertificateDer<'_>], now: Timestamp) -> Result<Term, Refused> {
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
    Ok(Term {
        not_before,
        not_after,
    })
}

fn certified_key(
    chain: Vec<CertificateDer<'static>>,
    pem: &[u8],
    provider: &CryptoProvider,
) -> Result<CertifiedKey, String> {
    let key = PrivateKeyDer::from_pem_slice(pem).map_err(|error| error.to_string())?;
    CertifiedKey::from_der(chain, key, provider).map_err(|error| error.to_string())
}

#[cfg(test)]
pub(super) mod tests;
