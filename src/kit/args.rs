//! Settings that several programs have: logs, export, admin endpoint, shutdown, TLS files.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use super::{
    admin::Profiling,
    config::{Invalid, Reader, Setting, Settings},
    tasks::Grace,
    telemetry::{LogSettings, OtlpSettings},
    tls::{ClientMode, Files, Options},
};

/// The variables.
pub mod variable {
    /// Where probes and metrics are answered.
    pub const ADMIN_LISTEN: &str = "AGENTS_ADMIN_LISTEN";
    /// Whether profiles are handed out.
    pub const ADMIN_PROFILE: &str = "AGENTS_ADMIN_PROFILE";
    /// Time to go on serving.
    pub const SHUTDOWN_LINGER: &str = "AGENTS_SHUTDOWN_LINGER";
    /// Time to finish what is in flight.
    pub const SHUTDOWN_DRAIN: &str = "AGENTS_SHUTDOWN_DRAIN";
    /// Certificate and chain.
    pub const TLS_CERTIFICATE_FILE: &str = "AGENTS_TLS_CERTIFICATE_FILE";
    /// Private key.
    pub const TLS_KEY_FILE: &str = "AGENTS_TLS_KEY_FILE";
    /// Who must have issued the certificate.
    pub const TLS_CA_FILE: &str = "AGENTS_TLS_CA_FILE";
    /// Names that the certificate must have.
    pub const TLS_SERVER_NAMES: &str = "AGENTS_TLS_SERVER_NAMES";
    /// Who may issue client certificates.
    pub const TLS_CLIENT_CA_FILE: &str = "AGENTS_TLS_CLIENT_CA_FILE";
    /// Whether clients are asked for a certificate.
    pub const TLS_CLIENT_MODE: &str = "AGENTS_TLS_CLIENT_MODE";
}

/// What every program can be told.
#[derive(Debug)]
pub struct Common {
    /// How it logs.
    pub log: LogSettings,
    /// Where traces and metrics go.
    pub otlp: OtlpSettings,
    /// Its admin endpoint.
    pub admin: AdminSettings,
    /// How it ends.
    pub grace: Grace,
}

/// Where programs differ in what holds if nothing is said.
#[derive(Clone, Copy, Debug)]
pub struct Defaults {
    /// Port of the admin endpoint.
    pub admin_port: u16,
    /// Time to go on serving after SIGTERM, as an operator would write it.
    pub linger: &'static str,
}

impl Common {
    /// Reads all of it.
    pub fn read(reader: &mut Reader<'_>, defaults: Defaults) -> Result<Self, Invalid> {
        let log = LogSettings::read(reader);
        let otlp = OtlpSettings::read(reader);
        let admin = AdminSettings::read(reader, defaults.admin_port);
        let grace = read_grace(reader, defaults.linger);
        Ok(Self {
            log: log?,
            otlp: otlp?,
            admin: admin?,
            grace: grace?,
        })
    }
}

/// The admin endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdminSettings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Whether it hands out profiles.
    pub profiling: Profiling,
}

impl AdminSettings {
    fn read(reader: &mut Reader<'_>, port: u16) -> Result<Self, Invalid> {
        reader.heading("Admin endpoint");
        let listen = reader.value(
            Setting::new(
                variable::ADMIN_LISTEN,
                "Where probes and metrics are answered",
            )
            .or(any_address(port)),
        );
        let profiling = reader.value(
            Setting::new(
                variable::ADMIN_PROFILE,
                "Hand out CPU profiles to anyone who asks",
            )
            .or("no"),
        );
        Ok(Self {
            listen: listen?,
            profiling: profiling?,
        })
    }
}

/// The default for something that others in the cluster must reach: the port on every address of the pod.
pub fn any_address(port: u16) -> String {
    format!("[::]:{port}")
}

fn read_grace(reader: &mut Reader<'_>, linger: &'static str) -> Result<Grace, Invalid> {
    reader.heading("Shutdown");
    let linger = reader.value(
        Setting::<Duration>::new(
            variable::SHUTDOWN_LINGER,
            "Time to go on serving after SIGTERM, until nobody sends requests here any more",
        )
        .or(linger)
        .within("0s", "10m"),
    );
    let drain = reader.value(
        Setting::<Duration>::new(
            variable::SHUTDOWN_DRAIN,
            "Time to finish what is in flight after that",
        )
        .or("20s")
        .within("0s", "10m"),
    );
    Ok(Grace {
        linger: linger?,
        drain: drain?,
    })
}

impl Settings for Options {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("TLS");
        let files = read_files(reader);
        let names = reader.optional(Setting::<Vec<String>>::new(
            variable::TLS_SERVER_NAMES,
            "Names that a certificate must have before it is used, such as agents-webhook.agents.svc",
        ));
        let clients = reader.optional(Setting::<ClientMode>::new(
            variable::TLS_CLIENT_MODE,
            "Whether clients are asked for a certificate: not at all, to count who comes, or to keep out who has none; \
             if not set, require where AGENTS_TLS_CLIENT_CA_FILE is set and off elsewhere",
        ));
        let (files, clients) = (files?, clients?);
        let known = files.client_ca.is_some();
        let clients = match clients {
            Some(ClientMode::Require) if !known => {
                let complaint = "`require` needs AGENTS_TLS_CLIENT_CA_FILE, or nobody could get in";
                return Err(reader.contradiction(variable::TLS_CLIENT_MODE, complaint));
            }
            Some(mode) => mode,
            None if known => ClientMode::Require,
            None => ClientMode::Off,
        };
        Ok(Self {
            files,
            names: names?.unwrap_or_default(),
            clients,
        })
    }
}

fn read_files(reader: &mut Reader<'_>) -> Result<Files, Invalid> {
    let certificate = reader.value(
        Setting::<PathBuf>::new(
            variable::TLS_CERTIFICATE_FILE,
            "Certificate and chain in PEM; a change is picked up without a restart",
        )
        .or("/etc/agents/tls/tls.crt"),
    );
    let key = reader.value(
        Setting::<PathBuf>::new(variable::TLS_KEY_FILE, "Private key in PEM")
            .or("/etc/agents/tls/tls.key"),
    );
    let ca = reader.optional(Setting::<PathBuf>::new(
        variable::TLS_CA_FILE,
        "Who must have issued the certificate, in PEM, such as ca.crt beside it; not looked at if not set",
    ));
    let client_ca = reader.optional(Setting::<PathBuf>::new(
        variable::TLS_CLIENT_CA_FILE,
        "Who may issue client certificates, in PEM",
    ));
    Ok(Files {
        certificate: certificate?,
        key: key?,
        ca: ca?,
        client_ca: client_ca?,
    })
}
