//! Calls to addresses that come from objects: through the guard, a few at a time, and only while we lead.

mod api_server;

#[cfg(test)]
use std::sync::LazyLock;
use std::time::Duration;

use kube::{Client, Config};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::context::Context;
use super::driver::fault::{Class, Fault};
use super::metrics::Metrics;
use crate::api::contract::env;
use crate::kit::config::{self, Invalid, Reader, Setting};
use crate::kit::egress::{self, Answer, Call, Failure, Guard, Store, SystemResolver, Trouble};
use crate::kit::program::Error;
use api_server::ApiServer;

/// What operators can set about calls to the outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    guard: egress::Settings,
    sync: Duration,
    reach: Option<Duration>,
}

impl config::Settings for Settings {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let guard = egress::Settings::read(reader);
        let sync = reader.value(
            Setting::<Duration>::new(
                env::SOURCE_SYNC,
                "Time between two looks at the tracker of an ImplementationSource whose spec.sync is enabled",
            )
            .or("300")
            .within("1s", "24h"),
        );
        let reach = reader.optional(
            Setting::<Duration>::new(
                env::REACH,
                "Time between two looks at whether the PostgreSQL of a Memory and the API of a VersionControlProvider can be reached, 0 for none; if not set, only Memories on the host and port of DATABASE_URL are looked at, every 5 minutes",
            )
            .within("0", "24h"),
        );
        Ok(Self {
            guard: guard?,
            sync: sync?,
            reach: reach?,
        })
    }
}

/// The way out of the controllers.
#[derive(Debug)]
pub(crate) struct Egress {
    guard: Guard,
    api_server: ApiServer,
    /// Fewer than there are workers, so that servers that do not answer cannot keep all of them waiting.
    slots: Semaphore,
    /// Time between two looks at the tracker of a source.
    pub(crate) sync: Duration,
    pub(crate) reach: Reach,
}

impl Egress {
    /// Nobody is called. The authorities of the system are read once: a simulation has thousands of these.
    #[cfg(test)]
    pub(super) fn closed() -> Self {
        static GUARD: LazyLock<Guard> = LazyLock::new(|| {
            let meter = opentelemetry::global::meter("closed");
            let refused = meter.u64_counter("refused");
            let settings = egress::Settings::default();
            Guard::new(settings, Vec::new(), SystemResolver, refused.build()).unwrap()
        });
        Self {
            guard: GUARD.clone(),
            api_server: ApiServer::default(),
            slots: Semaphore::new(0),
            sync: Duration::ZERO,
            reach: Reach::default(),
        }
    }

    pub(super) async fn new(
        settings: Settings,
        workers: usize,
        metrics: &Metrics,
    ) -> Result<Self, Error> {
        let failed = |source| Error::Start {
            what: "guard calls to the outside",
            source,
        };
        let config = Config::infer().await;
        let config = config.map_err(|error| failed(error.into()))?;
        let api_server = api_server::known(&config);
        let refused = metrics.egress_refused();
        let Settings { guard, sync, reach } = settings;
        let reach = Reach {
            every: reach,
            database: guard.database.clone(),
        };
        let guard = Guard::new(guard, api_server, SystemResolver, refused);
        Ok(Self {
            guard: guard.map_err(|error| failed(error.into()))?,
            api_server: ApiServer::default(),
            slots: Semaphore::new((workers / 2).max(1)),
            sync,
            reach,
        })
    }
}

impl Egress {
    /// Keeps up with where the API server is.
    async fn look_around(&self, client: &Client) -> Result<(), Fault> {
        let keep_from = |machines| self.guard.keep_from(machines);
        self.api_server.look(client, keep_from).await
    }
}

/// What outside is looked at, and how often.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach {
    /// As the operator says.
    every: Option<Duration>,
    /// The database of the installation.
    database: Option<Store>,
}

impl Reach {
    /// Time between two looks where only the database of the installation is looked at, and where nothing is.
    pub(crate) const USUAL: Duration = Duration::from_secs(300);

    /// Time between two looks at everything; none if not everything is looked at.
    pub(crate) fn all(&self) -> Option<Duration> {
        self.every.filter(|every| !every.is_zero())
    }

    /// Whether stores have to be read from their Secrets, to see whether they are looked at.
    pub(crate) fn any_store(&self) -> bool {
        self.all().is_some() || (self.every.is_none() && self.database.is_some())
    }

    /// Time between two looks at a store; none if it is not looked at.
    pub(crate) fn store(&self, store: &Store) -> Option<Duration> {
        match (self.every, &self.database) {
            (Some(_), _) => self.all(),
            (None, Some(own)) => own.is_beside(store).then_some(Self::USUAL),
            (None, None) => None,
        }
    }
}

impl Context {
    /// Calls out; none if too many calls are under way, so that someone else can be worked on meanwhile.
    pub(crate) async fn call_out(
        &self,
        what: &'static str,
        call: Call,
    ) -> Result<Option<Result<Answer, Failure>>, Fault> {
        let Some(_slot) = self.slot(what)? else {
            return Ok(None);
        };
        self.egress.look_around(&self.client).await?;
        Ok(Some(self.egress.guard.call(call).await))
    }

    /// Signs in to a PostgreSQL and leaves; none if too many calls are under way.
    pub(crate) async fn visit(
        &self,
        what: &'static str,
        store: &Store,
        extension: Option<&'static str>,
    ) -> Result<Option<Result<(), Trouble>>, Fault> {
        let Some(_slot) = self.slot(what)? else {
            return Ok(None);
        };
        self.egress.look_around(&self.client).await?;
        Ok(Some(self.egress.guard.visit(store, extension).await))
    }

    fn slot(&self, what: &'static str) -> Result<Option<SemaphorePermit<'_>>, Fault> {
        let Ok(slot) = self.egress.slots.try_acquire() else {
            return Ok(None);
        };
        match self.leadership.is_open() {
            true => Ok(Some(slot)),
            false => {
                let why = "another process may hold the lease by now";
                Err(Fault::new(what, Class::Fenced, why))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_looked_at_is_what_the_operator_names() {
        let store = |text: &str| Store::parse(text).unwrap();
        let own = || Some(store("postgres://a@db/own"));
        let seconds = |count: u64| Some(Duration::from_secs(count));
        for (row, every, database, expected) in [
            ("nothing is said", None, None, (None, false, None, None)),
            ("a database", None, own(), (None, true, seconds(300), None)),
            (
                "everything",
                seconds(7),
                None,
                (seconds(7), true, seconds(7), seconds(7)),
            ),
            ("nothing", seconds(0), own(), (None, false, None, None)),
        ] {
            let reach = Reach { every, database };
            let beside = reach.store(&store("postgres://b:c@db/x"));
            let elsewhere = reach.store(&store("postgres://b@other/x"));
            let found = (reach.all(), reach.any_store(), beside, elsewhere);
            assert_eq!(found, expected, "{row}");
        }
    }
}
