//! Makes keys and certificates, and carries a change out on the content of the Secret. Stores nothing.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};

use super::plan::{Change, Terms};
use super::stored::{Certificate, Data, bundle, key};

/// Clocks may differ by so much; a certificate of a short life allows less.
const SKEW: SignedDuration = SignedDuration::from_hours(1);

/// Why nothing could be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("a key or a certificate cannot be made: {0}")]
    Crypto(#[from] rcgen::Error),
    #[error("{0} of the Secret is missing or no text")]
    Missing(&'static str),
}

/// The content after a change.
pub(super) fn changed(
    data: &Data,
    change: &Change,
    names: &[String],
    terms: &Terms,
    now: Timestamp,
) -> Result<Data, Failure> {
    let mut next = data.clone();
    match change {
        Change::Begin { keep } => {
            let (certificate, key) = authority(terms, now)?;
            next.insert(key::NEXT.to_owned(), certificate);
            next.insert(key::NEXT_KEY.to_owned(), key);
            next.remove(key::NEXT_SINCE);
            if !keep.is_empty() {
                let until = now.saturating_add(terms.certificate);
                previous(&mut next, keep, until.unwrap_or(Timestamp::MAX));
            }
        }
        Change::Announce => {
            next.insert(key::NEXT_SINCE.to_owned(), now.to_string().into_bytes());
        }
        Change::Promote {
            previous: kept,
            until,
        } => {
            for (from, to) in [
                (key::NEXT, key::AUTHORITY),
                (key::NEXT_KEY, key::AUTHORITY_KEY),
            ] {
                let moved = next.remove(from).ok_or(Failure::Missing(from))?;
                next.insert(to.to_owned(), moved);
            }
            next.remove(key::NEXT_SINCE);
            previous(&mut next, kept, *until);
            certificate(&mut next, names, terms, now)?;
        }
        Change::Renew => certificate(&mut next, names, terms, now)?,
        Change::Forget => previous(&mut next, &[], now),
    }
    Ok(next)
}

fn previous(data: &mut Data, kept: &[Certificate], until: Timestamp) {
    if kept.is_empty() {
        data.remove(key::PREVIOUS);
        data.remove(key::PREVIOUS_UNTIL);
        return;
    }
    data.insert(key::PREVIOUS.to_owned(), bundle(kept).into_bytes());
    data.insert(
        key::PREVIOUS_UNTIL.to_owned(),
        until.to_string().into_bytes(),
    );
}

/// A new authority: its certificate and its key, in PEM.
fn authority(terms: &Terms, now: Timestamp) -> Result<(Vec<u8>, Vec<u8>), Failure> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    // Each has a name of its own, so that nobody takes one for the other.
    params.distinguished_name = called(&format!("agents-webhook authority of {now}"));
    hold(&mut params, now, terms.authority, None);
    let made = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    let key = made.key().serialize_pem().into_bytes();
    Ok((made.pem().into_bytes(), key))
}

/// Puts a new certificate into the content, signed by the authority in it.
fn certificate(
    data: &mut Data,
    names: &[String],
    terms: &Terms,
    now: Timestamp,
) -> Result<(), Failure> {
    let text = |key: &'static str| {
        let bytes = data.get(key).map(Vec::as_slice);
        let text = bytes.and_then(|bytes| str::from_utf8(bytes).ok());
        text.ok_or(Failure::Missing(key))
    };
    let issuer = text(key::AUTHORITY)?;
    let end = Certificate::read_first(issuer.as_bytes()).map(|one| one.not_after);
    let signer = KeyPair::from_pem(text(key::AUTHORITY_KEY)?)?;
    let issuer = Issuer::from_ca_cert_pem(issuer, signer)?;
    let mut params = CertificateParams::new(names.to_vec())?;
    params.distinguished_name = called("agents-webhook");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    hold(&mut params, now, terms.certificate, end);
    let own = KeyPair::generate()?;
    let made = params.signed_by(&own, &issuer)?;
    data.insert(key::CERTIFICATE.to_owned(), made.pem().into_bytes());
    data.insert(key::KEY.to_owned(), own.serialize_pem().into_bytes());
    Ok(())
}

fn called(name: &str) -> DistinguishedName {
    let mut called = DistinguishedName::new();
    called.push(DnType::CommonName, name);
    called
}

/// Sets from when and until when it holds, which is no longer than who signs it.
fn hold(
    params: &mut CertificateParams,
    now: Timestamp,
    lasts: SignedDuration,
    end: Option<Timestamp>,
) {
    let wanted = now.saturating_add(lasts).unwrap_or(Timestamp::MAX);
    let not_after = end.map_or(wanted, |end| wanted.min(end));
    let left = not_after.duration_since(now);
    // A certificate that began long ago would look as if its life were over.
    let skew = SKEW.min(left / 10).max(SignedDuration::ZERO);
    let not_before = now.saturating_sub(skew).unwrap_or(Timestamp::UNIX_EPOCH);
    let time = |time: Timestamp| {
        let seconds = time.as_second().try_into().unwrap_or_default();
        date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds)
    };
    params.not_before = time(not_before);
    params.not_after = time(not_after);
}
