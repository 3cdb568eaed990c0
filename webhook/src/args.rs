//! What operators can set.

use std::net::SocketAddr;

use agents::{
    api::{contract::port, registration::DEFAULT_NAME, registration::rung::Rung},
    events,
    kit::{
        args::{Common, Defaults, any_address},
        config::{Flags, Invalid, Reader, Setting, Settings, Value, one_of},
        tls::Options,
    },
};

use crate::certificate::rotator;
use crate::decide::Stance;
use crate::own::Own;
use crate::{lookup, policy};

/// The variables that only this program reads.
pub mod variable {
    /// Where reviews are answered.
    pub const LISTEN: &str = "AGENTS_WEBHOOK_LISTEN";
    /// Connections that may be open.
    pub const CONNECTIONS: &str = "AGENTS_WEBHOOK_CONNECTIONS";
    /// Reviews that may be in flight.
    pub const REVIEWS: &str = "AGENTS_WEBHOOK_REVIEWS";
    /// Whether there is a cluster.
    pub const LOOKUP: &str = "AGENTS_WEBHOOK_LOOKUP";
    /// Name of our webhook configurations.
    pub const CONFIGURATION_NAME: &str = "AGENTS_WEBHOOK_CONFIGURATION_NAME";
    /// How far the webhook has been rolled out.
    pub const RUNG: &str = agents::api::contract::env::WEBHOOK_RUNG;
    /// Secret of certificates that the webhook makes itself.
    pub const ROTATOR_SECRET: &str = "AGENTS_WEBHOOK_ROTATOR_SECRET";
    /// Name of the webhook configurations that are told who signs it.
    pub const ROTATOR_CONFIGURATION_NAME: &str = "AGENTS_WEBHOOK_ROTATOR_CONFIGURATION_NAME";
    /// How long such a certificate lasts.
    pub const ROTATOR_LIFETIME: &str = "AGENTS_WEBHOOK_ROTATOR_LIFETIME";
    /// How long their authority lasts.
    pub const ROTATOR_AUTHORITY_LIFETIME: &str = "AGENTS_WEBHOOK_ROTATOR_AUTHORITY_LIFETIME";
    /// How long API servers have known an authority before it is used.
    pub const ROTATOR_SETTLE: &str = "AGENTS_WEBHOOK_ROTATOR_SETTLE";
    /// Who restores statuses from a backup.
    pub const RESTORE_USERS: &str = "AGENTS_WEBHOOK_RESTORE_USERS";
}

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
    /// How many reviews may be in flight.
    pub reviews: usize,
    /// Whether there is a cluster to look things up in and to write to.
    pub cluster: Cluster,
    /// How rules are applied.
    pub stance: Stance,
    /// What the policy is and where its files are.
    pub policy: policy::Settings,
    /// Which objects are looked up.
    pub lookup: lookup::Settings,
    /// The program's own pod.
    pub own: Own,
    /// How Events are emitted.
    pub events: events::Settings,
    /// Name of our webhook configurations in the cluster.
    pub registration: String,
    /// Certificate, key, and what is asked of clients.
    pub tls: Options,
    /// Whether the webhook makes its certificate itself.
    pub rotator: rotator::Settings,
}

/// Whether there is a cluster to look things up in and to write to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cluster {
    /// There is one, and the program needs it.
    Follow,
    /// There is none: nothing is looked up, no Event is written.
    Off,
}

impl Value for Cluster {
    const EXPECTED: &'static str = "follow or off";

    fn parse(text: &str) -> Option<Self> {
        one_of(&[("follow", Self::Follow), ("off", Self::Off)], text)
    }
}

/// A rung as a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RungSetting(Rung);

impl Value for RungSetting {
    const EXPECTED: &'static str = Rung::EXPECTED;

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }
}

impl Settings for Config {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("Admission");
        let listen = reader.value(
            Setting::new(variable::LISTEN, "Where reviews are answered, over TLS")
                .or(any_address(port::WEBHOOK)),
        );
        let connections = reader.value(
            Setting::new(
                variable::CONNECTIONS,
                "Connections that may be open at once",
            )
            .or("1024")
            .within("1", "100000"),
        );
        let reviews = reader.value(
            Setting::new(
                variable::REVIEWS,
                "Reviews that may be in flight at once; more are turned away at once",
            )
            .or("512")
            .within("1", "100000"),
        );
        let cluster = reader.value(
            Setting::new(
                variable::LOOKUP,
                "`follow` keeps a copy of the objects that decisions look up; `off` runs without a cluster, for benchmarks",
            )
            .or("follow"),
        );
        let stance = read_stance(reader);
        let registration = reader.value(
            Setting::<String>::new(
                variable::CONFIGURATION_NAME,
                "Name of our webhook configurations in the cluster, which are looked at now and then",
            )
            .or(DEFAULT_NAME),
        );
        let policy = policy::Settings::read(reader);
        let lookup = lookup::Settings::read(reader);
        let own = Own::read(reader);
        let events = events::Settings::read(reader);
        let tls = Options::read(reader);
        let rotator = rotator::Settings::read(reader);
        let common = Common::read(
            reader,
            Defaults {
                admin_port: port::WEBHOOK_ADMIN,
                // Long enough for a Service to forget a pod, so that no review is sent to a closed port.
                linger: "5s",
            },
        );
        let (tls, rotator) = (tls?, rotator?);
        rotator.check(reader, &tls)?;
        Ok(Self {
            common: common?,
            listen: listen?,
            connections: connections?,
            reviews: reviews?,
            cluster: cluster?,
            stance: stance?,
            policy: policy?,
            lookup: lookup?,
            own: own?,
            events: events?,
            registration: registration?,
            tls,
            rotator,
        })
    }
}

fn read_stance(reader: &mut Reader<'_>) -> Result<Stance, Invalid> {
    let rung = reader.value(
        Setting::<RungSetting>::new(
            variable::RUNG,
            "How far the webhook has been rolled out: audit, warn, deny, fail-labelled or fail",
        )
        .or(Rung::default().as_str()),
    );
    let restorers = reader.value(
        Setting::<Vec<String>>::new(
            variable::RESTORE_USERS,
            "Users and groups who restore statuses from a backup; the status contract does not bind them",
        )
        .or("[]"),
    );
    let RungSetting(rung) = rung?;
    Ok(Stance {
        rung,
        restorers: restorers?,
    })
}
