mod rules;
mod steps;

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::controller::agent_run::admission::{Limits, Refusal};
use crate::controller::agent_run::settings::{Keep, Runner};

const NOW: &str = "2026-01-01T12:00:00Z";
const UID: &str = "run-uid";
const JOB_UID: &str = "job-uid";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn settings() -> Settings {
    Settings {
        grace: Duration::from_secs(600),
        retention: Duration::from_secs(3600),
        immutable: true,
        keep: Keep {
            succeeded: Duration::from_secs(600),
            failed: Duration::from_secs(7200),
            logs: Duration::ZERO,
        },
        runner: Runner::default(),
        limits: Limits::default(),
    }
}

fn read<K: serde::de::DeserializeOwned>(object: Value) -> Arc<K> {
    Arc::new(serde_json::from_value(object).unwrap())
}

/// A run with our finalizer and this status.
fn run(metadata: Value, spec: Value, status: Value) -> Arc<AgentRun> {
    let mut run = json!({
        "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun",
        "metadata": {"name": "r", "namespace": "a", "uid": UID, "generation": 1,
            "finalizers": ["agents.proompteng.ai/runtime-cleanup"]},
        "spec": {"agentRef": {"name": "coder"}, "implementation": {"inline": {"text": "Do it."}},
            "runtime": {"type": "job"}, "workload": {"image": "runner:1"}},
        "status": status,
    });
    for (part, more) in [("metadata", metadata), ("spec", spec)] {
        let more = more.as_object().unwrap().clone();
        run[part].as_object_mut().unwrap().extend(more);
    }
    read(run)
}

fn new() -> Arc<AgentRun> {
    run(json!({}), json!({}), json!({}))
}

fn reserved() -> Value {
    json!({"phase": "Pending", "jobRef": {"name": "r-job", "namespace": "a"}})
}

fn bound() -> Value {
    json!({"phase": "Running", "startedAt": "2026-01-01T11:00:00Z", "jobRef": {"name": "r-job", "namespace": "a", "uid": JOB_UID}})
}

fn ended(phase: &str) -> Value {
    json!({"phase": phase, "finishedAt": "2026-01-01T11:59:00Z", "observedGeneration": 1,
        "jobRef": {"name": "r-job", "namespace": "a", "uid": JOB_UID}})
}

fn running() -> Arc<AgentRun> {
    run(json!({}), json!({}), bound())
}

fn found() -> Found {
    Found {
        agent: Some(read(
            json!({"metadata": {"name": "coder"}, "spec": {"providerRef": {"name": "shell"}}}),
        )),
        provider: Some(read(
            json!({"metadata": {"name": "shell"}, "spec": {"binary": "/agent"}}),
        )),
        ..Found::default()
    }
}

fn job(metadata: Value, conditions: Value) -> Sight {
    Sight::Ours(a_job(metadata, conditions))
}

fn a_job(metadata: Value, conditions: Value) -> Arc<Job> {
    let mut job = json!({
        "metadata": {"name": "r-job", "namespace": "a", "uid": JOB_UID, "creationTimestamp": "2026-01-01T11:00:00Z",
            "finalizers": ["agents.proompteng.ai/outcome"]},
        "spec": {"template": {}}, "status": {"conditions": conditions},
    });
    let more = metadata.as_object().unwrap().clone();
    job["metadata"].as_object_mut().unwrap().extend(more);
    read(job)
}

fn active() -> Sight {
    job(json!({}), json!([]))
}

fn condition(type_: &str, reason: &str) -> Value {
    json!([{"type": type_, "status": "True", "reason": reason, "lastTransitionTime": "2026-01-01T11:58:00Z"}])
}

fn gone(last: Option<Arc<Job>>) -> Sight {
    Sight::Gone {
        absence: Absence::NotFound,
        last,
    }
}

fn pod(metadata: Value, status: Value) -> Arc<Pod> {
    let mut pod = json!({
        "metadata": {"name": "r-job-x", "namespace": "a", "finalizers": ["agents.proompteng.ai/evidence"],
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "r-job", "uid": JOB_UID}]},
        "status": status,
    });
    let more = metadata.as_object().unwrap().clone();
    pod["metadata"].as_object_mut().unwrap().extend(more);
    read(pod)
}

fn seen(run: Arc<AgentRun>, job: Sight) -> Observed {
    Observed {
        now: now(),
        run: Some(run),
        job,
        pods: Vec::new(),
        other_jobs: Vec::new(),
        other_pods: Vec::new(),
        admission: Decision::Admit,
        found: Some(found()),
        namespace_terminating: false,
        stray_jobs: Vec::new(),
        stray_pods: Vec::new(),
    }
}

/// A plan in few words.
fn said(plan: &RunPlan) -> Vec<String> {
    let step = |step: &Step<Action, AgentRunStatus>| match step {
        Step::Do(Action::Admit) => "admit".to_owned(),
        Step::Do(Action::Hold) => "hold".to_owned(),
        Step::Do(Action::LetGo) => "let go".to_owned(),
        Step::Do(Action::MakeConfigMap(made)) => format!("make {}", made.name_any()),
        Step::Do(Action::MakeJob(made)) => format!("make {}", made.name_any()),
        Step::Do(Action::Release { job, why }) => format!("release {} {why:?}", job.name_any()),
        Step::Do(Action::Stop(job)) => format!("stop {}", job.name_any()),
        Step::Do(Action::ReleasePod(pod)) => format!("release {}", pod.name_any()),
        Step::Do(Action::StopPod(pod)) => format!("stop {}", pod.name_any()),
        Step::Do(Action::Expire) => "expire".to_owned(),
        Step::Status(next) => {
            let phase = next.status.phase.as_deref().unwrap_or_default();
            let events: Vec<_> = next
                .notices
                .iter()
                .map(|notice| notice.reason.as_str())
                .collect();
            format!(
                "{phase} {}: {} [{}]",
                next.reason.as_str(),
                next.message,
                events.join(" ")
            )
        }
    };
    plan.steps.iter().map(step).collect()
}

#[track_caller]
fn check(rows: Vec<(&str, Observed, &[&str])>) {
    for (row, seen, expected) in rows {
        assert_eq!(said(&plan(&seen, &settings())), expected, "{row}");
    }
}

#[test]
fn a_run_goes_from_nothing_to_a_job_step_by_step() {
    let unheld = run(json!({"finalizers": []}), json!({}), json!({}));
    let taken = Sight::Taken(a_job(json!({"uid": "other"}), json!([])));
    check(vec![
        (
            "a new run is held first",
            seen(unheld, Sight::Absent),
            &["hold"],
        ),
        (
            "then the name of its Job is kept",
            seen(new(), Sight::Absent),
            &["admit", "Pending Pending: the Job is about to be made []"],
        ),
        (
            "then the Job is made, after what it reads",
            seen(run(json!({}), json!({}), reserved()), Sight::Absent),
            &["make r-spec", "make r-job"],
        ),
        (
            "then its uid is kept",
            seen(run(json!({}), json!({}), reserved()), active()),
            &["Running Running: Job r-job does the work [Submitted]"],
        ),
        (
            "a Job that was made before a crash is taken over, even if the name was not kept",
            seen(new(), active()),
            &["Running Running: Job r-job does the work [Submitted]"],
        ),
        (
            "what runs is left alone",
            seen(running(), active()),
            &["Running Running: Job r-job does the work []"],
        ),
        (
            "a pod that was deleted before it had a node has nothing to tell",
            Observed {
                pods: vec![pod(
                    json!({"deletionTimestamp": NOW}),
                    json!({"phase": "Pending"}),
                )],
                ..seen(running(), active())
            },
            &[
                "Running Running: Job r-job does the work []",
                "release r-job-x",
            ],
        ),
        (
            "a Job of someone else is not taken over",
            seen(run(json!({}), json!({}), reserved()), taken),
            &[
                "Pending JobNameConflict: another object owns Job r-job, whose name the run needs [JobNameConflict]",
            ],
        ),
    ]);
}

#[test]
fn what_is_missing_is_waited_for_and_not_for_ever() {
    let nothing = |run| Observed {
        found: Some(Found::default()),
        ..seen(run, Sight::Absent)
    };
    let blocked = |since: &str| {
        let condition = json!([{"type": "Blocked", "status": "True", "reason": "MissingAgent", "lastTransitionTime": since}]);
        run(
            json!({}),
            json!({}),
            json!({"phase": "Pending", "conditions": condition}),
        )
    };
    check(vec![
        (
            "an Agent that is not there",
            nothing(new()),
            &["Pending MissingAgent: Agent coder does not exist yet [ReferenceMissing]"],
        ),
        (
            "still within the grace",
            nothing(blocked("2026-01-01T11:55:00Z")),
            &["Pending MissingAgent: Agent coder does not exist yet [ReferenceMissing]"],
        ),
        (
            "the grace is over",
            nothing(blocked("2026-01-01T11:50:00Z")),
            &[
                "Failed MissingAgent: Agent coder does not exist yet, and the time to wait for it is over [InvalidSpec]",
            ],
        ),
    ]);
    let waiting = plan(&nothing(blocked("2026-01-01T11:55:00Z")), &settings());
    assert_eq!(
        waiting.next,
        Next::At("2026-01-01T12:05:00Z".parse().unwrap())
    );
    let patient = Settings {
        grace: Duration::ZERO,
        ..settings()
    };
    let waiting = plan(&nothing(blocked("2020-01-01T00:00:00Z")), &patient);
    assert_eq!(waiting.next, Next::Wait, "zero waits for ever");
}

#[test]
fn a_run_begins_when_it_may() {
    let with = |admission: Decision, run| Observed {
        admission,
        ..seen(run, Sight::Absent)
    };
    let until: Timestamp = "2026-01-01T12:01:00Z".parse().unwrap();
    let wait = || {
        Decision::Wait(Refusal {
            reason: Lifecycle::RateLimit,
            message: "2 runs began within 60 s, which is the limit".to_owned(),
            until: Some(until),
        })
    };
    let duplicate = Decision::Duplicate {
        reason: Lifecycle::IdempotencyKeyInUse,
        of: "first".to_owned(),
    };
    let unheld = || run(json!({"finalizers": []}), json!({}), json!({}));
    let wrong = run(json!({}), json!({"secrets": [""]}), json!({}));
    check(vec![
        (
            "a limit holds it back",
            with(wait(), unheld()),
            &["Pending RateLimit: 2 runs began within 60 s, which is the limit [Blocked]"],
        ),
        (
            "another run has its key",
            with(duplicate, unheld()),
            &["Failed IdempotencyKeyInUse: run first with this key is under way [Duplicate]"],
        ),
        (
            "what is wrong does not wait",
            with(wait(), wrong),
            &["Failed Required: spec.secrets[0]: is blank; give a name [InvalidSpec]"],
        ),
    ]);
    let waiting = plan(&with(wait(), new()), &settings());
    assert_eq!(waiting.next, Next::At(until));
}

#[test]
fn what_a_run_does_cannot_change_once_it_has_begun() {
    let begun = |hash: &str| {
        let mut status = bound();
        status["specHash"] = json!(hash);
        run(json!({}), json!({}), status)
    };
    let own = crate::api::hash::spec_hash(&new().spec);
    let violation = "the spec was changed after the run had begun; make a new run instead";
    let failed = format!("Failed SpecImmutableViolation: {violation} [SpecImmutableViolation]");
    check(vec![
        (
            "as it was",
            seen(begun(&own), active()),
            &["Running Running: Job r-job does the work []"],
        ),
        ("changed", seen(begun("other"), active()), &[&failed]),
        (
            "changed, but the Job has ended",
            seen(
                begun("other"),
                job(json!({}), condition("Complete", "Completed")),
            ),
            &["Succeeded Completed: the Job completed [Succeeded]"],
        ),
    ]);
    let lenient = Settings {
        immutable: false,
        ..settings()
    };
    let warned = plan(&seen(begun("other"), active()), &lenient);
    assert_eq!(
        said(&warned),
        ["Running Running: Job r-job does the work [SpecImmutableViolation]"]
    );
    let [Step::Status(next)] = warned.steps.as_slice() else {
        panic!("one status: {warned:?}");
    };
    assert!(
        next.observed
            .iter()
            .any(|seen| seen.message == violation
                && seen.reason.as_str() == "SpecImmutableViolation")
    );
    let first = plan(
        &seen(run(json!({}), json!({}), reserved()), active()),
        &settings(),
    );
    let [Step::Status(next)] = first.steps.as_slice() else {
        panic!("one status: {first:?}");
    };
    assert_eq!(next.status.spec_hash.as_deref(), Some(own.as_str()));
}

#[test]
fn the_hash_of_the_prompt_is_kept_as_far_as_it_may_be_read() {
    let reference =
        |kind: &str| json!({"systemPromptRef": {"kind": kind, "name": "p", "key": "k"}});
    let hash_of = |spec: Value, prompt: Option<&str>| {
        let with_prompt = Observed {
            found: Some(Found {
                prompt: prompt.map(str::to_owned),
                ..found()
            }),
            ..seen(run(json!({}), spec, json!({})), Sight::Absent)
        };
        let plan = plan(&with_prompt, &settings());
        let Some(Step::Status(next)) = plan.steps.last() else {
            panic!("a status: {plan:?}");
        };
        next.status.system_prompt_hash.clone()
    };
    let kind = Some(crate::api::hash::text_hash("Be kind."));
    assert_eq!(hash_of(json!({"systemPrompt": "Be kind."}), None), kind);
    assert_eq!(hash_of(reference("ConfigMap"), Some("Be kind.")), kind);
    assert_eq!(
        hash_of(reference("Secret"), None),
        None,
        "no Secret is read"
    );
    assert_eq!(hash_of(json!({}), None), None);
    check(vec![(
        "the ConfigMap lacks the text",
        seen(
            run(json!({}), reference("ConfigMap"), json!({})),
            Sight::Absent,
        ),
        &[
            "Pending ConfigMapKeyMissing: entry k of ConfigMap p does not exist yet [ReferenceMissing]",
        ],
    )]);
}

#[test]
fn the_grace_does_not_begin_while_a_limit_holds_a_run_back() {
    let blocked = |reason: &str| {
        let status = json!({"phase": "Pending", "updatedAt": "2026-01-01T11:59:00Z", "conditions": [
            {"type": "Blocked", "status": "True", "reason": reason, "lastTransitionTime": "2026-01-01T10:00:00Z"}]});
        let nothing = Observed {
            found: Some(Found::default()),
            ..seen(run(json!({}), json!({}), status), Sight::Absent)
        };
        plan(&nothing, &settings()).next
    };
    let at = |time: &str| Next::At(time.parse().unwrap());
    assert_eq!(blocked("RateLimit"), at("2026-01-01T12:10:00Z"));
    assert_eq!(blocked("MissingAgent"), at("2026-01-01T12:09:00Z"));
}

#[test]
fn a_spec_that_cannot_work_ends_the_run_with_everything_that_is_wrong() {
    let wrong = run(
        json!({}),
        json!({"secrets": [""], "ttlSecondsAfterFinished": -1}),
        json!({}),
    );
    let custom = run(json!({}), json!({"runtime": {"type": "custom"}}), json!({}));
    check(vec![
        (
            "two faults",
            seen(wrong, Sight::Absent),
            &[
                "Failed Required: spec.secrets[0]: is blank; give a name; spec.ttlSecondsAfterFinished: -1 is out of range; use 0 to 2147483647 [InvalidSpec]",
            ],
        ),
        (
            "a runtime that is not built",
            seen(custom, Sight::Absent),
            &[
                "Failed UnsupportedRuntime: spec.runtime.type: only runs of type \"job\" and \"workflow\" can be carried out by this version [InvalidSpec]",
            ],
        ),
    ]);
}

#[test]
fn the_outcome_of_the_job_is_stored_whatever_else_is_asked() {
    let terminated = json!({"phase": "Failed", "containerStatuses": [{"name": "agent-runner", "image": "", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]});
    let deleting = json!({"deletionTimestamp": NOW});
    let complete = || job(json!({}), condition("Complete", "Completed"));
    check(vec![
        (
            "completed",
            seen(running(), complete()),
            &["Succeeded Completed: the Job completed [Succeeded]"],
        ),
        (
            "failed, and its pod says why",
            Observed {
                pods: vec![pod(json!({}), terminated)],
                ..seen(
                    running(),
                    job(json!({}), condition("Failed", "BackoffLimitExceeded")),
                )
            },
            &[
                "Failed JobFailed: the Job failed: BackoffLimitExceeded; the container ended with exit code 137 (OOMKilled) [Failed]",
            ],
        ),
        (
            "took too long",
            seen(
                running(),
                job(json!({}), condition("Failed", "DeadlineExceeded")),
            ),
            &["Failed TimedOut: the Job took longer than allowed [Failed]"],
        ),
        (
            "made and ended before a crash",
            seen(run(json!({}), json!({}), reserved()), complete()),
            &["Running Running: Job r-job does the work [Submitted]"],
        ),
        (
            "cancelled too late",
            seen(run(json!({}), json!({"cancel": true}), bound()), complete()),
            &["Succeeded Completed: the Job completed [Succeeded]"],
        ),
        (
            "the run is being deleted",
            seen(run(deleting.clone(), json!({}), bound()), complete()),
            &["Succeeded Completed: the Job completed [Succeeded]"],
        ),
        (
            "someone deletes the Job, which we hold",
            seen(running(), job(deleting, condition("Complete", "Completed"))),
            &["Succeeded Completed: the Job completed [Succeeded]"],
        ),
    ]);
}

#[test]
fn a_stop_is_recorded_before_anything_is_touched() {
    let cancel = |status: Value| run(json!({}), json!({"cancel": true}), status);
    let deleting = |status: Value| run(json!({"deletionTimestamp": NOW}), json!({}), status);
    let free = run(
        json!({"deletionTimestamp": NOW, "finalizers": ["others"]}),
        json!({}),
        json!({}),
    );
    check(vec![
        (
            "before the start",
            seen(cancel(json!({})), Sight::Absent),
            &["Cancelled Cancelled: stopped because spec.cancel is set [Cancelled]"],
        ),
        (
            "while it runs",
            seen(cancel(bound()), active()),
            &["Cancelled Cancelled: stopped because spec.cancel is set [Cancelled]"],
        ),
        (
            "once that is stored, the Job is let go and stopped",
            seen(cancel(ended("Cancelled")), active()),
            &["release r-job Stored { ttl: None }", "stop r-job"],
        ),
        (
            "a deleted run",
            seen(deleting(bound()), active()),
            &["Cancelled Cancelled: the run was deleted before it had ended [Cancelled]"],
        ),
        (
            "once that is stored, everything goes",
            Observed {
                pods: vec![pod(json!({}), json!({"phase": "Running"}))],
                ..seen(deleting(ended("Cancelled")), active())
            },
            &[
                "release r-job Stored { ttl: None }",
                "stop r-job",
                "release r-job-x",
                "let go",
            ],
        ),
        ("a run that we do not hold", seen(free, Sight::Absent), &[]),
        (
            "a pod that lost its Job",
            Observed {
                pods: vec![pod(json!({"finalizers": []}), json!({"phase": "Running"}))],
                ..seen(cancel(ended("Cancelled")), Sight::Absent)
            },
            &["stop r-job-x"],
        ),
    ]);
}

#[test]
fn what_is_stored_is_marked_and_let_go_once() {
    let stored = |phase: &str| run(json!({}), json!({}), ended(phase));
    let recorded =
        json!({"annotations": {"agents.proompteng.ai/outcome-recorded": NOW}, "finalizers": []});
    let half = json!({"annotations": {"agents.proompteng.ai/outcome-recorded": NOW}});
    let complete = || condition("Complete", "Completed");
    check(vec![
        (
            "success has its time to live",
            seen(stored("Succeeded"), job(json!({}), complete())),
            &["release r-job Stored { ttl: Some(600) }"],
        ),
        (
            "failure has another",
            seen(stored("Failed"), job(json!({}), condition("Failed", "x"))),
            &["release r-job Stored { ttl: Some(7200) }"],
        ),
        (
            "held again by someone",
            seen(stored("Succeeded"), job(half, complete())),
            &["release r-job Stored { ttl: Some(600) }"],
        ),
        (
            "pods go as well",
            Observed {
                pods: vec![
                    pod(json!({}), json!({"phase": "Succeeded"})),
                    pod(json!({"name": "other", "finalizers": []}), json!({})),
                ],
                ..seen(stored("Succeeded"), job(recorded.clone(), complete()))
            },
            &["release r-job-x"],
        ),
        (
            "settled",
            seen(stored("Succeeded"), job(recorded, complete())),
            &[],
        ),
        (
            "settled without its Job",
            seen(stored("Succeeded"), Sight::Absent),
            &[],
        ),
    ]);
    let settled = plan(&seen(stored("Succeeded"), Sight::Absent), &settings());
    assert_eq!(
        settled.next,
        Next::At("2026-01-01T12:59:00Z".parse().unwrap())
    );
    let long_ago = Observed {
        now: "2026-01-01T12:59:00Z".parse().unwrap(),
        ..seen(stored("Failed"), Sight::Absent)
    };
    assert_eq!(said(&plan(&long_ago, &settings())), ["expire"]);
    let edited = run(json!({"generation": 2}), json!({}), {
        let mut status = ended("Succeeded");
        status["conditions"] = json!([{"type": "Succeeded", "status": "True", "reason": "Completed", "message": "the Job completed"}]);
        status
    });
    check(vec![(
        "a later spec is acknowledged",
        seen(edited, Sight::Absent),
        &["Succeeded Completed: the Job completed []"],
    )]);
}

#[test]
fn a_missing_job_is_told_with_its_class_and_never_made_again() {
    let ran = || a_job(json!({}), json!([]));
    let deleted = || {
        a_job(
            json!({"deletionTimestamp": "2026-01-01T11:59:00Z"}),
            json!([]),
        )
    };
    let pods = |pods: Vec<Arc<Pod>>, seen: Observed| Observed { pods, ..seen };
    check(vec![
        (
            "deleted while it ran, nobody knows how it ended",
            seen(running(), gone(Some(ran()))),
            &[
                "Failed JobDeletedWhileRunning: the outcome is lost: It was deleted before it had ended (JobDeletedWhileRunning) [JobDeletedWhileRunning]",
            ],
        ),
        (
            "its last state tells",
            seen(
                running(),
                gone(Some(a_job(json!({}), condition("Complete", "x")))),
            ),
            &[
                "Succeeded Completed: the Job is missing, but its last state tells how it ended: it ended well [Succeeded JobDeletedUnknown OutcomeRecovered]",
            ],
        ),
        (
            "its pod tells",
            pods(
                vec![pod(json!({}), json!({"phase": "Failed"}))],
                seen(running(), gone(None)),
            ),
            &[
                "Failed JobFailed: the Job is missing, but its pod tells how it ended: it ended badly [Failed JobDeletedUnknown OutcomeRecovered]",
            ],
        ),
        (
            "its pod still works",
            pods(
                vec![pod(json!({}), json!({"phase": "Running"}))],
                seen(running(), Sight::Ours(deleted())),
            ),
            &[
                "Running Running: the Job is gone (JobDeletedWhileRunning), but its pod still works [JobDeletedWhileRunning]",
            ],
        ),
        (
            "its pod was deleted before it had a node: it will never tell",
            pods(
                vec![pod(
                    json!({"deletionTimestamp": NOW}),
                    json!({"phase": "Pending"}),
                )],
                seen(running(), Sight::Ours(deleted())),
            ),
            &[
                "Failed JobDeletedWhileRunning: the outcome is lost: It was deleted before it had ended (JobDeletedWhileRunning) [JobDeletedWhileRunning]",
            ],
        ),
        (
            "its name was taken by another",
            seen(
                running(),
                Sight::Gone {
                    absence: Absence::NameTaken,
                    last: None,
                },
            ),
            &[
                "Failed JobReplaced: the outcome is lost: Another Job has taken its name (JobReplaced) [JobReplaced]",
            ],
        ),
        (
            "reserved, not seen, but it left a pod: it was made and must not be made again",
            pods(
                vec![pod(json!({}), json!({"phase": "Succeeded"}))],
                seen(run(json!({}), json!({}), reserved()), Sight::Absent),
            ),
            &[
                "Succeeded Completed: the Job is missing, but its pod tells how it ended: it ended well [Succeeded JobDeletedUnknown OutcomeRecovered]",
            ],
        ),
    ]);
    let by_jane = json!({"annotations": {"agents.proompteng.ai/job-deleted-by":
        json!({"job": "r-job", "uid": JOB_UID, "user": "jane", "at": NOW}).to_string()}});
    let named = plan(
        &seen(run(by_jane, json!({}), bound()), gone(Some(ran()))),
        &settings(),
    );
    let [Step::Status(next)] = named.steps.as_slice() else {
        panic!("one status: {named:?}");
    };
    let missing = next
        .status
        .job_ref
        .as_ref()
        .and_then(|job| job.missing.clone())
        .unwrap();
    assert_eq!(
        serde_json::to_value(missing).unwrap(),
        json!({"class": "JobDeletedWhileRunning", "certainty": "certain", "recovered": "none", "actor": "jane", "noticedAt": NOW})
    );
}

#[test]
fn what_belongs_to_nobody_is_let_go() {
    let nobody = Observed {
        run: None,
        found: None,
        stray_jobs: vec![a_job(json!({}), json!([]))],
        stray_pods: vec![pod(json!({}), json!({}))],
        ..seen(new(), Sight::Absent)
    };
    let replaced = Observed {
        stray_jobs: vec![a_job(json!({}), json!([]))],
        ..seen(new(), Sight::Taken(a_job(json!({}), json!([]))))
    };
    check(vec![
        (
            "its run is gone",
            nobody,
            &["release r-job OwnerGone", "release r-job-x"],
        ),
        (
            "another run has the name",
            replaced,
            &["release r-job OwnerGone"],
        ),
    ]);
}
