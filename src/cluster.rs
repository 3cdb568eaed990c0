//! What every program that talks to the cluster needs: which namespaces are its own, what the operator gives to runs, a
//! client that has been answered once, and a look at whether the cluster is fit for it.

mod calls;
mod fitness;
pub mod following;
mod namespaces;
pub mod policy;
mod run_defaults;

pub use crate::api::text::names::Scope;
pub use calls::{Call, Code, Verb, Witness};
pub use fitness::{
    APPLY, Need, Obstacle, Standing, Unfit, allows, examine, examine_rights, may, not_allowed,
    standings,
};
pub use namespaces::{Namespaces, Rights};

use std::time::Duration;

use kube::client::ClientBuilder;
use kube::{Client, Config};
use tokio::time::timeout;

use crate::kit::program::Error;

/// Time for the first call to the API server.
const FIRST_CALL: Duration = Duration::from_secs(10);

/// A client of the API server, which has not been asked anything yet.
///
/// # Errors
///
/// When there is no configuration for a client.
pub async fn client() -> Result<Client, Error> {
    Client::try_default().await.map_err(|error| Error::Start {
        what: "learn how to reach the API server",
        source: error.into(),
    })
}

/// The same, with a witness of every call.
///
/// # Errors
///
/// The same.
pub async fn client_before(witness: Witness) -> Result<Client, Error> {
    let failed = |source| Error::Start {
        what: "learn how to reach the API server",
        source,
    };
    let config = Config::infer().await;
    let config = config.map_err(|error| failed(error.into()))?;
    let client = ClientBuilder::try_from(config).map_err(|error| failed(error.into()))?;
    Ok(client.with_layer(&calls::Told(witness)).build())
}

/// A client of the API server, which answered it once: a program that cannot see its cluster must not look healthy.
///
/// # Errors
///
/// When there is no configuration for a client, or the API server does not answer.
pub async fn connect() -> Result<Client, Error> {
    let failed = |source| Error::Start {
        what: "reach the API server",
        source,
    };
    let client = client().await?;
    match timeout(FIRST_CALL, client.apiserver_version()).await {
        Ok(Ok(_)) => Ok(client),
        Ok(Err(error)) => Err(failed(error.into())),
        Err(elapsed) => Err(failed(elapsed.into())),
    }
}
