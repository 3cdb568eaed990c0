//! Whose certificate it is, and who says so: judged as a client would.

use std::time::Duration;

use jiff::Timestamp;
use rustls::{
    RootCertStore,
    client::{verify_server_cert_signed_by_trust_anchor, verify_server_name},
    crypto::CryptoProvider,
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};
use x509_parser::{extensions::GeneralName, parse_x509_certificate};

use super::Refused;

/// Whether the first certificate has all the names that clients call us by.
pub(in crate::kit::tls) fn names(
    chain: &[CertificateDer<'_>],
    wanted: &[String],
) -> Result<(), Refused> {
    let Some(leaf) = chain.first() else {
        return Ok(());
    };
    let parsed = parsed(leaf)?;
    for name in wanted {
        let fits = ServerName::try_from(name.as_str())
            .is_ok_and(|name| verify_server_name(&parsed, &name).is_ok());
        if !fits {
            return Err(Refused::Name {
                name: name.clone(),
                has: names_of(leaf),
            });
        }
    }
    Ok(())
}

/// Whether the chain leads to one of the authorities. A certificate that is itself one of them leads to itself, as a
/// self-signed one does.
pub(in crate::kit::tls) fn leads_to(
    chain: &[CertificateDer<'_>],
    authorities: Vec<CertificateDer<'_>>,
    provider: &CryptoProvider,
    now: Timestamp,
) -> Result<(), Refused> {
    let Some((leaf, rest)) = chain.split_first() else {
        return Ok(());
    };
    if authorities.contains(leaf) {
        return Ok(());
    }
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority).map_err(|error| Refused::Ca {
            reason: error.to_string(),
        })?;
    }
    let now = Duration::from_secs(now.as_second().try_into().unwrap_or_default());
    verify_server_cert_signed_by_trust_anchor(
        &parsed(leaf)?,
        &roots,
        rest,
        UnixTime::since_unix_epoch(now),
        provider.signature_verification_algorithms.all,
    )
    .map_err(|error| Refused::Chain {
        reason: error.to_string(),
    })
}

fn parsed<'a>(leaf: &'a CertificateDer<'_>) -> Result<ParsedCertificate<'a>, Refused> {
    ParsedCertificate::try_from(leaf).map_err(|error| Refused::Certificate {
        reason: error.to_string(),
    })
}

/// The names in the certificate, for people.
fn names_of(leaf: &CertificateDer<'_>) -> Vec<String> {
    let Ok((_, parsed)) = parse_x509_certificate(leaf) else {
        return Vec::new();
    };
    let names = parsed.subject_alternative_name().ok().flatten();
    let names = names.iter().flat_map(|names| &names.value.general_names);
    let shown = names.filter_map(|name| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => address(bytes),
        GeneralName::OtherName(..)
        | GeneralName::RFC822Name(_)
        | GeneralName::X400Address(_)
        | GeneralName::DirectoryName(_)
        | GeneralName::EDIPartyName(_)
        | GeneralName::URI(_)
        | GeneralName::RegisteredID(_)
        | GeneralName::Invalid(..) => None,
    });
    shown.collect()
}

fn address(bytes: &[u8]) -> Option<String> {
    let four = <[u8; 4]>::try_from(bytes).map(|bytes| std::net::IpAddr::from(bytes).to_string());
    let sixteen =
        || <[u8; 16]>::try_from(bytes).map(|bytes| std::net::IpAddr::from(bytes).to_string());
    four.or_else(|_| sixteen()).ok()
}
