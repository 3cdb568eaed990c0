//! Secrets planted in error texts, and the three ends by which a text leaves a program: the note of an Event, the message of
//! a condition, and a line of the log. None of them may show one.
//!
//! Here and not in `api`, since the ends are in three layers.

mod shapes;

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use tracing_subscriber::layer::SubscriberExt;

use crate::api::condition::{
    ConditionStatus, ConditionType, Lifecycle, Moment, Observation, merge,
};
use crate::api::text::sanitise::{MASK, for_log};
use crate::events::Note;
use crate::kit::telemetry::JsonLayer;
use shapes::{Text, text};

/// Texts that are tried.
const TEXTS: u64 = 100_000;
const WORKERS: u64 = 2;

/// How every text begins: what is harmless can still be read.
const HARMLESS: &str = "could not apply Job demo-job";

fn event(text: &str) -> String {
    Note::new(HARMLESS).because(text).sanitised()
}

fn condition(text: &str) -> String {
    let message = format!("{HARMLESS}: {text}");
    let (type_, status) = (ConditionType::Warning, ConditionStatus::True);
    let observed = Observation::new(type_, status, Lifecycle::SubmitFailed, message);
    let at = Moment {
        generation: 1,
        now: Timestamp::UNIX_EPOCH,
    };
    let mut list = Vec::new();
    merge(&mut list, &observed, at);
    serde_json::to_string(&list).unwrap()
}

/// What a program would have logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let log = self.0.lock();
        log.map_err(|_| io::Error::other("a panic"))?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn line(&self, text: &str) -> String {
        let error = io::Error::other(format!("{HARMLESS}: {text}"));
        tracing::error!(error = &error as &dyn std::error::Error, "Reconcile failed");
        let bytes = std::mem::take(&mut *self.0.lock().unwrap());
        String::from_utf8(bytes).unwrap()
    }
}

/// Half a secret is too much as well, unless it is so short that chance could have written it.
fn parts(secret: &str) -> Vec<&str> {
    match secret.len() {
        ..14 => vec![secret],
        length => vec![&secret[..length / 2], &secret[length / 2..]],
    }
}

/// The texts of one worker through every end.
fn leave(worker: u64, log: &Log) {
    for seed in (worker..TEXTS).step_by(usize::try_from(WORKERS).unwrap()) {
        let Text { secrets, words } = text(&mut fastrand::Rng::with_seed(seed));
        assert!(
            secrets.iter().all(|secret| words.contains(secret)),
            "seed {seed}: nothing was planted"
        );
        let ends: [(&str, String); 3] = [
            ("event", event(&words)),
            ("condition", condition(&words)),
            ("log", log.line(&words)),
        ];
        for (end, shown) in ends {
            let leak = secrets
                .iter()
                .flat_map(|secret| parts(secret))
                .find(|part| shown.contains(part));
            assert_eq!(leak, None, "seed {seed}, {end}: {shown}\nof: {words}");
            assert!(
                shown.contains(HARMLESS) && shown.contains(MASK),
                "seed {seed}, {end}: {shown}\nof: {words}"
            );
        }
    }
}

#[test]
fn no_planted_secret_is_in_an_event_a_status_or_a_log() {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..WORKERS)
            .map(|worker| {
                scope.spawn(move || {
                    let log = Log::default();
                    let writer = log.clone();
                    let lines = JsonLayer::new(move || writer.clone(), for_log);
                    let subscriber = tracing_subscriber::registry().with(lines);
                    tracing::subscriber::with_default(subscriber, || leave(worker, &log));
                })
            })
            .collect();
        for thread in threads {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}
