//! What operators can set about the certificates that the webhook makes for itself.

use std::time::Duration;

use agents::kit::config::{self, Invalid, Reader, Setting};
use agents::kit::tls::Options;
use jiff::SignedDuration;

use super::plan::Terms;
use crate::args::variable;

/// An authority lasts at least so many times as long as its certificates, so that each fits into what is left of it.
const AUTHORITY_TIMES: u32 = 3;

/// Settings of the rotator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The Secret that certificates are kept in; none where others make them.
    pub secret: Option<String>,
    /// The webhook configurations that are told who signs them, where they are not those that are looked at.
    pub registration: Option<String>,
    /// For how long everything lasts.
    pub terms: Terms,
}

impl config::Settings for Settings {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let secret = reader.optional(Setting::<String>::new(
            variable::ROTATOR_SECRET,
            "Secret of the own namespace in which the webhook keeps certificates that it makes itself; if not set, it makes none",
        ));
        let registration = reader.optional(Setting::<String>::new(
            variable::ROTATOR_CONFIGURATION_NAME,
            "Name of the webhook configurations whose caBundle the webhook then keeps; if not set, those of AGENTS_WEBHOOK_CONFIGURATION_NAME",
        ));
        let certificate = reader.value(
            Setting::<Duration>::new(
                variable::ROTATOR_LIFETIME,
                "How long a certificate lasts that the webhook makes; a third before its end it makes the next",
            )
            .or("2160h")
            .within("10s", "8760h"),
        );
        let authority = reader.value(
            Setting::<Duration>::new(
                variable::ROTATOR_AUTHORITY_LIFETIME,
                "How long the authority lasts that signs it; a third before its end the next takes over",
            )
            .or("8760h")
            .within("30s", "262800h"),
        );
        let settle = reader.value(
            Setting::<Duration>::new(
                variable::ROTATOR_SETTLE,
                "How long all API servers have had a new authority before a certificate of it is shown",
            )
            .or("60s")
            .within("0s", "1h"),
        );
        let (certificate, authority) = (certificate?, authority?);
        if authority < certificate.saturating_mul(AUTHORITY_TIMES) {
            let complaint = "an authority lasts at least three times as long as its certificates";
            return Err(reader.contradiction(variable::ROTATOR_AUTHORITY_LIFETIME, complaint));
        }
        Ok(Self {
            secret: secret?,
            registration: registration?,
            terms: Terms {
                certificate: signed(certificate),
                authority: signed(authority),
                settle: signed(settle?),
            },
        })
    }
}

impl Settings {
    /// Certificates are made for names, and someone must say which.
    pub fn check(&self, reader: &mut Reader<'_>, tls: &Options) -> Result<(), Invalid> {
        if self.secret.is_some() && tls.names.is_empty() {
            let complaint = "a certificate must be for someone: AGENTS_TLS_SERVER_NAMES is not set";
            return Err(reader.contradiction(variable::ROTATOR_SECRET, complaint));
        }
        Ok(())
    }
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}
