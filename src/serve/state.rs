//! What every operation works with.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client};
use tokio::sync::Semaphore;

use super::auth::{Ask, Caller, Gatekeeper, Right};
use super::fault::{Fault, Reason};
use super::inbound::Inbound;
use super::metrics::Metrics;
use super::queue::Relay;
use super::sidecar::Sidecar;
use super::stream::Board;
use crate::api::contract::VERSION;
use crate::api::kind::Kind;
use crate::cluster::{Namespaces, Scope};
use crate::controller::Keep;
use crate::kit::readiness::Readiness;
use crate::kit::shutdown::Shutdown;

/// What every operation works with.
pub(super) struct State {
    pub(super) client: Client,
    pub(super) gatekeeper: Gatekeeper,
    pub(super) namespaces: Namespaces,
    pub(super) default_namespace: String,
    /// How long the controllers keep Jobs and with them logs, as far as this program was told.
    pub(super) keep: Keep,
    pub(super) readiness: Readiness,
    pub(super) metrics: Metrics,
    /// For requests that are in flight.
    pub(super) room: Semaphore,
    /// For those who wait for the end of a run, so that they keep nobody else out.
    pub(super) waiting: Semaphore,
    /// What happens to all objects.
    pub(super) board: Arc<Board>,
    /// How the queue stands.
    pub(super) queue: Arc<Relay>,
    /// How the sidecar beside the leader stands.
    pub(super) sidecar: Sidecar,
    /// What takes calls of trackers in, where that is switched on.
    pub(super) inbound: Option<Arc<Inbound>>,
    pub(super) shutdown: Shutdown,
    /// The description of the API.
    pub(super) document: Bytes,
}

impl State {
    /// Objects of a kind of ours in a namespace, or in all.
    pub(super) fn api(&self, kind: Kind, namespace: Option<&str>) -> Api<DynamicObject> {
        let resource = resource(kind);
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// Refuses who does not have a right wherever the control plane works.
    pub(super) async fn demand_everywhere(
        &self,
        caller: &Caller,
        right: Right,
    ) -> Result<(), Fault> {
        for scope in self.namespaces.scopes() {
            let namespace = match scope {
                Scope::Cluster => None,
                Scope::Namespace(name) => Some(name),
            };
            let ask = Ask {
                right,
                namespace,
                name: None,
            };
            self.gatekeeper.demand(caller, &ask).await?;
        }
        Ok(())
    }

    /// Refuses a namespace that is not served.
    pub(super) fn serves(&self, namespace: Option<&str>) -> Result<(), Fault> {
        let scopes = self.namespaces.scopes();
        let served = match (namespace, &self.namespaces) {
            (Some(namespace), _) => scopes.iter().any(|scope| scope.covers(namespace)),
            (None, Namespaces::All) => true,
            (None, Namespaces::Some(_)) => false,
        };
        if served {
            return Ok(());
        }
        let asked = namespace.map_or("all namespaces".to_owned(), |name| {
            format!("namespace {name}")
        });
        let places = scopes.iter().map(ToString::to_string);
        let places: Vec<_> = places.collect();
        let message = format!("this control plane does not serve {asked}");
        Err(
            Fault::new(StatusCode::NOT_FOUND, Reason::NamespaceNotServed, message)
                .next(format!("it works {}", places.join(", "))),
        )
    }
}

/// A kind of ours as the client wants it.
pub(super) fn resource(kind: Kind) -> ApiResource {
    ApiResource {
        group: kind.group().to_owned(),
        version: VERSION.to_owned(),
        api_version: kind.api_version(),
        kind: kind.as_str().to_owned(),
        plural: kind.plural().to_owned(),
    }
}
