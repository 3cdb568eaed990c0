use agents::api::kind::Kind;
use agents::api::registration::rung::Rung;
use prometheus_client::encoding::text::encode;
use serde_json::json;

use super::*;
use crate::fixtures::{object, review, webhook_with};

fn scrape(registry: &Registry) -> Vec<String> {
    let mut text = String::new();
    encode(&mut text, registry).unwrap();
    let series = text.lines().filter(|line| !line.starts_with('#'));
    series.map(str::to_owned).collect()
}

#[test]
fn every_series_is_there_from_the_start_and_none_comes_later() {
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    let before = scrape(&registry);
    assert!(before.len() < 500, "{} series", before.len());
    assert!(before.contains(&"shed_total 0".to_owned()));
    let admission = webhook_with(Rung::Deny, json!({}), metrics);
    let ask = |review: &serde_json::Value| {
        let body = serde_json::to_vec(review).unwrap();
        for door in Door::ALL {
            admission.answer(door, &body);
        }
    };
    for spec in [json!({"size": "1Gi"}), json!({"size": "x"})] {
        let mut review = review("CREATE", Some(&object(Kind::Workspace, spec)), None);
        ask(&review);
        review["request"]["dryRun"] = json!(true);
        ask(&review);
    }
    admission.answer(Door::Validate, b"x");
    let after = scrape(&registry);
    assert_eq!(after.len(), before.len());
    for line in [
        r#"reviews_total{resource="workspaces",operation="CREATE",outcome="allowed",dry_run="false"} 2"#,
        r#"reviews_total{resource="workspaces",operation="CREATE",outcome="denied",dry_run="true"} 2"#,
        r#"reviews_total{resource="unknown",operation="",outcome="unknown",dry_run="false"} 6"#,
        r#"calls_total{door="mutate",outcome="denied"} 2"#,
        r#"calls_total{door="validate",outcome="refused"} 1"#,
        r#"rule_outcomes_total{rule="Spec",mode="enforce"} 4"#,
        r#"refusals_total{cause="malformed"} 1"#,
        "unknown_reviews_total 12",
        r#"phase_duration_seconds_count{phase="evaluate"} 8"#,
    ] {
        assert!(
            after.iter().any(|found| found == line),
            "{line} in {after:#?}"
        );
    }
}

#[test]
fn what_is_in_flight_is_counted_until_it_is_answered() {
    let metrics = Metrics::default();
    let guard = metrics.begin();
    assert_eq!(metrics.in_flight.get(), 1);
    drop(guard);
    assert_eq!(metrics.in_flight.get(), 0);
}
