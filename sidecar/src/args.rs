//! What operators can set.

use agents::{
    api::contract::port,
    events,
    kit::{
        args::{Common, Defaults},
        config::{Flags, Invalid, Reader, Settings},
    },
};

use crate::jobs;

/// The variables that only this program reads.
pub mod variable {
    /// Whether Jobs are watched.
    pub const JOBS: &str = "AGENTS_SIDECAR_JOBS";
}

/// Flags of the program.
pub type Args = Flags<Config>;

/// Settings of the sidecar.
#[derive(Debug)]
pub struct Config {
    /// What all programs have.
    pub common: Common,
    /// Where Jobs are watched.
    pub jobs: jobs::Settings,
    /// How Events are emitted.
    pub events: events::Settings,
}

impl Settings for Config {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let jobs = jobs::Settings::read(reader);
        let events = events::Settings::read(reader);
        let common = Common::read(
            reader,
            Defaults {
                admin_port: port::SIDECAR_ADMIN,
                linger: "0s",
            },
        );
        Ok(Self {
            common: common?,
            jobs: jobs?,
            events: events?,
        })
    }
}
