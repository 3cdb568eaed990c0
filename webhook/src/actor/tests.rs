use std::time::Duration;

use agents::api::policy::Mode;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::*;
use crate::decision::Rule;
use crate::fixtures::{PERSON, job, now, review, silent_cluster, tool_job};
use crate::review::decode;
use crate::subject::{Door, Sorted, sort};

/// What is kept when this Job is deleted and the guard decides so.
fn kept(job: &Value, mode: Mode, dry_run: bool) -> Option<Deletion> {
    let mut review = review("DELETE", None, Some(job));
    review["request"]["dryRun"] = json!(dry_run);
    let body = serde_json::to_vec(&review).unwrap();
    let Sorted::Ours(subject) = sort(Door::ValidateDelete, decode(&body).unwrap()) else {
        panic!("foreign");
    };
    let mut decision = Decision::default();
    let path = agents::api::object::cause::Path::root("metadata");
    let reason = agents::api::object::cause::Reason::OutcomeNotRecorded;
    let cause = agents::api::object::cause::Cause::new(&path, reason, "x");
    decision.find(Rule::JobDelete, mode, Some(cause));
    let (sender, mut receiver) = mpsc::channel(1);
    let actors = Actors {
        queue: Some(sender),
        metrics: Metrics::default(),
    };
    actors.keep(&subject, &decision, now());
    receiver.try_recv().ok()
}

#[test]
fn who_deletes_a_job_too_early_is_kept_at_its_run() {
    let deletion = kept(&job(), Mode::Warn, false).unwrap();
    assert_eq!(
        deletion,
        Deletion {
            kind: Kind::AgentRun,
            namespace: "team".to_owned(),
            name: "demo".to_owned(),
            uid: Some("u-1".to_owned()),
            record: Record {
                job: "demo-1".to_owned(),
                uid: "j-1".to_owned(),
                user: PERSON.to_owned(),
                at: now(),
            },
        }
    );
    assert_eq!(
        write::change(&deletion).unwrap(),
        json!({"metadata": {
            "uid": "u-1",
            "annotations": {"agents.proompteng.ai/job-deleted-by":
                r#"{"job":"demo-1","uid":"j-1","user":"jane@example.com","at":"2027-01-15T08:00:00Z"}"#},
        }})
    );
}

#[test]
fn a_job_without_an_owner_is_traced_by_its_label() {
    let mut job = job();
    job["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "y"}]);
    let deletion = kept(&job, Mode::Audit, false).unwrap();
    let uid = Some("u-1".to_owned());
    assert_eq!((deletion.name.as_str(), deletion.uid), ("demo", uid));
}

#[test]
fn a_job_of_a_tool_run_is_traced_like_any_other() {
    let owned = tool_job();
    let mut labelled = tool_job();
    labelled["metadata"]["ownerReferences"] = json!(null);
    for job in [owned, labelled] {
        let Deletion {
            kind, name, uid, ..
        } = kept(&job, Mode::Warn, false).unwrap();
        assert_eq!((kind, name.as_str()), (Kind::ToolRun, "demo"), "{job}");
        assert_eq!(uid.as_deref(), Some("u-1"), "{job}");
    }
}

#[test]
fn nothing_is_kept_of_what_does_not_happen() {
    assert_eq!(kept(&job(), Mode::Enforce, false), None);
    assert_eq!(kept(&job(), Mode::Warn, true), None);
    let mut recorded = job();
    recorded["metadata"]["annotations"] = json!({"agents.proompteng.ai/outcome-recorded": "x"});
    assert_eq!(kept(&recorded, Mode::Warn, false), None);
}

#[test]
fn what_does_not_fit_into_the_queue_is_counted() {
    let body = serde_json::to_vec(&review("DELETE", None, Some(&job()))).unwrap();
    let Sorted::Ours(subject) = sort(Door::ValidateDelete, decode(&body).unwrap()) else {
        panic!("foreign");
    };
    let mut decision = Decision::default();
    let path = agents::api::object::cause::Path::root("metadata");
    let reason = agents::api::object::cause::Reason::OutcomeNotRecorded;
    decision.find(
        Rule::JobDelete,
        Mode::Warn,
        Some(agents::api::object::cause::Cause::new(&path, reason, "x")),
    );
    let (sender, _receiver) = mpsc::channel(1);
    let actors = Actors {
        queue: Some(sender),
        metrics: Metrics::default(),
    };
    for _ in 0..3 {
        actors.keep(&subject, &decision, now());
    }
    assert_eq!(actors.metrics.lost.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_still_being_written_at_the_end_is_counted_as_lost() {
    let (sender, receiver) = mpsc::channel(2);
    let deletion = kept(&job(), Mode::Warn, false).unwrap();
    for _ in 0..2 {
        sender.try_send(deletion.clone()).unwrap();
    }
    let metrics = Metrics::default();
    let scribe = Scribe::new(silent_cluster(), receiver, metrics.clone());
    // The first is under way when the end comes, the second still waits.
    scribe.run(end_after(Duration::from_secs(1))).await;
    assert_eq!((metrics.written.get(), metrics.lost.get()), (0, 2));
}

async fn end_after(time: Duration) -> Instant {
    sleep(time).await;
    Instant::now() + time
}
