//! Calls to addresses that come from objects: through the guard, a few at a time, and only while we lead.

use std::time::Duration;

use http::Uri;
use kube::Config;
use tokio::sync::Semaphore;

use super::context::Context;
use super::driver::fault::{Class, Fault};
use super::metrics::Metrics;
use crate::api::contract::env;
use crate::kit::config::{self, Invalid, Reader, Setting};
use crate::kit::egress::{self, Answer, Call, Failure, Guard, SystemResolver};
use crate::kit::program::Error;

/// What operators can set about calls to the outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    guard: egress::Settings,
    sync: Duration,
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
        Ok(Self {
            guard: guard?,
            sync: sync?,
        })
    }
}

/// The way out of the controllers.
#[derive(Debug)]
pub(crate) struct Egress {
    guard: Guard,
    /// Fewer than there are workers, so that servers that do not answer cannot keep all of them waiting.
    slots: Semaphore,
    /// Time between two looks at the tracker of a source.
    pub(crate) sync: Duration,
}

impl Egress {
    /// Nobody is called.
    #[cfg(test)]
    pub(super) fn closed(metrics: &Metrics) -> Self {
        let refused = metrics.egress_refused();
        let settings = egress::Settings::default();
        Self {
            guard: Guard::new(settings, Vec::new(), SystemResolver, refused).unwrap(),
            slots: Semaphore::new(0),
            sync: Duration::ZERO,
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
        let api_server = Vec::from_iter(place(&config.cluster_url));
        let refused = metrics.egress_refused();
        let Settings { guard, sync } = settings;
        let guard = Guard::new(guard, api_server, SystemResolver, refused);
        Ok(Self {
            guard: guard.map_err(|error| failed(error.into()))?,
            slots: Semaphore::new((workers / 2).max(1)),
            sync,
        })
    }
}

/// Host and port of the API server.
fn place(url: &Uri) -> Option<(String, u16)> {
    let host = url.host()?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let usual = if url.scheme_str() == Some("http") {
        80
    } else {
        443
    };
    Some((host.to_owned(), url.port_u16().unwrap_or(usual)))
}

impl Context {
    /// Calls out; none if too many calls are under way, so that someone else can be worked on meanwhile.
    pub(crate) async fn call_out(
        &self,
        what: &'static str,
        call: Call,
    ) -> Result<Option<Result<Answer, Failure>>, Fault> {
        let Ok(_slot) = self.egress.slots.try_acquire() else {
            return Ok(None);
        };
        if !self.leadership.is_open() {
            let why = "another process may hold the lease by now";
            return Err(Fault::new(what, Class::Fenced, why));
        }
        Ok(Some(self.egress.guard.call(call).await))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_server_is_known_by_host_and_port() {
        for (url, host, port) in [
            ("https://10.96.0.1", "10.96.0.1", 443),
            ("https://[fd00::1]:6443/", "fd00::1", 6443),
            ("http://127.0.0.1:8001", "127.0.0.1", 8001),
        ] {
            let found = place(&url.parse().expect(url));
            assert_eq!(found, Some((host.to_owned(), port)), "{url}");
        }
    }
}
