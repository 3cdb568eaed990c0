//! What to do next, from what is stored, what the API servers trust, and the time. Reads nothing.
//!
//! The order that no step may break: an authority is in both webhook configurations before a certificate of it is shown,
//! and stays there until the last certificate of it has ended.

use jiff::{SignedDuration, Timestamp};

use super::stored::{Authority, Certificate, MOST, Stored};

/// For how long everything lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// A certificate.
    pub certificate: SignedDuration,
    /// An authority.
    pub authority: SignedDuration,
    /// How long API servers have known an authority before a certificate of it is shown.
    pub settle: SignedDuration,
}

/// Whom the API servers trust, as the webhook configurations say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// For each entry of each configuration. None where there is no configuration: nobody calls.
    Of(Vec<Vec<Certificate>>),
    /// We may not look. Who forbids it brings the authority there himself.
    Unseen,
}

impl Trust {
    /// Whether every entry has the certificate.
    fn has(&self, wanted: &Certificate) -> bool {
        match self {
            Self::Of(entries) => entries.iter().all(|entry| entry.contains(wanted)),
            Self::Unseen => false,
        }
    }

    /// Authorities that hold at this time, each once.
    fn all(&self, now: Timestamp) -> Vec<Certificate> {
        let mut found: Vec<Certificate> = Vec::new();
        match self {
            Self::Of(entries) => {
                for certificate in entries.iter().flatten() {
                    let is_good = certificate.is_authority() && certificate.is_valid(now);
                    if is_good && found.len() < MOST && !found.contains(certificate) {
                        found.push(certificate.clone());
                    }
                }
            }
            Self::Unseen => {}
        }
        found
    }
}

/// Everything that a step is chosen by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) stored: Stored,
    pub(super) trust: Trust,
    /// Whom the certificate must be for.
    pub(super) names: Vec<String>,
}

/// A change of the Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Make the authority that will sign. Those that are trusted already are kept as long as a certificate lasts, where
    /// nothing else is known of them.
    Begin { keep: Vec<Certificate> },
    /// Note since when all API servers were told of it.
    Announce,
    /// Let it sign, and keep the old one until this time.
    Promote {
        previous: Vec<Certificate>,
        until: Timestamp,
    },
    /// Make a new certificate.
    Renew,
    /// Forget who signed before.
    Forget,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Whom API servers should trust; nothing is said where it is empty.
    pub(super) trusted: Vec<Certificate>,
    /// What to change in the Secret.
    pub(super) change: Option<Change>,
    /// Whether the certificate that is stored may be shown.
    pub(super) shows: bool,
    /// The authority is not valid yet, so a clock is wrong and nothing is done about it.
    pub(super) early: Option<Timestamp>,
}

/// Chooses the next step.
pub(super) fn plan(seen: &Seen, terms: &Terms, now: Timestamp) -> Plan {
    let stored = &seen.stored;
    let early = stored.authority.as_ref().and_then(|authority| {
        let not_before = authority.certificate.not_before;
        (now < not_before).then_some(not_before)
    });
    Plan {
        trusted: trusted(stored, now),
        change: if early.is_some() {
            None
        } else {
            change(seen, terms, now)
        },
        shows: shows(seen, now),
        early,
    }
}

/// All whose certificates may be shown now or soon.
fn trusted(stored: &Stored, now: Timestamp) -> Vec<Certificate> {
    let authority = stored.authority.iter().map(|one| &one.certificate);
    let next = stored.next.iter().filter(|next| next.is_valid(now));
    let previous = stored.previous.iter().filter(|one| now < one.not_after);
    let mut all: Vec<Certificate> = Vec::new();
    for certificate in authority.chain(next).chain(previous) {
        if all.len() < MOST && !all.contains(certificate) {
            all.push(certificate.clone());
        }
    }
    // Who has no authority yet has nothing to say about those of others.
    match stored.authority.is_some() || stored.next.is_some() {
        true => all,
        false => Vec::new(),
    }
}

/// A certificate is shown when all who call trust its authority, as far as that can be seen.
fn shows(seen: &Seen, now: Timestamp) -> bool {
    let Stored {
        authority,
        certificate,
        ..
    } = &seen.stored;
    let (Some(authority), Some(certificate)) = (authority, certificate) else {
        return false;
    };
    let is_trusted = match seen.trust {
        Trust::Of(_) => seen.trust.has(&authority.certificate),
        Trust::Unseen => true,
    };
    is_trusted && certificate.is_valid(now) && certificate.is_of(&authority.certificate)
}

fn change(seen: &Seen, terms: &Terms, now: Timestamp) -> Option<Change> {
    let Stored {
        authority,
        next,
        previous,
        previous_until,
        ..
    } = &seen.stored;
    let signer = authority.as_ref().filter(|one| can_sign(one, now));
    if signer.is_some_and(|signer| is_certificate_due(seen, signer, now)) {
        return Some(Change::Renew);
    }
    if let Some(next) = next.as_ref().filter(|next| next.is_valid(now)) {
        return succession(seen, next, terms, now);
    }
    if signer.is_none_or(|signer| is_due(&signer.certificate, now)) {
        let keep = match authority {
            Some(_) => Vec::new(),
            None => seen.trust.all(now),
        };
        return Some(Change::Begin { keep });
    }
    let over = previous_until.is_none_or(|until| until <= now);
    (!previous.is_empty() && over).then_some(Change::Forget)
}

/// The way of an authority that is made and does not sign yet.
fn succession(seen: &Seen, next: &Certificate, terms: &Terms, now: Timestamp) -> Option<Change> {
    let promote = || promotion(&seen.stored, terms, now);
    if !is_something_shown(&seen.stored, now) {
        // Nobody can be cut off, so nobody is waited for. Whether it may be shown is asked once more before it is.
        return Some(promote());
    }
    if !seen.trust.has(next) {
        return None;
    }
    match seen.stored.announced {
        // A time that is to come was noted by a clock that was wrong.
        Some(since) if since <= now => {
            let waited = now.duration_since(since);
            (waited >= terms.settle).then(promote)
        }
        Some(_) | None => Some(Change::Announce),
    }
}

fn is_something_shown(stored: &Stored, now: Timestamp) -> bool {
    let own = stored
        .certificate
        .as_ref()
        .is_some_and(|one| one.is_valid(now));
    // Servers that took their certificate from elsewhere until now may still do.
    let others = stored.authority.is_none() && !stored.previous.is_empty();
    own || others
}

fn promotion(stored: &Stored, terms: &Terms, now: Timestamp) -> Change {
    let lasts = now
        .saturating_add(terms.certificate)
        .unwrap_or(Timestamp::MAX);
    let own = stored.certificate.as_ref().map(|one| one.not_after);
    // Of the last certificate of the old authority nothing may be known, but no certificate lasts longer than that.
    let own = own.unwrap_or(lasts).min(lasts);
    let until = stored
        .previous_until
        .map_or(own, |until| until.max(own).min(lasts));
    let old = stored.authority.iter().map(|one| one.certificate.clone());
    let mut previous: Vec<Certificate> = old.chain(stored.previous.iter().cloned()).collect();
    previous.retain(|one| now < one.not_after);
    previous.truncate(MOST / 2);
    Change::Promote { previous, until }
}

fn can_sign(authority: &Authority, now: Timestamp) -> bool {
    authority.signs && authority.certificate.is_valid(now)
}

/// Whether there is no certificate that could stay as it is.
fn is_certificate_due(seen: &Seen, signer: &Authority, now: Timestamp) -> bool {
    let stays = |certificate: &&Certificate| {
        certificate.is_valid(now)
            && !is_due(certificate, now)
            && certificate.is_for(&seen.names)
            && certificate.is_of(&signer.certificate)
    };
    seen.stored.certificate.as_ref().filter(stays).is_none()
}

/// Whether less than a third of its life is left.
fn is_due(certificate: &Certificate, now: Timestamp) -> bool {
    let life = certificate.not_after.duration_since(certificate.not_before);
    let left = certificate.not_after.duration_since(now);
    left < life / 3
}
