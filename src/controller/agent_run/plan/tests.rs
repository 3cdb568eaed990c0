mod held_back;
mod report;
mod rules;
mod steps;

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::api::condition::ConditionType;
use crate::api::condition::{Hindrance, Lifecycle};
use crate::api::custody::Absence;
use crate::api::kind::Kind;
use crate::controller::agent_run::admission::{Limits, Refusal, Sort};
use crate::controller::agent_run::artifacts::Artifacts;
use crate::controller::agent_run::settings::{Keep, Runner};
use crate::controller::driver::fault::{Class, Fault};
use crate::controller::runs::holds;
use crate::controller::runs::testing::after;

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
            floor: Duration::from_secs(30),
            logs: Duration::ZERO,
        },
        artifacts: Artifacts::default(),
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
        reply: None,
        admission: Decision::Admit,
        in_the_way: None,
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
        Step::Do(Action::Call(_)) => "call".to_owned(),
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
        let condition = json!([{"type": "ReferencesResolved", "status": "False", "reason": "MissingAgent", "lastTransitionTime": since}]);
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
            reason: Hindrance::RateLimit,
            scope: Sort::Cluster,
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
    let own = crate::api::text::hash::spec_hash(&new().spec);
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
    let kind = Some(crate::api::text::hash::text_hash("Be kind."));
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

/// The run after a status of ours was stored at this time.
fn stored(seen: &Observed, next: &status::RunStanding, now: &str) -> Arc<AgentRun> {
    let run = seen.run.as_deref().unwrap();
    Arc::new(after(Kind::AgentRun, run, next, now.parse().unwrap()))
}

fn one_status(plan: &RunPlan) -> &status::RunStanding {
    let [Step::Status(next)] = plan.steps.as_slice() else {
        panic!("one status: {plan:?}");
    };
    next
}

#[test]
fn the_grace_does_not_begin_while_a_limit_holds_a_run_back() {
    let limit = Decision::Wait(Refusal {
        reason: Hindrance::RateLimit,
        scope: Sort::Cluster,
        message: "2 runs began within 60 s, which is the limit".to_owned(),
        until: None,
    });
    let mut here = Observed {
        now: "2026-01-01T10:00:00Z".parse().unwrap(),
        admission: limit,
        ..seen(new(), Sight::Absent)
    };
    let held_back = plan(&here, &settings());
    here.run = Some(stored(
        &here,
        one_status(&held_back),
        "2026-01-01T10:00:00Z",
    ));
    here.now = now();
    here.found = Some(Found::default());
    let waits = plan(&here, &settings());
    assert_eq!(
        waits.next,
        Next::At("2026-01-01T12:10:00Z".parse().unwrap())
    );
}

#[test]
fn a_fault_does_not_begin_the_grace_anew_nor_does_another_thing_that_is_missing() {
    let mut here = Observed {
        now: "2026-01-01T11:51:00Z".parse().unwrap(),
        found: Some(Found::default()),
        ..seen(new(), Sight::Absent)
    };
    let over = Next::At("2026-01-01T12:01:00Z".parse().unwrap());
    let first = plan(&here, &settings());
    assert_eq!(first.next, over);
    here.run = Some(stored(&here, one_status(&first), "2026-01-01T11:51:00Z"));

    let fault = Fault::new("list the pods", Class::Retryable, "the server is busy");
    let troubled = status::troubled(here.run.as_deref().unwrap(), &fault).unwrap();
    here.run = Some(stored(&here, &troubled, "2026-01-01T11:55:00Z"));
    assert!(status::missing_since(here.run.as_deref().unwrap()).is_some());

    here.now = now();
    here.found = Some(Found {
        provider: None,
        ..found()
    });
    let other = plan(&here, &settings());
    assert_eq!(one_status(&other).reason.as_str(), "MissingProvider");
    assert_eq!(other.next, over);
    here.run = Some(stored(&here, one_status(&other), NOW));

    here.now = "2026-01-01T12:01:00Z".parse().unwrap();
    let last = plan(&here, &settings());
    assert_eq!(one_status(&last).status.phase.as_deref(), Some("Failed"));
}

#[test]
fn the_grace_begins_anew_when_everything_was_there_meanwhile() {
    let status = json!({"phase": "Pending", "conditions": [
        {"type": "ReferencesResolved", "status": "False", "reason": "MissingAgent", "lastTransitionTime": "2026-01-01T11:51:00Z"}]});
    let here = seen(run(json!({}), json!({}), status), Sight::Absent);
    let begun = plan(&here, &settings());
    let Some(Step::Status(next)) = begun.steps.last() else {
        panic!("a status: {begun:?}");
    };
    assert_eq!(status::missing_since(&*stored(&here, next, NOW)), None);
}

#[test]
fn an_end_takes_back_what_was_warned_of() {
    let warned = |mut status: Value| {
        status["conditions"] =
            json!([{"type": "Warning", "status": "True", "reason": "Forbidden"}]);
        status
    };
    let cancelled = run(json!({}), json!({"cancel": true}), warned(bound()));
    let lost = run(json!({}), json!({}), warned(bound()));
    let wrong = run(
        json!({}),
        json!({"secrets": [""]}),
        warned(json!({"phase": "Pending"})),
    );
    for (row, here) in [
        ("cancelled", seen(cancelled, active())),
        ("missing", seen(lost, gone(None))),
        ("refused", seen(wrong, Sight::Absent)),
    ] {
        let ended = plan(&here, &settings());
        let run = stored(&here, one_status(&ended), NOW);
        assert!(status::phase(&*run).is_terminal(), "{row}");
        assert!(!holds(&*run, ConditionType::Warning), "{row}");
    }
}

#[test]
fn an_outcome_that_was_found_later_keeps_its_time() {
    let ended = json!({"phase": "Succeeded", "containerStatuses": [{"name": "agent-runner", "image": "", "imageID": "",
        "ready": false, "restartCount": 0, "state": {"terminated": {"exitCode": 0, "finishedAt": "2026-01-01T11:30:00Z"}}}]});
    let last = a_job(json!({}), condition("Complete", "x"));
    for (row, job, pods, expected) in [
        (
            "its last state",
            gone(Some(last)),
            vec![],
            "2026-01-01T11:58:00Z",
        ),
        (
            "its pod",
            gone(None),
            vec![pod(json!({}), ended)],
            "2026-01-01T11:30:00Z",
        ),
        ("nobody", gone(None), vec![], NOW),
    ] {
        let here = Observed {
            pods,
            ..seen(running(), job)
        };
        let told = plan(&here, &settings());
        let at = one_status(&told).status.finished_at;
        assert_eq!(at, Some(expected.parse().unwrap()), "{row}");
    }
}

#[test]
fn nothing_holds_up_a_namespace_that_is_being_deleted() {
    let going = || run(json!({"deletionTimestamp": NOW}), json!({}), bound());
    let pods = || vec![pod(json!({}), json!({"phase": "Running"}))];
    let terminating = |seen: Observed| Observed {
        namespace_terminating: true,
        pods: pods(),
        ..seen
    };
    let complete = || job(json!({}), condition("Complete", "Completed"));
    check(vec![
        (
            "the run is going as well: nothing is stored any more",
            terminating(seen(going(), active())),
            &[
                "release r-job NamespaceTerminating",
                "release r-job-x",
                "let go",
            ],
        ),
        (
            "even if the Job has ended",
            terminating(seen(going(), complete())),
            &[
                "release r-job NamespaceTerminating",
                "release r-job-x",
                "let go",
            ],
        ),
        (
            "the run is not going yet, but its Job is: its pod is not waited for",
            terminating(seen(
                running(),
                job(json!({"deletionTimestamp": NOW}), json!([])),
            )),
            &[
                "Failed NamespaceTerminating: the outcome is lost: The whole namespace is being deleted (NamespaceTerminating) [NamespaceTerminating]",
            ],
        ),
    ]);
}

#[test]
fn a_job_that_the_api_server_refuses_was_never_made() {
    let fault = Fault::new("make the Job", Class::Spec, "spec.template is wrong");
    let refused = status::not_submitted(&run(json!({}), json!({}), reserved()), &fault, now());
    let events: Vec<_> = refused
        .notices
        .iter()
        .map(|said| said.reason.as_str())
        .collect();
    assert_eq!(events, ["SubmitFailed", "JobNeverCreated"]);
    assert_eq!(refused.reason.as_str(), "SubmitFailed");
    let missing = refused.status.job_ref.and_then(|job| job.missing).unwrap();
    assert_eq!(
        serde_json::to_value(missing).unwrap(),
        json!({"class": "JobNeverCreated", "certainty": "certain", "recovered": "none", "noticedAt": NOW})
    );
}

#[test]
fn a_spec_that_cannot_work_ends_the_run_with_everything_that_is_wrong() {
    let wrong = run(
        json!({}),
        json!({"secrets": [""], "ttlSecondsAfterFinished": -1}),
        json!({}),
    );
    let temporal = json!({"runtime": {"type": "temporal"}});
    let temporal = run(json!({}), temporal, json!({}));
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
            seen(temporal, Sight::Absent),
            &[
                "Failed UnsupportedRuntime: spec.runtime.type: runs of type \"temporal\" cannot be carried out yet; use \"job\", \"workflow\" or \"custom\" [InvalidSpec]",
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
            &["Failed TimedOut: the Job took longer than allowed [TimedOut Failed]"],
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
            "a deleted run whose Job is gone",
            seen(deleting(bound()), gone(None)),
            &[
                "Cancelled Cancelled: the run was deleted before it had ended [Cancelled OwnerDeleted]",
            ],
        ),
        (
            "its Job is gone, and its pod still works: it is not waited for",
            Observed {
                pods: vec![pod(json!({}), json!({"phase": "Running"}))],
                ..seen(deleting(bound()), gone(None))
            },
            &[
                "Cancelled Cancelled: the run was deleted before it had ended [Cancelled OwnerDeleted]",
            ],
        ),
        (
            "its Job is gone, and was last seen at its end",
            seen(
                deleting(bound()),
                gone(Some(a_job(json!({}), condition("Complete", "Completed")))),
            ),
            &[
                "Succeeded Completed: the Job is missing, but its last state tells how it ended: it ended well [Succeeded OwnerDeleted OutcomeRecovered]",
            ],
        ),
        (
            "a stop too late: the Job is gone, and its pod tells how it ended",
            Observed {
                pods: vec![pod(json!({}), json!({"phase": "Succeeded"}))],
                ..seen(cancel(bound()), gone(None))
            },
            &[
                "Succeeded Completed: the Job is missing, but its pod tells how it ended: it ended well [Succeeded JobDeletedUnknown OutcomeRecovered]",
            ],
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
        (
            "a pod that lost its Job, of a run that failed for another reason",
            Observed {
                pods: vec![pod(json!({"finalizers": []}), json!({"phase": "Running"}))],
                ..seen(run(json!({}), json!({}), ended("Failed")), Sight::Absent)
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
            "reserved, not there, and a pod that only says that it is ours: it may be, so nothing is started beside it",
            seen(
                run(json!({}), json!({}), reserved()),
                Sight::Claimed(pod(
                    json!({"finalizers": []}),
                    json!({"phase": "Succeeded"}),
                )),
            ),
            &[
                "Pending JobNameConflict: pod r-job-x says that it is of Job r-job, which is not there: it may be its work [JobNameConflict]",
            ],
        ),
        (
            "reserved, not there, but it left a pod: it was made and must not be made again",
            pods(
                vec![pod(json!({}), json!({"phase": "Succeeded"}))],
                seen(run(json!({}), json!({}), reserved()), gone(None)),
            ),
            &[
                "Succeeded Completed: the Job is missing, but its pod tells how it ended: it ended well [Succeeded JobDeletedUnknown OutcomeRecovered]",
            ],
        ),
        (
            "reserved, not there, but it was seen once: it was made and must not be made again",
            seen(run(json!({}), json!({}), reserved()), gone(None)),
            &[
                "Failed JobDeletedUnknown: the outcome is lost: It is gone and nothing says why (JobDeletedUnknown) [JobDeletedUnknown]",
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
fn a_pod_that_lost_its_job_works_no_longer_than_that_would_have_let_it() {
    let deleted = |deadline: Option<i64>| {
        let metadata = json!({"deletionTimestamp": "2026-01-01T11:30:00Z"});
        let mut job = (*a_job(metadata, json!([]))).clone();
        job.spec.as_mut().unwrap().active_deadline_seconds = deadline;
        let start = serde_json::from_value(json!("2026-01-01T11:00:00Z")).unwrap();
        job.status.as_mut().unwrap().start_time = Some(start);
        Sight::Ours(Arc::new(job))
    };
    let works = || pod(json!({}), json!({"phase": "Running"}));
    let ending = |until: &str| {
        let metadata = json!({"deletionTimestamp": until});
        let mut pod = (*pod(metadata, json!({"phase": "Running"}))).clone();
        pod.spec = serde_json::from_value(json!({"nodeName": "n-1", "containers": []})).unwrap();
        Arc::new(pod)
    };
    let failed = |at: &str| {
        pod(
            json!({"deletionTimestamp": NOW}),
            json!({"phase": "Failed", "containerStatuses": [
                {"name": "agent-runner", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                    "state": {"terminated": {"exitCode": 143, "finishedAt": at}}},
            ]}),
        )
    };
    let with = |job: Sight, pod: Arc<Pod>| Observed {
        pods: vec![pod],
        ..seen(running(), job)
    };
    let mut unseen = with(
        gone(None),
        pod(
            json!({"creationTimestamp": "2026-01-01T11:00:00Z"}),
            json!({"phase": "Running"}),
        ),
    );
    let brief = json!({"metadata": {"name": "coder"}, "spec": {"providerRef": {"name": "shell"}, "defaults": {"timeoutSeconds": 3600}}});
    unseen.found.as_mut().unwrap().agent = Some(read(brief));
    let at = |time: &str| Next::At(time.parse().unwrap());
    let waits = "Running Running: the Job is gone (JobDeletedWhileRunning), but its pod still works [JobDeletedWhileRunning]";
    for (row, here, expected, next) in [
        ("no limit", with(deleted(None), works()), waits, Next::Wait),
        (
            "in time",
            with(deleted(Some(3601)), works()),
            waits,
            at("2026-01-01T12:00:01Z"),
        ),
        (
            "its time is over",
            with(deleted(Some(3600)), works()),
            "stop r-job-x",
            Next::Wait,
        ),
        (
            "nobody saw its Job, but its Agent is there",
            unseen,
            "stop r-job-x",
            Next::Wait,
        ),
        (
            "it ends",
            with(deleted(Some(3600)), ending("2026-01-01T12:00:10Z")),
            waits,
            at("2026-01-01T12:00:15Z"),
        ),
        (
            "its node says nothing",
            with(deleted(Some(3600)), ending("2026-01-01T11:59:00Z")),
            "Failed TimedOut: the Job is missing, and its pod took longer than allowed [TimedOut Failed JobDeletedWhileRunning]",
            Next::Wait,
        ),
        (
            "it has ended",
            with(deleted(Some(3600)), failed("2026-01-01T12:00:00Z")),
            "Failed TimedOut: the Job is missing, and its pod took longer than allowed; the container ended with exit code 143 [TimedOut Failed JobDeletedWhileRunning OutcomeRecovered]",
            Next::Wait,
        ),
        (
            "it failed before",
            with(deleted(Some(3600)), failed("2026-01-01T11:59:59Z")),
            "Failed JobFailed: the Job is missing, but its pod tells how it ended: it ended badly; the container ended with exit code 143 [Failed JobDeletedWhileRunning OutcomeRecovered]",
            Next::Wait,
        ),
    ] {
        let plan = plan(&here, &settings());
        assert_eq!(said(&plan), [expected], "{row}");
        assert_eq!(plan.next, next, "{row}");
    }
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

#[test]
fn a_config_map_of_someone_else_is_waited_for_and_never_read() {
    let here = Observed {
        in_the_way: Some("r-spec".to_owned()),
        ..seen(run(json!({}), json!({}), reserved()), Sight::Absent)
    };
    check(vec![(
        "in the way",
        here,
        &[
            "Pending JobNameConflict: another object owns ConfigMap r-spec, whose name the run needs [JobNameConflict]",
        ],
    )]);
}

#[test]
fn artifacts_are_bounded_while_a_run_works_and_after_its_end() {
    let with = |mut status: Value| {
        status["artifacts"] = json!([{"name": "a"}, {"name": "b"}]);
        status["conditions"] =
            json!([{"type": "Succeeded", "status": "True", "reason": "Completed", "message": ""}]);
        run(json!({}), json!({}), status)
    };
    let limited = |max, strict| Settings {
        artifacts: Artifacts { max, strict },
        ..settings()
    };
    let ended = || seen(with(ended("Succeeded")), Sight::Absent);
    let works = || seen(with(bound()), active());
    for (row, here, settings, phase, left, limited) in [
        (
            "within",
            works(),
            limited(2, true),
            "Running",
            2,
            Some(("ArtifactsLimited", "WithinLimits")),
        ),
        (
            "too many",
            works(),
            limited(1, false),
            "Running",
            1,
            Some(("ArtifactsLimited", "TooManyArtifacts")),
        ),
        (
            "too many, strict",
            works(),
            limited(1, true),
            "Failed",
            1,
            Some(("ArtifactsLimited", "TooManyArtifacts")),
        ),
        (
            "after the end, which stays",
            ended(),
            limited(1, true),
            "Succeeded",
            1,
            Some(("ArtifactsLimited", "TooManyArtifacts")),
        ),
    ] {
        let plan = plan(&here, &settings);
        let next = one_status(&plan);
        assert_eq!(next.status.phase.as_deref(), Some(phase), "{row}");
        assert_eq!(
            next.status.artifacts.as_ref().map(Vec::len),
            Some(left),
            "{row}"
        );
        let said = next
            .observed
            .iter()
            .find(|said| said.type_ == ConditionType::ArtifactsLimited);
        let said = said.map(|said| (said.type_.as_str(), said.reason.as_str()));
        assert_eq!(said, limited, "{row}");
    }
    assert_eq!(
        plan(&ended(), &limited(2, true)).steps,
        vec![],
        "nothing to do"
    );
}
