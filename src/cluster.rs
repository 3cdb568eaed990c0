//! What every program that talks to the cluster needs: which namespaces are its own, what the operator gives to runs, a
//! client that has been answered once, and a look at whether the cluster is fit for it.

mod fitness;
mod namespaces;
pub mod policy;
mod run_defaults;

pub use fitness::{Need, Obstacle, Unfit, examine, may, not_allowed};
pub use namespaces::{Namespaces, Scope};

use std::time::Duration;

use kube::Client;
use tokio::time::timeout;

use crate::kit::program::Error;

/// Time for the first call to the API server.
const FIRST_CALL: Duration = Duration::from_secs(10);

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
    let client = Client::try_default()
        .await
        .map_err(|error| failed(error.into()))?;
    match timeout(FIRST_CALL, client.apiserver_version()).await {
        Ok(Ok(_)) => Ok(client),
        Ok(Err(error)) => Err(failed(error.into())),
        Err(elapsed) => Err(failed(elapsed.into())),
    }
}
