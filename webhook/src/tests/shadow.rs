//! A candidate policy on live reviews: what it would change is counted once per request, wherever that ends.

use agents::api::kind::Kind;
use agents::api::registration::rung::Rung;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};

use crate::fixtures::{ask_of, job, object, review, status_review, stored, trial};
use crate::metrics::Metrics;
use crate::subject::Door;

/// What the candidate is said to change after these reviews.
fn changes(rung: Rung, policies: (Value, Value), reviews: &[(Door, &Value)]) -> Vec<String> {
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    let (policy, candidate) = policies;
    let admission = trial(rung, policy, Some(candidate), metrics);
    for (door, review) in reviews {
        ask_of(&admission, *door, review);
    }
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    let mut found: Vec<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("shadow_differences_total"))
        .filter(|line| !line.ends_with(" 0"))
        .map(str::to_owned)
        .collect();
    found.sort_unstable(); // the page has no order
    found
}

#[test]
fn a_candidate_is_compared_once_at_the_door_where_a_request_ends() {
    let run = object(
        Kind::AgentRun,
        json!({
            "agentRef": {"name": "a"}, "implementationSpecRef": {"name": "i"}, "runtime": {"type": "job"},
            "secrets": ["root"],
        }),
    );
    let create = review("CREATE", Some(&run), None);
    let (blocked, free) = (json!({"blockedSecrets": ["root"]}), json!({}));
    let both = [(Door::Mutate, &create), (Door::Validate, &create)];
    let (looser, stricter) = (
        r#"{rule="BlockedSecrets",direction="looser"} 1"#,
        r#"{rule="BlockedSecrets",direction="stricter"} 1"#,
    );
    for (row, rung, policies, reviews, expected) in [
        // What is refused here is never asked about again.
        ("refused", Rung::Fail, (&blocked, &free), &both[..1], looser),
        (
            "let through",
            Rung::Fail,
            (&free, &blocked),
            &both,
            stricter,
        ),
        ("only noted", Rung::Audit, (&blocked, &free), &both, looser),
    ] {
        let (active, candidate) = policies;
        let found = changes(rung, (active.clone(), candidate.clone()), reviews);
        assert_eq!(found, [expected], "{row}");
    }
}

#[test]
fn a_candidate_may_change_the_modes_of_statuses_and_of_jobs() {
    let spec = json!({"agentRef": {"name": "a"}});
    let mut old = stored(Kind::AgentRun, spec);
    old["status"] = json!({"phase": "Pending", "observedGeneration": 2});
    let mut new = old.clone();
    new["status"]["observedGeneration"] = json!(1);
    let status = status_review(&new, &old);
    let delete = review("DELETE", None, Some(&job()));
    let lenient = json!({"statusModes": {"ObservedGeneration": "warn"}, "jobDelete": "audit"});
    assert_eq!(
        changes(
            Rung::Fail,
            (json!({}), lenient),
            &[
                (Door::MutateStatus, &status),
                (Door::ValidateDelete, &delete)
            ],
        ),
        [
            r#"{rule="JobDelete",direction="looser"} 1"#,
            r#"{rule="ObservedGeneration",direction="looser"} 1"#,
        ]
    );
}
