//! What goes when it is no longer sent, by a clock that these tests turn.

use super::*;

const PATIENCE: Patience = Patience {
    series: 10,
    target: 30,
    known: 2,
};
const NOBODY: [&str; 0] = [];
const ONE: &str = "service.name=cart,service.instance.id=1,host=a";
const OTHER: &str = "service.name=cart,service.instance.id=2,host=b";

fn told_apart(targets: Targets) -> Store {
    let rules = Rules {
        targets,
        ..Rules::default()
    };
    Store::new(rules, read)
}

/// A target sends one of the metric `x`, by its label, at a time.
fn tell(store: &Store, target: &str, now: u64, label: &str) {
    let points = [Sent(label, 0, now, 1)];
    let tally = send(store, target, now, metric("x", GAUGE), &points);
    assert_eq!(refusals(&tally), [], "{target} {label} at {now}");
}

fn expired(store: &Store) -> Vec<(&'static str, u64)> {
    let all = store.expired();
    all.filter(|(_, count)| *count > 0)
        .map(|(cause, count)| (cause.as_str(), count))
        .collect()
}

#[test]
fn what_is_silent_is_hidden_then_forgotten_and_leaves_nothing() {
    let store = store(Limits::default());
    let sent = |now, point| {
        let target = "service.name=cart";
        send(&store, target, now, metric("x", DELTA), &[point]);
    };
    sent(1, Sent("a=1", 1, 2, 5));
    let hidden = Expired {
        hidden: 1,
        forgotten: 0,
    };
    assert_eq!(store.sweep(32, PATIENCE), hidden);
    assert_eq!(page(&store), NOBODY);
    sent(33, Sent("a=1", 2, 3, 1));
    let info = "target_info{service_name=\"cart\"} 1";
    let line = "x_total{a=\"1\"} 6";
    assert_eq!(page(&store), [info, line], "it goes on where it was");
    store.sweep(94, PATIENCE);
    assert_eq!(
        (
            store.series(),
            store.families(),
            store.targets(),
            store.weight()
        ),
        (0, 0, 0, 0)
    );
}

#[test]
fn all_series_of_a_silent_target_go_at_once_and_no_other_is_touched() {
    for targets in [Targets::Federated, Targets::Auto] {
        let store = told_apart(targets);
        // The second word of the first has them told apart, if nobody says so.
        for target in [ONE, OTHER, ONE] {
            tell(&store, target, 90, "a=early");
        }
        for now in [91, 99] {
            tell(&store, ONE, now, "a=late");
            tell(&store, OTHER, now, "a=early");
        }
        let both = page(&store);
        assert_eq!(both.len(), 2 + 3, "{both:?}");
        let others: Vec<String> = both
            .into_iter()
            .filter(|line| line.contains("instance=\"2\""))
            .collect();
        assert_eq!(others.len(), 2, "{others:?}");
        // The first is silent from now on; the other goes on.
        for now in 100..=129 {
            tell(&store, OTHER, now, "a=early");
            assert_eq!(store.sweep(now, PATIENCE), Expired::default(), "{now}");
        }
        assert_eq!((page(&store).len(), store.targets()), (5, 2));
        tell(&store, OTHER, 130, "a=early");
        assert_eq!(store.sweep(130, PATIENCE).hidden, 2, "{targets:?}");
        assert_eq!((page(&store), store.targets()), (others.clone(), 1));
        assert!(expired(&store).contains(&("target_silent", 2)));
        tell(&store, OTHER, 160, "a=early");
        assert_eq!(store.sweep(160, PATIENCE).forgotten, 2);
        assert_eq!((page(&store), store.series()), (others, 1));
    }
}

#[test]
fn a_series_goes_alone_if_its_target_sends_others() {
    let store = store(Limits::default());
    tell(&store, ONE, 1, "a=early");
    for now in 1..=11 {
        tell(&store, ONE, now, "a=late");
        assert_eq!(store.sweep(now, PATIENCE), Expired::default(), "{now}");
    }
    tell(&store, ONE, 12, "a=late");
    assert_eq!(store.sweep(12, PATIENCE).hidden, 1);
    let page = page(&store);
    assert_eq!(page.len(), 2, "{page:?}");
    assert!(page.iter().all(|line| !line.contains("early")), "{page:?}");
    assert_eq!(expired(&store), [("unsent", 1)]);
}

#[test]
fn a_target_that_speaks_again_has_its_description_back() {
    for targets in [Targets::Federated, Targets::Single] {
        let store = told_apart(targets);
        tell(&store, ONE, 1, "a=1");
        let before = page(&store);
        assert_eq!(before.len(), 2, "{before:?}");
        assert_eq!(store.sweep(40, PATIENCE).hidden, 1);
        assert_eq!(page(&store), NOBODY);
        tell(&store, ONE, 41, "a=1");
        assert_eq!(page(&store), before, "{targets:?}");
    }
    let store = told_apart(Targets::Single);
    tell(&store, ONE, 1, "a=1");
    let before = page(&store);
    tell(&store, OTHER, 2, "a=1");
    tell(&store, ONE, 3, "a=1");
    assert_eq!(page(&store), before, "whoever spoke last is shown");
    assert_eq!(expired(&store), [("target_replaced", 2)]);
}

#[test]
fn a_scope_is_known_as_long_as_a_series_of_it() {
    let store = store(Limits::default());
    tell(&store, ONE, 1, "a=1");
    // The time of the series stands still, and is over later than that of the scope alone would be.
    let point = |now| send(&store, ONE, now, metric("y", GAUGE), &[Sent("", 0, now, 1)]);
    point(20);
    store.sweep(79, PATIENCE);
    assert_eq!(store.series(), 2);
    tell(&store, ONE, 80, "a=1");
    assert_eq!(store.series(), 2, "no second series of the same name");
}

/// For those who try all of it in another way.
pub(super) const ALL: [fn(); 5] = [
    what_is_silent_is_hidden_then_forgotten_and_leaves_nothing,
    all_series_of_a_silent_target_go_at_once_and_no_other_is_touched,
    a_series_goes_alone_if_its_target_sends_others,
    a_target_that_speaks_again_has_its_description_back,
    a_scope_is_known_as_long_as_a_series_of_it,
];

#[test]
fn none_is_left_out() {
    let known = include_str!("expiry.rs").matches("#[test]\n").count();
    assert_eq!(known, ALL.len() + 1, "a test is not on the list");
}
