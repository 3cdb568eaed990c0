use std::sync::{Arc, Mutex};

use futures::channel::mpsc;

use super::*;

const GRACE: Grace = Grace {
    linger: Duration::ZERO,
    drain: Duration::from_secs(10),
};

/// Names in the order in which their tasks ended.
#[derive(Clone, Default)]
struct Journal(Arc<Mutex<Vec<&'static str>>>);

impl Journal {
    fn note(&self, name: &'static str) {
        self.0.lock().expect("no panic while noting").push(name);
    }

    fn read(&self) -> Vec<&'static str> {
        self.0.lock().expect("no panic while noting").clone()
    }
}

async fn until_started(shutdown: Shutdown) -> TaskResult {
    shutdown.started().await;
    Ok(())
}

async fn forever(_: Shutdown) -> TaskResult {
    pending().await
}

/// Runs the tasks with no signal, as a program of which a task ends by itself.
async fn run_without_signal(tasks: Tasks) -> String {
    let result = tasks.run(futures::stream::pending(), GRACE, || ()).await;
    result.expect_err("a task ended").to_string()
}

#[tokio::test(start_paused = true)]
async fn a_panic_ends_the_program_with_the_name_of_the_task() {
    let mut tasks = Tasks::default();
    tasks.work("steady", until_started);
    tasks.work("reconciler", async |_| panic!("queue is {}", "broken"));
    let error = run_without_signal(tasks).await;
    assert_eq!(error, "task reconciler panicked: queue is broken");
}

#[tokio::test(start_paused = true)]
async fn a_failure_ends_the_program_with_the_name_of_the_task() {
    let mut tasks = Tasks::default();
    tasks.work("steady", until_started);
    tasks.support("certificate", async |_| Err("disk is gone".into()));
    let error = run_without_signal(tasks).await;
    assert_eq!(error, "task certificate failed");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_just_returns_ends_the_program_too() {
    let mut tasks = Tasks::default();
    tasks.work("steady", until_started);
    tasks.work("watch", async |_| Ok(()));
    let error = run_without_signal(tasks).await;
    assert_eq!(
        error,
        "task watch ended by itself, it should run as long as the program"
    );
}

#[tokio::test(start_paused = true)]
async fn a_signal_announces_lingers_and_then_ends_work_before_support() {
    let journal = Journal::default();
    let mut tasks = Tasks::default();
    let (mut signals, received) = mpsc::unbounded();
    let note = |name, delay| {
        let journal = journal.clone();
        move |shutdown: Shutdown| async move {
            shutdown.started().await;
            sleep(delay).await;
            journal.note(name);
            Ok(())
        }
    };
    tasks.support("admin", note("admin", Duration::ZERO));
    tasks.work("slow", note("slow", Duration::from_secs(5)));
    tasks.work("quick", note("quick", Duration::from_secs(1)));
    let grace = Grace {
        linger: Duration::from_secs(3),
        ..GRACE
    };
    let start = Instant::now();
    signals.start_send(Signal::Terminate).expect("a receiver");
    let announced = journal.clone();
    let result = tasks
        .run(received, grace, || announced.note("announced"))
        .await;
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(journal.read(), ["announced", "quick", "slow", "admin"]);
    assert_eq!(start.elapsed(), Duration::from_secs(8));
}

#[tokio::test(start_paused = true)]
async fn lingering_ends_when_farewell_is_said_but_not_by_one_that_came_too_soon() {
    let mut tasks = Tasks::default();
    let farewell = tasks.farewell();
    farewell.say();
    tasks.work("page", |shutdown| async move {
        while !shutdown.is_announced() {
            sleep(Duration::from_secs(1)).await;
        }
        sleep(Duration::from_secs(2)).await;
        farewell.say();
        until_started(shutdown).await
    });
    let grace = Grace {
        linger: Duration::from_secs(60),
        ..GRACE
    };
    let start = Instant::now();
    let signals = futures::stream::iter([Signal::Terminate]);
    let result = tasks.run(signals, grace, || ()).await;
    assert!(result.is_ok(), "{result:?}");
    let took = start.elapsed();
    assert!(
        (Duration::from_secs(2)..Duration::from_secs(5)).contains(&took),
        "{took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_second_signal_ends_at_once() {
    let mut tasks = Tasks::default();
    tasks.work("stubborn", forever);
    let start = Instant::now();
    let signals = futures::stream::iter([Signal::Terminate, Signal::Interrupt]);
    let result = tasks.run(signals, GRACE, || ()).await;
    assert_eq!(
        result.expect_err("forced").to_string(),
        "ended at once by a second signal, SIGINT"
    );
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_end_by_the_deadline_is_cut_and_named() {
    let mut tasks = Tasks::default();
    tasks.work("stubborn", forever);
    tasks.work("deaf", forever);
    tasks.work("polite", until_started);
    let start = Instant::now();
    let signals = futures::stream::iter([Signal::Terminate]);
    let result = tasks.run(signals, GRACE, || ()).await;
    assert_eq!(
        result.expect_err("overdue").to_string(),
        "tasks did not end in time and were cut: deaf, stubborn"
    );
    assert_eq!(start.elapsed(), GRACE.drain + BACKSTOP);
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_draining_is_not_lost() {
    let mut tasks = Tasks::default();
    tasks.work("fragile", async |shutdown: Shutdown| {
        shutdown.started().await;
        panic!("on the way out")
    });
    let signals = futures::stream::iter([Signal::Terminate]);
    let result = tasks.run(signals, GRACE, || ()).await;
    assert_eq!(
        result.expect_err("a panic").to_string(),
        "task fragile panicked: on the way out"
    );
}
