//! What a schedule does, as a table: a line is a schedule with what was found, and what then happens in words.

use serde_json::{Value, json};

use super::*;

const DUE: &str = "2026-01-02T06:00:00Z";
const NOW: &str = "2026-01-02T06:00:01Z";

fn schedule(spec: &Value, status: &Value) -> Schedule {
    let mut given =
        json!({"cron": "0 6 * * *", "targetRef": {"kind": "AgentRun", "name": "nightly"}});
    let fields = given.as_object_mut().unwrap();
    fields.extend(spec.as_object().unwrap().clone());
    serde_json::from_value(json!({
        "metadata": {
            "name": "s", "namespace": "here", "uid": "u-1", "generation": 1,
            "creationTimestamp": "2026-01-01T12:00:00Z",
        },
        "spec": given,
        "status": status,
    }))
    .unwrap()
}

fn run(name: &str) -> Run {
    let run = json!({
        "metadata": {"name": name, "labels": {"team": "a"}},
        "spec": {"agentRef": {"name": "coder"}, "runtime": {"type": "job"}, "cancel": true},
    });
    Run::Agent(Arc::new(serde_json::from_value(run).unwrap()))
}

fn seen(schedule: Schedule, active: &[&str]) -> Observed {
    Observed {
        now: NOW.parse().unwrap(),
        schedule: Some(Arc::new(schedule)),
        target: Some(run("nightly")),
        active: active.iter().map(|name| run(name)).collect(),
    }
}

fn words(plan: &SchedulePlan) -> String {
    let steps = plan.steps.iter().map(|step| match step {
        Step::Do(Action::Make(run)) => format!("make {}", run.name()),
        Step::Do(Action::Stop(run)) => format!("stop {}", run.name()),
        Step::Status(standing) => {
            let phase = standing.status.phase.clone().unwrap_or_default();
            let told = standing.notices.iter().map(|notice| notice.note.as_str());
            let told: Vec<_> = told.collect();
            format!("{phase} {} [{}]", standing.reason.as_str(), told.join("; "))
        }
    });
    let steps: Vec<_> = steps.collect();
    let next = match plan.next {
        Next::Wait => "wait".to_owned(),
        Next::At(at) => at.to_string(),
    };
    format!("{}, {next}", steps.join(", "))
}

#[test]
fn each_schedule_does_what_its_time_asks_for() {
    let settled = json!({"observedGeneration": 1, "lastScheduleTime": "2026-01-01T06:00:00Z"});
    let done = json!({"observedGeneration": 1, "lastScheduleTime": DUE});
    let edited = json!({"observedGeneration": 0, "lastScheduleTime": "2026-01-01T06:00:00Z"});
    let late = json!({"observedGeneration": 1, "lastScheduleTime": "2025-12-30T06:00:00Z"});
    const MADE: &str = "make s-1767333600, Active Active [run s-1767333600 was made for 2026-01-02T06:00:00Z], 2026-01-03T06:00:00Z";
    for (row, spec, status, active, expected) in [
        ("new", json!({}), &Value::Null, vec![], MADE),
        ("due", json!({}), &settled, vec![], MADE),
        (
            "done",
            json!({}),
            &done,
            vec![],
            "Active Active [], 2026-01-03T06:00:00Z",
        ),
        (
            "due before it was edited",
            json!({}),
            &edited,
            vec![],
            "Active Active [], 2026-01-03T06:00:00Z",
        ),
        (
            "late",
            json!({}),
            &late,
            vec![],
            "make s-1767333600, Active Active [run s-1767333600 was made for 2026-01-02T06:00:00Z; 2 earlier times were passed over], 2026-01-03T06:00:00Z",
        ),
        (
            "too late",
            json!({"startingDeadlineSeconds": 0}),
            &settled,
            vec![],
            "Active Active [no run was made for 2026-01-02T06:00:00Z: it is too late by now], 2026-01-03T06:00:00Z",
        ),
        (
            "in time",
            json!({"startingDeadlineSeconds": 1}),
            &settled,
            vec![],
            MADE,
        ),
        (
            "suspended",
            json!({"suspend": true}),
            &settled,
            vec![],
            "Suspended Suspended [], wait",
        ),
        ("beside another", json!({}), &settled, vec!["s-1"], MADE),
        (
            "not beside another",
            json!({"concurrencyPolicy": "Forbid"}),
            &settled,
            vec!["s-1"],
            "Active Active [no run was made for 2026-01-02T06:00:00Z: an earlier run has not ended], 2026-01-03T06:00:00Z",
        ),
        (
            "made before a crash",
            json!({"concurrencyPolicy": "Forbid"}),
            &settled,
            vec!["s-1767333600"],
            MADE,
        ),
        (
            "in place of another",
            json!({"concurrencyPolicy": "Replace"}),
            &settled,
            vec!["s-1", "s-1767333600"],
            "stop s-1, make s-1767333600, Active Active [run s-1767333600 was made for 2026-01-02T06:00:00Z], 2026-01-03T06:00:00Z",
        ),
        (
            "wrong",
            json!({"cron": "never"}),
            &settled,
            vec![],
            "Invalid InvalidCron [spec.cron: \"never\" is not cron; write five fields: minute, hour, day, month, weekday, e.g. \"0 6 * * 1\", or \"@daily\", or \"@every 90m\"], wait",
        ),
        (
            "elsewhere",
            json!({"targetRef": {"kind": "AgentRun", "name": "nightly", "namespace": "there"}}),
            &settled,
            vec![],
            "Invalid UnsupportedTarget [the target is in another namespace; put the schedule beside it], wait",
        ),
    ] {
        let seen = seen(schedule(&spec, status), &active);
        assert_eq!(words(&plan(&seen)), expected, "{row}");
    }
}

#[test]
fn a_schedule_without_its_target_waits_and_tells_what_it_misses() {
    let settled = json!({"observedGeneration": 1, "lastScheduleTime": DUE});
    let mut seen = seen(schedule(&json!({}), &settled), &[]);
    seen.target = None;
    assert_eq!(
        words(&plan(&seen)),
        "Pending MissingTarget [AgentRun nightly does not exist yet], 2026-01-03T06:00:00Z"
    );
    seen.schedule = Some(Arc::new(schedule(&json!({}), &Value::Null)));
    let plan = plan(&seen);
    assert_eq!(
        words(&plan),
        "Pending MissingTarget [AgentRun nightly does not exist yet; no run was made for 2026-01-02T06:00:00Z: there is no target], 2026-01-03T06:00:00Z"
    );
}

#[test]
fn a_copy_is_told_from_its_target_and_runs_although_that_is_stopped() {
    let schedule = schedule(&json!({}), &Value::Null);
    let Run::Agent(copy) = copy(&schedule, &run("nightly"), DUE.parse().unwrap()) else {
        panic!("an AgentRun");
    };
    assert_eq!(copy.spec.cancel, None);
    assert_eq!(copy.spec.idempotency_key.as_deref(), Some("u-1-1767333600"));
    let labels = json!({
        "team": "a", "schedules.proompteng.ai/schedule": "s",
        "jangar.proompteng.ai/delivery-id": "u-1-1767333600",
    });
    assert_eq!(json!(copy.metadata.labels), labels);
    assert_eq!(copy.metadata.owner_references, None);
}
