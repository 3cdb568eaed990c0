use serde_json::{Value, json};

use super::*;

/// A pod that has ended, with these containers and whatever else its status says.
fn pod(containers: Value, more: Value) -> Arc<Pod> {
    let mut status = json!({"phase": "Failed", "containerStatuses": containers});
    json_patch::merge(&mut status, &more);
    Arc::new(serde_json::from_value(json!({"status": status})).unwrap())
}

fn container(name: &str, code: i32, reason: &str, second: u8) -> Value {
    json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": {"terminated":
        {"exitCode": code, "reason": reason, "finishedAt": format!("2026-01-01T00:00:{second:02}Z")}}})
}

fn target(reason: &str) -> Value {
    json!({"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": reason}]})
}

#[test]
fn the_end_of_a_pod_is_told_with_what_ended_it() {
    let own = |code, reason| json!([container("agent-runner", code, reason, 1)]);
    let beside = json!([
        container("a-proxy", 7, "Error", 9),
        container("agent-runner", 3, "Error", 1)
    ]);
    for (row, pods, expected) in [
        (
            "its own container, whatever stands before it",
            vec![pod(beside, json!({}))],
            Some("the container ended with exit code 3"),
        ),
        (
            "out of memory",
            vec![pod(own(137, "OOMKilled"), json!({}))],
            Some("the container ended with exit code 137 (OOMKilled)"),
        ),
        (
            "evicted before it had a container",
            vec![pod(json!([]), json!({"reason": "Evicted"}))],
            Some("the pod was evicted (Evicted)"),
        ),
        (
            "evicted by its node",
            vec![pod(own(137, "Error"), {
                let mut evicted = target("TerminationByKubelet");
                evicted["reason"] = json!("Evicted");
                evicted
            })],
            Some(
                "the pod was evicted (TerminationByKubelet); the container ended with exit code 137",
            ),
        ),
        (
            "preempted",
            vec![pod(own(143, "Error"), target("PreemptionByScheduler"))],
            Some(
                "the pod had to make room for a more important one (PreemptionByScheduler); the container ended with exit code 143",
            ),
        ),
        (
            "its node is gone",
            vec![pod(json!([]), target("DeletionByPodGC"))],
            Some("the node of the pod is gone (DeletionByPodGC)"),
        ),
        (
            "a deadline of the pod",
            vec![pod(json!([]), json!({"reason": "DeadlineExceeded"}))],
            Some("the pod took longer than allowed (DeadlineExceeded)"),
        ),
        (
            "a word that is new",
            vec![pod(json!([]), target("ByMoonlight"))],
            Some("the pod was ended from outside (ByMoonlight)"),
        ),
        (
            "the last of several",
            vec![
                pod(own(1, "Error"), json!({})),
                pod(json!([container("agent-runner", 2, "Error", 5)]), json!({})),
            ],
            Some("the container ended with exit code 2"),
        ),
        (
            "nothing to tell",
            vec![pod(json!([]), json!({"phase": "Running"}))],
            None,
        ),
    ] {
        assert_eq!(detail(&pods, "agent-runner").as_deref(), expected, "{row}");
    }
}

#[test]
fn what_ended_a_pod_is_still_known_when_its_copy_is_pruned() {
    let evicted = pod(json!([]), {
        let mut evicted = target("TerminationByKubelet");
        evicted["reason"] = json!("Evicted");
        evicted
    });
    let pruned = Arc::new(crate::controller::agent_run::pruned_pod((*evicted).clone()));
    assert_eq!(
        detail(&[pruned], "x"),
        detail(&[evicted], "x"),
        "the same words"
    );
}

#[test]
fn a_pod_ended_when_its_last_container_did() {
    let ended = pod(
        json!([
            container("a", 0, "Completed", 4),
            container("b", 0, "Completed", 2)
        ]),
        json!({}),
    );
    let at = witness(&ended).and_then(|witness| witness.ended_at);
    assert_eq!(
        at.map(|at| at.to_string()).as_deref(),
        Some("2026-01-01T00:00:04Z")
    );
}
