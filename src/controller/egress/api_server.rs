//! Where the API server is, besides under the address that we use: no object may send us there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::Uri;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{Api, Client, Config};
use tokio::time::{Instant, timeout};

/// Where every cluster lists the machines of its API server.
const NAMESPACE: &str = "default";
const NAME: &str = "kubernetes";

/// Time after which they are looked up again; calls to the outside are few, so nobody watches.
const FRESH: Duration = Duration::from_secs(300);
/// Time for one look.
const DEADLINE: Duration = Duration::from_secs(5);

/// Host and port.
pub(super) type Place = (String, u16);

/// What is known about where the API server is.
#[derive(Debug, Default)]
pub(super) struct ApiServer {
    /// When its machines were looked up last.
    looked: Mutex<Option<Instant>>,
    /// Whether it was said that they may not be looked up.
    is_told: AtomicBool,
}

impl ApiServer {
    /// The machines of the API server, if it is time to look. Where that is not allowed, the addresses known so far must do.
    pub(super) async fn look(&self, client: &Client) -> Option<Vec<Place>> {
        let now = Instant::now();
        {
            let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
            if looked.is_some_and(|last| now.duration_since(last) < FRESH) {
                return None;
            }
            *looked = Some(now);
        }
        let api: Api<EndpointSlice> = Api::namespaced(client.clone(), NAMESPACE);
        match timeout(DEADLINE, api.get_opt(NAME)).await {
            Ok(Ok(slice)) => Some(slice.as_ref().map(machines).unwrap_or_default()),
            Ok(Err(kube::Error::Api(status))) if status.code == 403 => {
                self.say_what_is_not_checked();
                None
            }
            Ok(Err(error)) => {
                tracing::debug!(%error, "The machines of the API server cannot be looked up");
                None
            }
            Err(_) => None,
        }
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
    places
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

#[cfg(test)]
mod tests {
    use serde_json::json;

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

    #[test]
    fn every_machine_of_the_api_server_is_one_that_may_not_be_called() {
        let slice = |endpoints: serde_json::Value, ports: serde_json::Value| -> EndpointSlice {
            serde_json::from_value(
                json!({"addressType": "IPv4", "endpoints": endpoints, "ports": ports}),
            )
            .unwrap()
        };
        let two = json!([{"addresses": ["10.0.0.1"]}, {"addresses": ["10.0.0.2"]}]);
        let https = json!([{"name": "https", "port": 6443}]);
        let places = |slice: &EndpointSlice| {
            let places = machines(slice).into_iter();
            let places = places.map(|(host, port)| format!("{host}:{port}"));
            places.collect::<Vec<_>>().join(" ")
        };
        for (row, slice, expected) in [
            (
                "two",
                slice(two.clone(), https.clone()),
                "10.0.0.1:6443 10.0.0.2:6443",
            ),
            ("none", slice(json!([]), https), ""),
            ("no port", slice(two, json!([{"name": "https"}])), ""),
        ] {
            assert_eq!(places(&slice), expected, "{row}");
        }
    }
}
