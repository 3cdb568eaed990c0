//! The controllers as a program: settings, admin endpoint, readiness and an orderly end.

use crate::{
    ADMIN_PATHS,
    api::contract::port,
    kit::{
        args::{Common, Defaults},
        config::{Flags, Invalid, Reader, Settings},
        program::{Error, Program},
        telemetry::Identity,
    },
};

const IDENTITY: Identity = Identity {
    program: "agents-controller",
    version: env!("CARGO_PKG_VERSION"),
};

/// Flags of `agents controller`.
pub type Args = Flags<Config>;

/// Settings of the controllers.
#[derive(Debug)]
pub struct Config {
    common: Common,
}

impl Settings for Config {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let defaults = Defaults {
            admin_port: port::AGENTS_ADMIN,
            linger: "0s",
        };
        let common = Common::read(reader, defaults);
        Ok(Self { common: common? })
    }
}

/// Runs the controllers until they are told to end.
pub async fn run(args: Args) -> Result<(), Error> {
    let Some((config, notes)) = args.load()? else {
        return Ok(());
    };
    let Config { common } = config; // a setting left out here does not compile
    let program = Program::start(IDENTITY, ADMIN_PATHS, common, notes).await?;
    program.run().await
}
