//! A process of the controller in the model: its copies, and how it hears of what is stored.

use std::sync::{Arc, LazyLock};

use clap::{Args, Command, FromArgMatches};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use prometheus_client::registry::Registry;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::NOW;
use super::server::Server;
use super::world::{NAMESPACE, News, Sort, World};
use crate::api::contract::{env, label};
use crate::api::kinds::AgentRun;
use crate::cluster::Scope;
use crate::controller::agent_run::vcs::Deprecated;
use crate::controller::agent_run::{AgentRuns, Settings, Wakes, prune_job, prune_pod, prune_run};
use crate::controller::cache::shelves::Shelves;
use crate::controller::cache::{Change, Kept, Shelf, Told};
use crate::controller::context::{Clock, Context};
use crate::controller::driver::Work;
use crate::controller::driver::untold::Untold;
use crate::controller::egress::Egress;
use crate::controller::metrics::Metrics;
use crate::controller::policy::Rules;
use crate::controller::start::Fit;
use crate::events::{self, Reporter};
use crate::kit::config::Flags;
use crate::kit::fence::Fence;

/// A process of the controller: its copies, and what it has heard.
pub(super) struct Controller {
    pub(super) runs: Arc<AgentRuns>,
    pub(super) context: Arc<Context>,
    shelves: Arc<Shelves>,
    wakes: Arc<Wakes>,
    /// What was heard of each sort of news.
    pub(super) heard: [usize; 3],
    /// What was there before the last list, which no watch tells again.
    pub(super) listed: usize,
}

impl Controller {
    pub(super) fn start(server: &Server) -> Self {
        let client = server.client();
        let metrics = Metrics::new(&opentelemetry::global::meter("simulation"));
        let told = events::Metrics::register(&mut Registry::default());
        let config = events::Config {
            enabled: false,
            reporter: Reporter::new("simulation", "simulation"),
            limits: events::Limits::new(1),
        };
        let (emitter, _) = events::new(client.clone(), config, told);
        let context = Arc::new(Context {
            client,
            clock: Clock::shown_by(|| NOW.get()),
            egress: Egress::closed(),
            metrics,
            leadership: Fence::always(),
            fit: Fit::known(),
            emitter,
            untold: Untold::default(),
            rules: Rules::default(),
            deprecated: Deprecated::default(),
        });
        let shelves = Arc::new(Shelves::default());
        let runs = AgentRuns::new(Arc::clone(&context), Arc::clone(&shelves), settings());
        let runs = Arc::new(runs);
        let work = Work::new("runs", vec![scope()]);
        shelves.agents.learn(read(
            &json!({"metadata": {"name": "coder", "namespace": NAMESPACE}, "spec": {"providerRef": {"name": "shell"}}}),
        ));
        shelves.providers.learn(read(
            &json!({"metadata": {"name": "shell", "namespace": NAMESPACE}, "spec": {"binary": "/agent"}}),
        ));
        let wakes = Wakes::new(Arc::clone(&runs), work);
        let sim = server.sim();
        let listed = sim.world.news.len();
        let controller = Self {
            runs,
            context,
            shelves,
            wakes,
            heard: [listed; 3],
            listed,
        };
        controller.list(&sim.world);
        controller
    }

    /// Everything is listed: deletions in between are found by comparing.
    pub(super) fn list(&self, world: &World) {
        self.run_copies().list(world);
        self.job_copies().list(world);
        self.pod_copies().list(world);
    }

    /// What we wrote and no watch has told is asked for.
    pub(super) fn confirm(&self, world: &World) {
        self.run_copies().confirm(world);
        self.job_copies().confirm(world);
        self.pod_copies().confirm(world);
    }

    pub(super) fn hear(&self, news: &News) {
        match news.sort {
            Sort::Run => self.run_copies().hear(news),
            Sort::Job => self.job_copies().hear(news),
            Sort::Pod => self.pod_copies().hear(news),
            Sort::ConfigMap => {}
        }
    }

    fn run_copies(&self) -> Copies<'_, AgentRun> {
        Copies {
            sort: Sort::Run,
            shelf: &self.shelves.runs,
            prune: prune_run,
            told: self.wakes.on_run(),
        }
    }

    fn job_copies(&self) -> Copies<'_, Job> {
        Copies {
            sort: Sort::Job,
            shelf: &self.shelves.jobs,
            prune: prune_job,
            told: self.wakes.on_job(),
        }
    }

    fn pod_copies(&self) -> Copies<'_, Pod> {
        Copies {
            sort: Sort::Pod,
            shelf: &self.shelves.pods,
            prune: prune_pod,
            told: self.wakes.on_pod(),
        }
    }
}

/// The copies of one sort of objects, as a feed keeps them.
struct Copies<'a, K> {
    sort: Sort,
    shelf: &'a Shelf<K>,
    prune: fn(&mut K),
    told: Told<K>,
}

impl<K: Kept + DeserializeOwned> Copies<'_, K> {
    fn list(&self, world: &World) {
        self.shelf.begin(&scope());
        for object in world.all(self.sort) {
            if is_followed(self.sort, &object) {
                self.shelf.stage(&scope(), self.read(&object));
            }
        }
        for change in self.shelf.complete(&scope()).changes {
            (self.told)(&change);
        }
    }

    fn hear(&self, news: &News) {
        if !is_followed(news.sort, &news.object) {
            return;
        }
        let object = self.read(&news.object);
        self.tell(match news.is_gone {
            true => self.shelf.delete(object),
            false => self.shelf.apply(object),
        });
    }

    fn confirm(&self, world: &World) {
        for key in self.shelf.overdue(&scope()) {
            let Some(known) = self.shelf.get(&key) else {
                continue;
            };
            self.tell(match world.get(self.sort, &key.name) {
                Some(object) => self.shelf.apply(self.read(object)),
                None => self.shelf.forget(&key, &known),
            });
        }
    }

    fn read(&self, object: &Value) -> K {
        let mut object = read(object);
        (self.prune)(&mut object);
        object
    }

    fn tell(&self, change: Option<Change<K>>) {
        if let Some(change) = change {
            (self.told)(&change);
        }
    }
}

fn scope() -> Scope {
    Scope::Namespace(NAMESPACE.to_owned())
}

fn read<K: DeserializeOwned>(object: &Value) -> K {
    K::deserialize(object).unwrap()
}

/// What a watch with the label of the controller would hear.
fn is_followed(sort: Sort, object: &Value) -> bool {
    sort == Sort::Run || object["metadata"]["labels"][label::AGENT_RUN].is_string()
}

/// As operators get them, but that runs stay and Jobs go soon. Read once: a controller may start many times.
fn settings() -> Settings {
    static SETTINGS: LazyLock<Settings> = LazyLock::new(read_settings);
    SETTINGS.clone()
}

fn read_settings() -> Settings {
    let environment = [(env::RUN_RETENTION, "0"), (env::RUNNER_JOB_TTL, "60")];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let command = Flags::<Settings>::augment_args(Command::new("simulation"));
    let given = command.get_matches_from(["simulation"]);
    let flags = Flags::<Settings>::from_arg_matches(&given).unwrap();
    flags.resolve(environment.into()).unwrap().0
}
