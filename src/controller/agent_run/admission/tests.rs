mod histories;
mod recount;

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::index::Index;
use super::limits::{ByScope, Repositories};
use super::*;
use crate::controller::cache::Key;

/// An index of these runs.
fn index(all: &[Ticket], limits: &Limits, now: Timestamp) -> Index {
    let mut index = Index::new(limits.clone());
    for ticket in all {
        index.put(ticket.clone(), now);
    }
    index
}

/// What the index decides about a run.
fn decide(all: &[Ticket], uid: &str, limits: &Limits, now: Timestamp) -> Decision {
    let me = all.iter().find(|ticket| ticket.uid == uid);
    let key = me.map(|me| me.key.clone()).unwrap_or_default();
    let decision = index(all, limits, now).decide(&key, uid, now);
    assert_eq!(decision, recount::decide(all, uid, limits, now));
    decision
}

fn next(all: &[Ticket], limits: &Limits, now: Timestamp) -> Vec<Key> {
    let next = index(all, limits, now).next(now);
    assert_eq!(next, recount::next(all, limits, now));
    next
}

const DAY: Duration = Duration::from_secs(24 * 3600);

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn before(seconds: i64) -> Timestamp {
    Timestamp::from_second(now().as_second() - seconds).unwrap()
}

/// A run of agent `a` in namespace `n`, so many seconds old.
fn run(name: &str, age: i64, place: Place) -> Ticket {
    Ticket {
        key: Key::new("n", name),
        uid: name.to_owned(),
        created: before(age),
        agent: "a".to_owned(),
        repository: None,
        idempotency: None,
        blocked: None,
        place,
    }
}

fn running(name: &str, since: i64) -> Ticket {
    let since = before(since);
    run(name, 900, Place::Running { since })
}

fn waiting(name: &str, age: i64) -> Ticket {
    run(name, age, Place::Waiting)
}

fn roomy() -> Limits {
    Limits {
        agent: 100,
        namespace: 100,
        cluster: 100,
        window: Duration::from_secs(60),
        keys: Some(DAY),
        ..Limits::default()
    }
}

/// A decision in few words.
fn said(decision: &Decision) -> String {
    match decision {
        Decision::Admit => "admit".to_owned(),
        Decision::Duplicate { reason, of } => format!("{} {of}", reason.as_str()),
        Decision::Wait(Refusal {
            reason,
            message,
            until,
            scope: _,
        }) => {
            let until = until.map_or(String::new(), |until| format!(" until {until}"));
            format!("{}: {message}{until}", reason.as_str())
        }
    }
}

#[track_caller]
fn check(rows: Vec<(&str, Vec<Ticket>, Limits, &str)>) {
    for (row, all, limits, expected) in rows {
        assert_eq!(said(&decide(&all, "me", &limits, now())), expected, "{row}");
    }
}

#[test]
fn not_too_many_at_a_time_and_the_first_goes_first() {
    let limits = |agent, namespace, cluster| Limits {
        agent,
        namespace,
        cluster,
        ..roomy()
    };
    let elsewhere = |mut ticket: Ticket| {
        ticket.key.namespace = "other".to_owned();
        ticket
    };
    let other_agent = |mut ticket: Ticket| {
        ticket.agent = "b".to_owned();
        ticket
    };
    let repo = |mut ticket: Ticket| {
        ticket.repository = Some("o/r".to_owned());
        ticket
    };
    let repositories = |default, own: &[(&str, usize)]| Limits {
        repositories: Some(Repositories {
            default,
            overrides: own
                .iter()
                .map(|(name, limit)| ((*name).to_owned(), *limit))
                .collect::<BTreeMap<_, _>>(),
        }),
        ..roomy()
    };
    let me = || waiting("me", 10);
    check(vec![
        ("alone", vec![me()], limits(1, 1, 1), "admit"),
        (
            "the agent is busy",
            vec![running("r", 500), me()],
            limits(1, 9, 9),
            "ConcurrencyLimit: 1 run of agent a is under way, which is the limit",
        ),
        (
            "another agent is busy",
            vec![other_agent(running("r", 500)), me()],
            limits(1, 9, 9),
            "admit",
        ),
        (
            "the namespace is full",
            vec![running("r", 500), other_agent(running("s", 500)), me()],
            limits(9, 2, 9),
            "ConcurrencyLimit: 2 runs of the namespace are under way, which is the limit",
        ),
        (
            "the cluster is full",
            vec![elsewhere(running("r", 500)), me()],
            limits(9, 9, 1),
            "ConcurrencyLimit: 1 run is under way, which is the limit",
        ),
        (
            "the last slot is for who came first",
            vec![waiting("older", 20), me()],
            limits(9, 1, 9),
            "ConcurrencyLimit: 1 run of the namespace is under way, which is the limit",
        ),
        (
            "and not for who came later",
            vec![waiting("younger", 5), me()],
            limits(9, 1, 9),
            "admit",
        ),
        (
            "one that is held back by a limit of its own holds nobody back",
            vec![
                other_agent(running("r", 500)),
                other_agent(waiting("older", 20)),
                me(),
            ],
            limits(1, 2, 9),
            "admit",
        ),
        (
            "one that waits for something else has no place in line",
            vec![run("older", 20, Place::Aside), me()],
            limits(9, 1, 9),
            "admit",
        ),
        (
            "one that was missing something comes back to its place",
            vec![waiting("younger", 5), run("me", 10, Place::Aside)],
            limits(9, 1, 9),
            "admit",
        ),
        (
            "one that was admitted keeps its slot",
            vec![running("me", 0), running("r", 500)],
            limits(1, 1, 1),
            "admit",
        ),
        (
            "the repository is busy",
            vec![repo(running("r", 500)), repo(me())],
            repositories(1, &[]),
            "ConcurrencyLimit: 1 run of repository o/r is under way, which is the limit",
        ),
        (
            "the repository has a limit of its own",
            vec![repo(running("r", 500)), repo(me())],
            repositories(1, &[("o/r", 2)]),
            "admit",
        ),
        (
            "zero is no limit",
            vec![repo(running("r", 500)), repo(me())],
            repositories(0, &[]),
            "admit",
        ),
    ]);
}

#[test]
fn not_too_many_within_a_time_whether_they_still_run_or_not() {
    let rate = |namespace, cluster| Limits {
        rate: ByScope {
            namespace,
            cluster,
            repository: 0,
        },
        ..roomy()
    };
    let ended = |name: &str, began: i64| {
        let place = Place::Ended {
            began: Some(before(began)),
            at: before(1),
        };
        run(name, 900, place)
    };
    let never = run(
        "never",
        50,
        Place::Ended {
            began: None,
            at: before(1),
        },
    );
    let me = || waiting("me", 10);
    check(vec![
        (
            "two have begun",
            vec![running("r", 40), ended("e", 30), me()],
            rate(2, 0),
            "RateLimit: 2 runs of the namespace began within 60 s, which is the limit until 2026-01-01T12:00:20Z",
        ),
        (
            "the window is over for one of them",
            vec![running("r", 60), ended("e", 30), me()],
            rate(2, 0),
            "admit",
        ),
        (
            "what never began counts for nothing",
            vec![never, running("r", 30), me()],
            rate(2, 0),
            "admit",
        ),
        (
            "who came first takes the last one",
            vec![running("r", 30), waiting("older", 20), me()],
            rate(0, 2),
            "RateLimit: 2 runs began within 60 s, which is the limit until 2026-01-01T12:00:30Z",
        ),
    ]);
}

#[test]
fn the_line_has_an_end_and_drains_from_its_front() {
    let limits = Limits {
        namespace: 1,
        queue: ByScope {
            namespace: 2,
            ..ByScope::default()
        },
        ..roomy()
    };
    let waits = |count: i64| (0..count).map(|n| waiting(&format!("w{n}"), 50 - n));
    let with = |count: i64, more: Vec<Ticket>| waits(count).chain(more).collect::<Vec<_>>();
    let busy = running("r", 500);
    check(vec![
        (
            "one is before it",
            with(1, vec![busy.clone(), waiting("me", 10)]),
            limits.clone(),
            "ConcurrencyLimit: 1 run of the namespace is under way, which is the limit",
        ),
        (
            "two are before it",
            with(2, vec![busy.clone(), waiting("me", 10)]),
            limits.clone(),
            "QueueLimit: 2 runs of the namespace wait already, which is the limit",
        ),
        (
            "those behind it do not count, so a full line drains",
            with(9, vec![waiting("me", 60)]),
            limits.clone(),
            "admit",
        ),
    ]);
    let all = with(9, vec![waiting("me", 60)]);
    assert_eq!(next(&all, &limits, now()), [Key::new("n", "me")]);
}

#[test]
fn a_key_is_for_one_run_of_one_agent() {
    let keyed = |mut ticket: Ticket| {
        ticket.idempotency = Some("k".to_owned());
        ticket
    };
    let me = || keyed(waiting("me", 10));
    let ended = |began: Option<i64>, at: i64| {
        let place = Place::Ended {
            began: began.map(before),
            at: before(at),
        };
        keyed(run("e", 900, place))
    };
    let other_agent = |mut ticket: Ticket| {
        ticket.agent = "b".to_owned();
        ticket
    };
    let two_days = 2 * 24 * 3600;
    check(vec![
        (
            "one has begun",
            vec![keyed(running("r", 50)), me()],
            roomy(),
            "IdempotencyKeyInUse r",
        ),
        (
            "one came first",
            vec![keyed(waiting("older", 20)), me()],
            roomy(),
            "IdempotencyKeyInUse older",
        ),
        (
            "one came first and waits for something else",
            vec![keyed(run("older", 20, Place::Aside)), me()],
            roomy(),
            "IdempotencyKeyInUse older",
        ),
        (
            "one came later",
            vec![keyed(waiting("younger", 5)), me()],
            roomy(),
            "admit",
        ),
        (
            "one came later, but has begun",
            vec![
                keyed(run("younger", 5, Place::Running { since: before(1) })),
                me(),
            ],
            roomy(),
            "IdempotencyKeyInUse younger",
        ),
        (
            "one has ended",
            vec![ended(Some(60), 50), me()],
            roomy(),
            "IdempotencyKeyCompleted e",
        ),
        (
            "one ended long ago",
            vec![ended(Some(two_days), two_days), me()],
            roomy(),
            "admit",
        ),
        (
            "one ended without having begun",
            vec![ended(None, 50), me()],
            roomy(),
            "admit",
        ),
        (
            "another agent",
            vec![other_agent(keyed(running("r", 50))), me()],
            roomy(),
            "admit",
        ),
        (
            "keys are switched off",
            vec![keyed(running("r", 50)), me()],
            Limits {
                keys: None,
                ..roomy()
            },
            "admit",
        ),
        (
            "the same second",
            vec![keyed(waiting("a", 10)), me()],
            roomy(),
            "IdempotencyKeyInUse a",
        ),
    ]);
}

/// A crowd of waiting runs and the limits that they meet.
fn crowds() -> impl Strategy<Value = (Vec<Ticket>, Limits)> {
    let ticket = (0..3_u8, 0..3_u8, prop::option::of(0..2_u8), 0..30_i64);
    let limits = (1..3_usize, 1..4_usize, 1..5_usize, 0..3_usize, 0..4_usize);
    (prop::collection::vec(ticket, 1..25), limits).prop_map(|(tickets, limits)| {
        let tickets = tickets.into_iter().enumerate();
        let tickets = tickets.map(|(number, (namespace, agent, repository, age))| Ticket {
            key: Key::new(format!("n{namespace}"), format!("r{number}")),
            uid: format!("r{number}"),
            agent: format!("a{agent}"),
            repository: repository.map(|name| format!("o/{name}")),
            ..waiting("", age)
        });
        let (agent, namespace, cluster, rate, repository) = limits;
        let limits = Limits {
            agent,
            namespace,
            cluster,
            repositories: Some(Repositories {
                default: repository,
                overrides: BTreeMap::new(),
            }),
            rate: ByScope {
                cluster: rate,
                ..ByScope::default()
            },
            ..roomy()
        };
        (tickets.collect(), limits)
    })
}

/// How many run of each scope, against its limit.
fn assert_within(all: &[Ticket], limits: &Limits) {
    let is_running = |ticket: &&Ticket| matches!(ticket.place, Place::Running { .. });
    let running: Vec<&Ticket> = all.iter().filter(is_running).collect();
    assert!(running.len() <= limits.cluster);
    for one in &running {
        let like =
            |same: &dyn Fn(&Ticket) -> bool| running.iter().filter(|ticket| same(ticket)).count();
        let of_namespace = |other: &Ticket| other.key.namespace == one.key.namespace;
        assert!(like(&of_namespace) <= limits.namespace);
        assert!(like(&|other| of_namespace(other) && other.agent == one.agent) <= limits.agent);
        let limit = one
            .repository
            .as_deref()
            .and_then(|name| limits.of_repository(name));
        assert!(like(&|other| other.repository == one.repository) <= limit.unwrap_or(usize::MAX));
    }
}

proptest! {
    #[test]
    fn everyone_gets_a_turn_in_order_and_no_limit_is_passed((mut all, limits) in crowds()) {
        let alike = |one: &Ticket, other: &Ticket| {
            one.key.namespace == other.key.namespace && one.agent == other.agent && one.repository == other.repository
        };
        let mut time = now();
        // With one more run begun or ended in each round, the line must be empty in the end.
        for _ in 0..=2 * all.len() {
            let admitted = next(&all, &limits, time);
            for ticket in all.iter().filter(|ticket| ticket.place == Place::Waiting) {
                let alone = decide(&all, &ticket.uid, &limits, time) == Decision::Admit;
                prop_assert_eq!(alone, admitted.contains(&ticket.key), "each decision is that of the line");
                let passed_over = all.iter().any(|later| {
                    alike(ticket, later) && ticket.order() < later.order() && admitted.contains(&later.key)
                });
                prop_assert!(alone || !passed_over, "nobody is overtaken by one with the same limits");
            }
            for ticket in all.iter_mut().filter(|ticket| admitted.contains(&ticket.key)) {
                ticket.place = Place::Running { since: time };
            }
            assert_within(&all, &limits);
            let ends = all.iter_mut().find(|ticket| matches!(ticket.place, Place::Running { .. }));
            if let Some(ticket) = ends {
                ticket.place = Place::Ended { began: Some(time), at: time };
            }
            time = time.checked_add(limits.window).unwrap();
        }
        let left = all.iter().filter(|ticket| ticket.place == Place::Waiting).count();
        prop_assert_eq!(left, 0, "nobody waits for ever");
    }
}

#[test]
fn a_slot_that_is_not_taken_goes_to_the_next_at_once() {
    let limits = Limits {
        namespace: 1,
        ..roomy()
    };
    let book = Book::new(limits);
    let (first, second) = (Key::new("n", "first"), Key::new("n", "second"));
    for ticket in [waiting("first", 20), waiting("second", 10)] {
        let key = ticket.key.clone();
        book.note(&key, Some(ticket), now());
    }
    let second_may = || book.consider(&second, "second", now()) == Decision::Admit;
    assert_eq!(book.admit(&first, "first", now()), Decision::Admit);
    assert!(!second_may(), "the slot is given");
    assert!(!book.expire(now()), "it has only just been given");
    assert!(book.give_back("first", now()), "it could not begin");
    assert_eq!(book.next(now()), std::slice::from_ref(&second));
    assert!(second_may(), "who could not begin holds nobody back");
    // It asks again, and so has its place in line.
    assert_eq!(book.admit(&second, "second", now()), Decision::Admit);
    let refused = book.consider(&first, "first", now());
    assert!(matches!(refused, Decision::Wait(_)), "{refused:?}");
    let later = now().checked_add(Duration::from_secs(61)).unwrap();
    assert!(book.expire(later), "it has had its time");
    assert_eq!(book.next(later), [first]);
}
