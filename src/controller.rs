//! The reconcilers as a program: settings, a fit cluster, copies of its objects, the lease, and the work.
//!
//! [`driver`] is the one reconcile, [`cache`] the copies it reads, [`lease`] says who may write, [`context`] how. A kind
//! is a module of its own with the same parts: gather, plan, apply, status.

mod agent_run;
mod args;
mod cache;
mod context;
mod driver;
mod groups;
mod lease;
mod metrics;
mod needs;
mod orchestration_run;
mod plain;
mod policy;
mod schedule;
mod shelves;
mod stand;
mod tool_run;
mod wiring;
mod workspace;

use std::sync::Arc;
use std::time::Duration;

use futures::TryFutureExt;
use kube::Client;
use tokio::time::sleep;

pub use args::{Args, Config};

use crate::ADMIN_PATHS;
use crate::api::contract::reporter;
use crate::cluster::{self, Obstacle, connect};
use crate::events::{self, Reporter};
use crate::kit::program::{Error, Program};
use crate::kit::telemetry::Identity;
use args::OwnPod;
use context::{Clock, Context};
use driver::Pace;
use lease::Elector;
use metrics::Metrics;

const IDENTITY: Identity = Identity {
    program: "agents-controller",
    version: env!("CARGO_PKG_VERSION"),
};

/// Tries to look at the cluster before the start is given up.
const LOOKS: u32 = 5;
/// Runs the controllers until they are told to end.
pub async fn run(args: Args) -> Result<(), Error> {
    let Some((config, notes)) = args.load()? else {
        return Ok(());
    };
    let Config {
        common,
        groups,
        workers,
        sweep,
        pod,
        mut lease,
        runs,
        policy,
        events,
    } = config; // a setting left out here does not compile
    let instance = common.otlp.instance.clone().unwrap_or_default();
    let rules =
        policy::Source::load(policy, runs.runner.defaults()).map_err(|refused| Error::Start {
            what: "put the policy in force",
            source: refused.into(),
        })?;
    let mut program = Program::start(IDENTITY, ADMIN_PATHS, common, notes).await?;
    let client = connect().await?;
    lease.namespace = lease.namespace.or(pod.namespace.clone());
    let home = client.default_namespace().to_owned();
    let lease_home = lease.namespace.clone().unwrap_or(home);
    let needed = needs::all(&groups, lease.enabled.then_some(&*lease_home));
    look(&client, &needed).await?;
    let metrics = Metrics::new(&program.telemetry().meter());
    let (elector, leadership) = Elector::new(
        client.clone(),
        lease,
        identity(&instance, &pod),
        metrics.clone(),
    );
    let reporter = Reporter::new(reporter::CONTROLLER, &instance);
    let context = Arc::new(Context {
        emitter: events::attach(&mut program, client.clone(), events, reporter),
        client,
        clock: Clock,
        metrics,
        leadership,
        rules: rules.rules(),
        deprecated: runs.runner.vcs.deprecated.clone(),
    });
    program
        .tasks
        .support("policy", |shutdown| rules.run(shutdown).map_err(Into::into));
    let pace = Pace { workers, sweep };
    wiring::start(&mut program, context, groups, runs, pace);
    program.tasks.support("lease", |shutdown| {
        elector.run(shutdown).map_err(Into::into)
    });
    program.run().await
}

/// Looks at the cluster: what is missing for good ends the start with all of it in one message.
async fn look(client: &Client, needed: &[cluster::Need]) -> Result<(), Error> {
    let failed = |source| Error::Start {
        what: "work in this cluster",
        source,
    };
    let mut silence = String::new();
    for attempt in 0..LOOKS {
        match cluster::examine(client, needed).await {
            Ok(()) => return Ok(()),
            Err(Obstacle::Lasting(unfit)) => return Err(failed(unfit.into())),
            Err(Obstacle::Passing(why)) => {
                tracing::warn!(error = why, "The API server does not answer, trying again");
                silence = why;
                sleep(Duration::from_millis(500 << attempt)).await;
            }
        }
    }
    Err(failed(silence.into()))
}

/// Tells this process from every other: two pods never have the same.
fn identity(instance: &str, pod: &OwnPod) -> String {
    let unique = pod.uid.clone();
    let unique = unique.unwrap_or_else(|| format!("{:016x}", fastrand::u64(..)));
    format!("{instance}_{unique}")
}
