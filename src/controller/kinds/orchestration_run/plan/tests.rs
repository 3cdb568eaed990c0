//! The life of a run, as a table: a line is how its steps stood, and what is then done in words.

use serde_json::{Value, json};

use super::*;
use crate::api::phase::Phase;
use crate::controller::driver::fault::{Class, Fault};
use crate::controller::runs::testing::after;

const NOW: &str = "2026-01-01T00:01:00Z";
const GRACE: Duration = Duration::from_secs(60);

/// `build` and `check` first, then the gate, then the end.
fn orchestration() -> Arc<Orchestration> {
    let work = json!({"inline": {"text": "Do it."}});
    Arc::new(
        serde_json::from_value(json!({
            "metadata": {"name": "o", "namespace": "here"},
            "spec": {"steps": [
                {"name": "end", "kind": "Checkpoint", "dependsOn": ["gate"]},
                {"name": "gate", "kind": "ApprovalGate", "policyRef": "p", "dependsOn": ["build", "check"]},
                {"name": "build", "kind": "AgentRun", "agentRef": {"name": "a"}, "implementation": work, "with": {"b": "2"}},
                {"name": "check", "kind": "ToolRun", "toolRef": {"name": "t"}},
            ]},
        }))
        .unwrap(),
    )
}

fn run(statuses: &[(&str, &str, &str)], more: &Value) -> OrchestrationRun {
    let steps: Vec<_> = statuses
        .iter()
        .map(|(name, kind, phase)| {
            let mut status = json!({"name": name, "kind": kind, "phase": phase, "attempt": 1});
            if ["AgentRun", "ToolRun"].contains(kind) {
                status["resourceRef"] = json!({"kind": kind, "name": format!("r-{name}")});
            }
            status
        })
        .collect();
    let mut run = json!({
        "metadata": {"name": "r", "namespace": "here", "uid": "u-1", "generation": 1},
        "spec": {"orchestrationRef": {"name": "o"}, "parameters": {"a": "1", "b": "1"}},
        "status": {"phase": "Running", "observedGeneration": 1, "stepStatuses": steps},
    });
    json_patch::merge(&mut run, more);
    serde_json::from_value(run).unwrap()
}

fn seen(run: OrchestrationRun, sights: Vec<Sight>) -> Observed {
    Observed {
        now: NOW.parse().unwrap(),
        run: Some(Arc::new(run)),
        orchestration: Some(orchestration()),
        seen: sights,
        left: Vec::new(),
    }
}

fn nothing() -> Vec<Sight> {
    vec![
        Sight::Nothing,
        Sight::Nothing,
        Sight::Nothing,
        Sight::Nothing,
    ]
}

fn ended(kind: &str, phase: &str) -> Sight {
    let json = json!({
        "metadata": {"name": "child", "uid": "c-1"},
        "spec": {"agentRef": {"name": "a"}, "toolRef": {"name": "t"}, "runtime": {"type": "job"}},
        "status": {"phase": phase},
    });
    Sight::Ours(match kind {
        "AgentRun" => Child::Agent(Arc::new(serde_json::from_value(json).unwrap())),
        _ => {
            let mut json = json;
            json["spec"] = json!({"toolRef": {"name": "t"}});
            Child::Tool(Arc::new(serde_json::from_value(json).unwrap()))
        }
    })
}

fn words(plan: &RunPlan) -> String {
    let steps = plan.steps.iter().map(|step| match step {
        Step::Do(Action::Make(child)) => format!("make {}", child.name()),
        Step::Do(Action::Stop(child)) => format!("stop {}", child.name()),
        Step::Status(standing) => {
            let phase = standing.status.phase.clone().unwrap_or_default();
            let steps = standing.status.step_statuses.iter().flatten();
            let steps = steps.map(|status| status.phase.clone().unwrap_or_default());
            let steps: Vec<_> = steps.collect();
            format!("{phase} {} [{}]", standing.reason.as_str(), steps.join(" "))
        }
    });
    let steps: Vec<_> = steps.collect();
    steps.join(", ")
}

#[test]
fn steps_run_when_what_they_depend_on_has_succeeded() {
    const END: (&str, &str, &str) = ("end", "Checkpoint", "Pending");
    const GATE: (&str, &str, &str) = ("gate", "ApprovalGate", "Pending");
    let both = |build, check| {
        vec![
            END,
            GATE,
            ("build", "AgentRun", build),
            ("check", "ToolRun", check),
        ]
    };
    let gate = |phase| {
        vec![
            END,
            ("gate", "ApprovalGate", phase),
            ("build", "AgentRun", "Succeeded"),
            ("check", "ToolRun", "Succeeded"),
        ]
    };
    let sights = |gate, build, check| vec![Nothing, gate, build, check];
    use Sight::{Absent, Denied, Nothing, Open};
    for (row, statuses, sights, expected) in [
        (
            "new",
            vec![],
            nothing(),
            "Running Running [Pending Pending Running Running]",
        ),
        (
            "reserved",
            both("Running", "Running"),
            sights(Nothing, Absent, Absent),
            "Running Running [Pending Pending Running Running], make r-build, make r-check",
        ),
        (
            "one is done",
            both("Running", "Running"),
            sights(
                Nothing,
                ended("AgentRun", "Succeeded"),
                ended("ToolRun", "Running"),
            ),
            "Running Running [Pending Pending Succeeded Running]",
        ),
        (
            "both are done",
            both("Succeeded", "Running"),
            sights(Nothing, Nothing, ended("ToolRun", "Succeeded")),
            "Running Running [Pending Running Succeeded Succeeded]",
        ),
        (
            "approved",
            gate("Running"),
            sights(Open, Nothing, Nothing),
            "Succeeded Completed [Succeeded Succeeded Succeeded Succeeded]",
        ),
        (
            "denied",
            gate("Running"),
            sights(Denied, Nothing, Nothing),
            "Failed ApprovalDenied [Skipped Failed Succeeded Succeeded]",
        ),
        (
            "one failed while another works",
            both("Running", "Running"),
            sights(
                Nothing,
                ended("AgentRun", "Failed"),
                ended("ToolRun", "Running"),
            ),
            "Running Running [Skipped Skipped Failed Running]",
        ),
        (
            "the other one ends",
            vec![
                ("end", "Checkpoint", "Skipped"),
                ("gate", "ApprovalGate", "Skipped"),
                ("build", "AgentRun", "Failed"),
                ("check", "ToolRun", "Running"),
            ],
            sights(Nothing, Nothing, ended("ToolRun", "Succeeded")),
            "Failed StepFailed [Skipped Skipped Failed Succeeded]",
        ),
    ] {
        let plan = plan(&seen(run(&statuses, &json!({})), sights), GRACE);
        assert_eq!(words(&plan), expected, "{row}");
    }
}

#[test]
fn a_run_that_is_stopped_says_so_before_it_stops_anything() {
    let works = [
        ("build", "AgentRun", "Running"),
        ("gate", "ApprovalGate", "Pending"),
    ];
    let stopped = run(&works, &json!({"spec": {"cancel": true}}));
    let first = plan(&seen(stopped, nothing()), GRACE);
    assert_eq!(words(&first), "Cancelled Cancelled [Cancelled Skipped]");
    let over = run(
        &[("build", "AgentRun", "Cancelled")],
        &json!({"status": {"phase": "Cancelled"}}),
    );
    let mut left = seen(over, nothing());
    let Sight::Ours(child) = ended("AgentRun", "Running") else {
        panic!("a child");
    };
    left.left.push(child);
    assert_eq!(words(&plan(&left, GRACE)), "stop child");
}

#[test]
fn a_run_waits_for_its_orchestration_but_not_for_ever() {
    let mut waits = seen(run(&[], &json!({"status": null})), nothing());
    waits.orchestration = None;
    let first = plan(&waits, GRACE);
    assert_eq!(words(&first), "Pending MissingOrchestration []");
    let over: Timestamp = "2026-01-01T00:02:00Z".parse().unwrap();
    assert_eq!(first.next, Next::At(over));
    let blocked = json!({"status": {"phase": "Pending", "conditions": [
        {"type": "ReferencesResolved", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]}});
    waits.run = Some(Arc::new(run(&[], &blocked)));
    assert_eq!(
        words(&plan(&waits, GRACE)),
        "Failed MissingOrchestration []"
    );
}

#[test]
fn a_run_that_cannot_go_on_leaves_nothing_at_work() {
    let works = [
        ("build", "AgentRun", "Running"),
        ("check", "ToolRun", "Retrying"),
        ("gate", "ApprovalGate", "Pending"),
    ];
    let since = json!({"status": {"conditions": [
        {"type": "ReferencesResolved", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]}});
    let mut gone = seen(run(&works, &since), nothing());
    gone.orchestration = None;
    assert_eq!(
        words(&plan(&gone, GRACE)),
        "Failed MissingOrchestration [Cancelled Cancelled Skipped]",
        "its orchestration was deleted"
    );
    let mut circle = (*orchestration()).clone();
    circle.spec.steps[2].depends_on = Some(vec!["end".to_owned()]);
    let mut wrong = seen(run(&works, &json!({})), nothing());
    wrong.orchestration = Some(Arc::new(circle));
    assert_eq!(
        words(&plan(&wrong, GRACE)),
        "Failed DependencyCycle [Cancelled Cancelled Skipped]",
        "its orchestration was changed"
    );
}

#[test]
fn a_step_that_is_taken_out_while_it_works_is_stopped_and_its_record_stays() {
    let statuses = [
        ("end", "Checkpoint", "Pending"),
        ("gate", "ApprovalGate", "Running"),
        ("build", "AgentRun", "Running"),
        ("check", "ToolRun", "Succeeded"),
    ];
    let mut shorter = (*orchestration()).clone();
    shorter.spec.steps.remove(2);
    shorter.spec.steps[1].depends_on = Some(vec!["check".to_owned()]);
    let sights = vec![Sight::Nothing, Sight::Open, Sight::Nothing];
    let mut cut = seen(run(&statuses, &json!({})), sights);
    cut.orchestration = Some(Arc::new(shorter));
    let plan = plan(&cut, GRACE);
    assert_eq!(
        words(&plan),
        "Succeeded Completed [Succeeded Succeeded Succeeded Cancelled]"
    );
    let [Step::Status(next)] = plan.steps.as_slice() else {
        panic!("a status");
    };
    let dropped = next
        .status
        .step_statuses
        .as_ref()
        .and_then(|all| all.last());
    let dropped = dropped.unwrap();
    assert!(dropped.name == "build" && dropped.resource_ref.is_some());
    let mut back = run(&[], &json!({}));
    back.status.as_mut().unwrap().step_statuses = next.status.step_statuses.clone();
    let anew = status::steps(&back, &orchestration().spec.steps);
    assert_eq!(step::phase(&anew[2]), StepPhase::Pending, "it begins anew");
}

#[test]
fn an_object_is_not_made_for_a_step_that_has_just_ended() {
    let mut late = (*orchestration()).clone();
    late.spec.steps[2].timeout_seconds = Some(30);
    let mut here = seen(
        run(
            &[
                ("end", "Checkpoint", "Pending"),
                ("gate", "ApprovalGate", "Pending"),
                ("build", "AgentRun", "Running"),
                ("check", "ToolRun", "Running"),
            ],
            &json!({}),
        ),
        vec![Sight::Nothing, Sight::Nothing, Sight::Absent, Sight::Absent],
    );
    let mut run = (*here.run.unwrap()).clone();
    let steps = run.status.as_mut().unwrap().step_statuses.as_mut().unwrap();
    steps[2].last_transition_time = Some("2026-01-01T00:00:00Z".parse().unwrap());
    here.run = Some(Arc::new(run));
    here.orchestration = Some(Arc::new(late));
    assert_eq!(
        words(&plan(&here, GRACE)),
        "Running Running [Skipped Skipped Failed Running], make r-check"
    );
}

#[test]
fn a_step_that_took_too_long_is_not_tried_again_beside_its_last_try() {
    let mut patient = (*orchestration()).clone();
    patient.spec.steps[2].timeout_seconds = Some(30);
    patient.spec.steps[2].retries = Some(1);
    let works = [
        ("end", "Checkpoint", "Pending"),
        ("gate", "ApprovalGate", "Pending"),
        ("build", "AgentRun", "Running"),
        ("check", "ToolRun", "Succeeded"),
    ];
    let mut here = seen(run(&works, &json!({})), nothing());
    let mut late = (*here.run.unwrap()).clone();
    let steps = late.status.as_mut().unwrap().step_statuses.as_mut();
    steps.unwrap()[2].last_transition_time = Some("2026-01-01T00:00:00Z".parse().unwrap());
    here.run = Some(Arc::new(late));
    here.orchestration = Some(Arc::new(patient));
    let Sight::Ours(Child::Agent(last)) = ended("AgentRun", "Running") else {
        panic!("a child");
    };
    let mut told = (*last).clone();
    told.spec.cancel = Some(true);
    let last = Child::Agent(last);
    let told = Child::Agent(Arc::new(told));
    let deadline: Timestamp = "2026-01-01T00:01:30Z".parse().unwrap();
    let (at_work, ended) = (
        "Running Running [Pending Pending Retrying Succeeded]",
        "Running Running [Pending Pending Running Succeeded]",
    );
    let stopped = format!("{at_work}, stop child");
    for (row, sight, left, expected, next) in [
        ("late", Some(&last), None, at_work, Next::At(here.now)),
        (
            "begins to wait",
            Some(&last),
            Some(&last),
            &*stopped,
            Next::Wait,
        ),
        (
            "the stop failed",
            Some(&last),
            Some(&last),
            &*stopped,
            Next::Wait,
        ),
        (
            "it is stopping",
            Some(&told),
            Some(&told),
            at_work,
            Next::Wait,
        ),
        ("it has ended", None, None, ended, Next::At(deadline)),
    ] {
        here.seen[2] = sight.map_or(Sight::Nothing, |child| Sight::Ours(child.clone()));
        here.left = left.into_iter().cloned().collect();
        let plan = plan(&here, GRACE);
        assert_eq!(words(&plan), expected, "{row}");
        assert_eq!(plan.next, next, "{row}");
        let Some(Step::Status(standing)) = plan.steps.first() else {
            panic!("a status");
        };
        let before = here.run.as_deref().unwrap();
        let stored = after(Kind::OrchestrationRun, before, standing, here.now);
        here.run = Some(Arc::new(stored));
    }
    let run = here.run.unwrap();
    let steps = run.status.as_ref().unwrap().step_statuses.as_ref();
    assert_eq!(steps.unwrap()[2].attempt, Some(2));
}

#[test]
fn a_fault_does_not_begin_the_grace_anew() {
    let mut waits = seen(run(&[], &json!({"status": null})), nothing());
    waits.orchestration = None;
    let first = plan(&waits, GRACE);
    let [Step::Status(next)] = first.steps.as_slice() else {
        panic!("a status");
    };
    let run = waits.run.as_deref().unwrap();
    let waiting = after(Kind::OrchestrationRun, run, next, waits.now);
    let fault = Fault::new("look it up", Class::Retryable, "the server is busy");
    let troubled = status::troubled(&waiting, &fault).unwrap();
    let later = "2026-01-01T00:01:30Z".parse().unwrap();
    waits.run = Some(Arc::new(after(
        Kind::OrchestrationRun,
        &waiting,
        &troubled,
        later,
    )));
    waits.now = later;
    assert_eq!(plan(&waits, GRACE).next, first.next);
}

#[test]
fn an_object_gets_what_the_run_and_the_step_give() {
    let run = run(&[], &json!({"metadata": {"labels": {"team": "a"}}}));
    let orchestration = orchestration();
    let step = &orchestration.spec.steps[2];
    let Ok(Some(Child::Agent(made))) = child::make(&run, step, StepKind::AgentRun, "n") else {
        panic!("an AgentRun");
    };
    let spec = serde_json::to_value(&made.spec).unwrap();
    assert_eq!(spec["parameters"], json!({"a": "1", "b": "2"}));
    assert_eq!(spec["runtime"]["type"], "job");
    assert_eq!(spec["agentRef"]["name"], "a");
    assert_eq!(
        made.metadata
            .labels
            .as_ref()
            .map(|labels| labels["team"].as_str()),
        Some("a")
    );
    let owners = made
        .metadata
        .owner_references
        .as_deref()
        .unwrap_or_default();
    assert_eq!(owners[0].uid, "u-1");
}

#[test]
fn orchestrations_that_go_round_in_circles_come_to_an_end() {
    let deep =
        json!({"metadata": {"annotations": {"agents.proompteng.ai/orchestration-depth": "16"}}});
    let run = run(&[], &deep);
    let step = json!({"name": "s", "kind": "SubOrchestration", "orchestrationRef": {"name": "o"}});
    let step: Definition = serde_json::from_value(step).unwrap();
    let made = child::make(&run, &step, StepKind::SubOrchestration, "n");
    assert!(made.is_err_and(|why| why.contains("circles")));
    assert!(!status::phase(&run).is_terminal() && Phase::Running == status::phase(&run));
}
