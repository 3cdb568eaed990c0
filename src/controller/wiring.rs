//! The reconcilers put together: which copies are kept, who is told of their changes, and which tasks work. Decides
//! nothing; one more kind is one more line.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use kube::core::NamespaceResourceScope;
use serde::de::DeserializeOwned;
use tokio::time::sleep;

use super::agent_run::{self, AgentRuns, Wakes};
use super::cache::{Feed, Health, Kept, Shelf, Told};
use super::context::Context;
use super::driver::{self, Pace, Reconciler, Work};
use super::plain::{Plain, Plains, on_change, on_need};
use super::shelves::{self, Shelves};
use crate::api::contract::label;
use crate::cluster::{Namespaces, Scope};
use crate::kit::program::Program;

/// Time between two looks at the watches.
const HEALTH_CHECK: Duration = Duration::from_secs(5);

/// Starts all reconcilers.
pub(super) fn start(
    program: &mut Program,
    context: Arc<Context>,
    namespaces: &Namespaces,
    runs: agent_run::Settings,
    pace: Pace,
) {
    let shelves = Arc::new(Shelves::default());
    let mut wiring = Wiring {
        health: Arc::new(Health::new(program.readiness.gate("caches"))),
        scopes: namespaces.scopes(),
        feeds: Vec::new(),
        program,
        context,
        pace,
    };
    let wakes = wiring.runs(&shelves, runs);
    let agents = wiring.plain("agents", &shelves, &shelves.agents);
    let providers = wiring.plain("providers", &shelves, &shelves.providers);
    let implementations = wiring.plain("implementations", &shelves, &shelves.implementations);
    let tools = wiring.plain("tools", &shelves, &shelves.tools);
    let signals = wiring.plain("signals", &shelves, &shelves.signals);
    let bindings = wiring.plain("bindings", &shelves, &shelves.bindings);
    let approvals = wiring.plain("approvals", &shelves, &shelves.approvals);
    let budgets = wiring.plain("budgets", &shelves, &shelves.budgets);

    wiring.follow_made(&shelves.jobs, agent_run::prune_job, wakes.on_job());
    wiring.follow_made(&shelves.pods, agent_run::prune_pod, wakes.on_pod());
    wiring.follow(&shelves.runs, vec![wakes.on_run()]);
    let need = || on_need(agents.clone(), Arc::clone(&shelves.agents));
    wiring.follow(&shelves.memories, vec![wakes.on_reference(), need()]);
    let need = || on_need(agents.clone(), Arc::clone(&shelves.agents));
    wiring.follow(
        &shelves.providers,
        vec![wakes.on_reference(), need(), on_change(providers)],
    );
    wiring.follow(
        &shelves.agents,
        vec![wakes.on_reference(), on_change(agents.clone())],
    );
    wiring.follow(
        &shelves.implementations,
        vec![wakes.on_reference(), on_change(implementations)],
    );
    wiring.follow(&shelves.tools, vec![on_change(tools)]);
    wiring.follow(&shelves.signals, vec![on_change(signals)]);
    wiring.follow(&shelves.bindings, vec![on_change(bindings)]);
    wiring.follow(&shelves.approvals, vec![on_change(approvals)]);
    wiring.follow(&shelves.budgets, vec![on_change(budgets)]);
    wiring.run();
}

/// What is being put together.
struct Wiring<'a> {
    program: &'a mut Program,
    context: Arc<Context>,
    health: Arc<Health>,
    scopes: Vec<Scope>,
    feeds: Vec<Pin<Box<dyn Future<Output = ()> + Send>>>,
    pace: Pace,
}

impl Wiring<'_> {
    fn runs(&mut self, shelves: &Arc<Shelves>, settings: agent_run::Settings) -> Arc<Wakes> {
        let work = Work::default();
        let context = Arc::clone(&self.context);
        let runs = Arc::new(AgentRuns::new(context, Arc::clone(shelves), settings));
        self.work("runs", Arc::clone(&runs), work.clone());
        Wakes::new(runs, work)
    }

    fn plain<K: Plain>(
        &mut self,
        name: &'static str,
        shelves: &Arc<Shelves>,
        shelf: &Arc<Shelf<K>>,
    ) -> Work {
        let work = Work::default();
        let context = Arc::clone(&self.context);
        let plains = Plains::new(context, Arc::clone(shelves), Arc::clone(shelf));
        self.work(name, Arc::new(plains), work.clone());
        work
    }

    /// The task that works on the objects of one kind, once everything has been listed.
    fn work<R: Reconciler>(&mut self, name: &'static str, reconciler: Arc<R>, work: Work) {
        let (context, health) = (Arc::clone(&self.context), Arc::clone(&self.health));
        let pace = self.pace;
        self.program.tasks.work(name, |shutdown| async move {
            tokio::select! {
                _ = shutdown.started() => return Ok(()),
                () = health.all_listed() => {}
            }
            driver::run(reconciler, context, work, pace, shutdown).await;
            Ok(())
        });
    }

    /// Follows a kind of ours in every scope.
    fn follow<K>(&mut self, shelf: &Arc<Shelf<K>>, told: Vec<Told<K>>)
    where
        K: Kept
            + kube::Resource<Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + DeserializeOwned,
    {
        let all: Told<K> = Arc::new(move |change| told.iter().for_each(|told| told(change)));
        self.feed(shelf, None, shelves::prune, &all);
    }

    /// Follows what was made for runs.
    fn follow_made<K>(&mut self, shelf: &Arc<Shelf<K>>, prune: fn(&mut K), told: Told<K>)
    where
        K: Kept
            + kube::Resource<Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + DeserializeOwned,
    {
        self.feed(shelf, Some(label::AGENT_RUN), prune, &told);
    }

    fn feed<K>(
        &mut self,
        shelf: &Arc<Shelf<K>>,
        label: Option<&'static str>,
        prune: fn(&mut K),
        told: &Told<K>,
    ) where
        K: Kept
            + kube::Resource<Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + DeserializeOwned,
    {
        for scope in &self.scopes {
            let feed = Feed {
                client: self.context.client.clone(),
                scope: scope.clone(),
                label,
                prune,
                shelf: Arc::clone(shelf),
                told: Arc::clone(told),
            };
            feed.expect(&self.health);
            let run = feed.run(Arc::clone(&self.health), self.context.metrics.clone());
            self.feeds.push(Box::pin(run));
        }
    }

    /// The task that keeps all copies up to date.
    fn run(self) {
        let Self { feeds, health, .. } = self;
        self.program.tasks.support("caches", |shutdown| async move {
            tokio::select! {
                _ = shutdown.started() => {}
                _ = join_all(feeds) => {}
                () = check(&health) => {}
            }
            Ok(())
        });
    }
}

/// Brings the gate up to date from time to time: a watch that stays broken says nothing more.
async fn check(health: &Health) {
    loop {
        sleep(HEALTH_CHECK).await;
        health.show(Instant::now());
    }
}
