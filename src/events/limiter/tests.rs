use proptest::prelude::*;

use super::*;
use crate::api::kind::Kind;
use crate::events::occurrence::Regarding;
use crate::events::reason::{Reason, Severity};

fn limits() -> Limits {
    Limits::new(3)
}

fn draft(name: &str, reason: Reason) -> Draft {
    Draft {
        regarding: Regarding::named(Kind::AgentRun, "ns", name),
        related: None,
        reason,
        note: String::new(),
        seen: Timestamp::UNIX_EPOCH,
    }
}

/// A limiter whose writes all succeed unless told otherwise, and whose clock is turned by hand.
struct Bench {
    limiter: Limiter,
    start: Instant,
    now: Instant,
    /// Seconds since the start, object, reason, and the stored count after each write.
    log: Vec<(u64, String, Reason, u32)>,
}

impl Bench {
    fn new(limits: Limits) -> Self {
        let start = Instant::now();
        Self {
            limiter: Limiter::new(limits),
            start,
            now: start,
            log: Vec::new(),
        }
    }

    fn see(&mut self, name: &str, reason: Reason) -> Verdict {
        self.limiter.observe(draft(name, reason), self.now).0
    }

    /// Lets all that is due happen; gives when there will be more.
    fn write(&mut self) -> Option<Instant> {
        loop {
            match self.limiter.next(self.now) {
                Next::Write(write) => {
                    let done = Done::Stored(self.stored_by(&write));
                    self.limiter.done(&write, done, self.now);
                }
                Next::At(at) => return Some(at),
                Next::Idle => return None,
            }
        }
    }

    fn stored_by(&mut self, write: &Write) -> Stored {
        let before = write.stored.as_ref().map_or(0, |stored| stored.count);
        let count = before + write.adding;
        let at = (self.now - self.start).as_secs();
        let Draft {
            regarding, reason, ..
        } = &*write.draft;
        self.log.push((at, regarding.name.clone(), *reason, count));
        Stored {
            name: regarding.name.clone(),
            count,
            resource_version: None,
        }
    }

    /// Waits for all that comes by itself until the time is over.
    fn wait(&mut self, seconds: u64) {
        let end = self.now + Duration::from_secs(seconds);
        while let Some(at) = self.write().filter(|at| *at <= end) {
            self.now = self.now.max(at);
        }
        self.now = end;
        self.write();
    }

    fn counts(&self) -> Vec<(u64, u32)> {
        self.log
            .iter()
            .map(|(at, _, _, count)| (*at, *count))
            .collect()
    }
}

#[test]
fn the_first_is_written_at_once() {
    let mut bench = Bench::new(limits());
    assert_eq!(bench.see("a", Reason::Failed), Verdict::New);
    bench.write();
    assert_eq!(bench.log, [(0, "a".to_owned(), Reason::Failed, 1)]);
}

#[test]
fn the_first_repeat_is_written_the_others_only_counted_until_the_series_ends() {
    let mut bench = Bench::new(limits());
    for _ in 0..1_000 {
        bench.see("a", Reason::Failed);
        bench.write();
    }
    assert_eq!(bench.counts(), [(0, 1), (0, 2)], "in the first minute");
    bench.wait(3600);
    assert_eq!(
        bench.counts(),
        [(0, 1), (0, 2), (360, 1_000)],
        "closed after six quiet minutes"
    );
    assert!(bench.limiter.series.is_empty());
}

#[test]
fn a_series_that_goes_on_is_written_every_half_hour() {
    let mut bench = Bench::new(limits());
    for _ in 0..90 {
        bench.see("a", Reason::Failed);
        bench.wait(60);
    }
    assert_eq!(bench.counts(), [(0, 1), (60, 2), (1860, 31), (3660, 61)]);
}

#[test]
fn after_its_end_the_same_thing_starts_anew() {
    let mut bench = Bench::new(limits());
    bench.see("a", Reason::Failed);
    bench.wait(361);
    assert_eq!(bench.see("a", Reason::Failed), Verdict::New);
}

#[test]
fn repeats_that_come_before_the_first_is_stored_are_part_of_it() {
    let mut bench = Bench::new(limits());
    for _ in 0..5 {
        bench.see("a", Reason::Failed);
    }
    bench.write();
    assert_eq!(bench.counts(), [(0, 5)]);
}

#[test]
fn a_repeat_that_comes_while_the_first_is_in_flight_is_written_after_it() {
    let mut bench = Bench::new(limits());
    bench.see("a", Reason::Failed);
    let Next::Write(write) = bench.limiter.next(bench.now) else {
        panic!("nothing to write")
    };
    bench.see("a", Reason::Failed);
    let stored = bench.stored_by(&write);
    bench.limiter.done(&write, Done::Stored(stored), bench.now);
    bench.write();
    assert_eq!(bench.counts(), [(0, 1), (0, 2)]);
}

#[test]
fn an_object_has_its_limit_and_warnings_have_their_own() {
    let mut bench = Bench::new(limits());
    let normal = [
        Reason::Submitted,
        Reason::Started,
        Reason::Succeeded,
        Reason::Cancelled,
    ];
    let seen = normal.map(|reason| bench.see("a", reason));
    assert_eq!(
        seen,
        [
            Verdict::New,
            Verdict::New,
            Verdict::New,
            Verdict::TooManyAboutObject
        ]
    );
    assert_eq!(bench.see("a", Reason::Failed), Verdict::New, "a warning");
    assert_eq!(
        bench.see("b", Reason::Cancelled),
        Verdict::New,
        "another object"
    );
    bench.wait(59);
    assert_eq!(
        bench.see("a", Reason::Cancelled),
        Verdict::TooManyAboutObject,
        "a second before the minute is over"
    );
    bench.wait(1);
    assert_eq!(
        bench.see("a", Reason::Cancelled),
        Verdict::New,
        "after the minute"
    );
}

#[test]
fn a_repeat_without_a_token_is_told_a_minute_later() {
    let mut bench = Bench::new(Limits {
        per_object: 1,
        ..limits()
    });
    bench.see("a", Reason::Failed);
    bench.write();
    bench.see("a", Reason::Failed);
    bench.wait(120);
    assert_eq!(bench.counts(), [(0, 1), (60, 2)]);
}

#[test]
fn ever_new_objects_run_into_the_limit_of_their_topic() {
    let mut bench = Bench::new(limits());
    let verdicts: Vec<_> = (0..100)
        .map(|n| bench.see(&n.to_string(), Reason::InvalidSpec))
        .collect();
    assert_eq!(
        verdicts
            .iter()
            .filter(|verdict| **verdict == Verdict::New)
            .count(),
        30
    );
    assert_eq!(verdicts[30..], [Verdict::TooManyOfTopic; 70]);
    assert_eq!(
        bench.see("x", Reason::PolicyDenied),
        Verdict::New,
        "another reason"
    );
}

#[test]
fn what_exceeds_the_rate_of_the_program_waits_and_is_written_later() {
    let mut bench = Bench::new(Limits {
        per_topic: 1_000,
        ..limits()
    });
    for n in 0..50 {
        bench.see(&n.to_string(), Reason::Failed);
    }
    bench.wait(10);
    let per_second: Vec<_> = (0..3)
        .map(|second| bench.log.iter().filter(|entry| entry.0 == second).count())
        .collect();
    assert_eq!(per_second, [20, 20, 10]);
}

#[test]
fn the_next_spec_starts_a_series_of_its_own() {
    let mut bench = Bench::new(limits());
    let at = |generation| Draft {
        regarding: Regarding::named(Kind::AgentRun, "ns", "a").at_generation(generation),
        ..draft("a", Reason::InvalidSpec)
    };
    let verdicts = [1, 1, 2].map(|generation| bench.limiter.observe(at(generation), bench.now).0);
    assert_eq!(verdicts, [Verdict::New, Verdict::Repeat, Verdict::New]);
}

#[test]
fn the_least_recently_used_series_makes_room() {
    let mut bench = Bench::new(Limits {
        tracked: 2,
        ..limits()
    });
    for name in ["a", "b", "a"] {
        bench.see(name, Reason::Failed);
    }
    assert_eq!(
        bench.limiter.observe(draft("c", Reason::Failed), bench.now),
        (Verdict::New, 1),
        "one of b is lost"
    );
    assert_eq!(bench.see("a", Reason::Failed), Verdict::Repeat);
    assert_eq!(bench.limiter.series.len(), 2);
}

#[test]
fn a_write_that_failed_is_tried_again_and_given_up_in_the_end() {
    let mut bench = Bench::new(limits());
    bench.see("a", Reason::Failed);
    bench.see("a", Reason::Failed);
    for attempt in 1..=12 {
        let Next::Write(write) = bench.limiter.next(bench.now) else {
            panic!("attempt {attempt} is not due")
        };
        let lost = bench.limiter.done(&write, Done::Later(SECOND), bench.now);
        assert_eq!(lost, if attempt == 12 { 2 } else { 0 }, "attempt {attempt}");
        bench.now += SECOND;
    }
    assert_eq!(bench.limiter.next(bench.now), Next::Idle);
    let tokens =
        [Reason::Failed, Reason::TimedOut, Reason::StepFailed].map(|reason| bench.see("a", reason));
    assert_eq!(tokens, [Verdict::New; 3], "the token is back");
}

#[test]
fn a_failure_holds_back_all_writes_for_a_while() {
    let mut bench = Bench::new(limits());
    bench.see("a", Reason::Failed);
    bench.see("b", Reason::Failed);
    let Next::Write(write) = bench.limiter.next(bench.now) else {
        panic!("nothing to write")
    };
    bench.limiter.done(&write, Done::Later(SECOND), bench.now);
    assert_eq!(bench.limiter.next(bench.now), Next::At(bench.now + SECOND));
    bench.wait(1);
    assert_eq!(bench.counts(), [(1, 1), (1, 1)]);
}

#[test]
fn a_count_that_is_refused_is_lost_and_not_tried_with_every_repeat() {
    let mut bench = Bench::new(limits());
    bench.see("a", Reason::Failed);
    bench.write();
    bench.see("a", Reason::Failed);
    let Next::Write(write) = bench.limiter.next(bench.now) else {
        panic!("nothing to write")
    };
    assert_eq!(bench.limiter.done(&write, Done::Refused, bench.now), 1);
    bench.see("a", Reason::Failed);
    bench.write();
    assert_eq!(bench.counts(), [(0, 1)]);
}

#[test]
fn at_the_end_everything_is_due_whatever_the_limits() {
    let mut bench = Bench::new(Limits {
        per_object: 1,
        per_second: 1,
        ..limits()
    });
    for name in ["a", "a", "b", "c"] {
        bench.see(name, Reason::Failed);
        bench.write();
    }
    bench.see("a", Reason::Failed);
    bench.limiter.flush(bench.now);
    assert_eq!(bench.write(), None);
    assert_eq!(bench.limiter.unwritten(), 0);
    assert_eq!(
        bench.log.iter().map(|entry| entry.0).collect::<Vec<_>>(),
        [0; 4]
    );
}

#[derive(Clone, Debug)]
enum Input {
    See(u8, Reason),
    Pass(u64),
    Write(u8),
}

fn inputs() -> impl Strategy<Value = Vec<Input>> {
    let reason = prop::sample::select(vec![
        Reason::Failed,
        Reason::InvalidSpec,
        Reason::Started,
        Reason::Succeeded,
        Reason::StepFailed,
    ]);
    let input = prop_oneof![
        6 => (0..5u8, reason).prop_map(|(object, reason)| Input::See(object, reason)),
        2 => (0..3_000u64).prop_map(Input::Pass),
        1 => (0..2_400_000u64).prop_map(Input::Pass),
        6 => any::<u8>().prop_map(Input::Write),
    ];
    prop::collection::vec(input, 0..300)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever comes, and however the API server behaves.
    #[test]
    fn writes_stay_within_all_limits_and_no_occurrence_is_forgotten(inputs in inputs()) {
        let limits = Limits { per_object: 2, per_topic: 3, per_second: 2, tracked: 4, attempts: 3, ..limits() };
        let mut bench = Bench::new(limits);
        let mut writes: Vec<(Instant, String, Severity)> = Vec::new();
        let (mut taken, mut written, mut lost) = (0, 0, 0);
        for input in inputs {
            match input {
                Input::Pass(milliseconds) => bench.now += Duration::from_millis(milliseconds),
                Input::See(object, reason) => {
                    let (verdict, forgotten) = bench.limiter.observe(draft(&object.to_string(), reason), bench.now);
                    taken += u32::from(matches!(verdict, Verdict::New | Verdict::Repeat));
                    lost += forgotten;
                }
                Input::Write(fate) => {
                    let Next::Write(write) = bench.limiter.next(bench.now) else { continue };
                    let done = match fate {
                        0..150 => Done::Stored(bench.stored_by(&write)),
                        150..210 => Done::Later(Duration::from_millis(fate.into())),
                        210.. => Done::Refused,
                    };
                    if matches!(done, Done::Stored(_)) {
                        writes.push((bench.now, write.draft.regarding.name.clone(), write.draft.reason.severity()));
                        written += write.adding;
                    }
                    lost += bench.limiter.done(&write, done, bench.now);
                }
            }
            prop_assert!(bench.limiter.series.len() <= limits.tracked);
            prop_assert_eq!(taken, written + lost + bench.limiter.unwritten());
        }
        for (n, (start, object, severity)) in writes.iter().enumerate() {
            let within = |span: Duration| writes[n..].iter().take_while(move |later| later.0 < *start + span);
            let about_object = within(MINUTE).filter(|later| (&later.1, later.2) == (object, *severity)).count();
            prop_assert!(about_object <= limits.per_object, "{about_object} writes about one object in a minute");
            prop_assert!(within(SECOND).count() <= limits.per_second);
        }
    }
}
