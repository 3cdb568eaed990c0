use std::time::Duration;

use super::*;

fn key(name: &str) -> Key {
    Key::new("a", name)
}

fn taken(queue: &mut Queue, now: Instant) -> Vec<String> {
    let mut names = Vec::new();
    while let Some(key) = queue.take(now) {
        names.push(key.name.clone());
        queue.done(&key, None);
    }
    names
}

#[test]
fn the_urgent_goes_first_and_each_goes_once() {
    let mut queue = Queue::default();
    for (name, priority) in [
        ("resync", Priority::Resync),
        ("create", Priority::Create),
        ("resync", Priority::Resync),
        ("record", Priority::Record),
        ("resync", Priority::Record),
        ("create", Priority::Resync),
    ] {
        queue.add(key(name), priority);
    }
    assert_eq!(queue.depth(), 3);
    assert_eq!(
        taken(&mut queue, Instant::now()),
        ["record", "resync", "create"]
    );
    assert_eq!(queue.entries.len(), 0, "nothing is kept of what is settled");
}

#[test]
fn what_is_worked_on_is_not_given_to_a_second_worker_but_comes_again() {
    let mut queue = Queue::default();
    let now = Instant::now();
    queue.add(key("x"), Priority::Create);
    assert_eq!(queue.take(now), Some(key("x")));
    queue.add(key("x"), Priority::Resync);
    queue.add(key("x"), Priority::Record);
    queue.add(key("y"), Priority::Create);
    assert_eq!(queue.take(now), Some(key("y")));
    assert_eq!(queue.take(now), None);
    queue.done(&key("x"), Some(now + Duration::from_secs(60)));
    assert_eq!(queue.take(now), Some(key("x")));
}

#[test]
fn what_is_for_later_comes_at_its_time_and_the_newest_time_counts() {
    let mut queue = Queue::default();
    let now = Instant::now();
    let at = |seconds| now + Duration::from_secs(seconds);
    queue.add(key("x"), Priority::Create);
    assert_eq!(queue.take(now), Some(key("x")));
    queue.done(&key("x"), Some(at(10)));
    queue.add(key("x"), Priority::Resync);
    assert_eq!(queue.take(now), Some(key("x")));
    queue.done(&key("x"), Some(at(20)));
    assert_eq!(queue.next_due(), Some(at(20)));
    assert_eq!(queue.take(at(10)), None);
    assert_eq!(queue.take(at(20)), Some(key("x")));
}

#[test]
fn failures_are_counted_until_a_success() {
    let mut queue = Queue::default();
    let now = Instant::now();
    for expected in [1, 2, 3] {
        queue.add(key("x"), Priority::Create);
        assert_eq!(queue.take(now), Some(key("x")));
        let wait = |_| Duration::from_secs(1);
        assert_eq!(queue.failed(&key("x"), now, wait), expected);
    }
    queue.add(key("x"), Priority::Create);
    assert_eq!(queue.take(now), Some(key("x")));
    queue.done(&key("x"), None);
    assert_eq!(queue.next_due(), None, "no retry is left");
    queue.add(key("x"), Priority::Create);
    assert_eq!(queue.take(now), Some(key("x")));
    assert_eq!(queue.failed(&key("x"), now, |_| Duration::ZERO), 1);
}

#[test]
fn the_least_urgent_gets_its_turn_in_the_end() {
    let mut queue = Queue::default();
    let now = Instant::now();
    queue.add(key("patient"), Priority::Resync);
    let mut turns = 0;
    loop {
        queue.add(key(&format!("urgent-{turns}")), Priority::Record);
        let next = queue.take(now).unwrap();
        queue.done(&next, None);
        if next == key("patient") {
            break;
        }
        turns += 1;
        assert!(turns < 100);
    }
    assert_eq!(turns, PATIENCE);
}
