//! What the Secret holds, read without trust: what cannot be used counts as not there.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rcgen::{KeyPair, PublicKeyData};
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;
use x509_parser::pem::Pem;

/// The content of the Secret.
pub(super) type Data = BTreeMap<String, Vec<u8>>;

/// Most certificates that are read from one text; more would only make every call of the API server slower.
pub(super) const MOST: usize = 16;

/// Longest text that certificates are read from.
const LONGEST: usize = 64 * 1024;

/// Names of what the Secret holds.
pub(super) mod key {
    pub(in super::super) const CERTIFICATE: &str = "tls.crt";
    pub(in super::super) const KEY: &str = "tls.key";
    pub(in super::super) const AUTHORITY: &str = "ca.crt";
    pub(in super::super) const AUTHORITY_KEY: &str = "ca.key";
    pub(in super::super) const NEXT: &str = "next-ca.crt";
    pub(in super::super) const NEXT_KEY: &str = "next-ca.key";
    pub(in super::super) const NEXT_SINCE: &str = "next-ca-announced";
    pub(in super::super) const PREVIOUS: &str = "previous-ca.crt";
    pub(in super::super) const PREVIOUS_UNTIL: &str = "previous-ca-until";
}

/// A certificate, and what is to be known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Certificate {
    pub(super) der: Vec<u8>,
    pub(super) not_before: Timestamp,
    pub(super) not_after: Timestamp,
    names: BTreeSet<String>,
    public_key: Vec<u8>,
    is_authority: bool,
}

impl Certificate {
    fn read(der: &[u8]) -> Option<Self> {
        let (_, parsed) = parse_x509_certificate(der).ok()?;
        let time = |seconds| Timestamp::from_second(seconds).ok();
        let names = parsed.subject_alternative_name().ok()?;
        let names = names.iter().flat_map(|names| &names.value.general_names);
        Some(Self {
            der: der.to_vec(),
            not_before: time(parsed.validity().not_before.timestamp())?,
            not_after: time(parsed.validity().not_after.timestamp())?,
            names: names.filter_map(name).collect(),
            public_key: parsed.public_key().subject_public_key.data.to_vec(),
            is_authority: parsed.is_ca(),
        })
    }

    /// The certificates in a text, without those that cannot be read.
    pub(super) fn read_all(pem: &[u8]) -> Vec<Self> {
        let pem = pem.get(..LONGEST).unwrap_or(pem);
        let blocks = Pem::iter_from_buffer(pem).map_while(Result::ok).take(MOST);
        blocks
            .filter_map(|block| Self::read(&block.contents))
            .collect()
    }

    /// The first of a text.
    pub(super) fn read_first(pem: &[u8]) -> Option<Self> {
        Self::read_all(pem).into_iter().next()
    }

    /// Whether it holds at this time.
    pub(super) fn is_valid(&self, now: Timestamp) -> bool {
        self.not_before <= now && now < self.not_after
    }

    /// Whether it may sign others.
    pub(super) fn is_authority(&self) -> bool {
        self.is_authority
    }

    /// Whether it has all these names.
    pub(super) fn is_for(&self, names: &[String]) -> bool {
        names.iter().all(|name| self.names.contains(name))
    }

    /// Whether that authority signed it.
    pub(super) fn is_of(&self, authority: &Self) -> bool {
        let (Ok((_, leaf)), Ok((_, issuer))) = (
            parse_x509_certificate(&self.der),
            parse_x509_certificate(&authority.der),
        ) else {
            return false;
        };
        leaf.issuer() == issuer.subject()
            && leaf.verify_signature(Some(issuer.public_key())).is_ok()
    }

    fn fits(&self, key: &[u8]) -> bool {
        let pair = str::from_utf8(key)
            .ok()
            .and_then(|pem| KeyPair::from_pem(pem).ok());
        pair.is_some_and(|pair| pair.der_bytes() == self.public_key)
    }

    /// The same in PEM.
    pub(super) fn pem(&self) -> String {
        let text = STANDARD.encode(&self.der);
        let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
        for (place, letter) in text.chars().enumerate() {
            if place > 0 && place.is_multiple_of(64) {
                pem.push('\n');
            }
            pem.push(letter);
        }
        pem.push_str("\n-----END CERTIFICATE-----\n");
        pem
    }
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let address = four.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
            address.ok().map(|address| address.to_string())
        }
        GeneralName::OtherName(..)
        | GeneralName::RFC822Name(_)
        | GeneralName::X400Address(_)
        | GeneralName::DirectoryName(_)
        | GeneralName::EDIPartyName(_)
        | GeneralName::URI(_)
        | GeneralName::RegisteredID(_)
        | GeneralName::Invalid(..) => None,
    }
}

/// Certificates as one text.
pub(super) fn bundle(certificates: &[Certificate]) -> String {
    certificates.iter().map(Certificate::pem).collect()
}

/// An authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Authority {
    pub(super) certificate: Certificate,
    /// Whether its key is there.
    pub(super) signs: bool,
}

/// What the Secret holds, without any key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stored {
    /// Who signed the certificate in use, and signs the next.
    pub(super) authority: Option<Authority>,
    /// The certificate in use, if its key is there.
    pub(super) certificate: Option<Certificate>,
    /// Who will sign, once every API server knows it.
    pub(super) next: Option<Certificate>,
    /// Since when the API servers were told of it.
    pub(super) announced: Option<Timestamp>,
    /// Who signed before.
    pub(super) previous: Vec<Certificate>,
    /// Until when certificates of those may still be in use.
    pub(super) previous_until: Option<Timestamp>,
}

impl Stored {
    pub(super) fn read(data: &Data) -> Self {
        let text = |key: &str| data.get(key).map(Vec::as_slice).unwrap_or_default();
        let time = |key: &str| str::from_utf8(text(key)).ok()?.trim().parse().ok();
        let keyed = |certificate: &str, key: &str| {
            let certificate = Certificate::read_first(text(certificate))?;
            let signs = certificate.fits(text(key));
            Some((certificate, signs))
        };
        let authority = keyed(key::AUTHORITY, key::AUTHORITY_KEY);
        let authority = authority.filter(|(certificate, _)| certificate.is_authority);
        let next = keyed(key::NEXT, key::NEXT_KEY);
        let next = next.filter(|(certificate, signs)| certificate.is_authority && *signs);
        let own = keyed(key::CERTIFICATE, key::KEY).filter(|(_, fits)| *fits);
        Self {
            authority: authority.map(|(certificate, signs)| Authority { certificate, signs }),
            certificate: own.map(|(certificate, _)| certificate),
            next: next.map(|(certificate, _)| certificate),
            announced: time(key::NEXT_SINCE),
            previous: Certificate::read_all(text(key::PREVIOUS)),
            previous_until: time(key::PREVIOUS_UNTIL),
        }
    }
}
