//! How one signs in: what is answered to each thing that a server asks. No I/O.

use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;

use super::wire::{garbled, message};
use super::{Store, Trouble};
use crate::kit::egress::{Failure, Refusal};

/// One who signs in.
pub(super) struct Door<'a> {
    store: &'a Store,
    /// Whether a password may go in the clear, or as a hash that can be tried at leisure.
    is_safe: bool,
    /// A proof that has begun and that the server has not answered with its own.
    scram: Option<ScramSha256>,
}

impl<'a> Door<'a> {
    pub(super) fn new(store: &'a Store, is_safe: bool) -> Self {
        Self {
            store,
            is_safe,
            scram: None,
        }
    }

    /// What to send, if anything.
    pub(super) fn answer(&mut self, asked: &[u8]) -> Result<Option<BytesMut>, Trouble> {
        let (kind, rest) = asked.split_first_chunk().ok_or_else(garbled)?;
        let answer = match u32::from_be_bytes(*kind) {
            0 if self.scram.is_none() => return Ok(None),
            0 => return Err(unproven()),
            3 => {
                let password = self.password(self.is_safe)?;
                message(|out| frontend::password_message(password, out))?
            }
            5 => {
                let password = self.password(self.is_safe)?;
                let salt = rest.first_chunk().ok_or_else(garbled)?;
                let hash = md5_hash(self.store.user.as_bytes(), password, *salt);
                message(|out| frontend::password_message(hash.as_bytes(), out))?
            }
            10 => self.begin(rest)?,
            11 => {
                let scram = self.scram.as_mut().ok_or_else(garbled)?;
                scram.update(rest).map_err(|_| unproven())?;
                message(|out| frontend::sasl_response(scram.message(), out))?
            }
            12 => {
                let mut scram = self.scram.take().ok_or_else(garbled)?;
                scram.finish(rest).map_err(|_| unproven())?;
                return Ok(None);
            }
            _ => return Err(unknown()),
        };
        Ok(Some(answer))
    }

    /// Begins a proof that tells nobody the password.
    fn begin(&mut self, ways: &[u8]) -> Result<BytesMut, Trouble> {
        let mut ways = ways.split(|byte| *byte == 0);
        if !ways.any(|way| way == SCRAM_SHA_256.as_bytes()) {
            return Err(unknown());
        }
        let password = self.password(true)?;
        let scram = ScramSha256::new(password, ChannelBinding::unsupported());
        let first = scram.message();
        let begun = message(|out| frontend::sasl_initial_response(SCRAM_SHA_256, first, out))?;
        self.scram = Some(scram);
        Ok(begun)
    }

    /// The password, if there is one and it may be used so.
    fn password(&self, is_safe: bool) -> Result<&'a [u8], Trouble> {
        match (self.store.password.as_bytes(), is_safe) {
            ([], _) => {
                let why = "it asks for a password and there is none";
                Err(Trouble::SignIn(why.to_owned()))
            }
            (_, false) => Err(Failure::Refused(Refusal::Credential).into()),
            (password, true) => Ok(password),
        }
    }
}

fn unproven() -> Trouble {
    Trouble::SignIn("it does not prove that it knows the password".to_owned())
}

fn unknown() -> Trouble {
    Trouble::SignIn("it asks for a way to sign in that is not built".to_owned())
}
