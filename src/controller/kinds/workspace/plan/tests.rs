//! What is done about a workspace, as a table.

use serde_json::{Value, json};

use super::*;

fn workspace(spec: &Value) -> Workspace {
    serde_json::from_value(json!({
        "metadata": {
            "name": "w", "namespace": "here", "uid": "u-1", "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": spec,
    }))
    .unwrap()
}

fn ours(phase: &str, size: &str) -> Sight {
    let claim = json!({
        "metadata": {"name": "w", "namespace": "here"},
        "spec": {"volumeName": "v-1", "resources": {"requests": {"storage": size}}},
        "status": {"phase": phase},
    });
    Sight::Ours(Arc::new(serde_json::from_value(claim).unwrap()))
}

fn words(plan: &WorkspacePlan) -> String {
    let steps = plan.steps.iter().map(|step| match step {
        Step::Do(Action::Make(_)) => "make".to_owned(),
        Step::Do(Action::Grow { size, .. }) => format!("grow to {size}"),
        Step::Do(Action::Remove(_)) => "remove".to_owned(),
        Step::Status(standing) => {
            let phase = standing.status.phase.clone().unwrap_or_default();
            let volume = standing.status.volume_name.clone().unwrap_or_default();
            format!("{phase} {} {volume}", standing.reason.as_str())
        }
    });
    let steps: Vec<_> = steps.collect();
    let next = match plan.next {
        Next::Wait => "wait".to_owned(),
        Next::At(at) => at.to_string(),
    };
    format!("{}, {next}", steps.join(", "))
}

#[test]
fn each_claim_is_followed_to_its_end() {
    let plain = json!({"size": "1Gi"});
    let brief = json!({"size": "1Gi", "ttlSeconds": 60});
    for (row, spec, claim, second, expected) in [
        (
            "new",
            &plain,
            Sight::Absent,
            0,
            "make, Pending Pending , wait",
        ),
        (
            "on its way",
            &plain,
            ours("Pending", "1Gi"),
            0,
            "Pending Pending v-1, wait",
        ),
        (
            "there",
            &plain,
            ours("Bound", "1Gi"),
            0,
            "Ready Bound v-1, wait",
        ),
        (
            "same size",
            &plain,
            ours("Bound", "1024Mi"),
            0,
            "Ready Bound v-1, wait",
        ),
        (
            "smaller",
            &plain,
            ours("Bound", "512Mi"),
            0,
            "grow to 1Gi, wait",
        ),
        (
            "larger",
            &plain,
            ours("Bound", "2Gi"),
            0,
            "Ready Bound v-1, wait",
        ),
        (
            "lost",
            &plain,
            ours("Lost", "1Gi"),
            0,
            "Failed Lost v-1, wait",
        ),
        (
            "of someone else",
            &plain,
            Sight::Taken,
            0,
            "Pending ClaimNameConflict , 2026-01-01T00:00:05Z",
        ),
        (
            "for a while",
            &brief,
            ours("Bound", "1Gi"),
            0,
            "Ready Bound v-1, 2026-01-01T00:01:00Z",
        ),
        (
            "over",
            &brief,
            ours("Bound", "1Gi"),
            60,
            "remove, Expired Expired , wait",
        ),
        (
            "over and gone",
            &brief,
            Sight::Absent,
            60,
            "Expired Expired , wait",
        ),
        (
            "wrong",
            &json!({}),
            Sight::Absent,
            0,
            "Invalid MissingSize , wait",
        ),
    ] {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let seen = Observed {
            now: now + Duration::from_secs(second),
            workspace: Some(Arc::new(workspace(spec))),
            claim,
            refusal: None,
        };
        assert_eq!(words(&plan(&seen)), expected, "{row}");
    }
}

#[test]
fn a_claim_is_as_the_workspace_asks_and_goes_with_it() {
    let asked =
        json!({"size": " 1Gi", "accessModes": ["ReadWriteMany"], "storageClassName": "fast"});
    let made = claim(&workspace(&asked));
    assert_eq!(
        serde_json::to_value(&made.spec).unwrap(),
        json!({
            "accessModes": ["ReadWriteMany"], "storageClassName": "fast",
            "resources": {"requests": {"storage": "1Gi"}},
        })
    );
    let owners = made.metadata.owner_references.unwrap_or_default();
    assert_eq!((&*owners[0].uid, &*owners[0].kind), ("u-1", "Workspace"));
    let plain = claim(&workspace(&json!({"size": "1Gi", "storageClassName": ""})));
    let spec = plain.spec.unwrap_or_default();
    assert_eq!(spec.access_modes, Some(vec!["ReadWriteOnce".to_owned()]));
    assert_eq!(spec.storage_class_name, None);
}

#[test]
fn a_claim_that_may_not_grow_stays_ready_with_a_warning_and_is_not_asked_again_and_again() {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let refused = |size: &str, seconds: u64| Observed {
        now: now + Duration::from_secs(seconds),
        workspace: Some(Arc::new(workspace(&json!({"size": "2Gi"})))),
        claim: ours("Bound", "1Gi"),
        refusal: Some(Refusal {
            claim: None,
            size: size.to_owned(),
            why: "could not grow the claim: its class does not allow it".to_owned(),
            at: now,
        }),
    };
    let told = plan(&refused("2Gi", 1));
    assert_eq!(words(&told), "Ready Bound v-1, 2026-01-01T00:10:00Z");
    let [Step::Status(next)] = told.steps.as_slice() else {
        panic!("a status");
    };
    let seen = |type_: &str| {
        let mut observed = next.observed.iter();
        let found = observed.find(|said| said.type_.as_str() == type_);
        found.map(|said| format!("{} {}", said.status, said.reason.as_str()))
    };
    assert_eq!(seen("Ready").as_deref(), Some("True Bound"));
    assert_eq!(seen("Warning").as_deref(), Some("True Forbidden"));
    assert_eq!(words(&plan(&refused("2Gi", 600))), "grow to 2Gi, wait");
    assert_eq!(words(&plan(&refused("3Gi", 1))), "grow to 2Gi, wait");
}
