//! Whether a change of a Job or a pod can matter to its run. Most do not: the Job controller counts pods, and takes off what
//! it held itself. What is compared is the pruned copy, which holds all that a plan is made from, so a plan that is made from
//! an object like the one before would be the same.

use k8s_openapi::api::batch::v1::{Job, JobCondition};
use k8s_openapi::api::core::v1::Pod;
use kube::Resource;

use super::look::is_held;
use crate::api::contract::finalizer;

/// Whether a Job differs from how it was before, if that is known.
pub(in crate::controller) fn is_job_new(job: &Job, before: Option<&Job>) -> bool {
    before.is_none_or(|before| {
        ends(job) != ends(before)
            || job.spec != before.spec
            || differ(job, before, finalizer::OUTCOME)
    })
}

/// How a Job ended. When it began matters only once it is gone.
fn ends(job: &Job) -> &[JobCondition] {
    let conditions = job
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref());
    conditions.unwrap_or_default()
}

/// The same of a pod.
pub(in crate::controller) fn is_pod_new(pod: &Pod, before: Option<&Pod>) -> bool {
    before.is_none_or(|before| {
        pod.status != before.status
            || pod.spec != before.spec
            || differ(pod, before, finalizer::EVIDENCE)
    })
}

/// Whether what is written about two objects differs. Of one that stays, only our own finalizer matters; of one that goes,
/// the others tell why.
fn differ<K: Resource>(one: &K, other: &K, ours: &str) -> bool {
    let (this, that) = (one.meta(), other.meta());
    let is_going = this.deletion_timestamp.is_some();
    this.uid != that.uid
        || this.deletion_timestamp != that.deletion_timestamp
        || is_held(one, ours) != is_held(other, ours)
        || (is_going && this.finalizers != that.finalizers)
        || this.labels != that.labels
        || this.annotations != that.annotations
        || this.owner_references != that.owner_references
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::controller::agent_run::{pruned_job, pruned_pod};

    fn merged(mut object: Value, change: &Value) -> Value {
        json_patch::merge(&mut object, change);
        object
    }

    #[test]
    fn a_job_that_is_only_counted_on_is_no_news() {
        let job = json!({
            "metadata": {"name": "j", "uid": "u", "resourceVersion": "1", "generation": 1,
                "finalizers": [finalizer::OUTCOME, "example.com/other"]},
            "spec": {"template": {}}, "status": {"startTime": "2026-01-01T00:00:00Z"},
        });
        let ended = |type_: &str| {
            json!({"status": {"conditions": [{"type": type_, "status": "True",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
        };
        let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        let pruned = |job: Value| pruned_job(serde_json::from_value(job).unwrap());
        for (row, first, change, expected) in [
            (
                "its version",
                json!({}),
                json!({"metadata": {"resourceVersion": "2"}}),
                false,
            ),
            (
                "its pods are counted",
                json!({}),
                json!({"status": {"active": 1, "startTime": "2026-01-01T00:00:01Z"}}),
                false,
            ),
            (
                "it is about to end",
                json!({}),
                ended("SuccessCriteriaMet"),
                false,
            ),
            ("it has ended well", json!({}), ended("Complete"), true),
            ("it has ended badly", json!({}), ended("Failed"), true),
            (
                "someone sets a time to live",
                json!({}),
                json!({"spec": {"ttlSecondsAfterFinished": 0}}),
                true,
            ),
            (
                "someone else lets it go",
                json!({}),
                json!({"metadata": {"finalizers": [finalizer::OUTCOME]}}),
                false,
            ),
            (
                "it is not held any more",
                json!({}),
                json!({"metadata": {"finalizers": ["example.com/other"]}}),
                true,
            ),
            ("it goes", json!({}), going.clone(), true),
            (
                "who holds it while it goes",
                going,
                json!({"metadata": {"finalizers": [finalizer::OUTCOME]}}),
                true,
            ),
            (
                "it is marked",
                json!({}),
                json!({"metadata": {"annotations": {"a": "b"}}}),
                true,
            ),
            (
                "it is another one",
                json!({}),
                json!({"metadata": {"uid": "v"}}),
                true,
            ),
        ] {
            let before = merged(job.clone(), &first);
            let after = pruned(merged(before.clone(), &change));
            let found = is_job_new(&after, Some(&pruned(before)));
            assert_eq!(found, expected, "{row}");
            assert!(is_job_new(&after, None), "{row}");
        }
    }

    #[test]
    fn a_pod_is_news_when_it_ends_or_goes_and_not_when_others_count_it() {
        let pod = json!({
            "metadata": {"name": "p", "uid": "u", "resourceVersion": "1",
                "finalizers": [finalizer::EVIDENCE, "batch.kubernetes.io/job-tracking"]},
            "spec": {"containers": []}, "status": {"phase": "Running"},
        });
        let pruned = |pod: Value| pruned_pod(serde_json::from_value(pod).unwrap());
        for (row, change, expected) in [
            (
                "its address",
                json!({"status": {"podIP": "10.0.0.1"}}),
                false,
            ),
            (
                "it was counted",
                json!({"metadata": {"finalizers": [finalizer::EVIDENCE]}}),
                false,
            ),
            (
                "it has ended",
                json!({"status": {"phase": "Succeeded"}}),
                true,
            ),
            (
                "it goes",
                json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
                true,
            ),
            (
                "it is not held any more",
                json!({"metadata": {"finalizers": null}}),
                true,
            ),
            ("it has a node", json!({"spec": {"nodeName": "n"}}), true),
        ] {
            let after = pruned(merged(pod.clone(), &change));
            let found = is_pod_new(&after, Some(&pruned(pod.clone())));
            assert_eq!(found, expected, "{row}");
        }
    }
}
