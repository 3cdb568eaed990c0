//! The part of the status contract that the API server holds by itself, without any webhook: against
//! `kubectl patch --subresource=status`, whole removal included.

use agents::api::kind::Kind;
use anyhow::Result;
use serde_json::{Value, json};
use support::builders::smallest;
use support::kubectl::Said;
use support::{Namespace, namespace};

/// Kinds whose status has `startedAt`, `finishedAt` and a final phase.
const RUNS: [Kind; 3] = [Kind::AgentRun, Kind::OrchestrationRun, Kind::ToolRun];

struct Subject {
    here: Namespace,
    resource: String,
}

impl Subject {
    /// An object of the kind with the given status.
    async fn new(kind: Kind, status: Value) -> Self {
        let here = namespace("contract").await.unwrap();
        let object = smallest(kind, "x").to_string();
        here.kubectl
            .run_with_input(&["create", "--filename", "-"], &object)
            .await
            .unwrap()
            .ok()
            .unwrap();
        let resource = format!("{}.{}", kind.plural(), kind.group());
        let subject = Self { here, resource };
        let said = subject.merge(json!({ "status": status })).await;
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        subject
    }

    async fn patch(&self, sort: &str, patch: &Value) -> Said {
        let patch = patch.to_string();
        let arguments = [
            "patch",
            &self.resource,
            "x",
            "--subresource=status",
            "--type",
            sort,
            "--patch",
            &patch,
        ];
        self.here.kubectl.run(&arguments).await.unwrap()
    }

    async fn merge(&self, patch: Value) -> Said {
        self.patch("merge", &patch).await
    }

    async fn status(&self) -> Value {
        let arguments = ["get", &self.resource, "x", "--output", "jsonpath={.status}"];
        let text = self
            .here
            .kubectl
            .run(&arguments)
            .await
            .unwrap()
            .ok()
            .unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

/// Each change is refused with a message that contains the word, and the stored status stays as it was.
async fn all_refused(subject: &Subject, changes: &[(&str, Value, &str)]) {
    let before = subject.status().await;
    for (sort, change, word) in changes {
        let said = subject.patch(sort, change).await;
        assert_eq!(
            said.code,
            Some(1),
            "{change} was taken by {}",
            subject.resource
        );
        assert!(
            said.stderr.contains(word),
            "`{word}` is not in: {}",
            said.stderr
        );
    }
    assert_eq!(subject.status().await, before);
}

#[tokio::test]
async fn the_times_of_a_run_are_written_once() -> Result<()> {
    support::kinds!();
    for kind in RUNS {
        let status = json!({
            "phase": "Succeeded",
            "observedGeneration": 1,
            "startedAt": "2026-01-01T10:00:00Z",
            "finishedAt": "2026-01-01T11:00:00Z",
        });
        let subject = Subject::new(kind, status).await;
        let changes = [
            (
                "merge",
                json!({"status": {"startedAt": "2026-01-01T10:00:01Z"}}),
                "startedAt",
            ),
            (
                "merge",
                json!({"status": {"finishedAt": "2026-01-01T11:00:01Z"}}),
                "finishedAt",
            ),
            ("merge", json!({"status": {"startedAt": null}}), "startedAt"),
            (
                "merge",
                json!({"status": {"finishedAt": null}}),
                "finishedAt",
            ),
            (
                "json",
                json!([{"op": "remove", "path": "/status/startedAt"}]),
                "startedAt",
            ),
            ("merge", json!({"status": null}), "startedAt"),
            (
                "json",
                json!([{"op": "remove", "path": "/status"}]),
                "finishedAt",
            ),
            (
                "json",
                json!([{"op": "replace", "path": "/status", "value": {}}]),
                "startedAt",
            ),
        ];
        all_refused(&subject, &changes).await;
    }
    Ok(())
}

#[tokio::test]
async fn a_run_does_not_finish_before_it_starts() -> Result<()> {
    support::kinds!();
    for kind in RUNS {
        let started = json!({"phase": "Running", "startedAt": "2026-01-01T10:00:00Z"});
        let subject = Subject::new(kind, started).await;
        let early = json!({"status": {"phase": "Failed", "finishedAt": "2026-01-01T09:59:59Z"}});
        all_refused(&subject, &[("merge", early, "finishedAt")]).await;
        let same = json!({"status": {"phase": "Failed", "finishedAt": "2026-01-01T10:00:00Z"}});
        assert_eq!(subject.merge(same).await.code, Some(0));
    }
    Ok(())
}

#[tokio::test]
async fn a_final_phase_is_final() -> Result<()> {
    const ENDS: [&str; 3] = ["Succeeded", "Failed", "Cancelled"];
    support::kinds!();
    for kind in RUNS {
        for end in ENDS {
            let status = json!({"phase": end, "finishedAt": "2026-01-01T11:00:00Z"});
            let subject = Subject::new(kind, status).await;
            let mut changes = vec![
                ("merge", json!({"status": {"phase": "Running"}}), "phase"),
                ("merge", json!({"status": {"phase": "Pending"}}), "phase"),
                ("merge", json!({"status": {"phase": null}}), "phase"),
                ("merge", json!({"status": null}), "phase"),
            ];
            for other in ENDS.iter().filter(|other| **other != end) {
                changes.push(("merge", json!({"status": {"phase": other}}), "phase"));
                let value = json!({"phase": other, "finishedAt": "2026-01-01T11:00:00Z"});
                let whole = json!([{"op": "replace", "path": "/status", "value": value}]);
                changes.push(("json", whole, "phase"));
            }
            all_refused(&subject, &changes).await;
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_finished_run_can_still_change_elsewhere() -> Result<()> {
    support::kinds!();
    for kind in RUNS {
        let status = json!({
            "phase": "Succeeded",
            "startedAt": "2026-01-01T10:00:00Z",
            "finishedAt": "2026-01-01T11:00:00Z",
        });
        let subject = Subject::new(kind, status).await;
        let change =
            json!({"status": {"updatedAt": "2026-01-01T12:00:00Z", "observedGeneration": 2}});
        let said = subject.merge(change).await;
        assert_eq!(said.code, Some(0), "{}", said.stderr);
    }
    Ok(())
}

#[tokio::test]
async fn the_observed_generation_never_falls_on_any_kind() -> Result<()> {
    support::kinds!();
    for kind in Kind::ALL {
        let subject = Subject::new(kind, json!({"observedGeneration": 7})).await;
        let changes = [
            (
                "merge",
                json!({"status": {"observedGeneration": 6}}),
                "observedGeneration",
            ),
            (
                "merge",
                json!({"status": {"observedGeneration": null}}),
                "observedGeneration",
            ),
            ("merge", json!({"status": null}), "observedGeneration"),
            (
                "json",
                json!([{"op": "remove", "path": "/status"}]),
                "observedGeneration",
            ),
        ];
        all_refused(&subject, &changes).await;
        let said = subject
            .merge(json!({"status": {"observedGeneration": 8}}))
            .await;
        assert_eq!(said.code, Some(0), "{}", said.stderr);
    }
    Ok(())
}
