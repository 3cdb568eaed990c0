//! Orchestration: steps with unique names that wait for each other without a circle.

use super::graph::StepGraph;
use super::step::check_step;
use crate::api::kinds::OrchestrationSpec;
use crate::api::kinds::orchestrations::orchestration::Step;
use crate::api::object::cause::{Causes, Path, Reason, did_you_mean, quoted};
use crate::api::validate::SPEC;
use crate::api::validate::shared::check_unique_steps;

/// Steps of a circle that a message repeats.
const SHOWN: usize = 10;
/// Up to so many steps are compared to guess which one was meant.
const COMPARED: usize = 30;

pub(in crate::api::validate) fn check(
    causes: &mut Causes,
    spec: &OrchestrationSpec,
    name: Option<&str>,
) {
    let at = SPEC.field("steps");
    if spec.steps.is_empty() {
        causes.add(
            &at,
            Reason::MissingSteps,
            "there is no step; add at least one",
        );
    }
    for (index, step) in spec.steps.iter().enumerate() {
        check_step(causes, &at.index(index), step, name);
    }
    let names: Vec<&str> = spec.steps.iter().map(|step| step.name.as_str()).collect();
    check_unique_steps(causes, &at, names.iter().copied(), Reason::DuplicateStep);
    let entrypoint = spec
        .entrypoint
        .as_deref()
        .map(str::trim)
        .filter(|entry| !entry.is_empty());
    if let Some(entrypoint) = entrypoint.filter(|entry| !names.contains(entry)) {
        let message = no_such_step(entrypoint, &names);
        causes.add(
            &SPEC.field("entrypoint"),
            Reason::EntrypointMissing,
            message,
        );
    }
    check_dependencies(causes, &at, &spec.steps, &names);
}

fn check_dependencies(causes: &mut Causes, at: &Path<'_>, steps: &[Step], names: &[&str]) {
    let known: std::collections::HashSet<&str> = names.iter().copied().collect();
    for (index, step) in steps.iter().enumerate() {
        let here = at.index(index);
        let list = here.field("dependsOn");
        for (place, name) in step.depends_on.iter().flatten().enumerate() {
            if *name == step.name {
                let message = "the step waits for itself; remove this entry";
                causes.add(&list.index(place), Reason::InvalidDependency, message);
            } else if !known.contains(name.as_str()) {
                causes.add_thought(&list.index(place), Reason::MissingDependency, || {
                    no_such_step(name, names)
                });
            }
        }
    }
    let waits = |step: &'_ Step| step.depends_on.as_deref().unwrap_or_default().to_vec();
    let waits: Vec<Vec<String>> = steps.iter().map(waits).collect();
    let graph = StepGraph::new(names.iter().copied().zip(waits.iter().map(Vec::as_slice)));
    for circle in graph.order().err().into_iter().flatten() {
        let Some(first) = circle.first() else {
            continue;
        };
        let shown: Vec<String> = circle
            .iter()
            .take(SHOWN)
            .map(|step| quoted(names[*step]))
            .collect();
        let more = if circle.len() > SHOWN { " -> ..." } else { "" };
        let message = format!(
            "steps wait for each other: {}{more} -> {}; remove one of these dependencies",
            shown.join(" -> "),
            quoted(names[*first])
        );
        causes.add(
            &at.index(*first).field("dependsOn"),
            Reason::DependencyCycle,
            message,
        );
    }
}

fn no_such_step(name: &str, names: &[&str]) -> String {
    let guess = did_you_mean(name, names.get(..COMPARED).unwrap_or(names));
    let hint = guess.map(|guess| format!(" did you mean {}?", quoted(guess)));
    format!(
        "there is no step {};{} use the name of a step",
        quoted(name),
        hint.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use crate::api::kind::Kind;
    use crate::api::validate::shared::testing::{brief, faults, with_spec};
    use serde_json::{Value, json};

    fn steps(steps: Value) -> Vec<String> {
        faults(Kind::Orchestration, &with_spec(json!({ "steps": steps })))
    }

    /// A step that needs nothing.
    fn mark(name: &str, waits: &[&str]) -> Value {
        json!({"name": name, "kind": "Checkpoint", "dependsOn": waits})
    }

    #[test]
    fn every_kind_of_step_is_accepted() {
        let all = json!({"entrypoint": "write", "steps": [
            {
                "name": "write", "kind": "AgentRun", "agentRef": {"name": "coder"}, "retries": 1,
                "implementationSpecRef": {"name": "task"}, "runtime": {"type": "job"},
                "workload": {"image": "a"}, "secrets": ["s"], "memoryRef": "m",
            },
            {"name": "inline", "kind": "AgentRun", "agentRef": {"name": "c"}, "implementation": {"inline": {"text": "x"}}},
            {"name": "by-value", "kind": "AgentRun", "agentRef": {"name": "c"}, "with": {"implementationSpecRef": "t"}},
            {"name": "lint", "kind": "ToolRun", "toolRef": {"name": "linter"}, "dependsOn": ["write", "inline"]},
            {"name": "sub", "kind": "SubOrchestration", "orchestrationRef": {"name": "other"}},
            {"name": "gate", "kind": "ApprovalGate", "policyRef": "release"},
            {"name": "gate-2", "kind": "ApprovalGate", "with": {"policyRef": "release"}},
            {"name": "wait", "kind": "SignalWait", "signalRef": {"name": "go"}},
            {"name": "wait-2", "kind": "SignalWait", "signalRef": "go"},
            {"name": "wait-3", "kind": "SignalWait", "deliveryId": "Some Thing"},
            {"name": "mark", "kind": "Checkpoint"},
            {"name": "remember", "kind": "MemoryOp"},
        ]});
        assert_eq!(
            faults(Kind::Orchestration, &with_spec(all)),
            Vec::<String>::new()
        );
    }

    #[test]
    fn circles_are_printed() {
        assert_eq!(
            steps(json!([
                mark("a", &["c"]),
                mark("b", &["a"]),
                mark("c", &["b"]),
                mark("d", &["a"])
            ])),
            [
                "spec.steps[0].dependsOn DependencyCycle: steps wait for each other: \"a\" -> \"c\" -> \"b\" -> \"a\"; remove one of these dependencies"
            ]
        );
    }

    #[test]
    fn names_and_dependencies_must_fit() {
        assert_eq!(
            steps(json!([
                mark("build", &["build", "tset"]),
                mark("test", &[]),
                mark("build", &[]),
                mark("", &[]),
                mark("Do it!", &[])
            ])),
            [
                "spec.steps[3].name StepMissingName: is blank; give each step a name",
                "spec.steps[4].name InvalidName: \"Do it!\" cannot be a name here; use at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends",
                "spec.steps[2].name DuplicateStep: step 0 is called \"build\" as well; give each step its own name",
                "spec.steps[0].dependsOn[0] InvalidDependency: the step waits for itself; remove this entry",
                "spec.steps[0].dependsOn[1] MissingDependency: there is no step \"tset\"; did you mean \"test\"? use the name of a step",
            ]
        );
    }

    #[test]
    fn there_must_be_a_step_and_the_entrypoint_among_them() {
        assert_eq!(
            steps(json!([])),
            ["spec.steps MissingSteps: there is no step; add at least one"]
        );
        assert_eq!(
            brief(
                Kind::Orchestration,
                json!({"entrypoint": "start", "steps": [mark("a", &[])]})
            ),
            ["spec.entrypoint EntrypointMissing"]
        );
    }

    #[test]
    fn each_kind_of_step_needs_what_it_works_on() {
        let step = |kind: &str| json!([{"name": "s", "kind": kind}]);
        for (kind, expected) in [
            (
                "",
                vec![
                    "spec.steps[0].kind StepMissingKind: is blank; say what the step does, e.g. AgentRun",
                ],
            ),
            (
                "AgnetRun",
                vec![
                    "spec.steps[0].kind UnsupportedStep: \"AgnetRun\" is not known; did you mean \"AgentRun\"? allowed: \"AgentRun\", \"ToolRun\", \"SubOrchestration\", \"ApprovalGate\", \"SignalWait\", \"Checkpoint\", \"MemoryOp\"",
                ],
            ),
            (
                "AgentRun",
                vec![
                    "spec.steps[0].agentRef StepMissingReference: a step of kind AgentRun needs agentRef; name the object",
                    "spec.steps[0].implementationSpecRef StepMissingReference: a step of kind AgentRun needs something to do; set implementationSpecRef or implementation",
                ],
            ),
            (
                "ToolRun",
                vec![
                    "spec.steps[0].toolRef StepMissingReference: a step of kind ToolRun needs toolRef; name the object",
                ],
            ),
            (
                "SubOrchestration",
                vec![
                    "spec.steps[0].orchestrationRef StepMissingReference: a step of kind SubOrchestration needs orchestrationRef; name the object",
                ],
            ),
            (
                "ApprovalGate",
                vec![
                    "spec.steps[0].policyRef StepMissingReference: a step of kind ApprovalGate needs policyRef; name the object",
                ],
            ),
            (
                "SignalWait",
                vec![
                    "spec.steps[0].signalRef StepMissingReference: a step of kind SignalWait needs signalRef; name the object",
                ],
            ),
            ("Checkpoint", vec![]),
        ] {
            assert_eq!(steps(step(kind)), expected, "{kind}");
        }
    }

    #[test]
    fn how_often_and_with_what_a_step_is_tried_is_checked() {
        let step = json!([{
            "name": "s", "kind": "AgentRun", "agentRef": {"name": "c"}, "implementationSpecRef": "t",
            "retries": -1, "retryBackoffSeconds": -1, "timeoutSeconds": -1, "with": {"a b": ""},
        }]);
        assert_eq!(
            brief(Kind::Orchestration, json!({ "steps": step })),
            [
                "spec.steps[0].retries OutOfRange",
                "spec.steps[0].retryBackoffSeconds OutOfRange",
                "spec.steps[0].timeoutSeconds OutOfRange",
                "spec.steps[0].with[a b] ParameterKeyInvalid",
            ]
        );
    }

    #[test]
    fn an_orchestration_does_not_start_itself() {
        let inner =
            json!([{"name": "s", "kind": "SubOrchestration", "orchestrationRef": {"name": "x"}}]);
        assert_eq!(
            steps(inner),
            [
                "spec.steps[0].orchestrationRef OrchestrationRecursion: \"x\" would start itself for ever; refer to another one"
            ]
        );
    }
}
