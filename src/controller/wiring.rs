//! The reconcilers put together: which copies are kept, who is told of their changes, and which tasks work. Decides
//! nothing; one more kind is one more line.

mod show;

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
use super::args::groups::{Group, Groups};
use super::cache::shelves::{self, Shelves};
use super::cache::{Feed, Health, Kept, Shelf, Told};
use super::context::{Context, Thing};
use super::driver::{self, Pace, Reconciler, Work};
use super::kinds::implementation_source::{self, ImplementationSources};
use super::kinds::orchestration_run::{OrchestrationRuns, Wakes as Steps};
use super::kinds::plain::{Plain, Plains, on_change, on_delivery, on_need};
use super::kinds::schedule::{Schedules, on_target};
use super::kinds::tool_run::{self, ToolRuns};
use super::kinds::workspace::{Workspaces, on_claim};
use super::stream;
use crate::api::contract::label;
use crate::api::kind::Kind;
use crate::api::kinds::Schedule;
use crate::cluster::Scope;
use crate::kit::program::Program;

/// Time between two looks at the watches.
const HEALTH_CHECK: Duration = Duration::from_secs(5);

/// Starts all reconcilers.
pub(super) fn start(
    program: &mut Program,
    context: Arc<Context>,
    groups: Groups,
    (runs, inbox, show): (
        agent_run::Settings,
        implementation_source::Settings,
        stream::Show,
    ),
    pace: Pace,
) {
    let shelves = Arc::new(Shelves {
        left_out: groups.left_out,
        ..Shelves::default()
    });
    let mut wiring = Wiring {
        health: Arc::new(Health::new(program.readiness.gate("caches"))),
        groups,
        feeds: Vec::new(),
        works: Vec::new(),
        program,
        context,
        pace,
    };
    let calls = tool_run::Settings {
        grace: runs.grace,
        keep: runs.keep,
        container: runs.runner.container.clone(),
    };
    let schedules = wiring.schedules(&shelves);
    let steps = wiring.orchestrations(&shelves, runs.grace, &schedules);
    let (reconciler, wakes) = wiring.agents(&shelves, (runs, inbox), &schedules, &steps);
    wiring.supporting(&shelves, &wakes, &steps);
    wiring.tools(&shelves, calls, &steps);
    wiring.show(&shelves, &reconciler, show);
    wiring.run();
}

/// What is being put together.
struct Wiring<'a> {
    program: &'a mut Program,
    context: Arc<Context>,
    health: Arc<Health>,
    groups: Groups,
    feeds: Vec<Pin<Box<dyn Future<Output = ()> + Send>>>,
    works: Vec<(Kind, Work)>,
    pace: Pace,
}

impl Wiring<'_> {
    /// Runs, and what they refer to.
    fn agents(
        &mut self,
        shelves: &Arc<Shelves>,
        (settings, inbox): (agent_run::Settings, implementation_source::Settings),
        schedules: &Copied,
        steps: &Steps,
    ) -> (Arc<AgentRuns>, Arc<Wakes>) {
        let (reconciler, runs) = self.runs(shelves, settings);
        let agents = self.plain("agents", shelves, &shelves.agents);
        let providers = self.plain("providers", shelves, &shelves.providers);
        let implementations = self.plain("implementations", shelves, &shelves.implementations);
        let hosts = self.plain("hosts", shelves, &shelves.hosts);
        let memories = self.plain("memories", shelves, &shelves.memories);
        let context = Arc::clone(&self.context);
        let sources = ImplementationSources::new(context, Arc::clone(shelves), inbox);
        let sources = self.work("sources", Arc::new(sources));
        let prune = implementation_source::prune_delivery;
        let deliveries = self.made(Group::Agents, label::DELIVERY, prune);
        let told = implementation_source::on_delivery(sources.clone());
        self.feed(&shelves.inbox, deliveries, &told);
        let agent_needs = || Needed(agents.clone(), Arc::clone(&shelves.agents));

        let jobs = self.made(Group::Agents, label::AGENT_RUN, agent_run::prune_job);
        self.feed(&shelves.jobs, jobs, &runs.on_job());
        let pods = self.made(Group::Agents, label::AGENT_RUN, agent_run::prune_pod);
        self.feed(&shelves.pods, pods, &runs.on_pod());
        let copied = schedules.told(Kind::AgentRun);
        let told = vec![runs.on_run(), copied, steps.on_child()];
        self.follow(Kind::AgentRun, &shelves.runs, told);
        self.follow(
            Kind::Agent,
            &shelves.agents,
            vec![runs.on_reference(), on_change(agents.clone())],
        );
        self.follow(
            Kind::AgentProvider,
            &shelves.providers,
            vec![
                runs.on_reference(),
                agent_needs().told(),
                on_change(providers),
            ],
        );
        self.follow(
            Kind::Memory,
            &shelves.memories,
            vec![
                runs.on_reference(),
                agent_needs().told(),
                on_change(memories),
            ],
        );
        let work_needs = Needed(
            implementations.clone(),
            Arc::clone(&shelves.implementations),
        );
        self.follow(
            Kind::VersionControlProvider,
            &shelves.hosts,
            vec![
                runs.on_reference(),
                agent_needs().told(),
                work_needs.told(),
                on_change(hosts),
            ],
        );
        self.follow(
            Kind::ImplementationSpec,
            &shelves.implementations,
            vec![runs.on_reference(), on_change(implementations)],
        );
        self.follow(
            Kind::ImplementationSource,
            &shelves.sources,
            vec![on_change(sources)],
        );
        (reconciler, runs)
    }

    /// Everything besides agents and orchestrations.
    fn supporting(&mut self, shelves: &Arc<Shelves>, runs: &Arc<Wakes>, steps: &Steps) {
        let signals = self.plain("signals", shelves, &shelves.signals);
        let deliveries = self.plain("deliveries", shelves, &shelves.deliveries);
        let bindings = self.plain("bindings", shelves, &shelves.bindings);
        let approvals = self.plain("approvals", shelves, &shelves.approvals);
        let budgets = self.plain("budgets", shelves, &shelves.budgets);
        let artifacts = self.plain("artifacts", shelves, &shelves.artifacts);
        let delivery_needs = Needed(deliveries.clone(), Arc::clone(&shelves.deliveries));

        self.follow(
            Kind::Signal,
            &shelves.signals,
            vec![delivery_needs.told(), on_change(signals.clone())],
        );
        self.follow(
            Kind::SignalDelivery,
            &shelves.deliveries,
            vec![
                on_change(deliveries),
                on_delivery(signals),
                steps.on_awaited(),
            ],
        );
        self.follow(
            Kind::SecretBinding,
            &shelves.bindings,
            vec![on_change(bindings)],
        );
        self.follow(
            Kind::ApprovalPolicy,
            &shelves.approvals,
            vec![on_change(approvals), steps.on_awaited()],
        );
        self.follow(
            Kind::Budget,
            &shelves.budgets,
            vec![on_change(budgets), runs.on_budget()],
        );
        self.follow(
            Kind::Artifact,
            &shelves.artifacts,
            vec![on_change(artifacts)],
        );
    }

    /// Schedules.
    fn schedules(&mut self, shelves: &Arc<Shelves>) -> Copied {
        let context = Arc::clone(&self.context);
        let schedules = Schedules::new(context, Arc::clone(shelves));
        let work = self.work("schedules", Arc::new(schedules));
        let copied = Copied(work.clone(), Arc::clone(&shelves.schedules));
        self.follow(Kind::Schedule, &shelves.schedules, vec![on_change(work)]);
        copied
    }

    /// Orchestrations and their runs.
    fn orchestrations(
        &mut self,
        shelves: &Arc<Shelves>,
        grace: Duration,
        schedules: &Copied,
    ) -> Steps {
        let plain = self.plain("orchestrations", shelves, &shelves.orchestrations);
        let context = Arc::clone(&self.context);
        let runs = OrchestrationRuns::new(context, Arc::clone(shelves), grace);
        let work = self.work("orchestration-runs", Arc::new(runs));
        let steps = Steps::new(Arc::clone(shelves), work);
        self.follow(
            Kind::Orchestration,
            &shelves.orchestrations,
            vec![on_change(plain), steps.on_orchestration()],
        );
        let copied = schedules.told(Kind::OrchestrationRun);
        self.follow(
            Kind::OrchestrationRun,
            &shelves.orchestration_runs,
            vec![steps.on_run(), steps.on_child(), copied],
        );
        steps
    }

    /// Tools, their calls, and workspaces.
    fn tools(&mut self, shelves: &Arc<Shelves>, settings: tool_run::Settings, steps: &Steps) {
        let tools = self.plain("tools", shelves, &shelves.tools);
        let context = Arc::clone(&self.context);
        let calls = Arc::new(ToolRuns::new(context, Arc::clone(shelves), settings));
        let work = self.work("tool-runs", Arc::clone(&calls));
        let calls = tool_run::Wakes::new(calls, work);
        self.follow(
            Kind::Tool,
            &shelves.tools,
            vec![on_change(tools), calls.on_tool()],
        );
        self.follow(
            Kind::ToolRun,
            &shelves.tool_runs,
            vec![calls.on_run(), steps.on_child()],
        );
        let jobs = self.made(Group::Supporting, label::TOOL_RUN, agent_run::prune_job);
        self.feed(&shelves.tool_jobs, jobs, &calls.on_job());
        let pods = self.made(Group::Supporting, label::TOOL_RUN, agent_run::prune_pod);
        self.feed(&shelves.tool_pods, pods, &calls.on_pod());

        let context = Arc::clone(&self.context);
        let workspaces = Workspaces::new(context, Arc::clone(shelves));
        let work = self.work("workspaces", Arc::new(workspaces));
        self.follow(
            Kind::Workspace,
            &shelves.workspaces,
            vec![on_change(work.clone())],
        );
        let claims = self.made(Group::Supporting, label::WORKSPACE, shelves::prune);
        self.feed(&shelves.claims, claims, &on_claim(work));
    }

    fn runs(
        &mut self,
        shelves: &Arc<Shelves>,
        settings: agent_run::Settings,
    ) -> (Arc<AgentRuns>, Arc<Wakes>) {
        let context = Arc::clone(&self.context);
        let runs = Arc::new(AgentRuns::new(context, Arc::clone(shelves), settings));
        let work = self.work("runs", Arc::clone(&runs));
        (Arc::clone(&runs), Wakes::new(runs, work))
    }

    fn plain<K: Plain>(
        &mut self,
        name: &'static str,
        shelves: &Arc<Shelves>,
        shelf: &Arc<Shelf<K>>,
    ) -> Work {
        let context = Arc::clone(&self.context);
        let plains = Plains::new(context, Arc::clone(shelves), Arc::clone(shelf));
        self.work(name, Arc::new(plains))
    }

    /// The task that works on the objects of one kind, once everything has been listed. None if its group is off.
    fn work<R: Reconciler>(&mut self, name: &'static str, reconciler: Arc<R>) -> Work {
        let scopes = self.groups.worked_on(R::KIND);
        let is_off = scopes.is_empty();
        let work = Work::new(name, scopes);
        if is_off {
            return work;
        }
        self.works.push((R::KIND, work.clone()));
        let (context, health) = (Arc::clone(&self.context), Arc::clone(&self.health));
        let (pace, own) = (self.pace, work.clone());
        self.program.tasks.work(name, |shutdown| async move {
            tokio::select! {
                _ = shutdown.started() => return Ok(()),
                () = health.all_listed() => {}
            }
            driver::run(reconciler, context, own, pace, shutdown).await;
            Ok(())
        });
        work
    }

    /// Follows a kind of ours wherever someone reads it.
    fn follow<K>(&mut self, kind: Kind, shelf: &Arc<Shelf<K>>, told: Vec<Told<K>>)
    where
        K: Kept + kube::Resource<Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        let all: Told<K> = Arc::new(move |change| told.iter().for_each(|told| told(change)));
        let source = Source {
            scopes: self.groups.followed(kind),
            label: None,
            prune: shelves::prune,
        };
        self.feed(shelf, source, &all);
    }

    /// What was made for objects of a group, by its label.
    fn made<K>(&self, group: Group, label: &'static str, prune: fn(&mut K)) -> Source<K> {
        Source {
            scopes: self.groups.scopes(group),
            label: Some(label),
            prune,
        }
    }

    fn feed<K>(&mut self, shelf: &Arc<Shelf<K>>, source: Source<K>, told: &Told<K>)
    where
        K: Kept + kube::Resource<Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        let Source {
            scopes,
            label,
            prune,
        } = source;
        for scope in scopes {
            let feed = Feed {
                client: self.context.client.clone(),
                scope,
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
        let Self {
            feeds,
            health,
            context,
            ..
        } = self;
        let fit = context.fit.clone();
        self.program.tasks.support("caches", |shutdown| async move {
            let follow = async {
                fit.found().await;
                join_all(feeds).await
            };
            tokio::select! {
                _ = shutdown.started() => {}
                _ = follow => {}
                () = check(&health) => {}
            }
            Ok(())
        });
    }
}

/// Where something is followed, by which label, and what of it is kept.
struct Source<K> {
    scopes: Vec<Scope>,
    label: Option<&'static str>,
    prune: fn(&mut K),
}

/// The schedules that copy runs, and the work on them.
struct Copied(Work, Arc<Shelf<Schedule>>);

impl Copied {
    /// Looks again at them when a run of this kind comes or goes.
    fn told<K: Thing + Send + Sync + 'static>(&self, kind: Kind) -> Told<K> {
        on_target(self.0.clone(), Arc::clone(&self.1), kind)
    }
}

/// The objects that need others, and the work on them.
struct Needed<K>(Work, Arc<Shelf<K>>);

impl<K: Plain> Needed<K> {
    /// Looks again at them when something comes or goes that they may need.
    fn told<N: Thing + Send + Sync + 'static>(&self) -> Told<N> {
        on_need(self.0.clone(), Arc::clone(&self.1))
    }
}

/// Brings the gate up to date from time to time: a watch that stays broken says nothing more.
async fn check(health: &Health) {
    loop {
        sleep(HEALTH_CHECK).await;
        health.show(Instant::now());
    }
}
