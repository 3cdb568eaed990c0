//! The reconcilers as a program: settings, a fit cluster, copies of its objects, the lease, and the work.
//!
//! [`driver`] is the one reconcile, [`cache`] the copies it reads, [`lease`] says who may write, [`context`] how. A kind
//! is a module of its own with the same parts: gather, plan, apply, status.

mod agent_run;
mod args;
mod cache;
mod context;
mod driver;
mod egress;
mod kinds;
mod lease;
mod metrics;
mod policy;
mod runs;
mod start;
mod stream;
mod wiring;

use std::sync::Arc;

use futures::{FutureExt, TryFutureExt};

pub(crate) use agent_run::{Keep, LogGone, load};
pub use args::{Args, Config, variables};
pub(crate) use kinds::plain::{decision, spent};
pub(crate) use policy::is_of_policy;
pub(crate) use start::Checks;

use crate::ADMIN_PATHS;
use crate::api::contract::reporter;
use crate::api::kind::Kind;
use crate::api::text::sanitise;
use crate::cluster::{Need, client_before};
use crate::events::{self, Regarding, Reporter};
use crate::kit::admin::Paths;
use crate::kit::program::{Error, Program};
use crate::kit::telemetry::Identity;
use args::OwnPod;
use args::groups::Groups;
use context::{Clock, Context};
use driver::Pace;
use egress::Egress;
use lease::{Elector, Post};
use metrics::Metrics;

const IDENTITY: Identity = Identity {
    program: "agents-controller",
    version: env!("CARGO_PKG_VERSION"),
    clean: sanitise::for_log,
};

/// Metrics go out over OTLP, so there is no page of them.
const PATHS: Paths = Paths {
    metrics: None,
    ..ADMIN_PATHS
};

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
        stream,
        egress,
        inbox,
    } = config; // a setting left out here does not compile
    let instance = common.otlp.instance.clone().unwrap_or_default();
    let rules =
        policy::Source::load(policy, runs.runner.defaults()).map_err(|refused| Error::Start {
            what: "put the policy in force",
            source: refused.into(),
        })?;
    let mut program = Program::start(IDENTITY, PATHS, common, notes).await?;
    let key = stream::Key::new().map_err(|source| Error::Start {
        what: "make a key for those who read the queue",
        source: source.into(),
    })?;
    let show = stream::Show {
        listeners: stream::listen(&stream)?,
        settings: stream,
        key: key.clone(),
    };
    let metrics = Metrics::new(&program.telemetry().meter());
    let witness = metrics.clone();
    let client = client_before(Arc::new(move |call| witness.called(call))).await?;
    lease.namespace = lease.namespace.or(pod.namespace.clone());
    let home = client.default_namespace().to_owned();
    let lease_home = lease.namespace.clone().unwrap_or_else(|| home.clone());
    let groups = without_unused(groups, &runs);
    let needs = start::needs::all(&groups, lease.enabled.then_some(&*lease_home));
    let gate = program.readiness.gate("cluster");
    let (checks, fit) = Checks::new(client.clone(), needs, gate);
    let egress = Egress::new(egress, workers, &metrics).await?;
    let post = Post {
        identity: identity(&instance, &pod),
        metrics: metrics.clone(),
        readiness: program.readiness.clone(),
        ender: program.ender(),
        key,
    };
    let (elector, leadership) = Elector::new(client.clone(), lease, post);
    let events = events::Config::new(events, Reporter::new(reporter::CONTROLLER, &instance));
    let (emitter, said) =
        events::attach_behind(&mut program, client.clone(), events, leadership.clone());
    let elector = elector.telling(emitter.clone());
    let own = Regarding::pod(
        pod.namespace.as_deref().unwrap_or(&home),
        &instance,
        pod.uid,
    );
    let herald = policy::Herald::new(emitter.clone(), own);
    let context = Arc::new(Context {
        emitter,
        client,
        clock: Clock::default(),
        metrics,
        leadership,
        untold: driver::untold::Untold::default(),
        egress,
        fit: fit.clone(),
        rules: rules.rules(),
        deprecated: runs.runner.vcs.deprecated.clone(),
    });
    program.tasks.support("policy", |shutdown| {
        rules.run(herald, shutdown).map_err(Into::into)
    });
    let pace = Pace { workers, sweep };
    let told = (runs, inbox, show);
    wiring::start(&mut program, context, groups, told, pace);
    let tasks = &mut program.tasks;
    tasks.support("start checks", |shutdown| {
        checks.run(shutdown).map_err(Into::into)
    });
    tasks.support("lease", |shutdown| async move {
        tokio::select! {
            _ = shutdown.started() => return Ok(()),
            () = fit.found() => {}
        }
        elector
            .run(said.map(drop), shutdown)
            .await
            .map_err(Into::into)
    });
    program.run().await
}

/// The groups without the kind that these settings have no use for.
fn without_unused(mut groups: Groups, runs: &agent_run::Settings) -> Groups {
    if !runs.runner.vcs.enabled {
        groups.left_out = Some(Kind::VersionControlProvider);
    }
    groups
}

/// What the controllers must be able to do in the cluster with these settings, for whoever grants it.
pub fn needs(config: &Config) -> Vec<Need> {
    let groups = without_unused(config.groups.clone(), &config.runs);
    let own = config.lease.namespace.as_ref();
    let lease = own.or(config.pod.namespace.as_ref());
    start::needs::all(
        &groups,
        lease.filter(|_| config.lease.enabled).map(String::as_str),
    )
}

/// Tells this process from every other: two pods never have the same.
fn identity(instance: &str, pod: &OwnPod) -> String {
    let unique = pod.uid.clone();
    let unique = unique.unwrap_or_else(|| format!("{:016x}", fastrand::u64(..)));
    format!("{instance}_{unique}")
}
