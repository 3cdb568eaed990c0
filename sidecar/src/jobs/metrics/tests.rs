use std::collections::BTreeSet;

use agents::cluster::Scope;
use jiff::SignedDuration;
use prometheus_client::encoding::text::encode;
use serde_json::json;

use super::super::view::tests::{finished, running, time, view};
use super::*;

/// What a scrape shows, without the descriptions and the buckets.
fn samples(registry: &Registry) -> BTreeSet<String> {
    let mut page = String::new();
    encode(&mut page, registry).unwrap();
    let samples = page
        .lines()
        .filter(|line| !line.starts_with('#') && !line.contains("_bucket"));
    samples.map(str::to_owned).collect()
}

fn stage() -> (Registry, Arc<Board>, Metrics) {
    let mut registry = Registry::default();
    let board = Arc::new(Board::new(vec![Scope::Cluster]));
    let metrics = Metrics::register(&mut registry, &board);
    (registry, board, metrics)
}

#[test]
fn every_series_stands_at_zero_until_something_is_counted() {
    let (registry, _, _) = stage();
    let shown = samples(&registry);
    let others: Vec<_> = shown.iter().filter(|line| !is_zero(line)).collect();
    assert_eq!(others, ["job_watch_mode{mode=\"off\"} 1"]);
    let premature = |line: &&String| line.starts_with("job_premature_deletions_total");
    let combined = Class::ALL.len() * Stage::ALL.len();
    assert_eq!(shown.iter().filter(premature).count(), combined);
}

fn is_zero(line: &str) -> bool {
    line.ends_with(" 0") || line.ends_with(" 0.0")
}

#[test]
fn what_happens_is_counted_under_its_label() {
    let (registry, board, metrics) = stage();
    let before = samples(&registry);
    let after = Some(SignedDuration::from_secs(8));
    metrics.count(Transition::Created);
    metrics.count(Transition::Finished {
        outcome: Outcome::Failed,
        after,
    });
    metrics.count(Transition::Recorded { after });
    metrics.count_premature(Class::JobTtlExpired, Stage::Gone);
    metrics.count_hazards(Hazard::TtlOverrun, 2);
    metrics.count_answer(Answer::Told);
    metrics.count_restart(Resource::Pods);
    metrics.set_mode(Mode::On);
    let place = &board.places[0];
    place.jobs().put(view(&[running()]), time(0));
    place.set_up(Resource::Jobs, true);
    let after = samples(&registry);
    let changed: Vec<_> = after.difference(&before).map(String::as_str).collect();
    assert_eq!(
        changed,
        [
            "job_hazards_total{hazard=\"ttl_overrun\"} 2",
            "job_known{state=\"running\"} 1.0",
            "job_lifecycle_total{state=\"created\"} 1",
            "job_lifecycle_total{state=\"failed\"} 1",
            "job_lifecycle_total{state=\"recorded\"} 1",
            "job_premature_deletions_total{class=\"JobTtlExpired\",stage=\"gone\"} 1",
            "job_questions_total{answer=\"told\"} 1",
            "job_record_seconds_count 1",
            "job_record_seconds_sum 8.0",
            "job_run_seconds_count{outcome=\"failed\"} 1",
            "job_run_seconds_sum{outcome=\"failed\"} 8.0",
            "job_watch_mode{mode=\"off\"} 0",
            "job_watch_mode{mode=\"on\"} 1",
            "job_watch_restarts_total{resource=\"pods\"} 1",
            "job_watch_up{resource=\"jobs\"} 1",
        ]
    );
    assert_eq!(after.len(), before.len());
}

#[test]
fn the_oldest_outcome_that_is_not_stored_has_an_age_and_a_headroom() {
    let (registry, board, _) = stage();
    let ttl = json!({"spec": {"ttlSecondsAfterFinished": 60}});
    let done = view(&[finished("Complete"), ttl]);
    board.places[0].jobs().put(done, time(0));
    let shown = samples(&registry);
    let value = |name: &str| {
        let line = shown.iter().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    assert!(value("job_unrecorded ") >= 1.0);
    let age = value("job_oldest_unrecorded_seconds ");
    let headroom = value("job_ttl_headroom_seconds ");
    assert!(age > 0.0 && headroom < 0.0, "{age} {headroom}");
    assert!((age + headroom - 60.0).abs() < 1.0, "{age} {headroom}");
}
