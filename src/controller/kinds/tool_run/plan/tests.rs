//! The life of a call, as a table: a line is what was found, and what is then done in words.

use serde_json::json;

use super::*;
use crate::api::custody::Absence;
use crate::controller::agent_run::Keep;
use crate::controller::driver::fault::{Class, Fault};
use crate::controller::runs::testing::after;

const NOW: &str = "2026-01-01T00:01:00Z";

fn run(more: &Value) -> ToolRun {
    let mut run = json!({
        "metadata": {
            "name": "r", "namespace": "here", "uid": "u-1", "generation": 1,
            "finalizers": [finalizer::RUNTIME_CLEANUP],
        },
        "spec": {"toolRef": {"name": "lint"}},
    });
    json_patch::merge(&mut run, more);
    serde_json::from_value(run).unwrap()
}

fn job(more: &Value) -> Sight {
    let mut job = json!({
        "metadata": {
            "name": "r-tool", "namespace": "here", "uid": "j-1", "finalizers": [finalizer::OUTCOME],
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
    });
    json_patch::merge(&mut job, more);
    Sight::Ours(Arc::new(serde_json::from_value(job).unwrap()))
}

fn ended(word: &str) -> Value {
    json!({"status": {"conditions": [
        {"type": word, "status": "True", "lastTransitionTime": "2026-01-01T00:00:30Z"},
    ]}})
}

fn tool() -> Arc<Tool> {
    let tool = json!({
        "metadata": {"name": "lint"},
        "spec": {"image": "lint:1", "command": ["/lint"], "ttlSecondsAfterFinished": 60},
    });
    Arc::new(serde_json::from_value(tool).unwrap())
}

fn seen(run: ToolRun, job: Sight) -> Observed {
    Observed {
        now: NOW.parse().unwrap(),
        policy: Arc::default(),
        run: Some(Arc::new(run)),
        tool: Some(tool()),
        job,
        in_the_way: None,
        pods: Vec::new(),
        namespace_terminating: false,
        stray_jobs: Vec::new(),
        stray_pods: Vec::new(),
    }
}

fn settings() -> Settings {
    Settings {
        grace: Duration::from_secs(60),
        keep: Keep::default(),
        container: None,
    }
}

fn words(plan: &RunPlan) -> String {
    let steps = plan.steps.iter().map(|step| match step {
        Step::Do(Action::Hold) => "hold".to_owned(),
        Step::Do(Action::LetGo) => "let go".to_owned(),
        Step::Do(Action::MakeConfigMap(_)) => "make the document".to_owned(),
        Step::Do(Action::MakeJob(_)) => "make the Job".to_owned(),
        Step::Do(Action::Release { why, .. }) => match why {
            Why::Stored { ttl } => format!("release for {ttl:?}"),
            Why::OwnerGone => "release a stray".to_owned(),
            Why::NamespaceTerminating => "release with the namespace".to_owned(),
        },
        Step::Do(Action::Stop(_)) => "stop".to_owned(),
        Step::Do(Action::ReleasePod(_)) => "release a pod".to_owned(),
        Step::Do(Action::StopPod(_)) => "stop a pod".to_owned(),
        Step::Status(standing) => {
            let phase = standing.status.phase.clone().unwrap_or_default();
            format!("{phase} {}", standing.reason.as_str())
        }
    });
    let steps: Vec<_> = steps.collect();
    steps.join(", ")
}

#[test]
fn each_step_of_a_call_follows_from_what_is_seen() {
    let reserved = json!({"status": {"phase": "Pending", "jobRef": {"name": "r-tool"}}});
    let bound = json!({"status": {"phase": "Running", "jobRef": {"name": "r-tool", "uid": "j-1"}}});
    let with = |status: &Value, more: Value| {
        let mut both = status.clone();
        json_patch::merge(&mut both, &more);
        both
    };
    let done = |phase: &str| json!({"status": {"phase": phase, "jobRef": {"name": "r-tool", "uid": "j-1"}, "observedGeneration": 1}});
    let going = json!({"metadata": {"deletionTimestamp": NOW}});
    let gone = || Sight::Gone {
        absence: Absence::NotFound,
        last: None,
    };
    let over = |job: &Sight| Arc::clone(job.absence().1.unwrap());
    let taken = || Sight::Taken(Arc::default());
    let marked =
        json!({"metadata": {"finalizers": [], "annotations": {annotation::OUTCOME_RECORDED: "x"}}});
    for (row, given, sight, expected) in [
        (
            "new",
            json!({"metadata": {"finalizers": []}}),
            Sight::Absent,
            "hold",
        ),
        ("held", json!({}), Sight::Absent, "Pending Pending"),
        (
            "reserved",
            reserved.clone(),
            Sight::Absent,
            "make the document, make the Job",
        ),
        ("made", reserved.clone(), job(&json!({})), "Running Running"),
        (
            "made and ended",
            reserved.clone(),
            job(&ended("Complete")),
            "Running Running",
        ),
        (
            "taken",
            reserved.clone(),
            taken(),
            "Pending JobNameConflict",
        ),
        (
            "a pod that may be its work",
            reserved.clone(),
            Sight::Claimed(Arc::default()),
            "Pending JobNameConflict",
        ),
        (
            "made and gone before its uid was kept",
            reserved.clone(),
            gone(),
            "Failed JobDeletedUnknown",
        ),
        ("follows", bound.clone(), job(&json!({})), "Running Running"),
        (
            "completed",
            bound.clone(),
            job(&ended("Complete")),
            "Succeeded Completed",
        ),
        (
            "failed",
            bound.clone(),
            job(&ended("Failed")),
            "Failed JobFailed",
        ),
        ("gone", bound.clone(), gone(), "Failed JobDeletedUnknown"),
        (
            "cancelled",
            with(&bound, json!({"spec": {"cancel": true}})),
            job(&json!({})),
            "Cancelled Cancelled",
        ),
        (
            "cancelled too late",
            with(&bound, json!({"spec": {"cancel": true}})),
            job(&ended("Complete")),
            "Succeeded Completed",
        ),
        (
            "deleted",
            with(&bound, going.clone()),
            job(&json!({})),
            "Cancelled Cancelled",
        ),
        (
            "deleted, and its Job is gone",
            with(&bound, going.clone()),
            gone(),
            "Cancelled Cancelled",
        ),
        (
            "deleted, and its Job was last seen at its end",
            with(&bound, going.clone()),
            Sight::Gone {
                absence: Absence::NotFound,
                last: Some(over(&job(&ended("Complete")))),
            },
            "Succeeded Completed",
        ),
        (
            "wrong",
            json!({"spec": {"toolRef": {"name": ""}}}),
            Sight::Absent,
            "Failed Required",
        ),
        (
            "to release",
            done("Succeeded"),
            job(&ended("Complete")),
            "release for Some(60)",
        ),
        (
            "to stop",
            done("Cancelled"),
            job(&json!({})),
            "release for None, stop",
        ),
        (
            "settled",
            done("Succeeded"),
            job(&with(&ended("Complete"), marked)),
            "",
        ),
        (
            "to let go",
            with(&done("Succeeded"), going),
            Sight::Absent,
            "let go",
        ),
    ] {
        let plan = plan(&seen(run(&given), sight), &settings());
        assert_eq!(words(&plan), expected, "{row}");
    }
}

#[test]
fn who_deleted_the_job_of_a_call_is_named() {
    let by = json!({"job": "r-tool", "uid": "j-1", "user": "jane", "at": NOW}).to_string();
    let bound = json!({
        "metadata": {"annotations": {annotation::JOB_DELETED_BY: by}},
        "status": {"phase": "Running", "jobRef": {"name": "r-tool", "uid": "j-1"}},
    });
    let Sight::Ours(last) = job(&ended("Complete")) else {
        panic!("a Job");
    };
    let gone = Sight::Gone {
        absence: Absence::NotFound,
        last: Some(last),
    };
    let plan = plan(&seen(run(&bound), gone), &settings());
    let [Step::Status(next)] = plan.steps.as_slice() else {
        panic!("one status: {plan:?}");
    };
    let missing = next.status.job_ref.as_ref().unwrap().missing.as_ref();
    let missing = missing.map(|missing| (missing.class.as_deref(), missing.actor.as_deref()));
    assert_eq!(missing, Some((Some("JobDeletedByActor"), Some("jane"))));
}

#[test]
fn a_call_that_is_deleted_keeps_why_its_job_is_gone() {
    let going = json!({
        "metadata": {"deletionTimestamp": NOW},
        "status": {"phase": "Running", "jobRef": {"name": "r-tool", "uid": "j-1"}},
    });
    let gone = Sight::Gone {
        absence: Absence::NotFound,
        last: None,
    };
    let plan = plan(&seen(run(&going), gone), &settings());
    let [Step::Status(next)] = plan.steps.as_slice() else {
        panic!("one status: {plan:?}");
    };
    let missing = next.status.job_ref.as_ref().unwrap().missing.as_ref();
    let class = missing.and_then(|missing| missing.class.as_deref());
    assert_eq!(class, Some("OwnerDeleted"));
    let told = next.notices.iter().map(|notice| notice.reason.as_str());
    assert_eq!(told.collect::<Vec<_>>(), ["Cancelled", "OwnerDeleted"]);
}

#[test]
fn a_call_waits_for_its_tool_but_not_for_ever() {
    let mut waits = seen(run(&json!({})), Sight::Absent);
    waits.tool = None;
    let first = plan(&waits, &settings());
    assert_eq!(words(&first), "Pending MissingTool");
    let over: Timestamp = "2026-01-01T00:02:00Z".parse().unwrap();
    assert_eq!(first.next, Next::At(over));
    let blocked = json!({"status": {"conditions": [
        {"type": "ReferencesResolved", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]}});
    waits.run = Some(Arc::new(run(&blocked)));
    assert_eq!(words(&plan(&waits, &settings())), "Failed MissingTool");
}

#[test]
fn what_is_held_for_a_call_that_is_gone_is_released() {
    let Sight::Ours(stray) = job(&json!({})) else {
        panic!("a Job");
    };
    let mut gone = seen(run(&json!({})), Sight::Absent);
    gone.run = None;
    gone.stray_jobs.push(stray);
    assert_eq!(words(&plan(&gone, &settings())), "release a stray");
}

fn pod(more: &Value) -> Arc<Pod> {
    let mut pod = json!({
        "metadata": {"name": "r-tool-x", "namespace": "here", "finalizers": [finalizer::EVIDENCE]},
        "status": {"phase": "Pending"},
    });
    json_patch::merge(&mut pod, more);
    Arc::new(serde_json::from_value(pod).unwrap())
}

#[test]
fn a_pod_that_never_ran_does_not_hold_up_the_end_of_its_job() {
    let bound = json!({"status": {"phase": "Running", "jobRef": {"name": "r-tool", "uid": "j-1"}}});
    let going = json!({"metadata": {"deletionTimestamp": NOW}});
    let mut placed = going.clone();
    placed["spec"] = json!({"nodeName": "n", "containers": []});
    for (row, pod, expected) in [
        (
            "not scheduled, and deleted at the deadline",
            pod(&going),
            "Running Running, release a pod",
        ),
        ("not scheduled yet", pod(&json!({})), "Running Running"),
        (
            "on a node, which will tell how it ends",
            pod(&placed),
            "Running Running",
        ),
    ] {
        let mut here = seen(run(&bound), job(&json!({})));
        here.pods.push(pod);
        assert_eq!(words(&plan(&here, &settings())), expected, "{row}");
    }
}

#[test]
fn a_pod_that_lost_its_job_works_no_longer_than_that_would_have_let_it() {
    let bound = json!({"status": {"phase": "Running", "jobRef": {"name": "r-tool", "uid": "j-1"}}});
    let deleted = |deadline: Option<i64>| {
        job(&json!({
            "metadata": {"deletionTimestamp": NOW},
            "spec": {"activeDeadlineSeconds": deadline, "template": {}},
            "status": {"startTime": "2026-01-01T00:00:00Z"},
        }))
    };
    let gone = Sight::Gone {
        absence: Absence::NotFound,
        last: None,
    };
    let later: Timestamp = "2026-01-01T00:01:01Z".parse().unwrap();
    for (row, sight, expected, next) in [
        ("no limit", deleted(None), "Running Running", Next::Wait),
        (
            "in time",
            deleted(Some(61)),
            "Running Running",
            Next::At(later),
        ),
        (
            "its time is over",
            deleted(Some(60)),
            "Failed TimedOut",
            Next::Wait,
        ),
        (
            "nobody saw its Job, but its Tool is there",
            gone,
            "Failed TimedOut",
            Next::Wait,
        ),
    ] {
        let mut here = seen(run(&bound), sight);
        let mut brief = (*tool()).clone();
        brief.spec.timeout_seconds = Some(60);
        here.tool = Some(Arc::new(brief));
        here.pods.push(pod(&json!({
            "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
            "status": {"phase": "Running"},
        })));
        let plan = plan(&here, &settings());
        assert_eq!(words(&plan), expected, "{row}");
        assert_eq!(plan.next, next, "{row}");
    }
}

#[test]
fn the_runner_of_a_call_is_a_witness_of_its_own() {
    let bound = json!({"status": {"phase": "Running", "jobRef": {"name": "r-tool", "uid": "j-1"}}});
    let reported = |phase: &str, outcome: &str| {
        let message = json!({ "outcome": outcome }).to_string();
        let owner =
            json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "r-tool", "uid": "j-1"}]);
        pod(
            &json!({"metadata": {"ownerReferences": owner}, "status": {"phase": phase, "containerStatuses": [
                {"name": "tool-runner", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                    "state": {"terminated": {"exitCode": 0, "message": message}}},
            ]}}),
        )
    };
    let gone = || Sight::Gone {
        absence: Absence::NotFound,
        last: None,
    };
    let lost = ["Succeeded", "OutcomeRecovered", "JobDeletedUnknown"];
    let told = [
        "Failed",
        "OutcomeRecovered",
        "OutcomeConflict",
        "JobDeletedUnknown",
    ];
    for (row, pod, sight, expected, events) in [
        (
            "the last resort",
            reported("Running", "succeeded"),
            gone(),
            "Succeeded Completed",
            &lost[..],
        ),
        (
            "the pod counts more",
            reported("Failed", "succeeded"),
            gone(),
            "Failed JobFailed",
            &told[..],
        ),
        (
            "the Job counts more",
            reported("Succeeded", "failed"),
            job(&ended("Complete")),
            "Succeeded Completed",
            &["Succeeded", "OutcomeConflict"],
        ),
        (
            "they agree",
            reported("Succeeded", "succeeded"),
            job(&ended("Complete")),
            "Succeeded Completed",
            &["Succeeded"],
        ),
    ] {
        let mut here = seen(run(&bound), sight);
        here.pods.push(pod);
        let plan = plan(&here, &settings());
        assert_eq!(words(&plan), expected, "{row}");
        let [Step::Status(next)] = plan.steps.as_slice() else {
            panic!("{row}: {plan:?}");
        };
        let notices = next.notices.iter().map(|notice| notice.reason.as_str());
        assert_eq!(notices.collect::<Vec<_>>(), events, "{row}");
    }
}

#[test]
fn nothing_of_a_call_is_left_at_work_nor_held_when_it_has_ended() {
    let failed = json!({"status": {"phase": "Failed", "observedGeneration": 1}});
    let mut orphan = seen(run(&failed), Sight::Absent);
    orphan
        .pods
        .push(pod(&json!({"status": {"phase": "Running"}})));
    assert_eq!(
        words(&plan(&orphan, &settings())),
        "release a pod, stop a pod"
    );

    let going = json!({
        "metadata": {"deletionTimestamp": NOW},
        "status": {"phase": "Running", "jobRef": {"name": "r-tool", "uid": "j-1"}},
    });
    let mut last = seen(run(&going), job(&json!({})));
    last.namespace_terminating = true;
    last.pods.push(pod(&json!({})));
    assert_eq!(
        words(&plan(&last, &settings())),
        "release with the namespace, release a pod, let go"
    );
}

#[test]
fn a_fault_does_not_begin_the_grace_anew() {
    let mut waits = seen(run(&json!({})), Sight::Absent);
    waits.tool = None;
    let first = plan(&waits, &settings());
    let [Step::Status(next)] = first.steps.as_slice() else {
        panic!("a status");
    };
    let waiting = after(
        Kind::ToolRun,
        waits.run.as_deref().unwrap(),
        next,
        waits.now,
    );
    let fault = Fault::new("look up the Job", Class::Retryable, "the server is busy");
    let troubled = status::troubled(&waiting, &fault).unwrap();
    let later = "2026-01-01T00:01:30Z".parse().unwrap();
    waits.run = Some(Arc::new(after(Kind::ToolRun, &waiting, &troubled, later)));
    waits.now = later;
    assert_eq!(plan(&waits, &settings()).next, first.next);
}

#[test]
fn the_policy_judges_a_call_by_the_tool_that_it_finds() {
    let with = |modes: &str| {
        let text = format!("{{images: {{denied: ['lint:*']}}, modes: {modes}}}");
        Observed {
            policy: Arc::new(Policy::parse(&text).unwrap()),
            ..seen(run(&json!({})), Sight::Absent)
        }
    };
    for (modes, expected) in [
        ("{}", "Failed ImageBlocked"),
        ("{DeniedImages: warn}", "Pending Pending"),
        ("{DeniedImages: audit}", "Pending Pending"),
    ] {
        assert_eq!(words(&plan(&with(modes), &settings())), expected, "{modes}");
    }
    let plan = plan(&with("{DeniedImages: warn}"), &settings());
    let [Step::Status(standing)] = plan.steps.as_slice() else {
        panic!("one status: {plan:?}");
    };
    let warning = standing.observed.iter();
    let warning = warning.map(|entry| (entry.type_.as_str(), entry.reason.as_str()));
    assert_eq!(warning.collect::<Vec<_>>(), [("Warning", "ImageBlocked")]);
    assert_eq!(standing.notices.len(), 1);
}
