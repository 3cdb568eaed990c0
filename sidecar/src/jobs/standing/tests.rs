use agents::api::contract::annotation;
use serde_json::{Value, json};

use super::super::view::tests::{at, of_step, running, view};
use super::*;

fn agent_run(more: Value) -> AgentRunSight {
    let mut run = json!({
        "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun",
        "metadata": {"name": "r", "namespace": "here", "uid": "r-1"},
        "spec": {"agentRef": {"name": "a"}, "runtime": {"type": "job"}},
    });
    for (key, value) in more.as_object().unwrap() {
        run[key] = value.clone();
    }
    serde_json::from_value(run).unwrap()
}

#[test]
fn a_run_is_asked_whether_it_has_the_outcome_of_this_very_job() {
    let job = view(&[running()]);
    let first = view(&[running(), of_step("1")]);
    let named = |missing: Value| json!({"name": "r-job", "uid": "j-1", "missing": missing});
    let steps = |step: Value| json!({"phase": "Running", "workflow": {"steps": [step]}});
    let condition = |reason: &str| json!([{"type": "JobMissing", "status": "True", "reason": reason, "message": ""}]);
    let recorded = || Standing {
        is_recorded: true,
        ..Standing::default()
    };
    let missing = |class| Standing {
        missing: Some(class),
        ..Standing::default()
    };
    let running = Class::JobDeletedWhileRunning;
    for (row, job, status, expected) in [
        ("nothing yet", &job, json!({}), Standing::default()),
        (
            "waits",
            &job,
            json!({"phase": "Running", "jobRef": named(Value::Null)}),
            Standing::default(),
        ),
        (
            "has it",
            &job,
            json!({"phase": "Succeeded", "jobRef": named(Value::Null)}),
            recorded(),
        ),
        (
            "has found out that it is missing",
            &job,
            json!({"phase": "Failed", "jobRef": named(json!({"class": "JobDeletedWhileRunning"}))}),
            Standing {
                missing: Some(running),
                ..recorded()
            },
        ),
        (
            "waits for a pod of a Job that is gone",
            &job,
            json!({"phase": "Running", "jobRef": named(Value::Null), "conditions": condition("JobDeletedWhileRunning")}),
            missing(running),
        ),
        (
            "missed another Job",
            &job,
            json!({"phase": "Running", "jobRef": {"name": "r-job", "uid": "j-0"}, "conditions": condition("JobDeletedWhileRunning")}),
            Standing::default(),
        ),
        (
            "first try runs",
            &first,
            steps(json!({"phase": "Running", "attempt": 1, "jobRef": named(Value::Null)})),
            Standing::default(),
        ),
        (
            "next try waits",
            &first,
            steps(json!({"phase": "Retrying", "attempt": 1, "nextRetryAt": at(30)})),
            recorded(),
        ),
        (
            "next try runs",
            &first,
            steps(json!({"phase": "Running", "attempt": 2, "jobRef": {"uid": "j-2"}})),
            recorded(),
        ),
        (
            "step is over",
            &first,
            steps(json!({"phase": "Succeeded", "attempt": 1})),
            recorded(),
        ),
        (
            "step misses it",
            &first,
            steps(
                json!({"phase": "Failed", "attempt": 1, "jobRef": named(json!({"class": "JobReplaced"}))}),
            ),
            Standing {
                missing: Some(Class::JobReplaced),
                ..recorded()
            },
        ),
    ] {
        let run = agent_run(json!({ "status": status }));
        assert_eq!(Standing::of_agent_run(&run, job), expected, "{row}");
    }
}

#[test]
fn a_run_names_who_deleted_its_job_and_warns() {
    let by =
        |uid: &str| json!({"job": "r-job", "uid": uid, "user": "jane", "at": at(1)}).to_string();
    let run = |uid: &str| {
        agent_run(json!({
            "metadata": {"name": "r", "namespace": "here", "uid": "r-1", "deletionTimestamp": at(3),
                "annotations": {annotation::JOB_DELETED_BY: by(uid)}},
            "status": {"conditions": [{"type": "Warning", "status": "True", "reason": "JobTtlInjected", "message": ""}]},
        }))
    };
    let expected = Standing {
        is_going: true,
        is_warned: true,
        actor: Some("jane".to_owned()),
        ..Standing::default()
    };
    assert_eq!(Standing::of_agent_run(&run("j-1"), &view(&[])), expected);
    let other = Standing::of_agent_run(&run("j-2"), &view(&[]));
    assert_eq!(other.actor, None, "they deleted another Job");
}

#[test]
fn a_tool_run_says_the_same() {
    let run: ToolRunSight = serde_json::from_value(json!({
        "apiVersion": "tools.proompteng.ai/v1alpha1", "kind": "ToolRun", "metadata": {"name": "t"},
        "spec": {"toolRef": {"name": "x"}},
        "status": {"phase": "Failed", "jobRef": {"uid": "j-1", "missing": {"class": "JobTtlExpired"}}},
    }))
    .unwrap();
    let expected = Standing {
        is_recorded: true,
        missing: Some(Class::JobTtlExpired),
        ..Standing::default()
    };
    assert_eq!(Standing::of_tool_run(&run, &view(&[])), expected);
}
