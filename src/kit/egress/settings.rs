//! What operators can set about calls to the outside.

use std::path::PathBuf;
use std::time::Duration;

use super::allowed::Allowed;
use super::postgres::Store;
use crate::kit::config::{self, Invalid, Reader, Setting};

/// The file with further authorities.
pub(super) const CA_FILE: &str = "AGENTS_EGRESS_CA_FILE";

/// What operators can set about calls to the outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Hosts and networks that may be called although they are not public.
    pub allowed: Allowed,
    /// Whether public addresses may be called without being listed.
    pub public: bool,
    /// Whether our own machine may be called; for tests.
    pub loopback: bool,
    /// Certificates of further authorities, in PEM.
    pub authorities: Option<PathBuf>,
    /// Time for one call, from the first look at its name to the last byte of its answer.
    pub deadline: Duration,
    /// The database of the installation: its place may be called although it is private. Nothing is stored in it.
    pub database: Option<Store>,
    /// Certificates of further authorities of databases, in PEM.
    pub database_authorities: Option<PathBuf>,
}

impl config::Settings for Settings {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("Calls to addresses in objects");
        let allowed = reader.optional(Setting::new(
            "AGENTS_EGRESS_ALLOWED",
            "Hosts (also *.example.com) and networks that may be called although they are private; loopback, link-local and the API server never may",
        ));
        let public = reader.value(
            Setting::new(
                "AGENTS_EGRESS_PUBLIC",
                "Whether public addresses may be called without being listed",
            )
            .or("true"),
        );
        let loopback = reader.value(
            Setting::new(
                "AGENTS_EGRESS_ALLOW_LOOPBACK",
                "Whether the program's own machine may be called; for tests only, since it opens the pod to everyone who may write an object",
            )
            .or("false"),
        );
        let authorities = reader.optional(Setting::new(
            CA_FILE,
            "Certificates of authorities that are trusted besides those of the system, in PEM",
        ));
        let deadline = reader.value(
            Setting::<Duration>::new(
                "AGENTS_EGRESS_TIMEOUT_SECONDS",
                "Time for one call, from the first look at its name to the last byte of its answer",
            )
            .or("10")
            .within("100ms", "30s"),
        );
        let database = reader.optional(
            Setting::new(
                "DATABASE_URL",
                "PostgreSQL of the installation: Memories on its host and port are connected to, although it may be private; its user is not used and nothing is stored in it",
            )
            .secret(),
        );
        let database_authorities = reader.optional(Setting::new(
            "PGSSLROOTCERT",
            "Certificates of authorities that are trusted for PostgreSQL, besides all others, in PEM",
        ));
        Ok(Self {
            allowed: allowed?.unwrap_or_default(),
            public: public?,
            loopback: loopback?,
            authorities: authorities?,
            deadline: deadline?,
            database: database?,
            database_authorities: database_authorities?,
        })
    }
}
