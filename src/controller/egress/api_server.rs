//! Where the API server is, besides under the address that we use: no object may send us there.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Uri;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{Api, Client, Config};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::controller::driver::fault::{Class, Fault};

/// Where every cluster lists the machines of its API server.
const NAMESPACE: &str = "default";
const NAME: &str = "kubernetes";

/// Time after which they are looked up again; calls to the outside are few, so nobody watches.
const FRESH: Duration = Duration::from_secs(300);
/// Time for one look, with the wait for one that someone else takes.
const DEADLINE: Duration = Duration::from_secs(5);

const LOOK: &str = "look up the machines of the API server before a call to the outside";

/// Where pods find the API server. The variables that a pod is told name another host in some clusters.
const SERVICE: (&str, u16) = ("kubernetes.default.svc", 443);

/// Host and port.
pub(super) type Place = (String, u16);

/// What is known about where the API server is.
#[derive(Debug, Default)]
pub(super) struct ApiServer {
    /// When its machines were looked up last. Held during a look, so that nobody calls out who does not know them.
    looked: Mutex<Option<Instant>>,
    /// Whether it was said that they may not be looked up.
    is_told: AtomicBool,
}

impl ApiServer {
    /// Looks up the machines of the API server if it is time, and keeps away from them. Where that is not allowed, the
    /// addresses known so far must do.
    ///
    /// # Errors
    ///
    /// When they cannot be looked up now: who called out all the same might call one of them.
    pub(super) async fn look(
        &self,
        client: &Client,
        keep_from: impl FnOnce(Vec<Place>),
    ) -> Result<(), Fault> {
        let look = timeout(DEADLINE, self.look_if_due(client, keep_from));
        look.await.unwrap_or_else(|_| {
            let why = format!("no answer within {} s", DEADLINE.as_secs());
            Err(Fault::new(LOOK, Class::Retryable, &why))
        })
    }

    async fn look_if_due(
        &self,
        client: &Client,
        keep_from: impl FnOnce(Vec<Place>),
    ) -> Result<(), Fault> {
        let mut looked = self.looked.lock().await;
        if !is_due(*looked, Instant::now()) {
            return Ok(());
        }
        let api: Api<EndpointSlice> = Api::namespaced(client.clone(), NAMESPACE);
        match judge(api.get(NAME).await)? {
            Some(machines) => keep_from(machines),
            None => self.say_what_is_not_checked(),
        }
        *looked = Some(Instant::now());
        Ok(())
    }

    /// Where rights end at named namespaces this is as it must be, so it is said once.
    fn say_what_is_not_checked(&self) {
        if !self.is_told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "EndpointSlice kubernetes in namespace default may not be read: calls to the machines of the API server are not told from calls to others at their addresses"
            );
        }
    }
}

/// Where the configuration leads, and where every pod of the cluster is told to go.
pub(super) fn known(config: &Config) -> Vec<Place> {
    let told = Config::incluster_env().ok();
    let urls = [
        Some(&config.cluster_url),
        told.as_ref().map(|told| &told.cluster_url),
    ];
    let mut places: Vec<Place> = urls.into_iter().flatten().filter_map(place).collect();
    places.dedup();
    // Outside of a cluster nobody answers to this name, and asking for it would only take time.
    if told.is_some() {
        let (host, port) = SERVICE;
        places.push((host.to_owned(), port));
    }
    places
}

/// Whether it is time for another look.
fn is_due(last: Option<Instant>, now: Instant) -> bool {
    last.is_none_or(|last| now.duration_since(last) >= FRESH)
}

/// What the answer to a look says about where the machines are; none if that may not be known.
///
/// # Errors
///
/// When it does not say: the next one may.
fn judge(answer: kube::Result<EndpointSlice>) -> Result<Option<Vec<Place>>, Fault> {
    match answer {
        Ok(slice) => Ok(Some(machines(&slice))),
        // No such object, or no such group: what can be known is known.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Some(Vec::new())),
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(None),
        Err(error) => Err(Fault::new(LOOK, Class::Retryable, &error.to_string())),
    }
}

/// Every address under every port.
fn machines(slice: &EndpointSlice) -> Vec<Place> {
    let ports = slice.ports.iter().flatten();
    let ports = ports.filter_map(|port| u16::try_from(port.port?).ok());
    let ports: Vec<u16> = ports.collect();
    let endpoints = slice.endpoints.iter();
    let addresses = endpoints.flat_map(|endpoint| &endpoint.addresses);
    addresses
        .flat_map(|address| ports.iter().map(|port| (address.clone(), *port)))
        .collect()
}

/// Host and port of an address.
fn place(url: &Uri) -> Option<Place> {
    let host = url.host()?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let usual = if url.scheme_str() == Some("http") {
        80
    } else {
        443
    };
    Some((host.to_owned(), url.port_u16().unwrap_or(usual)))
}
