use super::*;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn finished(second: i64) -> LastStatus {
    LastStatus::Finished {
        at: at(second),
        outcome: Outcome::Succeeded,
    }
}

fn deleted(second: i64, finalizers: &[&str]) -> Option<Deletion> {
    Some(Deletion {
        at: at(second),
        finalizers: finalizers.iter().map(|&name| name.to_owned()).collect(),
    })
}

fn ttl(seconds: i64) -> Option<SignedDuration> {
    Some(SignedDuration::from_secs(seconds))
}

const PERSON: &str = "jane@example.com";
const TTL_CONTROLLER: &str = "system:serviceaccount:kube-system:ttl-after-finished-controller";
const NAMESAKE: &str = "system:serviceaccount:team-a:ttl-after-finished-controller";
const CRONJOB_CONTROLLER: &str = "system:serviceaccount:kube-system:cronjob-controller";

/// A Job that was created, ended well at 10 and is gone at 100, with everything around it in order.
fn gone() -> Evidence {
    Evidence {
        absence: Absence::NotFound,
        create: CreateCall::Accepted,
        last_status: finished(10),
        ttl: None,
        deletion: None,
        noticed_at: at(100),
        owner: OwnerState::Alive,
        namespace_terminating: false,
        pods: vec![],
        runner_report: None,
        actor: None,
    }
}

fn pod(owned: bool, state: PodState) -> PodEvidence {
    PodEvidence {
        owned,
        state,
        ended_at: None,
    }
}

fn finding(class: Class, certainty: Certainty, recovered: Recovered) -> Finding {
    Finding {
        class,
        certainty,
        recovered,
        outcome: (recovered != Recovered::None).then_some(Outcome::Succeeded),
        ended_at: (recovered == Recovered::FromDeletedObject).then(|| at(10)),
        actor: None,
    }
}

#[track_caller]
fn check(rows: Vec<(&str, Evidence, Finding)>) {
    for (row, evidence, expected) in rows {
        assert_eq!(classify(&evidence), expected, "{row}");
    }
}

#[test]
fn what_a_delete_leaves_behind_is_read_right() {
    use Certainty::*;
    use Recovered::*;
    check(vec![
        (
            "TTL expiry",
            Evidence {
                ttl: ttl(60),
                deletion: deleted(70, &["foregroundDeletion"]),
                ..gone()
            },
            finding(Class::JobTtlExpired, Certain, FromDeletedObject),
        ),
        (
            "kubectl delete in the background",
            gone(),
            finding(Class::JobDeletedUnknown, Unknown, FromDeletedObject),
        ),
        (
            "API DELETE without a policy",
            Evidence {
                deletion: deleted(20, &["orphan"]),
                pods: vec![pod(false, PodState::Succeeded)],
                ..gone()
            },
            finding(Class::JobDeletedOrphaned, Certain, FromDeletedObject),
        ),
        (
            "owner deleted in the background",
            Evidence {
                owner: OwnerState::Gone,
                ..gone()
            },
            finding(Class::OwnerDeleted, Certain, FromDeletedObject),
        ),
        (
            "owner deleted in the foreground",
            Evidence {
                owner: OwnerState::Terminating,
                deletion: deleted(20, &["foregroundDeletion"]),
                ..gone()
            },
            finding(Class::OwnerDeleted, Certain, FromDeletedObject),
        ),
        (
            "namespace deleted",
            Evidence {
                namespace_terminating: true,
                ..gone()
            },
            finding(Class::NamespaceTerminating, Certain, FromDeletedObject),
        ),
        (
            "history limit of a CronJob, seen by the audit log",
            Evidence {
                actor: Some(CRONJOB_CONTROLLER.to_owned()),
                ..gone()
            },
            Finding {
                actor: Some(CRONJOB_CONTROLLER.to_owned()),
                ..finding(Class::JobDeletedByActor, Certain, FromDeletedObject)
            },
        ),
        (
            "TTL of 0 with our finalizer",
            Evidence {
                ttl: ttl(0),
                deletion: deleted(10, &["foregroundDeletion", "agents.proompteng.ai/outcome"]),
                ..gone()
            },
            finding(Class::JobTtlExpired, Certain, FromDeletedObject),
        ),
    ]);
}

#[test]
fn the_surprising_cases_are_read_right() {
    use Certainty::*;
    use Recovered::*;
    let running = || Evidence {
        last_status: LastStatus::Active,
        ..gone()
    };
    let ours = "agents.proompteng.ai/outcome";
    check(vec![
        (
            "running, our finalizer, foreground delete: pods are gone",
            Evidence {
                deletion: deleted(20, &["foregroundDeletion", ours]),
                ..running()
            },
            finding(Class::JobDeletedWhileRunning, Certain, None),
        ),
        (
            "running, our finalizer, background delete: the pod runs on",
            Evidence {
                deletion: deleted(20, &[ours]),
                pods: vec![pod(true, PodState::Active)],
                ..running()
            },
            finding(Class::JobDeletedWhileRunning, Certain, None),
        ),
        (
            "running, our finalizer, background delete: the pod has succeeded",
            Evidence {
                deletion: deleted(20, &[ours]),
                pods: vec![pod(true, PodState::Succeeded)],
                ..running()
            },
            finding(Class::JobDeletedWhileRunning, Certain, FromPod),
        ),
        (
            "running, no finalizer, background delete",
            running(),
            finding(Class::JobDeletedWhileRunning, Certain, None),
        ),
        (
            "running, default delete: the pod runs on without an owner",
            Evidence {
                deletion: deleted(20, &["orphan"]),
                pods: vec![pod(false, PodState::Active)],
                ..running()
            },
            finding(Class::JobDeletedWhileRunning, Certain, None),
        ),
        (
            "pod finalizer, TTL of 0: the pod still tells",
            Evidence {
                last_status: LastStatus::Unknown,
                pods: vec![pod(true, PodState::Succeeded)],
                ..gone()
            },
            finding(Class::JobDeletedUnknown, Unknown, FromPod),
        ),
        (
            "pod finalizer, background delete while running: the pod is terminating with its status",
            Evidence {
                pods: vec![pod(true, PodState::Succeeded)],
                ..running()
            },
            finding(Class::JobDeletedWhileRunning, Certain, FromPod),
        ),
        (
            "TTL shortened after the end: it counts from the end",
            Evidence {
                ttl: ttl(1),
                deletion: deleted(50, &["foregroundDeletion"]),
                ..gone()
            },
            finding(Class::JobTtlExpired, Certain, FromDeletedObject),
        ),
        (
            "deleted after its TTL by someone who has only the name of the TTL controller",
            Evidence {
                ttl: ttl(0),
                deletion: deleted(13, &["foregroundDeletion"]),
                actor: Some(NAMESAKE.to_owned()),
                ..gone()
            },
            Finding {
                actor: Some(NAMESAKE.to_owned()),
                ..finding(Class::JobDeletedByActor, Certain, FromDeletedObject)
            },
        ),
        (
            "deleted by the TTL controller once the admission guard let it",
            Evidence {
                ttl: ttl(0),
                deletion: deleted(13, &["foregroundDeletion"]),
                actor: Some(TTL_CONTROLLER.to_owned()),
                ..gone()
            },
            Finding {
                actor: Some(TTL_CONTROLLER.to_owned()),
                ..finding(Class::JobTtlExpired, Certain, FromDeletedObject)
            },
        ),
    ]);
}

#[test]
fn each_class_has_its_test() {
    use Certainty::*;
    use Recovered::*;
    let reserved = |create| Evidence {
        create,
        last_status: LastStatus::Unknown,
        ..gone()
    };
    let by_person = |evidence| Evidence {
        actor: Some(PERSON.to_owned()),
        ..evidence
    };
    let named = |finding| Finding {
        actor: Some(PERSON.to_owned()),
        ..finding
    };
    check(vec![
        (
            "1 another Job has the name, whatever else holds",
            Evidence {
                absence: Absence::NameTaken,
                namespace_terminating: true,
                owner: OwnerState::Gone,
                ..gone()
            },
            finding(Class::JobReplaced, Certain, FromDeletedObject),
        ),
        (
            "2 the namespace ends before the owner is looked at",
            Evidence {
                namespace_terminating: true,
                owner: OwnerState::Gone,
                ..gone()
            },
            finding(Class::NamespaceTerminating, Certain, FromDeletedObject),
        ),
        (
            "3 the owner was made again under its name",
            Evidence {
                owner: OwnerState::Replaced,
                ..gone()
            },
            finding(Class::OwnerDeleted, Certain, FromDeletedObject),
        ),
        (
            "4 the create call was refused",
            reserved(CreateCall::Refused),
            finding(Class::JobNeverCreated, Certain, None),
        ),
        (
            "4 the create call got no answer",
            reserved(CreateCall::Unanswered),
            finding(Class::JobNeverCreated, Likely, None),
        ),
        (
            "4 not so if there are pods of it",
            Evidence {
                pods: vec![pod(true, PodState::Active)],
                ..reserved(CreateCall::Unanswered)
            },
            finding(Class::JobDeletedUnknown, Unknown, None),
        ),
        (
            "5 nobody saw the deletion, but the TTL was over",
            Evidence {
                ttl: ttl(60),
                ..gone()
            },
            finding(Class::JobTtlExpired, Likely, FromDeletedObject),
        ),
        (
            "5 a second early is in time",
            Evidence {
                ttl: ttl(3),
                deletion: deleted(12, &["foregroundDeletion"]),
                ..gone()
            },
            finding(Class::JobTtlExpired, Certain, FromDeletedObject),
        ),
        (
            "5 not so before the TTL is over",
            Evidence {
                ttl: ttl(600),
                deletion: deleted(20, &["foregroundDeletion"]),
                ..gone()
            },
            finding(Class::JobDeletedUnknown, Unknown, FromDeletedObject),
        ),
        (
            "5 not so if a person is known to have done it",
            by_person(Evidence {
                ttl: ttl(60),
                ..gone()
            }),
            named(finding(
                Class::JobDeletedByActor,
                Certain,
                FromDeletedObject,
            )),
        ),
        (
            "6 deleted while running, and by whom",
            by_person(Evidence {
                last_status: LastStatus::Active,
                ..gone()
            }),
            named(finding(Class::JobDeletedWhileRunning, Certain, None)),
        ),
        (
            "6 the runner's own word is the last resort",
            Evidence {
                last_status: LastStatus::Active,
                runner_report: Some(Outcome::Succeeded),
                ..gone()
            },
            finding(Class::JobDeletedWhileRunning, Certain, FromRunnerReport),
        ),
        (
            "7 pods without an owner",
            Evidence {
                pods: vec![pod(false, PodState::Succeeded)],
                ..gone()
            },
            finding(Class::JobDeletedOrphaned, Certain, FromDeletedObject),
        ),
        (
            "8 someone known deleted it",
            by_person(gone()),
            named(finding(
                Class::JobDeletedByActor,
                Certain,
                FromDeletedObject,
            )),
        ),
        (
            "9 nothing says why",
            Evidence {
                last_status: LastStatus::Unknown,
                ..gone()
            },
            finding(Class::JobDeletedUnknown, Unknown, None),
        ),
    ]);
}

#[test]
fn failed_pods_tell_only_when_none_works_any_more() {
    use PodState::*;
    for (states, outcome) in [
        (vec![], None),
        (vec![Active], None),
        (vec![Failed], Some(Outcome::Failed)),
        (vec![Failed, Active], None),
        (vec![Failed, Succeeded], Some(Outcome::Succeeded)),
    ] {
        let pods: Vec<_> = states.iter().map(|&state| pod(true, state)).collect();
        assert_eq!(pods_say(&pods), outcome, "{states:?}");
    }
}

#[test]
fn finalizers_go_when_the_outcome_is_stored_or_nobody_waits_for_it() {
    use OwnerState::*;
    for (row, recorded, owner, namespace_terminating, expected) in [
        ("stored", true, Alive, false, Some(Release::Recorded)),
        ("not stored", false, Alive, false, None),
        (
            "owner going, but still waiting",
            false,
            Terminating,
            false,
            None,
        ),
        ("owner gone", false, Gone, false, Some(Release::OwnerGone)),
        (
            "owner replaced",
            false,
            Replaced,
            false,
            Some(Release::OwnerGone),
        ),
        (
            "namespace going",
            false,
            Alive,
            true,
            Some(Release::NamespaceTerminating),
        ),
        (
            "namespace and owner going",
            false,
            Terminating,
            true,
            Some(Release::NamespaceTerminating),
        ),
    ] {
        let hold = Hold {
            recorded,
            owner,
            namespace_terminating,
        };
        assert_eq!(release(hold), expected, "{row}");
    }
}

#[test]
fn a_job_is_read_by_its_conditions() {
    let job = |status| -> Job { serde_json::from_value(json!({ "status": status })).unwrap() };
    let time = "2023-11-14T22:13:30Z";
    for (row, status, expected) in [
        ("nothing yet", json!({}), LastStatus::Active),
        (
            "counters alone say nothing",
            json!({"failed": 1}),
            LastStatus::Active,
        ),
        (
            "verdict known, pods still ending",
            json!({"conditions": [{"type": "FailureTarget", "status": "True", "lastTransitionTime": time}]}),
            LastStatus::Active,
        ),
        (
            "complete",
            json!({"conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": time}]}),
            finished(10),
        ),
        (
            "failed by deadline, no failed pod counted",
            json!({"conditions": [{"type": "Failed", "status": "True", "lastTransitionTime": time}]}),
            LastStatus::Finished {
                at: at(10),
                outcome: Outcome::Failed,
            },
        ),
        (
            "a condition that does not hold",
            json!({"conditions": [{"type": "Failed", "status": "False", "lastTransitionTime": time}]}),
            LastStatus::Active,
        ),
    ] {
        assert_eq!(last_status_of(&job(status)), expected, "{row}");
    }
}

#[test]
fn deletion_and_pods_are_read_from_their_objects() {
    let job: Job = serde_json::from_value(json!({"metadata": {
        "deletionTimestamp": "2023-11-14T22:13:30Z",
        "finalizers": ["orphan"],
    }}))
    .unwrap();
    assert_eq!(deletion_of(&job), deleted(10, &["orphan"]));
    assert_eq!(deletion_of(&Job::default()), None);
    for (phase, state) in [
        ("Pending", PodState::Active),
        ("Running", PodState::Active),
        ("Unknown", PodState::Active),
        ("Succeeded", PodState::Succeeded),
        ("Failed", PodState::Failed),
    ] {
        let pod: Pod = serde_json::from_value(json!({"status": {"phase": phase}})).unwrap();
        assert_eq!(pod_state_of(&pod), state, "{phase}");
    }
}

#[test]
fn the_end_is_when_the_witness_says_and_not_when_it_was_noticed() {
    let ended = |seconds| PodEvidence {
        ended_at: Some(at(seconds)),
        ..pod(true, PodState::Failed)
    };
    let silent = |pods| Evidence {
        last_status: LastStatus::Active,
        pods,
        ..gone()
    };
    for (row, evidence, expected) in [
        ("the Job itself", gone(), Some(at(10))),
        (
            "the last of its pods",
            silent(vec![ended(20), ended(40)]),
            Some(at(40)),
        ),
        (
            "a pod that does not say when",
            silent(vec![pod(true, PodState::Failed)]),
            None,
        ),
        ("nobody", silent(vec![]), None),
    ] {
        assert_eq!(classify(&evidence).ended_at, expected, "{row}");
    }
}

#[test]
fn a_runner_reports_in_the_last_words_of_its_container() {
    let labels =
        json!({"agents.proompteng.ai/run-uid": "u-1", "agents.proompteng.ai/step-attempt": "2"});
    let pod = |name: &str, labels: &serde_json::Value, message: &str| -> Pod {
        let ended = json!({"terminated": {"exitCode": 0, "message": message}});
        let pod = json!({"metadata": {"labels": labels}, "status": {"phase": "Running", "containerStatuses": [
            {"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": ended},
        ]}});
        serde_json::from_value(pod).unwrap()
    };
    let (good, bad) = (Some(Outcome::Succeeded), Some(Outcome::Failed));
    for (row, message, expected) in [
        ("well", r#"{"outcome": "succeeded"}"#, good),
        ("badly", r#"{"outcome": "failed", "cost": 3}"#, bad),
        (
            "of this try",
            r#"{"outcome": "failed", "runUid": "u-1", "attempt": 2}"#,
            bad,
        ),
        (
            "of another run",
            r#"{"outcome": "failed", "runUid": "u-2"}"#,
            None,
        ),
        (
            "of another try",
            r#"{"outcome": "succeeded", "attempt": 1}"#,
            None,
        ),
        ("a word that nobody knows", r#"{"outcome": "great"}"#, None),
        ("no report", "panic: runtime error", None),
        ("nothing", "", None),
    ] {
        assert_eq!(
            report_of(&pod("runner", &labels, message), "runner"),
            expected,
            "{row}"
        );
    }
    let first = r#"{"outcome": "succeeded", "attempt": 1}"#;
    assert_eq!(
        report_of(&pod("runner", &json!({}), first), "runner"),
        good,
        "a run without steps has one try"
    );
    assert_eq!(
        report_of(&pod("proxy", &labels, first), "runner"),
        None,
        "someone else"
    );
    assert_eq!(
        report_of(&Pod::default(), "runner"),
        None,
        "no container yet"
    );
}
