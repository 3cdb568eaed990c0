//! Runs that are done step by step.

use super::*;

const FIRST: &str = "r-step-1-attempt-1";

/// A workflow with these steps, of which this is stored.
fn workflow(steps: Value, phase: &str, stored: Value) -> Arc<AgentRun> {
    workflow_with(json!({}), steps, phase, stored)
}

fn workflow_with(more: Value, steps: Value, phase: &str, stored: Value) -> Arc<AgentRun> {
    let mut spec = json!({"runtime": {"type": "workflow"}, "workflow": {"steps": steps}});
    let more = more.as_object().unwrap().clone();
    spec.as_object_mut().unwrap().extend(more);
    let status = json!({
        "phase": phase, "startedAt": "2026-01-01T11:00:00Z",
        "workflow": {"phase": phase, "lastTransitionTime": "2026-01-01T11:00:00Z", "steps": stored},
    });
    run(json!({}), spec, status)
}

fn two() -> Value {
    json!([{"name": "plan", "retries": 1, "retryBackoffSeconds": 90}, {"name": "build"}])
}

fn pending(name: &str) -> Value {
    json!({"name": name, "phase": "Pending", "attempt": 0})
}

fn at_work(name: &str, attempt: i64, job: &str) -> Value {
    json!({"name": name, "phase": "Running", "attempt": attempt, "startedAt": "2026-01-01T11:00:00Z",
        "jobObservedAt": "2026-01-01T11:00:00Z", "jobRef": {"name": job, "namespace": "a", "uid": JOB_UID}})
}

fn done(name: &str) -> Value {
    let mut step = at_work(name, 1, FIRST);
    step["phase"] = json!("Succeeded");
    step["finishedAt"] = json!("2026-01-01T11:58:00Z");
    step
}

fn retrying(due: &str) -> Value {
    let mut step = at_work("plan", 1, FIRST);
    step["phase"] = json!("Retrying");
    step["nextRetryAt"] = json!(due);
    step
}

/// The Job of a try, as it is labelled.
fn job_of(index: usize, attempt: i64, metadata: Value, conditions: Value) -> Arc<Job> {
    let mut all = json!({
        "name": format!("r-step-{index}-attempt-{attempt}"),
        "labels": {"agents.proompteng.ai/step-index": index.to_string(), "agents.proompteng.ai/step-iteration": "1",
            "agents.proompteng.ai/step-attempt": attempt.to_string()},
    });
    let more = metadata.as_object().unwrap().clone();
    all.as_object_mut().unwrap().extend(more);
    a_job(all, conditions)
}

fn ours(conditions: Value) -> Sight {
    Sight::Ours(job_of(1, 1, json!({}), conditions))
}

/// What is stored about the steps once a plan is carried out.
fn stored(plan: &RunPlan) -> Value {
    let [Step::Status(next)] = plan.steps.as_slice() else {
        panic!("one status: {plan:?}");
    };
    serde_json::to_value(&next.status.workflow).unwrap()
}

#[test]
fn steps_are_done_one_after_the_other() {
    let fresh = run(
        json!({}),
        json!({"runtime": {"type": "workflow"}, "workflow": {"steps": two()}}),
        json!({}),
    );
    let reserved =
        json!({"name": "plan", "phase": "Pending", "attempt": 1, "jobRef": {"name": FIRST}});
    let released =
        json!({"annotations": {"agents.proompteng.ai/outcome-recorded": NOW}, "finalizers": []});
    let complete = || condition("Complete", "Completed");
    let between = || workflow(two(), "Running", json!([done("plan"), pending("build")]));
    check(vec![
        (
            "the first Job is reserved",
            seen(fresh, Sight::Absent),
            &[
                "admit",
                "Pending Pending: the Job of step plan is about to be made []",
            ],
        ),
        (
            "and made",
            seen(
                workflow(
                    two(),
                    "Pending",
                    json!([reserved.clone(), pending("build")]),
                ),
                Sight::Absent,
            ),
            &["make r-spec-step-1-attempt-1", "make r-step-1-attempt-1"],
        ),
        (
            "and bound",
            seen(
                workflow(two(), "Pending", json!([reserved, pending("build")])),
                ours(json!([])),
            ),
            &["Running Running: Job r-step-1-attempt-1 does the work of step plan [Submitted]"],
        ),
        (
            "and followed",
            seen(
                workflow(
                    two(),
                    "Running",
                    json!([at_work("plan", 1, FIRST), pending("build")]),
                ),
                ours(json!([])),
            ),
            &["Running Running: Job r-step-1-attempt-1 does the work of step plan []"],
        ),
        (
            "its outcome is stored",
            seen(
                workflow(
                    two(),
                    "Running",
                    json!([at_work("plan", 1, FIRST), pending("build")]),
                ),
                ours(complete()),
            ),
            &["Running Running: step plan is done, the next one follows []"],
        ),
        (
            "then it is let go, with its pods",
            Observed {
                other_jobs: vec![job_of(1, 1, json!({}), complete())],
                other_pods: vec![step_pod(1, json!({}), json!({"phase": "Succeeded"}))],
                ..seen(between(), Sight::Absent)
            },
            &[
                "release r-step-1-attempt-1 Stored { ttl: Some(600) }",
                "release r-job-x",
            ],
        ),
        (
            "a Job that our copy of the status does not know yet is left alone",
            Observed {
                other_jobs: vec![job_of(2, 1, json!({}), json!([]))],
                ..seen(between(), Sight::Absent)
            },
            &["Running Running: the Job of step build is about to be made []"],
        ),
        (
            "then the next step begins",
            Observed {
                other_jobs: vec![job_of(1, 1, released, complete())],
                ..seen(between(), Sight::Absent)
            },
            &["Running Running: the Job of step build is about to be made []"],
        ),
        (
            "the last one ends the run",
            seen(
                workflow(
                    two(),
                    "Running",
                    json!([done("plan"), at_work("build", 1, "r-step-2-attempt-1")]),
                ),
                Sight::Ours(job_of(2, 1, json!({}), complete())),
            ),
            &["Succeeded Completed: all 2 steps are done [Succeeded]"],
        ),
    ]);
}

fn step_pod(index: usize, metadata: Value, status: Value) -> Arc<Pod> {
    let mut all = json!({"labels": {"agents.proompteng.ai/step-index": index.to_string(),
        "agents.proompteng.ai/step-iteration": "1", "agents.proompteng.ai/step-attempt": "1",
        "batch.kubernetes.io/job-name": format!("r-step-{index}-attempt-1")}});
    let more = metadata.as_object().unwrap().clone();
    all.as_object_mut().unwrap().extend(more);
    pod(all, status)
}

#[test]
fn a_failed_step_is_tried_again_after_its_pause_and_then_ends_the_run() {
    let try_of = |attempt: i64| {
        let name = format!("r-step-1-attempt-{attempt}");
        workflow(
            two(),
            "Running",
            json!([at_work("plan", attempt, &name), pending("build")]),
        )
    };
    let ended =
        |attempt, reason| Sight::Ours(job_of(1, attempt, json!({}), condition("Failed", reason)));
    let waiting = |due: &str| workflow(two(), "Running", json!([retrying(due), pending("build")]));
    let ending = step_pod(1, json!({"finalizers": []}), json!({"phase": "Running"}));
    check(vec![
        (
            "one try is left",
            seen(try_of(1), ended(1, "BackoffLimitExceeded")),
            &[
                "Running Running: step plan is tried again; try 1 of 2 failed: the Job failed: BackoffLimitExceeded [StepRetrying]",
            ],
        ),
        (
            "its time has not come",
            seen(waiting("2026-01-01T12:00:01Z"), Sight::Absent),
            &[],
        ),
        (
            "a pod of the last try is still ending",
            Observed {
                other_pods: vec![ending],
                ..seen(waiting(NOW), Sight::Absent)
            },
            &[],
        ),
        (
            "its time has come",
            seen(waiting(NOW), Sight::Absent),
            &["Running Running: the Job of step plan is about to be made []"],
        ),
        (
            "no try is left",
            seen(try_of(2), ended(2, "BackoffLimitExceeded")),
            &[
                "Failed WorkflowStepFailed: step plan failed: the Job failed: BackoffLimitExceeded [StepFailed Failed]",
            ],
        ),
        (
            "it took too long",
            seen(try_of(2), ended(2, "DeadlineExceeded")),
            &[
                "Failed WorkflowStepTimedOut: step plan failed: the Job took longer than allowed [TimedOut Failed]",
            ],
        ),
    ]);
    let later = plan(
        &seen(waiting("2026-01-01T12:00:01Z"), Sight::Absent),
        &settings(),
    );
    assert_eq!(
        later.next,
        Next::At("2026-01-01T12:00:01Z".parse().unwrap())
    );
    let again = plan(&seen(try_of(1), ended(1, "x")), &settings());
    let step = &stored(&again)["steps"][0];
    assert_eq!(step["phase"], "Retrying");
    assert_eq!(step["nextRetryAt"], "2026-01-01T11:59:30Z");
    let failed = stored(&plan(&seen(try_of(2), ended(2, "x")), &settings()));
    assert_eq!(failed["phase"], "Failed");
    assert_eq!(failed["steps"][0]["phase"], "Failed");
    assert_eq!(failed["steps"][0]["finishedAt"], "2026-01-01T11:58:00Z");
    assert_eq!(failed["steps"][1]["phase"], "Skipped");
}

#[test]
fn a_step_is_not_started_again_because_its_job_vanished_unless_that_does_no_harm() {
    let steps = |idempotent: bool| json!([{"name": "plan", "retries": 1, "idempotent": idempotent}, {"name": "build"}]);
    let lost = |idempotent: bool| {
        let stored = json!([at_work("plan", 1, FIRST), pending("build")]);
        let ran = job_of(1, 1, json!({}), json!([]));
        seen(
            workflow(steps(idempotent), "Running", stored),
            gone(Some(ran)),
        )
    };
    let told = |pod: &str| Observed {
        pods: vec![step_pod(1, json!({}), json!({"phase": pod}))],
        ..lost(false)
    };
    check(vec![
        (
            "lost",
            lost(false),
            &[
                "Failed WorkflowJobMissing: step plan failed: the outcome is lost: It was deleted before it had ended (JobDeletedWhileRunning) [StepFailed Failed WorkflowJobMissing]",
            ],
        ),
        (
            "lost, but harmless",
            lost(true),
            &[
                "Running Running: step plan is tried again; try 1 of 2 failed: the outcome is lost: It was deleted before it had ended (JobDeletedWhileRunning) [StepRetrying WorkflowJobMissing]",
            ],
        ),
        (
            "its pod tells that it is done",
            told("Succeeded"),
            &[
                "Running Running: step plan is done, the next one follows [WorkflowJobMissing OutcomeRecovered]",
            ],
        ),
        (
            "its pod tells that it failed, which is no loss",
            told("Failed"),
            &[
                "Running Running: step plan is tried again; try 1 of 2 failed: the Job is missing, but its pod tells how it ended: it ended badly [StepRetrying WorkflowJobMissing OutcomeRecovered]",
            ],
        ),
        (
            "its pod still works",
            told("Running"),
            &[
                "Running Running: the Job is gone (JobDeletedWhileRunning), but its pod still works [WorkflowJobMissing]",
            ],
        ),
    ]);
    let stored = stored(&plan(&lost(false), &settings()));
    let missing = &stored["steps"][0]["jobRef"]["missing"];
    assert_eq!(missing["class"], "JobDeletedWhileRunning");
    assert_eq!(missing["recovered"], "none");
}

#[test]
fn a_step_that_lost_its_job_takes_no_longer_than_it_may() {
    let brief = json!([{"name": "plan", "retries": 1, "timeoutSeconds": 3600}, {"name": "build"}]);
    let stored = json!([at_work("plan", 1, FIRST), pending("build")]);
    let under_way = workflow(brief, "Running", stored);
    let with = |deleted: Value| {
        let metadata =
            json!({"creationTimestamp": "2026-01-01T11:00:00Z", "deletionTimestamp": deleted});
        let mut pod = (*step_pod(1, metadata, json!({"phase": "Running"}))).clone();
        pod.spec = serde_json::from_value(json!({"nodeName": "n-1", "containers": []})).unwrap();
        Observed {
            pods: vec![Arc::new(pod)],
            ..seen(Arc::clone(&under_way), gone(None))
        }
    };
    check(vec![
        (
            "first its pod is stopped",
            with(json!(null)),
            &["stop r-job-x"],
        ),
        (
            "then its end is waited for, but not for ever",
            with(json!("2026-01-01T11:59:00Z")),
            &[
                "Running Running: step plan is tried again; try 1 of 2 failed: the Job is missing, and its pod took longer than allowed [StepRetrying WorkflowJobMissing]",
            ],
        ),
    ]);
}

/// A step that is due again while a pod of its earlier try is there, which was to be gone at this time.
pub(super) fn beside_an_earlier_pod(deleted: Option<&str>, resolved: Value) -> Observed {
    let mut run = (*workflow(
        two(),
        "Running",
        json!([retrying("2026-01-01T11:59:00Z"), pending("build")]),
    ))
    .clone();
    run.status.as_mut().unwrap().conditions = serde_json::from_value(resolved).unwrap();
    let metadata = json!({"deletionTimestamp": deleted, "finalizers": []});
    let mut pod = (*step_pod(1, metadata, json!({"phase": "Running"}))).clone();
    pod.spec = serde_json::from_value(json!({"nodeName": "n-1", "containers": []})).unwrap();
    Observed {
        other_pods: vec![Arc::new(pod)],
        ..seen(Arc::new(run), Sight::Absent)
    }
}

#[test]
fn a_pod_on_a_node_that_says_nothing_is_told_and_not_waited_for_for_ever() {
    let earlier = beside_an_earlier_pod;
    let since = |time: &str| json!([{"type": "ReferencesResolved", "status": "False", "reason": "PodNotEnding", "lastTransitionTime": time}]);
    let silent = "pod r-job-x of an earlier try should have ended, and n-1 says nothing";
    let waits = format!("Running PodNotEnding: {silent} [Blocked]");
    let over =
        format!("Failed PodNotEnding: {silent}, and the time to wait for it is over [InvalidSpec]");
    check(vec![
        ("it works", earlier(None, json!(null)), &[]),
        (
            "it ends",
            earlier(Some("2026-01-01T12:00:10Z"), json!(null)),
            &[],
        ),
        (
            "it should have",
            earlier(Some("2026-01-01T11:59:00Z"), json!(null)),
            &[waits.as_str()],
        ),
        (
            "it never does",
            earlier(Some("2026-01-01T11:40:00Z"), since("2026-01-01T11:50:00Z")),
            &[over.as_str()],
        ),
    ]);
}

#[test]
fn a_step_goes_round_as_often_as_it_says() {
    let steps = json!([{"name": "plan", "loop": {"maxIterations": 2}}]);
    let round = |iteration: i64| {
        let mut step = at_work("plan", 1, FIRST);
        step["iteration"] = json!(iteration);
        workflow(steps.clone(), "Running", json!([step]))
    };
    let complete = || ours(condition("Complete", "Completed"));
    check(vec![
        (
            "the first round",
            seen(round(1), complete()),
            &["Running Running: round 1 of step plan is done, the next one follows []"],
        ),
        (
            "the last round",
            seen(round(2), complete()),
            &["Succeeded Completed: the step is done [Succeeded]"],
        ),
    ]);
    let next = stored(&plan(&seen(round(1), complete()), &settings()));
    assert_eq!(next["steps"][0]["iteration"], 2);
    assert_eq!(next["steps"][0]["attempt"], 0);
    assert_eq!(next["steps"][0].get("jobRef"), None);
    let begun = workflow(
        steps,
        "Running",
        json!([{"name": "plan", "phase": "Running", "iteration": 2, "attempt": 1, "jobRef": {"name": "r-step-1-iteration-2-attempt-1"}}]),
    );
    check(vec![(
        "the Job of the second round",
        seen(begun, Sight::Absent),
        &[
            "make r-spec-step-1-iteration-2-attempt-1",
            "make r-step-1-iteration-2-attempt-1",
        ],
    )]);
}

#[test]
fn a_workflow_stops_where_it_is_and_says_so_of_every_step() {
    let cancelled = |steps: Value| {
        let cancel = json!({"cancel": true});
        workflow_with(cancel, two(), "Running", steps)
    };
    let under_way = json!([at_work("plan", 1, FIRST), pending("build")]);
    let stop = plan(
        &seen(cancelled(under_way.clone()), ours(json!([]))),
        &settings(),
    );
    assert_eq!(
        said(&stop),
        ["Cancelled Cancelled: stopped because spec.cancel is set [Cancelled]"]
    );
    let steps = stored(&stop);
    assert_eq!(steps["phase"], "Cancelled");
    assert_eq!(steps["steps"][0]["phase"], "Cancelled");
    assert_eq!(steps["steps"][1]["phase"], "Skipped");
    let resting = plan(
        &seen(
            cancelled(json!([retrying("2026-01-01T13:00:00Z"), pending("build")])),
            Sight::Absent,
        ),
        &settings(),
    );
    assert_eq!(stored(&resting)["steps"][0]["phase"], "Cancelled");
    let ended = run(
        json!({}),
        json!({"runtime": {"type": "workflow"}, "workflow": {"steps": two()}}),
        json!({"phase": "Cancelled", "finishedAt": NOW, "observedGeneration": 1, "workflow": {"steps": under_way}}),
    );
    check(vec![(
        "then the Job is let go and stopped",
        Observed {
            pods: vec![step_pod(1, json!({}), json!({"phase": "Running"}))],
            ..seen(ended, ours(json!([])))
        },
        &[
            "release r-step-1-attempt-1 Stored { ttl: None }",
            "stop r-step-1-attempt-1",
            "release r-job-x",
        ],
    )]);
}

#[test]
fn all_steps_are_looked_at_before_the_first_one_begins() {
    let steps =
        json!([{"name": "plan"}, {"name": "build", "implementationSpecRef": {"name": "later"}}]);
    let fresh = run(
        json!({}),
        json!({"runtime": {"type": "workflow"}, "workflow": {"steps": steps}}),
        json!({}),
    );
    let empty = run(
        json!({}),
        json!({"runtime": {"type": "workflow"}, "workflow": {"steps": []}}),
        json!({}),
    );
    check(vec![
        (
            "the second step lacks something",
            seen(fresh, Sight::Absent),
            &[
                "Pending MissingImplementation: ImplementationSpec later does not exist yet [ReferenceMissing]",
            ],
        ),
        (
            "there is no step",
            seen(empty, Sight::Absent),
            &[
                "Failed MissingWorkflowSteps: spec.workflow.steps: a run of type \"workflow\" needs at least one step; add one, or use type \"job\" [InvalidSpec]",
            ],
        ),
        (
            "every step is done, and a crash came before that was said",
            seen(
                workflow(two(), "Running", json!([done("plan"), done("build")])),
                Sight::Absent,
            ),
            &["Succeeded Completed: all 2 steps are done [Succeeded]"],
        ),
    ]);
}
