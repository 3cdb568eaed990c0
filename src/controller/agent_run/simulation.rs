//! The reconciler of runs in a model of everything around it: an API server, the Job controller, nodes, the garbage
//! collector, the TTL controller, people, and a clock. What happens when is decided by a seed: news comes late, twice or
//! not at all, writes conflict, answers are lost, and the controller dies at any call.
//!
//! Whatever the order: no outcome is lost, nothing is started twice, nothing is called missing that is there, the status
//! contract holds after every write, and nothing is held for ever. The real API server is met in `tests/integration`;
//! here are the orders that it shows once in a year.
//!
//! `SIMULATE_SCHEDULES` says how many seeds are tried, `SIMULATE_FIRST` from which on, `SIMULATE_SEED` replays one and prints
//! what happened; `make simulate` tries many.

mod actors;
mod mutants;
mod process;
mod server;
mod told;
mod truth;
mod world;

use std::cell::Cell;
use std::mem::take;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::thread::available_parallelism;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Notify;

use crate::controller::cache::Key;
use crate::controller::driver::attempt;
use crate::controller::driver::plan::Next;
use actors::Climate;
use mutants::{Mutant, Rule};
use process::Controller;
use server::{Fate, Server};
use truth::Truth;
use world::{NAMESPACE, RUN, Sort, World};

/// Seeds that are tried unless someone asks for more.
const SCHEDULES: u64 = 300;
/// Seeds that once showed a fault, whatever the number of those that are tried.
const REMEMBERED: [u64; 3] = [16_978, 24_479, 83_357];
/// Seeds after which it is told how far it has come.
const TOLD_EVERY: usize = 10_000;
/// Looks at the run while everything may happen.
const LOOKS: usize = 14;
/// Looks until nothing happens any more.
const PATIENCE: usize = 400;

thread_local! {
    static NOW: Cell<Timestamp> = const { Cell::new(Timestamp::UNIX_EPOCH) };
}

/// The cluster, what really happened in it, and chance.
struct Sim {
    world: World,
    truth: Truth,
    rng: fastrand::Rng,
    /// Chance about what is told again, apart from all else: so a seed means the same with it and without.
    echo: fastrand::Rng,
    climate: Climate,
    /// Times that someone will still interfere.
    trouble: u8,
    /// Calls of a hundred that go wrong.
    faults: u8,
    controller: Option<Controller>,
    /// Nothing happens beside the calls of the controller.
    is_still: bool,
    /// What becomes of the next call that makes a Job, whatever chance says.
    job_fate: Option<Fate>,
    /// The rule that the controller breaks, where the simulation itself is tried.
    broken: Option<Rule>,
}

const HEARD: [Sort; 3] = [Sort::Run, Sort::Job, Sort::Pod];

impl Sim {
    fn new(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut world = World::new("2026-01-01T00:00:00Z".parse().unwrap());
        actors::set_the_scene(&mut world, &mut rng);
        let climates = [
            Climate::Calm,
            Climate::Rough,
            Climate::Rough,
            Climate::Hostile,
        ];
        let climate = climates[rng.usize(..climates.len())];
        let trouble = rng.u8(1..5);
        let faults = [0, 5, 20][rng.usize(..3)];
        NOW.set(world.now);
        Self {
            world,
            truth: Truth::default(),
            rng,
            echo: fastrand::Rng::with_seed(!seed),
            climate,
            trouble,
            faults,
            controller: None,
            is_still: false,
            job_fate: None,
            broken: None,
        }
    }

    /// What becomes of a call.
    fn fate(&mut self, makes_job: bool) -> Fate {
        if let Some(fate) = self.job_fate.take_if(|_| makes_job) {
            return fate;
        }
        if self.rng.u8(..100) >= self.faults {
            return Fate::Fine;
        }
        let fates = [
            Fate::Refused,
            Fate::Unheard,
            Fate::DiesBefore,
            Fate::DiesAfter,
        ];
        fates[self.rng.usize(..fates.len())]
    }

    /// Some of what happens beside the controller.
    fn churn(&mut self) {
        if self.is_still {
            return;
        }
        for _ in 0..self.rng.u8(..4) {
            match self.rng.u8(..10) {
                0..5 => {
                    actors::work(&mut self.world, &mut self.truth, &mut self.rng);
                }
                5..8 => self.deliver(),
                8 if self.trouble > 0 && self.rng.bool() => {
                    self.trouble -= 1;
                    self.truth.is_disturbed |= self.climate != Climate::Calm;
                    let (world, truth) = (&mut self.world, &mut self.truth);
                    actors::interfere(world, truth, &mut self.rng, self.climate);
                }
                8 if self.rng.u8(..8) == 0 => self.relist(),
                _ => {
                    let seconds = self.rng.u64(..3);
                    self.pass(Duration::from_secs(seconds));
                }
            }
        }
        NOW.set(self.world.now);
    }

    fn pass(&mut self, time: Duration) {
        self.world.now = self.world.now.checked_add(time).unwrap();
        NOW.set(self.world.now);
    }

    /// The next piece of news of one sort arrives; says nothing if there is none.
    fn deliver(&mut self) {
        let which = self.rng.usize(..HEARD.len());
        self.deliver_of(which);
    }

    fn deliver_of(&mut self, which: usize) -> bool {
        let Some(controller) = &mut self.controller else {
            return false;
        };
        let from = controller.heard[which];
        let news = self.world.news.iter().enumerate().skip(from);
        let next = news.into_iter().find(|(_, news)| news.sort == HEARD[which]);
        let Some((at, news)) = next else {
            controller.heard[which] = self.world.news.len();
            return false;
        };
        controller.heard[which] = at + 1;
        controller.hear(news);
        if news.sort == Sort::Job {
            self.truth.heard(&news.object);
        }
        self.echo(which);
        true
    }

    /// A watch may tell something twice, and one that is taken up again may begin with what was told already.
    fn echo(&mut self, which: usize) {
        if self.is_still {
            return;
        }
        let back = match self.echo.u8(..16) {
            0 => 1,
            1 => self.echo.usize(2..6),
            _ => return,
        };
        if let Some(controller) = &mut self.controller {
            let from = controller.heard[which].saturating_sub(back);
            controller.heard[which] = from.max(controller.listed);
            let sort = HEARD[which];
            self.world.say(format!("news of {sort:?} is told again"));
        }
    }

    /// What is there now was listed.
    fn has_listed(&mut self) {
        for job in self.world.all(Sort::Job) {
            self.truth.heard(&job);
        }
    }

    /// A watch broke and lists anew: deletions in between are found by comparing.
    fn relist(&mut self) {
        if let Some(controller) = &mut self.controller {
            controller.list(&self.world);
            self.world.say("a watch lists anew");
            controller.listed = self.world.news.len();
            controller.heard = [controller.listed; 3];
            self.has_listed();
        }
    }
}

/// One look at the run. A controller that dies is forgotten with all that it knew.
async fn look(server: &Server) -> Option<Next> {
    if server.sim().controller.is_none() {
        let controller = Controller::start(server);
        let mut sim = server.sim();
        sim.controller = Some(controller);
        sim.has_listed();
    }
    let (runs, context, broken) = {
        let sim = server.sim();
        let controller = sim.controller.as_ref()?;
        (
            Arc::clone(&controller.runs),
            Arc::clone(&controller.context),
            sim.broken,
        )
    };
    let key = Key::new(NAMESPACE, RUN);
    let attempt = async {
        match broken {
            None => attempt(runs, context, key).await,
            Some(rule) => attempt(Arc::new(Mutant { runs, rule }), context, key).await,
        }
    };
    tokio::select! {
        biased;
        () = server.death.notified() => {
            let mut sim = server.sim();
            sim.controller = None;
            sim.truth.forgotten();
            None
        }
        result = attempt => result.ok(),
    }
}

/// Everything that happens for one seed; what was wrong about it.
async fn play(seed: u64, broken: Option<Rule>) -> (Vec<String>, Vec<String>) {
    let sim = Sim {
        broken,
        ..Sim::new(seed)
    };
    let server = Server {
        sim: Arc::new(Mutex::new(sim)),
        death: Arc::new(Notify::new()),
    };
    for _ in 0..LOOKS {
        look(&server).await;
        let mut sim = server.sim();
        for _ in 0..3 {
            sim.churn();
        }
    }
    server.sim().faults = 0;
    server.sim().trouble = 0;
    settle(&server).await;
    let mut sim = server.sim();
    sim.controller = None; // it knows the server, which knows it: neither would ever be freed
    let Sim { world, truth, .. } = &mut *sim;
    truth.judge(world);
    (take(&mut truth.wrongs), take(&mut world.trace))
}

/// Lets everyone work until nothing happens any more.
async fn settle(server: &Server) {
    let mut quiet = 0;
    for _ in 0..PATIENCE {
        let before = server.sim().world.news.len();
        {
            let mut sim = server.sim();
            let Sim {
                world, truth, rng, ..
            } = &mut *sim;
            for _ in 0..PATIENCE {
                if !actors::work(world, truth, rng) {
                    break;
                }
            }
            for which in 0..HEARD.len() {
                while sim.deliver_of(which) {}
            }
            if let Some(controller) = &sim.controller {
                controller.confirm(&sim.world);
            }
        }
        let next = look(server).await;
        let mut sim = server.sim();
        quiet = if sim.world.news.len() == before {
            quiet + 1
        } else {
            0
        };
        match next {
            Some(Next::At(at)) if at > sim.world.now && quiet < 3 => {
                sim.world.now = at;
                NOW.set(at);
            }
            _ if quiet > 3 => return,
            _ => {}
        }
    }
    server
        .sim()
        .truth
        .wrongs
        .push("it never comes to rest".to_owned());
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Time passes only where the simulation lets it.
fn runtime() -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap()
}

/// Plays the seeds that this worker has to.
fn work(worker: usize, workers: usize, range: &Range<u64>) {
    let runtime = runtime();
    let remembered = REMEMBERED.into_iter().filter(|seed| !range.contains(seed));
    let seeds = range.clone().chain(remembered).enumerate();
    for (done, seed) in seeds.skip(worker).step_by(workers) {
        let (wrongs, trace) = runtime.block_on(play(seed, None));
        assert!(
            wrongs.is_empty(),
            "seed {seed}: {wrongs:#?}\nreplay with SIMULATE_SEED={seed}; what happened:\n{}",
            trace.join("\n")
        );
        if done > 0 && done.is_multiple_of(TOLD_EVERY) {
            println!("{done} schedules of {range:?}");
        }
    }
}

#[test]
fn whatever_happens_when_no_outcome_is_lost_and_nothing_starts_twice() {
    if let Some(seed) = number("SIMULATE_SEED") {
        let (wrongs, trace) = runtime().block_on(play(seed, None));
        println!("{}", trace.join("\n"));
        assert_eq!(wrongs, Vec::<String>::new());
        return;
    }
    let schedules = number("SIMULATE_SCHEDULES").unwrap_or(SCHEDULES);
    let first = number("SIMULATE_FIRST").unwrap_or_default();
    let range = first..first.saturating_add(schedules);
    let workers = available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let range = &range;
        let threads: Vec<_> = (0..workers)
            .map(|worker| scope.spawn(move || work(worker, workers, range)))
            .collect();
        for thread in threads {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
    println!("all schedules of {range:?}");
}

#[test]
fn a_controller_that_breaks_a_rule_is_found_out() {
    let runtime = runtime();
    for (rule, complaint) in Rule::ALL {
        let found = (0..SCHEDULES).find(|seed| {
            let (wrongs, _) = runtime.block_on(play(*seed, Some(rule)));
            wrongs.iter().any(|wrong| wrong.contains(complaint))
        });
        assert!(
            found.is_some(),
            "{rule:?} was not noticed in {SCHEDULES} schedules"
        );
    }
}
