//! An eye on every Job, independent of the controller: a Job whose outcome is not stored must not go, and if one does, or is
//! about to, that is counted and told on its run.
//!
//! `watch` follows the cluster and keeps a `view` of each Job on a `shelf` of the `board`; what changed gives rise to
//! questions, which `look` answers with a live read of the run; `judge` decides, with the function by which the
//! controller decides. Nothing here makes the program unready or ends it.

mod board;
mod judge;
mod look;
mod metrics;
mod needs;
mod settings;
mod shelf;
mod sight;
mod standing;
mod view;
mod watch;

use std::sync::Arc;

use agents::api::contract::reporter;
use agents::cluster;
use agents::events::{self, Reporter};
use agents::kit::program::Program;

use board::Board;
use look::Inspector;
use metrics::Metrics;
pub use needs::all as needs;
pub use settings::Settings;
use watch::Watch;

/// Starts the watch, if it is wanted and there is a cluster; `instance` is who tells.
pub async fn attach(
    program: &mut Program,
    settings: Settings,
    events: events::Settings,
    instance: &str,
) {
    let Settings { scopes } = settings;
    let needs = needs(&scopes);
    let is_wanted = !scopes.is_empty();
    let board = Arc::new(Board::new(scopes));
    let metrics = Metrics::register(program.metrics(), &board);
    if !is_wanted {
        tracing::info!("Jobs are not watched, as it was set");
        return;
    }
    let client = match cluster::client().await {
        Ok(client) => client,
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "Jobs are not watched: there is no cluster");
            return;
        }
    };
    let reporter = Reporter::new(reporter::SIDECAR, instance);
    let emitter = events::attach(program, client.clone(), events, reporter);
    let (inspector, desk, cases) = Inspector::new(client.clone(), emitter, metrics.clone());
    let watch = Watch {
        client,
        needs,
        board,
        desk,
        metrics,
    };
    program.tasks.work("jobs", |shutdown| async move {
        tokio::select! {
            _ = shutdown.started() => {}
            ((), ()) = async { tokio::join!(watch.run(), inspector.run(cases)) } => {}
        }
        Ok(())
    });
}
