//! What operators can set.

use std::net::SocketAddr;

use agents::{
    api::contract::port,
    kit::{
        args::{Common, Defaults, any_address},
        config::{Flags, Invalid, Reader, Setting, Settings},
        tls::Options,
    },
};

/// Flags of the program.
pub type Args = Flags<Config>;

/// Settings of the webhook.
#[derive(Debug)]
pub struct Config {
    /// What all programs have.
    pub common: Common,
    /// Where reviews are answered.
    pub listen: SocketAddr,
    /// How many connections may be open.
    pub connections: usize,
    /// Certificate, key, and what is asked of clients.
    pub tls: Options,
}

impl Settings for Config {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("Admission");
        let listen = reader.value(
            Setting::new(
                "AGENTS_WEBHOOK_LISTEN",
                "Where reviews are answered, over TLS",
            )
            .or(any_address(port::WEBHOOK)),
        );
        let connections = reader.value(
            Setting::new(
                "AGENTS_WEBHOOK_CONNECTIONS",
                "Connections that may be open at once",
            )
            .or("1024")
            .within("1", "100000"),
        );
        let tls = Options::read(reader);
        let common = Common::read(
            reader,
            Defaults {
                admin_port: port::WEBHOOK_ADMIN,
                // Long enough for a Service to forget a pod, so that no review is sent to a closed port.
                linger: "5s",
            },
        );
        Ok(Self {
            common: common?,
            listen: listen?,
            connections: connections?,
            tls: tls?,
        })
    }
}
