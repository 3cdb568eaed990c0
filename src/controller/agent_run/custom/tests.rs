use serde_json::{Value, json};

use super::*;
use crate::api::custody::Outcome;
use crate::controller::agent_run::admission::Decision;
use crate::controller::agent_run::plan::plan;
use crate::controller::agent_run::settings::Settings;
use crate::controller::agent_run::work::Found;
use crate::controller::runs::Sight;
use reply::{Answer, End};

const NOW: &str = "2026-01-01T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn run_with(config: Value, status: Value) -> Arc<AgentRun> {
    let run = json!({
        "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun",
        "metadata": {"name": "r", "namespace": "a", "uid": "u", "generation": 1,
            "finalizers": ["agents.proompteng.ai/runtime-cleanup"]},
        "spec": {"agentRef": {"name": "coder"}, "implementation": {"inline": {"text": "Do it."}},
            "runtime": {"type": "custom", "config": config}},
        "status": status,
    });
    Arc::new(serde_json::from_value(run).unwrap())
}

fn run(status: Value) -> Arc<AgentRun> {
    let config = json!({"endpoint": "https://a.example/runs?key=secret"});
    run_with(config, status)
}

fn reference(more: Value) -> Value {
    let mut reference = json!({"type": "custom", "name": "https://a.example/runs", "namespace": "external", "attempt": 1});
    let fields = reference.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    reference
}

fn reserved() -> Value {
    json!({"phase": "Pending", "runtimeRef": reference(json!({}))})
}

fn submitted(more: Value) -> Value {
    let mut reference = reference(json!({"submittedAt": "2026-01-01T11:59:00Z"}));
    let fields = reference.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    json!({"phase": "Running", "startedAt": "2026-01-01T11:59:00Z", "runtimeRef": reference})
}

fn asked() -> Value {
    submitted(json!({"statusUrl": "https://a.example/runs/1", "pollSeconds": 10}))
}

fn seen(run: Arc<AgentRun>, reply: Option<Reply>) -> Observed {
    let agent = json!({
        "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "Agent",
        "metadata": {"name": "coder", "namespace": "a"},
        "spec": {"providerRef": {"name": "shell"}, "defaults": {"timeoutSeconds": 600}},
    });
    let provider = json!({
        "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentProvider",
        "metadata": {"name": "shell", "namespace": "a"}, "spec": {"binary": "/agent"},
    });
    Observed {
        now: now(),
        run: Some(run),
        job: Sight::Absent,
        pods: Vec::new(),
        other_jobs: Vec::new(),
        other_pods: Vec::new(),
        reply: reply.map(Arc::new),
        admission: Decision::Admit,
        found: Some(Found {
            agent: Some(Arc::new(serde_json::from_value(agent).unwrap())),
            provider: Some(Arc::new(serde_json::from_value(provider).unwrap())),
            ..Found::default()
        }),
        in_the_way: None,
        namespace_terminating: false,
        stray_jobs: Vec::new(),
        stray_pods: Vec::new(),
    }
}

fn reply(question: Question, said: Said) -> Option<Reply> {
    let failures = u32::from(matches!(said, Said::Busy { .. }));
    Some(Reply {
        question,
        at: now(),
        said,
        failures,
    })
}

fn taken(answer: Answer) -> Said {
    Said::Taken(answer)
}

fn ended(outcome: Outcome) -> Said {
    taken(Answer {
        end: Some(End {
            outcome,
            message: Some("so it is".to_owned()),
        }),
        ..Answer::default()
    })
}

fn busy() -> Said {
    Said::Busy {
        why: "it answered 503".to_owned(),
        after: None,
    }
}

/// A plan in a line: what is called, what is stored, and when to look again.
fn brief(plan: &RunPlan) -> String {
    let steps = plan.steps.iter().map(|step| match step {
        Step::Do(Action::Call(errand)) => match &**errand {
            Errand::Submit { attempt, .. } => format!("submit {attempt}"),
            Errand::Ask { url } => format!("ask {url}"),
        },
        Step::Do(action) => format!("{action:?}"),
        Step::Status(standing) => {
            let phase = standing.status.phase.as_deref().unwrap_or_default();
            format!("{phase} {}", standing.reason.as_str())
        }
    });
    let steps: Vec<_> = steps.collect();
    let next = match plan.next {
        Next::Wait => "wait".to_owned(),
        Next::At(at) => format!("in {} s", at.duration_since(now()).as_secs()),
    };
    format!("{}; {next}", steps.join(", "))
}

fn decide(run: Arc<AgentRun>, reply: Option<Reply>) -> RunPlan {
    plan(&seen(run, reply), &Settings::default())
}

#[test]
fn a_run_is_reserved_then_called_then_followed() {
    let submit = Question::Submit(1);
    let denied = || Said::Denied {
        why: "no".to_owned(),
    };
    let refused = || Said::Refused {
        why: "it answered 400".to_owned(),
    };
    let last = json!({"phase": "Pending", "runtimeRef": reference(json!({"attempt": 5}))});
    let later = reference(json!({"attempt": 2, "nextAttemptAt": "2026-01-01T12:00:03Z"}));
    let later = json!({"phase": "Pending", "runtimeRef": later});
    let over = submitted(json!({"deadlineAt": NOW}));
    let late = submitted(json!({"deadlineAt": NOW, "statusUrl": "https://a.example/runs/1"}));
    let limited = submitted(json!({"deadlineAt": "2026-01-01T12:05:00Z"}));
    for (row, status, reply, expected) in [
        ("new", json!({}), None, "Admit, Pending Pending; wait"),
        ("reserved", reserved(), None, "submit 1; in 1 s"),
        (
            "taken",
            reserved(),
            reply(submit, taken(Answer::default())),
            "Running Running; wait",
        ),
        (
            "done at once",
            reserved(),
            reply(submit, ended(Outcome::Succeeded)),
            "Succeeded Completed; wait",
        ),
        (
            "failed at once",
            reserved(),
            reply(submit, ended(Outcome::Failed)),
            "Failed EndpointFailed; wait",
        ),
        (
            "busy",
            reserved(),
            reply(submit, busy()),
            "Pending Pending; wait",
        ),
        ("waits for the next try", later.clone(), None, "; in 3 s"),
        (
            "an answer to an earlier try",
            later,
            reply(submit, refused()),
            "; in 3 s",
        ),
        (
            "busy at the last try",
            last,
            reply(Question::Submit(5), busy()),
            "Failed SubmitFailed; wait",
        ),
        (
            "refused",
            reserved(),
            reply(submit, refused()),
            "Failed SubmitFailed; wait",
        ),
        (
            "denied",
            reserved(),
            reply(submit, denied()),
            "Failed EgressDenied; wait",
        ),
        ("nowhere to ask", submitted(json!({})), None, "; wait"),
        (
            "nowhere to ask, with a deadline",
            limited,
            None,
            "; in 300 s",
        ),
        ("too long", over, None, "Failed TimedOut; wait"),
        (
            "done just in time",
            late,
            reply(Question::Ask, ended(Outcome::Succeeded)),
            "Succeeded Completed; wait",
        ),
        (
            "asked for",
            asked(),
            None,
            "ask https://a.example/runs/1; in 1 s",
        ),
        (
            "still at work",
            asked(),
            reply(Question::Ask, taken(Answer::default())),
            "; in 10 s",
        ),
        (
            "does not answer",
            asked(),
            reply(Question::Ask, busy()),
            "; in 20 s",
        ),
        (
            "done",
            asked(),
            reply(Question::Ask, ended(Outcome::Succeeded)),
            "Succeeded Completed; wait",
        ),
        (
            "failed",
            asked(),
            reply(Question::Ask, ended(Outcome::Failed)),
            "Failed EndpointFailed; wait",
        ),
        (
            "forgotten",
            asked(),
            reply(Question::Ask, refused()),
            "Failed EndpointFailed; wait",
        ),
        (
            "led astray",
            asked(),
            reply(Question::Ask, denied()),
            "Failed EgressDenied; wait",
        ),
        (
            "started by an older tool",
            json!({"phase": "Running", "startedAt": NOW, "runtimeRef": {"type": "custom", "name": "x"}}),
            None,
            "; wait",
        ),
    ] {
        assert_eq!(brief(&decide(run(status), reply)), expected, "{row}");
    }
}

#[test]
fn what_is_stored_names_the_endpoint_without_its_secrets() {
    let plan = decide(run(json!({})), None);
    let Some(Step::Status(reserved)) = plan.steps.last() else {
        panic!("nothing is stored");
    };
    let stored = Value::Object(reserved.status.runtime_ref.clone().unwrap());
    let expected = reference(json!({"deadlineAt": "2026-01-01T12:10:00Z"}));
    assert_eq!(stored, expected);
}

#[test]
fn a_try_that_failed_is_followed_by_a_later_one() {
    let after = |seconds| Said::Busy {
        why: "it answered 429".to_owned(),
        after: Some(Duration::from_secs(seconds)),
    };
    for (row, said, expected) in [
        ("by itself", busy(), "2026-01-01T12:00:01Z"),
        ("as asked", after(60), "2026-01-01T12:01:00Z"),
        ("asked too much", after(86_400), "2026-01-01T12:05:00Z"),
    ] {
        let plan = decide(run(reserved()), reply(Question::Submit(1), said));
        let Some(Step::Status(tried)) = plan.steps.first() else {
            panic!("nothing is stored");
        };
        let stored = tried.status.runtime_ref.clone().unwrap();
        assert_eq!(
            (&stored["attempt"], &stored["nextAttemptAt"]),
            (&json!(2), &json!(expected)),
            "{row}"
        );
    }
}

#[test]
fn the_endpoint_gets_the_payload_or_the_run() {
    let body = |run: Arc<AgentRun>| -> Value {
        let plan = decide(run, None);
        let Some(Step::Do(Action::Call(errand))) = plan.steps.into_iter().next() else {
            panic!("nobody is called");
        };
        match *errand {
            Errand::Submit { body, .. } => serde_json::from_str(&body).unwrap(),
            Errand::Ask { .. } => panic!("it is handed over"),
        }
    };
    let whole = body(run(reserved()));
    assert_eq!(whole["agentRun"]["metadata"]["uid"], "u");
    assert_eq!(whole["agentRun"]["status"], Value::Null);
    assert_eq!(whole["implementation"]["text"], "Do it.");
    assert_eq!(whole["memory"], Value::Null);
    let config = json!({"endpoint": "https://a.example/", "payload": {"x": [1]}});
    assert_eq!(body(run_with(config, reserved())), json!({"x": [1]}));
}

#[test]
fn a_run_without_an_endpoint_or_of_type_temporal_is_refused() {
    let plan = decide(run_with(json!({}), json!({})), None);
    assert_eq!(brief(&plan), "Failed MissingEndpoint; wait");
    let mut temporal = (*run(json!({}))).clone();
    temporal.spec.runtime.type_ = RuntimeType::Temporal;
    let plan = decide(Arc::new(temporal), None);
    assert_eq!(brief(&plan), "Failed UnsupportedRuntime; wait");
}
