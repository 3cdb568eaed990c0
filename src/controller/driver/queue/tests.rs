use super::*;

fn key(name: &str) -> Key {
    Key::new("a", name)
}

/// The next object.
fn take(queue: &mut Queue, now: Instant) -> Option<Key> {
    queue.take(now).map(|(key, _)| key)
}

fn taken(queue: &mut Queue, now: Instant) -> Vec<String> {
    let mut names = Vec::new();
    while let Some((key, _)) = queue.take(now) {
        names.push(key.name.clone());
        queue.done(&key, None, now);
    }
    names
}

#[test]
fn the_urgent_goes_first_and_each_goes_once() {
    let mut queue = Queue::default();
    let now = Instant::now();
    for (name, priority) in [
        ("resync", Priority::Resync),
        ("create", Priority::Create),
        ("resync", Priority::Resync),
        ("record", Priority::Record),
        ("resync", Priority::Record),
        ("create", Priority::Resync),
    ] {
        queue.add(key(name), priority, now);
    }
    assert_eq!(queue.figures(now).depth, 3);
    assert_eq!(taken(&mut queue, now), ["record", "resync", "create"]);
    assert_eq!(queue.entries.len(), 0, "nothing is kept of what is settled");
}

#[test]
fn what_is_worked_on_is_not_given_to_a_second_worker_but_comes_again() {
    let mut queue = Queue::default();
    let now = Instant::now();
    queue.add(key("x"), Priority::Create, now);
    assert_eq!(take(&mut queue, now), Some(key("x")));
    queue.add(key("x"), Priority::Resync, now);
    queue.add(key("x"), Priority::Record, now);
    queue.add(key("y"), Priority::Create, now);
    assert_eq!(take(&mut queue, now), Some(key("y")));
    assert_eq!(take(&mut queue, now), None);
    queue.done(&key("x"), Some(now + Duration::from_secs(60)), now);
    assert_eq!(take(&mut queue, now), Some(key("x")));
}

#[test]
fn what_is_for_later_comes_at_its_time_and_the_newest_time_counts() {
    let mut queue = Queue::default();
    let now = Instant::now();
    let at = |seconds| now + Duration::from_secs(seconds);
    queue.add(key("x"), Priority::Create, now);
    assert_eq!(take(&mut queue, now), Some(key("x")));
    queue.done(&key("x"), Some(at(10)), now);
    queue.add(key("x"), Priority::Resync, now);
    assert_eq!(take(&mut queue, now), Some(key("x")));
    queue.done(&key("x"), Some(at(20)), now);
    assert_eq!(queue.next_due(), Some(at(20)));
    assert_eq!(take(&mut queue, at(10)), None);
    assert_eq!(take(&mut queue, at(20)), Some(key("x")));
}

#[test]
fn failures_are_counted_until_a_success() {
    let mut queue = Queue::default();
    let now = Instant::now();
    for expected in [1, 2, 3] {
        queue.add(key("x"), Priority::Create, now);
        assert_eq!(take(&mut queue, now), Some(key("x")));
        let wait = |_| Duration::from_secs(1);
        assert_eq!(queue.failed(&key("x"), now, wait), expected);
    }
    queue.add(key("x"), Priority::Create, now);
    assert_eq!(take(&mut queue, now), Some(key("x")));
    queue.done(&key("x"), None, now);
    assert_eq!(queue.next_due(), None, "no retry is left");
    queue.add(key("x"), Priority::Create, now);
    assert_eq!(take(&mut queue, now), Some(key("x")));
    assert_eq!(queue.failed(&key("x"), now, |_| Duration::ZERO), 1);
}

#[test]
fn the_least_urgent_gets_its_turn_in_the_end() {
    let mut queue = Queue::default();
    let now = Instant::now();
    queue.add(key("patient"), Priority::Resync, now);
    let mut turns = 0;
    loop {
        queue.add(key(&format!("urgent-{turns}")), Priority::Record, now);
        let next = take(&mut queue, now).unwrap();
        queue.done(&next, None, now);
        if next == key("patient") {
            break;
        }
        turns += 1;
        assert!(turns < 100);
    }
    assert_eq!(turns, PATIENCE);
}

#[test]
fn it_tells_how_it_stands_and_how_long_each_stood_in_it() {
    let mut queue = Queue::default();
    let now = Instant::now();
    let at = |seconds| now + Duration::from_secs(seconds);
    queue.add(key("x"), Priority::Resync, now);
    queue.add(key("x"), Priority::Record, at(1));
    queue.add(key("y"), Priority::Create, at(1));
    queue.add(key("z"), Priority::Create, at(1));
    assert_eq!(queue.take(at(3)), Some((key("x"), Duration::from_secs(3))));
    assert_eq!(queue.take(at(4)), Some((key("y"), Duration::from_secs(3))));
    let figures = Figures {
        depth: 1,
        adds: 3,
        retries: 0,
        unfinished: Duration::from_secs(3),
        longest: Duration::from_secs(2),
    };
    assert_eq!(queue.figures(at(5)), figures);
    queue.add(key("x"), Priority::Create, at(6));
    queue.done(&key("x"), None, at(7));
    queue.failed(&key("y"), at(7), |_| Duration::from_secs(60));
    let figures = Figures {
        depth: 2,
        adds: 4,
        retries: 1,
        ..Figures::default()
    };
    assert_eq!(queue.figures(at(8)), figures);
    assert_eq!(queue.take(at(8)), Some((key("z"), Duration::from_secs(7))));
    assert_eq!(queue.take(at(8)), Some((key("x"), Duration::from_secs(1))));
}
