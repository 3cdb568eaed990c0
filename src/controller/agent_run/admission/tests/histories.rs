//! The index after any history of changes is what a recount of all runs gives.

use std::collections::BTreeSet;

use super::*;
use crate::controller::agent_run::admission::figures::figures;
use crate::controller::load::Load;

/// Something that happens.
#[derive(Clone, Debug)]
enum Event {
    /// A run comes or is now at this place.
    Put {
        run: usize,
        place: usize,
    },
    Gone {
        run: usize,
    },
    /// The first in line who may begin does.
    Admit,
    GiveBack {
        run: usize,
    },
    LineUp {
        run: usize,
    },
    /// Seconds pass.
    Pass(i64),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        6 => (0..12_usize, 0..6_usize).prop_map(|(run, place)| Event::Put { run, place }),
        1 => (0..12_usize).prop_map(|run| Event::Gone { run }),
        3 => Just(Event::Admit),
        1 => (0..12_usize).prop_map(|run| Event::GiveBack { run }),
        1 => (0..12_usize).prop_map(|run| Event::LineUp { run }),
        1 => (1..40_i64).prop_map(Event::Pass),
    ];
    prop::collection::vec(event, 1..40)
}

fn limits() -> impl Strategy<Value = Limits> {
    let at_a_time = (1..3_usize, 1..4_usize, 1..6_usize, 0..3_usize);
    let others = (0..3_usize, 0..4_usize, 0..3_usize, 0..4_usize);
    (at_a_time, others).prop_map(|(at_a_time, (line, rate, line_repo, rate_all))| {
        let (agent, namespace, cluster, repository) = at_a_time;
        Limits {
            agent,
            namespace,
            cluster,
            repositories: Some(Repositories {
                default: repository,
                overrides: BTreeMap::new(),
            }),
            queue: ByScope {
                namespace: line,
                repository: line_repo,
                cluster: 4,
            },
            rate: ByScope {
                namespace: rate,
                repository: 2,
                cluster: rate_all,
            },
            ..roomy()
        }
    })
}

/// One of twelve runs, which differ in namespace, agent, repository and key.
fn ticket(run: usize, place: Place) -> Ticket {
    let letter = |count: usize| (run / count % 2).to_string();
    let age = 50 - i64::try_from(run / 2).unwrap();
    let blocked = matches!(place, Place::Waiting | Place::Aside).then_some("ConcurrencyLimit");
    Ticket {
        key: Key::new(format!("n{}", letter(1)), format!("r{run}")),
        uid: format!("r{run}"),
        agent: format!("a{}", letter(2)),
        repository: (!run.is_multiple_of(3)).then(|| format!("o/{}", run % 3)),
        idempotency: run.is_multiple_of(4).then(|| "k".to_owned()),
        blocked: blocked.filter(|_| run.is_multiple_of(5)),
        created: before(age),
        place,
    }
}

/// The runs, and when each was admitted that has not begun.
#[derive(Default)]
struct Model {
    runs: BTreeMap<usize, Ticket>,
    admitted: BTreeMap<usize, Timestamp>,
    aside: BTreeSet<usize>,
}

impl Model {
    /// All runs with what was decided a moment ago.
    fn all(&self) -> Vec<Ticket> {
        let runs = self.runs.iter().map(|(run, ticket)| {
            let mut ticket = ticket.clone();
            if let (Place::Waiting | Place::Aside, Some(since)) =
                (ticket.place, self.admitted.get(run))
            {
                ticket.place = Place::Running { since: *since };
            }
            if ticket.place == Place::Waiting && self.aside.contains(run) {
                ticket.place = Place::Aside;
            }
            ticket
        });
        let mut all: Vec<_> = runs.collect();
        all.sort_by(|one, other| one.key.cmp(&other.key));
        all
    }
}

fn place(number: usize, time: Timestamp) -> Place {
    match number {
        0 | 1 => Place::Waiting,
        2 => Place::Aside,
        3 => Place::Running { since: time },
        4 => Place::Ended {
            began: Some(time),
            at: time,
        },
        _ => Place::Ended {
            began: None,
            at: time,
        },
    }
}

fn happen(index: &mut Index, model: &mut Model, event: &Event, time: &mut Timestamp) {
    match *event {
        Event::Put { run, place: number } => {
            let ticket = ticket(run, place(number, *time));
            if number > 2 {
                model.admitted.remove(&run);
                model.aside.remove(&run);
            }
            model.runs.insert(run, ticket.clone());
            index.put(ticket, *time);
        }
        Event::Gone { run } => {
            if let Some(gone) = model.runs.remove(&run) {
                index.remove(&gone.key);
                model.admitted.remove(&run);
                model.aside.remove(&run);
            }
        }
        Event::Admit => {
            if let Some(key) = index.next(*time).first() {
                let run: usize = key.name[1..].parse().unwrap();
                model.admitted.insert(run, *time);
                model.aside.remove(&run);
                index.admit(key, *time);
            }
        }
        Event::GiveBack { run } => {
            let had = model.admitted.remove(&run).is_some();
            model.aside.extend(had.then_some(run));
            assert_eq!(index.give_back(&format!("r{run}"), *time), had);
        }
        Event::LineUp { run } => {
            model.aside.remove(&run);
            if let Some(ticket) = model.runs.get(&run) {
                index.line_up(&ticket.key, &ticket.uid, *time);
            }
        }
        Event::Pass(seconds) => {
            *time = time
                .checked_add(Duration::from_secs(seconds.unsigned_abs()))
                .unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_index_agrees_with_a_recount((events, limits) in (events(), limits())) {
        let mut index = Index::new(limits.clone());
        let mut model = Model::default();
        let mut time = now();
        for event in &events {
            happen(&mut index, &mut model, event, &mut time);
            let all = model.all();
            prop_assert_eq!(index.next(time), recount::next(&all, &limits, time));
            for ticket in &all {
                if matches!(ticket.place, Place::Ended { .. }) {
                    continue;
                }
                prop_assert_eq!(
                    index.decide(&ticket.key, &ticket.uid, time),
                    recount::decide(&all, &ticket.uid, &limits, time),
                    "{} after {:?}", ticket.uid, event
                );
            }
            let figures = figures(&index, 2);
            let count = |fits: &dyn Fn(&Ticket) -> bool| all.iter().filter(|ticket| fits(ticket)).count();
            let is_waiting = |ticket: &Ticket| ticket.place == Place::Waiting;
            prop_assert_eq!(figures.cluster.waiting, count(&is_waiting));
            prop_assert_eq!(figures.cluster.running, count(&|ticket| matches!(ticket.place, Place::Running { .. })));
            let oldest = all.iter().filter(|ticket| is_waiting(ticket)).map(|ticket| ticket.created).min();
            prop_assert_eq!(figures.cluster.oldest_waiting_since, oldest);
            let held = count(&|ticket| ticket.blocked.is_some() && matches!(ticket.place, Place::Waiting | Place::Aside));
            prop_assert_eq!(figures.cluster.blocked.values().sum::<usize>(), held);
            for ranked in [&figures.namespaces, &figures.agents] {
                let told = ranked.top.iter().map(|named| named.load.waiting).sum::<usize>();
                let rest = &ranked.rest.load;
                prop_assert_eq!(told + rest.waiting, figures.cluster.waiting);
                let held_back = |load: &Load| load.blocked.values().sum::<usize>();
                let told = ranked.top.iter().map(|named| held_back(&named.load)).sum::<usize>();
                prop_assert_eq!(told + held_back(rest), held);
                let told = ranked.top.iter().filter_map(|named| named.load.oldest_waiting_since).min();
                prop_assert_eq!(told.into_iter().chain(rest.oldest_waiting_since).min(), oldest);
            }
        }
        for run in 0..12 {
            happen(&mut index, &mut model, &Event::Gone { run }, &mut time);
        }
        prop_assert!(index.is_empty(), "nothing is left of runs that are gone");
    }
}

#[test]
fn ten_thousand_waiting_runs_cost_little() {
    let limits = Limits {
        agent: 5,
        namespace: 10,
        cluster: 100,
        queue: ByScope {
            namespace: 200,
            repository: 50,
            cluster: 1000,
        },
        ..roomy()
    };
    let mut index = Index::new(limits);
    let run = |number: i64| Ticket {
        key: Key::new(format!("n{}", number % 20), format!("r{number}")),
        uid: format!("r{number}"),
        agent: format!("a{}", number % 7),
        repository: Some(format!("o/{}", number % 50)),
        ..waiting("", 20_000 - number)
    };
    let all: Vec<Ticket> = (0..10_000).map(run).collect();
    for ticket in &all {
        index.put(ticket.clone(), now());
    }
    // A look at each, as after a restart or in a sweep.
    for ticket in &all {
        drop(index.decide(&ticket.key, &ticket.uid, now()));
    }
    // One ends, the next begins, until all have.
    let mut running = Vec::new();
    let mut begun = 0;
    while begun < all.len() {
        for key in index.next(now()) {
            let ticket = &all[key.name[1..].parse::<usize>().unwrap()];
            let since = now();
            assert_eq!(index.decide(&key, &ticket.uid, now()), Decision::Admit);
            index.put(
                Ticket {
                    place: Place::Running { since },
                    ..ticket.clone()
                },
                now(),
            );
            running.push(key);
            begun += 1;
        }
        let ended = running.remove(0);
        index.remove(&ended);
    }
    let steps = index.steps.get();
    println!("10,000 runs, each looked at once and let in one by one: {steps} steps");
    // Counted anew for every look, this would be two hundred million tickets.
    assert!(steps < 10_000 * 600, "{steps}");
}

#[test]
fn where_there_is_room_for_all_nobody_goes_along_the_line() {
    let mut index = Index::new(roomy());
    let run = |number: i64| Ticket {
        uid: format!("r{number}"),
        ..waiting(&format!("r{number}"), number)
    };
    // One less than the limits.
    let all: Vec<Ticket> = (0..99).map(run).collect();
    for ticket in &all {
        index.put(ticket.clone(), now());
    }
    for ticket in &all {
        let decision = index.decide(&ticket.key, &ticket.uid, now());
        assert_eq!(decision, Decision::Admit);
    }
    assert_eq!(index.steps.get(), 0);
}
