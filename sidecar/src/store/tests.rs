mod expiry;

use super::*;
use crate::model::{Number, Value};

/// Whoever is silent at all is forgotten.
const AT_ONCE: Patience = Patience {
    series: 0,
    target: 0,
    known: 1,
};

/// Attributes of these tests: `a=1,b=2`.
fn read(attributes: &[u8]) -> Result<Vec<Pair>, Refusal> {
    let text = std::str::from_utf8(attributes).map_err(|_| Refusal::Text)?;
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    Ok(pairs
        .map(|(name, value)| Pair {
            name: name.to_owned(),
            value: value.to_owned(),
        })
        .collect())
}

fn store(limits: Limits) -> Store {
    let rules = Rules {
        limits,
        ..Rules::default()
    };
    Store::new(rules, read)
}

const GAUGE: Sort = Sort::Gauge;
const COUNTER: Sort = Sort::Sum {
    temporality: Temporality::Cumulative,
    is_monotonic: true,
};
const DELTA: Sort = Sort::Sum {
    temporality: Temporality::Delta,
    is_monotonic: true,
};

fn metric(name: &str, sort: Sort) -> Metric<'_> {
    Metric {
        name,
        description: "",
        unit: "",
        sort,
        hint: Hint::None,
    }
}

/// A point of the test: attributes, start, time, value.
#[derive(Clone, Copy)]
struct Sent<'a>(&'a str, u64, u64, i64);

/// Sends points of one metric as a target with these attributes; says what became of them.
fn send(store: &Store, target: &str, now: u64, metric: Metric<'_>, points: &[Sent<'_>]) -> Tally {
    let mut intake = store.intake(now);
    let origin = intake
        .origin(target.as_bytes(), || read(target.as_bytes()))
        .unwrap();
    let scope = intake.scope(b"", || Ok(Vec::new())).unwrap();
    let met = intake.stream(&origin, &scope, &metric);
    let stream = match met.and_then(|stream| stream.refusal().map_or(Ok(stream), Err)) {
        Ok(stream) => stream,
        Err(refusal) => {
            let points = points.len() as u64;
            intake.tally.refuse(refusal, points, metric.name);
            return intake.tally;
        }
    };
    let mut open = intake.open(&stream).unwrap();
    for Sent(attributes, start, time, value) in points {
        open.take(&Point {
            attributes: attributes.as_bytes(),
            start: *start,
            time: *time,
            is_absent: *value < 0,
            data: Data::Number(Number::Integer(*value)),
            exemplars: &[],
        });
    }
    drop(open);
    intake.tally
}

/// All that a page would have: `name{labels} value`.
fn page(store: &Store) -> Vec<String> {
    let mut lines = Vec::new();
    for shelf in store.shelves() {
        let family = shelf.family();
        let mut after = None;
        while shelf.read(&mut after, 2, &mut |series| {
            let value = match &series.value {
                Value::Number(number) | Value::Total(number, _) => number.as_f64(),
                Value::Histogram(_) | Value::Exponential(_) | Value::Summary(_) => {
                    unreachable!("not sent here")
                }
            };
            lines.push(format!(
                "{}{{{}}} {value}",
                family.name,
                series.labels.as_str()
            ));
        }) {}
    }
    lines
}

fn refusals(tally: &Tally) -> Vec<(Refusal, u64)> {
    tally
        .refused
        .iter()
        .map(|(refusal, points, _)| (*refusal, *points))
        .collect()
}

#[test]
fn what_is_sent_is_on_the_page_in_order_and_replaced_by_what_is_newer() {
    let store = store(Limits::default());
    let points = [Sent("b=2", 0, 1, 5), Sent("a=1", 0, 1, 4)];
    assert_eq!(send(&store, "", 1, metric("x.y", GAUGE), &points).taken, 2);
    assert_eq!(page(&store), ["x_y{a=\"1\"} 4", "x_y{b=\"2\"} 5"]);
    send(&store, "", 2, metric("x.y", GAUGE), &[Sent("a=1", 0, 2, 9)]);
    assert_eq!(page(&store), ["x_y{a=\"1\"} 9", "x_y{b=\"2\"} 5"]);
    assert_eq!(store.series(), 2);
}

#[test]
fn the_order_in_which_attributes_are_written_does_not_matter() {
    let store = store(Limits::default());
    for attributes in ["a=1,b=2", "b=2,a=1", "a=1,b=2,c="] {
        send(
            &store,
            "",
            1,
            metric("x", GAUGE),
            &[Sent(attributes, 0, 1, 1)],
        );
    }
    assert_eq!(page(&store), ["x{a=\"1\",b=\"2\"} 1"]);
}

#[test]
fn one_that_is_absent_hides_only_itself_and_comes_back() {
    let store = store(Limits::default());
    let both = |first, second, time| {
        let points = [Sent("a=1", 0, time, first), Sent("a=2", 0, time, second)];
        send(&store, "", 1, metric("x", GAUGE), &points);
        page(&store)
    };
    assert_eq!(both(1, 1, 1).len(), 2);
    assert_eq!(both(-1, 7, 2), ["x{a=\"2\"} 7"]);
    assert_eq!(both(3, 8, 3), ["x{a=\"1\"} 3", "x{a=\"2\"} 8"]);
}

#[test]
fn late_points_and_second_writers_are_refused() {
    let store = store(Limits::default());
    let sent = |start, time| {
        let tally = send(
            &store,
            "",
            1,
            metric("x", COUNTER),
            &[Sent("", start, time, 1)],
        );
        refusals(&tally)
    };
    assert_eq!(sent(10, 20), []);
    assert_eq!(sent(10, 20), [], "the same again");
    assert_eq!(sent(10, 19), [(Refusal::OutOfOrder, 1)]);
    assert_eq!(sent(9, 30), [(Refusal::Overlap, 1)]);
    assert_eq!(sent(25, 31), [], "it began anew");
    assert_eq!(sent(25, 0), [(Refusal::Time, 1)]);
}

#[test]
fn deltas_add_up_by_the_table() {
    let store = store(Limits::default());
    let sent = |start, time, value| {
        let tally = send(
            &store,
            "",
            1,
            metric("x", DELTA),
            &[Sent("", start, time, value)],
        );
        let refused = refusals(&tally).first().map(|(refusal, _)| *refusal);
        let total = page(&store)
            .first()
            .and_then(|line| line.split(' ').next_back()?.parse().ok());
        (refused, tally.odd, total.unwrap_or(0))
    };
    assert_eq!(sent(10, 20, 5), (None, vec![], 5), "adopted");
    assert_eq!(sent(20, 30, 2), (None, vec![], 7), "one after the other");
    assert_eq!(
        sent(20, 30, 2),
        (None, vec![(Oddity::Again, 1)], 7),
        "sent again"
    );
    assert_eq!(
        sent(40, 50, 1),
        (None, vec![(Oddity::Gap, 1)], 8),
        "something is missing"
    );
    assert_eq!(sent(45, 60, 1), (Some(Refusal::Overlap), vec![], 8));
    assert_eq!(sent(5, 49, 1), (Some(Refusal::OutOfOrder), vec![], 8));
    assert_eq!(sent(0, 70, 1), (None, vec![], 9), "nobody said since when");
    let may_fall = Sort::Sum {
        temporality: Temporality::Delta,
        is_monotonic: false,
    };
    let tally = send(&store, "", 1, metric("y", may_fall), &[Sent("", 1, 2, 1)]);
    assert_eq!(refusals(&tally), [(Refusal::Temporality, 1)]);
}

#[test]
fn types_names_and_labels_that_clash_are_refused() {
    let store = store(Limits::default());
    let sent = |name: &str, sort, target: &str| {
        refusals(&send(
            &store,
            target,
            1,
            metric(name, sort),
            &[Sent("a=1", 1, 2, 1)],
        ))
    };
    assert_eq!(sent("x", GAUGE, ""), []);
    assert_eq!(sent("x.total", COUNTER, ""), []);
    assert_eq!(sent("x_total", GAUGE, ""), [(Refusal::TypeConflict, 1)]);
    assert_eq!(sent("x_total", COUNTER, ""), [(Refusal::Collision, 1)]);
    assert_eq!(sent("日本", GAUGE, ""), [(Refusal::Name, 1)]);
    assert_eq!(sent("target_info", GAUGE, ""), [(Refusal::Reserved, 1)]);
    assert_eq!(
        sent("agents.sidecar.x", GAUGE, ""),
        [(Refusal::Reserved, 1)]
    );
    let summary = Sort::Summary;
    assert_eq!(sent("x_sum", GAUGE, ""), []);
    let tally = send(&store, "", 1, metric("x_sum_sum", GAUGE), &[]);
    assert_eq!(refusals(&tally), []);
    let mut intake = store.intake(1);
    let origin = intake.origin(b"", || Ok(Vec::new())).unwrap();
    let scope = intake.scope(b"", || Ok(Vec::new())).unwrap();
    let stream = intake
        .stream(&origin, &scope, &metric("x_sum", summary))
        .unwrap();
    assert_eq!(stream.refusal(), Some(Refusal::TypeConflict));
}

#[test]
fn too_many_series_are_refused_and_deltas_flow_over() {
    let limits = Limits {
        series_per_metric: 2,
        series: 5,
        ..Limits::default()
    };
    let store = store(limits);
    let five = ["a=1", "a=2", "a=3", "a=4", "a=5"].map(|attributes| Sent(attributes, 1, 2, 1));
    let tally = send(&store, "", 1, metric("x", GAUGE), &five);
    assert_eq!(
        (tally.taken, refusals(&tally)),
        (2, vec![(Refusal::MetricLimit, 3)])
    );
    let tally = send(&store, "", 1, metric("y", DELTA), &five);
    assert_eq!((tally.taken, tally.odd), (5, vec![(Oddity::Overflow, 3)]));
    let lines = page(&store);
    assert!(
        lines.contains(&"y_total{otel_metric_overflow=\"true\"} 3".to_owned()),
        "{lines:?}"
    );
    let tally = send(&store, "", 1, metric("z", GAUGE), &five[..1]);
    assert_eq!(refusals(&tally), [(Refusal::SeriesLimit, 1)]);
}

#[test]
fn nothing_is_kept_of_new_names_while_all_is_full() {
    let store = store(Limits {
        series: 2,
        ..Limits::default()
    });
    let points = [Sent("a=1", 0, 1, 1), Sent("a=2", 0, 1, 1)];
    assert_eq!(send(&store, "", 1, metric("x", GAUGE), &points).taken, 2);
    let meet = |name, sort| {
        let mut intake = store.intake(2);
        let origin = intake.origin(b"", || Ok(Vec::new())).unwrap();
        let scope = intake.scope(b"", || Ok(Vec::new())).unwrap();
        let met = intake.stream(&origin, &scope, &metric(name, sort));
        met.map(|stream| stream.refusal())
    };
    for (name, sort) in [("y", GAUGE), ("z", GAUGE), ("y", GAUGE), ("x", COUNTER)] {
        assert_eq!(meet(name, sort), Err(Refusal::SeriesLimit), "{name}");
    }
    assert_eq!((store.families(), store.names().len()), (1, 1));
    // A family that is there may have series that wait for another writer.
    assert_eq!(meet("x", GAUGE), Ok(None));
    assert_eq!(meet("x", Sort::Summary), Ok(Some(Refusal::TypeConflict)));
    store.sweep(3, AT_ONCE);
    assert_eq!(meet("y", GAUGE), Ok(None), "there is room again");
}

#[test]
fn one_request_grows_the_memory_by_so_much_and_no_more() {
    let limits = Limits {
        bytes_per_request: 10_000,
        ..Limits::default()
    };
    let store = store(limits);
    let names: Vec<_> = (0..1_000).map(|number| format!("a={number}")).collect();
    let points: Vec<_> = names.iter().map(|name| Sent(name, 1, 2, 1)).collect();
    let tally = send(&store, "", 1, metric("x", GAUGE), &points);
    assert!(store.weight() <= 10_000);
    assert_eq!(
        refusals(&tally),
        [(Refusal::RequestLimit, 1_000 - tally.taken)]
    );
}

#[test]
fn names_count_towards_what_one_request_may_take_and_the_next_may_bring_more() {
    let store = store(Limits {
        bytes_per_request: 10_000,
        ..Limits::default()
    });
    let names: Vec<_> = (0..100).map(|number| format!("x{number}")).collect();
    let meet = || {
        let mut intake = store.intake(1);
        let origin = intake.origin(b"", || Ok(Vec::new())).unwrap();
        let scope = intake.scope(b"", || Ok(Vec::new())).unwrap();
        let met = names
            .iter()
            .map(|name| intake.stream(&origin, &scope, &metric(name, GAUGE)));
        let (met, refused): (Vec<_>, Vec<_>) = met.partition(Result::is_ok);
        assert!(
            refused
                .iter()
                .all(|it| matches!(it, Err(Refusal::RequestLimit)))
        );
        met.len()
    };
    let (first, second) = (meet(), meet());
    assert!((5..20).contains(&first), "{first}");
    assert!(second > first, "{first} and then {second}");
    for described in ["targets", "scopes"] {
        let mut intake = store.intake(2);
        let known = (0..100).filter(|number| {
            let described = format!("{described} {number}");
            let nothing = || Ok(Vec::new());
            match described.starts_with('t') {
                true => intake.origin(described.as_bytes(), nothing).is_ok(),
                false => intake.scope(described.as_bytes(), nothing).is_ok(),
            }
        });
        let known = known.count();
        assert!((5..20).contains(&known), "{known} {described}");
    }
}

#[test]
fn a_target_is_described_once_and_two_are_told_apart() {
    let store = store(Limits::default());
    let one = "service.name=cart,service.instance.id=1,host=a";
    send(&store, one, 1, metric("x", GAUGE), &[Sent("", 0, 1, 1)]);
    let info = "target_info{host=\"a\",service_instance_id=\"1\",service_name=\"cart\"} 1";
    assert_eq!(page(&store), [info, "x{} 1"]);
    let other = "service.name=cart,service.instance.id=2,host=b";
    send(&store, other, 2, metric("x", GAUGE), &[Sent("", 0, 2, 2)]);
    let info = "target_info{host=\"b\",service_instance_id=\"2\",service_name=\"cart\"} 1";
    assert_eq!(page(&store), [info, "x{} 2"], "the one before is over");
    for (now, target) in [(3, one), (3, other)] {
        send(
            &store,
            target,
            now,
            metric("x", GAUGE),
            &[Sent("", 0, 3, 3)],
        );
    }
    assert_eq!(
        page(&store),
        [
            "target_info{host=\"a\",instance=\"1\",job=\"cart\"} 1",
            "target_info{host=\"b\",instance=\"2\",job=\"cart\"} 1",
            "x{instance=\"1\",job=\"cart\"} 3",
            "x{instance=\"2\",job=\"cart\"} 3",
        ]
    );
}

/// Sends one histogram `h` with so many buckets, all empty but the last.
fn send_histogram(store: &Store, buckets: usize, time: u64) -> Tally {
    send_histogram_at(store, buckets, time, time)
}

fn send_histogram_at(store: &Store, buckets: usize, time: u64, now: u64) -> Tally {
    let mut counts = vec![0; buckets];
    counts[buckets - 1] = time;
    let bounds: Vec<f64> = (1..buckets).map(|bound| bound as f64).collect();
    let mut intake = store.intake(now);
    let origin = intake.origin(b"", || Ok(vec![])).unwrap();
    let scope = intake.scope(b"", || Ok(vec![])).unwrap();
    let metric = Metric {
        name: "h",
        description: "",
        unit: "",
        sort: Sort::Histogram(Temporality::Cumulative),
        hint: Hint::None,
    };
    let stream = intake.stream(&origin, &scope, &metric).unwrap();
    let mut open = intake.open(&stream).unwrap();
    open.take(&Point {
        attributes: b"",
        start: 0,
        time,
        is_absent: false,
        data: Data::Histogram {
            count: time,
            sum: Some(1.5),
            counts: &counts,
            bounds: &bounds,
        },
        exemplars: &[],
    });
    drop(open);
    intake.tally
}

#[test]
fn a_histogram_is_written_over_the_one_before() {
    let store = store(Limits::default());
    for time in [1, 2, 3] {
        assert_eq!(refusals(&send_histogram(&store, 3, time)), []);
    }
    // Older than what is known, or with other counts than it says: nothing of it is kept.
    assert_eq!(
        refusals(&send_histogram(&store, 3, 2)),
        [(Refusal::OutOfOrder, 1)]
    );
    store.shelves()[0].read(&mut None, 1, &mut |series| {
        let Value::Histogram(histogram) = &series.value else {
            unreachable!("{series:?}");
        };
        assert_eq!(histogram.counts[..], [0, 0, 3]);
        assert_eq!((histogram.count, series.time), (3, 3));
    });
}

#[test]
fn buckets_count_towards_the_memory_also_where_they_come_later() {
    let store = store(Limits {
        bytes: 4_096,
        ..Limits::default()
    });
    assert_eq!(refusals(&send_histogram(&store, 2, 1)), []);
    let small = store.weight();
    assert_eq!(refusals(&send_histogram(&store, 100, 2)), []);
    assert_eq!(store.weight(), small + 2 * 98 * 8);
    assert_eq!(
        refusals(&send_histogram(&store, 1_000, 3)),
        [(Refusal::SeriesLimit, 1)]
    );
    assert_eq!(refusals(&send_histogram(&store, 2, 4)), []);
    assert_eq!(store.weight(), small);
    store.sweep(9, AT_ONCE);
    assert_eq!(store.weight(), 0);
}

#[test]
fn a_sender_whose_clock_went_back_is_heard_again_once_what_it_said_is_forgotten() {
    let store = store(Limits::default());
    const AHEAD: u64 = 1 << 62;
    assert_eq!(refusals(&send_histogram_at(&store, 2, AHEAD, 1)), []);
    for now in 2..9 {
        let tally = send_histogram_at(&store, 2, 50, now);
        assert_eq!(refusals(&tally), [(Refusal::OutOfOrder, 1)]);
    }
    assert_eq!(store.sweep(8, AT_ONCE).forgotten, 1);
    assert_eq!(refusals(&send_histogram_at(&store, 2, 50, 9)), []);
    // Our own clock never goes back; if it did, nothing would expire too soon.
    assert_eq!(refusals(&send_histogram_at(&store, 2, 51, 3)), []);
    assert_eq!(store.sweep(3, AT_ONCE), Expired::default());
}

#[test]
fn a_sender_whose_clock_jumped_ahead_and_stays_there_is_heard_and_lives_by_our_clock() {
    let store = store(Limits::default());
    assert_eq!(refusals(&send_histogram_at(&store, 2, 50, 1)), []);
    const AHEAD: u64 = 1 << 62;
    for turn in 0..9 {
        let tally = send_histogram_at(&store, 2, AHEAD + turn, 2 + turn);
        assert_eq!(refusals(&tally), []);
        assert_eq!(store.sweep(2 + turn, AT_ONCE), Expired::default());
    }
    assert_eq!(store.sweep(11, AT_ONCE).forgotten, 1, "when it is silent");
}

/// Whether a point of the metric `x` finds its series without its attributes being read.
fn is_found(store: &Store, target: &str, now: u64, attributes: &str) -> bool {
    let mut intake = store.intake(now);
    let described = target.as_bytes();
    let origin = intake.origin(described, || read(described)).unwrap();
    let scope = intake.scope(b"", || Ok(Vec::new())).unwrap();
    let stream = intake.stream(&origin, &scope, &metric("x", GAUGE)).unwrap();
    let shelf = stream.shelf.as_ref().unwrap();
    let found = lock(&shelf.state).find(stream.id, attributes.as_bytes());
    found.is_some()
}

#[test]
fn a_sender_that_starts_again_and_again_stays_fast_and_weighs_the_same() {
    let store = store(Limits::default());
    let mut weights = Vec::new();
    for instance in 1..6 {
        let target = format!("service.name=cart,service.instance.id={instance}");
        for attributes in ["a=1", "a=1,b="] {
            let point = Sent(attributes, 0, instance, 1);
            let tally = send(&store, &target, instance, metric("x", GAUGE), &[point]);
            assert_eq!(refusals(&tally), [], "{instance}");
            assert!(
                is_found(&store, &target, instance, attributes),
                "{instance}"
            );
        }
        weights.push(store.weight());
    }
    assert_eq!(store.series(), 1);
    assert_eq!(weights, [weights[0]; 5]);
    store.sweep(9, AT_ONCE);
    assert_eq!(store.weight(), 0);
}

#[test]
fn the_series_of_all_that_are_too_many_leaves_no_weight_either() {
    let store = store(Limits {
        series_per_metric: 1,
        ..Limits::default()
    });
    let points = [Sent("a=1", 1, 2, 1), Sent("a=2", 1, 2, 1)];
    let tally = send(&store, "", 1, metric("x", DELTA), &points);
    assert_eq!((tally.taken, tally.odd), (2, vec![(Oddity::Overflow, 1)]));
    store.sweep(9, AT_ONCE);
    assert_eq!(store.weight(), 0);
}

#[test]
fn a_delta_of_a_new_writer_is_stored_once_whatever_its_start() {
    for start in [0, 11, 20] {
        let store = store(Limits::default());
        let sent = |instance: u64, point: Sent<'_>| {
            let target = format!("service.name=cart,service.instance.id={instance}");
            let tally = send(&store, &target, instance, metric("x", DELTA), &[point]);
            let mut lines = page(&store);
            lines.retain(|line| line.starts_with("x_total"));
            ((tally.taken, refusals(&tally), tally.odd), lines)
        };
        let stored = (1, vec![], vec![]);
        let line = |value: u8| vec![format!("x_total{{a=\"1\"}} {value}")];
        assert_eq!(sent(1, Sent("a=1", 1, 10, 3)), (stored.clone(), line(3)));
        let taken_over = sent(2, Sent("a=1", start, 20, 4));
        assert_eq!(taken_over, (stored.clone(), line(4)), "{start}");
        assert_eq!(store.sweep(2, AT_ONCE), Expired::default(), "it was seen");
        let next = sent(2, Sent("a=1", 20, 30, 1));
        assert_eq!(next, (stored, line(5)), "{start}");
    }
}

#[test]
fn a_new_writer_that_has_no_value_takes_nothing_over() {
    let store = store(Limits::default());
    let sent = |instance: u64, value| {
        let target = format!("service.name=cart,service.instance.id={instance}");
        let points = [Sent("a=1", 0, instance, value)];
        let tally = send(&store, &target, instance, metric("x", GAUGE), &points);
        let mut lines = page(&store);
        lines.retain(|line| line.starts_with("x{"));
        (tally.taken, lines)
    };
    let line = |value: u8| vec![format!("x{{a=\"1\"}} {value}")];
    assert_eq!(sent(1, 7), (1, line(7)));
    assert_eq!(sent(2, -1), (1, vec![]));
    assert_eq!(sent(3, 9), (1, line(9)));
}

#[test]
fn all_of_it_holds_if_every_hash_is_the_same() {
    let tests: [fn(); 19] = [
        what_is_sent_is_on_the_page_in_order_and_replaced_by_what_is_newer,
        the_order_in_which_attributes_are_written_does_not_matter,
        one_that_is_absent_hides_only_itself_and_comes_back,
        late_points_and_second_writers_are_refused,
        deltas_add_up_by_the_table,
        types_names_and_labels_that_clash_are_refused,
        too_many_series_are_refused_and_deltas_flow_over,
        nothing_is_kept_of_new_names_while_all_is_full,
        one_request_grows_the_memory_by_so_much_and_no_more,
        names_count_towards_what_one_request_may_take_and_the_next_may_bring_more,
        a_target_is_described_once_and_two_are_told_apart,
        a_histogram_is_written_over_the_one_before,
        buckets_count_towards_the_memory_also_where_they_come_later,
        a_sender_whose_clock_went_back_is_heard_again_once_what_it_said_is_forgotten,
        a_sender_whose_clock_jumped_ahead_and_stays_there_is_heard_and_lives_by_our_clock,
        a_sender_that_starts_again_and_again_stays_fast_and_weighs_the_same,
        the_series_of_all_that_are_too_many_leaves_no_weight_either,
        a_delta_of_a_new_writer_is_stored_once_whatever_its_start,
        a_new_writer_that_has_no_value_takes_nothing_over,
    ];
    let known = include_str!("tests.rs").matches("#[test]\n").count();
    assert_eq!(known, tests.len() + 1, "a test is not on the list");
    hashing::same::with_one_hash(&tests);
    hashing::same::with_one_hash(&expiry::ALL);
}
