//! Client certificates: whether they are asked for, who may have issued them, and who came with which.

use std::sync::Arc;

use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, UnixTime},
    server::{
        WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};
use x509_parser::{parse_x509_certificate, x509::X509Name};

use crate::{
    closed_labels,
    kit::config::{Value, one_of},
};

/// Longest name that is shown.
const NAME_CHARS: usize = 64;

/// What is asked of clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientMode {
    /// Nothing.
    #[default]
    Off,
    /// A certificate is asked for and counted; who has none, or one of a stranger, gets in as well.
    Observe,
    /// Who has no certificate of a known issuer does not get in.
    Require,
}

impl Value for ClientMode {
    const EXPECTED: &'static str = "off, observe or require";

    fn parse(text: &str) -> Option<Self> {
        let words = [
            ("off", Self::Off),
            ("observe", Self::Observe),
            ("require", Self::Require),
        ];
        one_of(&words, text)
    }
}

closed_labels! {
    /// How a client's certificate stands.
    pub(super) enum Standing {
        /// It showed none.
        None = "none",
        /// A known issuer vouches for it.
        Trusted = "trusted",
        /// No known issuer vouches for it.
        Untrusted = "untrusted",
        /// No issuer is known, so nobody could tell.
        Unchecked = "unchecked",
    }
}

/// A client as its certificate shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Client {
    pub(super) standing: Standing,
    /// Names of issuer and subject.
    pub(super) names: Option<(String, String)>,
}

/// Looks at who comes.
#[derive(Clone, Debug)]
pub(super) struct Census {
    mode: ClientMode,
    /// Tells known issuers from others; none if no issuer is known.
    judge: Option<Arc<dyn ClientCertVerifier>>,
}

impl Census {
    /// The client, unless nothing was asked of it.
    pub(super) fn look(&self, chain: Option<&[CertificateDer<'_>]>) -> Option<Client> {
        if self.mode == ClientMode::Off {
            return None;
        }
        let Some((leaf, rest)) = chain.and_then(<[_]>::split_first) else {
            return Some(Client {
                standing: Standing::None,
                names: None,
            });
        };
        let standing = match &self.judge {
            None => Standing::Unchecked,
            Some(judge) => match judge.verify_client_cert(leaf, rest, UnixTime::now()) {
                Ok(_) => Standing::Trusted,
                Err(_) => Standing::Untrusted,
            },
        };
        Some(Client {
            standing,
            names: names(leaf),
        })
    }
}

fn names(leaf: &CertificateDer<'_>) -> Option<(String, String)> {
    let (_, parsed) = parse_x509_certificate(leaf).ok()?;
    Some((common_name(parsed.issuer()), common_name(parsed.subject())))
}

/// The common name, made fit for a label: short, and without anything that could confuse a reader.
fn common_name(name: &X509Name<'_>) -> String {
    let given = name.iter_common_name().next();
    let given = given.and_then(|name| name.as_str().ok()).unwrap_or("");
    let fit = |c: char| match c {
        c if c.is_ascii_alphanumeric() || " -._:/@*".contains(c) => c,
        _ => '_',
    };
    match given.is_empty() {
        true => "nameless".to_owned(),
        false => given.chars().take(NAME_CHARS).map(fit).collect(),
    }
}

/// Who decides about clients during the handshake, and who counts them after it.
pub(super) fn verifier(
    mode: ClientMode,
    issuers: Option<RootCertStore>,
    provider: &Arc<CryptoProvider>,
) -> Result<(Arc<dyn ClientCertVerifier>, Census), String> {
    let judge = match issuers {
        None => None,
        Some(issuers) => {
            let builder = WebPkiClientVerifier::builder_with_provider(
                Arc::new(issuers),
                Arc::clone(provider),
            );
            Some(builder.build().map_err(|error| error.to_string())?)
        }
    };
    let verifier: Arc<dyn ClientCertVerifier> = match (mode, &judge) {
        (ClientMode::Off, _) => WebPkiClientVerifier::no_client_auth(),
        (ClientMode::Require, Some(judge)) => Arc::clone(judge),
        (ClientMode::Require, None) => return Err("there is none".to_owned()),
        (ClientMode::Observe, _) => Arc::new(Anyone {
            provider: Arc::clone(provider),
        }),
    };
    Ok((verifier, Census { mode, judge }))
}

/// Lets everyone in, but asks for a certificate; who shows one must have its key.
#[derive(Debug)]
struct Anyone {
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for Anyone {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // No hint: clients would leave out a certificate of an issuer that is not named, and those are to be counted.
        &[]
    }

    fn verify_client_cert(
        &self,
        _leaf: &CertificateDer<'_>,
        _rest: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, leaf, signature, known)
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
