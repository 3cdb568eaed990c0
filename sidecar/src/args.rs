//! What operators can set.

use agents::{
    api::contract::port,
    kit::{
        args::{Common, Defaults},
        config::{Flags, Invalid, Reader, Settings},
    },
};

/// Flags of the program.
pub type Args = Flags<Config>;

/// Settings of the sidecar.
#[derive(Debug)]
pub struct Config {
    /// What all programs have.
    pub common: Common,
}

impl Settings for Config {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let common = Common::read(
            reader,
            Defaults {
                admin_port: port::SIDECAR_ADMIN,
                linger: "0s",
            },
        );
        Ok(Self { common: common? })
    }
}
