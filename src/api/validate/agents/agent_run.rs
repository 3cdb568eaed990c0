//! AgentRun.

use super::implementation_spec::check_inline;
use super::runtime::check_runtime;
use crate::api::kinds::AgentRunSpec;
use crate::api::kinds::agents::agent_run::{InlineImplementation, RuntimeType, WorkflowStep};
use crate::api::object::cause::{Causes, Path, Reason};
use crate::api::validate::SPEC;
use crate::api::validate::shared::{
    check_names, check_not_negative, check_optional_ref, check_parameters, check_range, check_ref,
    check_system_prompt, check_tries, check_unique_steps, check_workload,
};

/// Most rounds of a step. An agent that goes round for ever spends for ever.
const MOST_ROUNDS: i64 = 1000;

pub(in crate::api::validate) fn check(causes: &mut Causes, spec: &AgentRunSpec) {
    check_ref(causes, &SPEC.field("agentRef"), &spec.agent_ref);
    let work = spec.implementation_spec_ref.as_ref();
    check_optional_ref(causes, &SPEC.field("implementationSpecRef"), work);
    check_optional_ref(causes, &SPEC.field("memoryRef"), spec.memory_ref.as_ref());
    check_optional_ref(causes, &SPEC.field("vcsRef"), spec.vcs_ref.as_ref());
    check_implementation(causes, &SPEC, spec.implementation.as_ref());
    check_runtime(causes, &SPEC.field("runtime"), &spec.runtime);
    if spec.runtime.type_ == RuntimeType::Workflow {
        let steps = spec
            .workflow
            .as_ref()
            .map(|workflow| workflow.steps.as_slice());
        let workflow = SPEC.field("workflow");
        check_steps(causes, &workflow.field("steps"), steps.unwrap_or_default());
    }
    if let Some(workload) = &spec.workload {
        check_workload(causes, &SPEC.field("workload"), workload);
    }
    check_parameters(causes, &SPEC.field("parameters"), spec.parameters.as_ref());
    check_names(causes, &SPEC.field("secrets"), spec.secrets.as_ref());
    check_system_prompt(
        causes,
        &SPEC,
        spec.system_prompt.as_ref(),
        spec.system_prompt_ref.as_ref(),
    );
    let ttl = spec.ttl_seconds_after_finished;
    check_not_negative(causes, &SPEC.field("ttlSecondsAfterFinished"), ttl);
}

fn check_implementation(causes: &mut Causes, at: &Path<'_>, work: Option<&InlineImplementation>) {
    if let Some(work) = work {
        check_inline(
            causes,
            &at.field("implementation").field("inline"),
            &work.inline,
        );
    }
}

/// The steps of a workflow; also those that an orchestration step hands to its run.
pub(in crate::api::validate) fn check_steps(
    causes: &mut Causes,
    at: &Path<'_>,
    steps: &[WorkflowStep],
) {
    if steps.is_empty() {
        let message =
            "a run of type \"workflow\" needs at least one step; add one, or use type \"job\"";
        causes.add(at, Reason::MissingWorkflowSteps, message);
    }
    for (index, step) in steps.iter().enumerate() {
        let here = at.index(index);
        if step.name.trim().is_empty() {
            let message = "is blank; give each step a name";
            causes.add(
                &here.field("name"),
                Reason::WorkflowStepMissingName,
                message,
            );
        }
        let work = step.implementation_spec_ref.as_ref();
        check_optional_ref(causes, &here.field("implementationSpecRef"), work);
        check_implementation(causes, &here, step.implementation.as_ref());
        check_parameters(causes, &here.field("parameters"), step.parameters.as_ref());
        if let Some(workload) = &step.workload {
            check_workload(causes, &here.field("workload"), workload);
        }
        check_tries(
            causes,
            &here,
            step.retries,
            step.retry_backoff_seconds,
            step.timeout_seconds,
        );
        let rounds = step.loop_.as_ref().and_then(|given| given.max_iterations);
        let loop_at = here.field("loop");
        check_range(
            causes,
            &loop_at.field("maxIterations"),
            rounds,
            (1, MOST_ROUNDS),
        );
    }
    let names = steps.iter().map(|step| step.name.as_str());
    check_unique_steps(causes, at, names, Reason::WorkflowStepDuplicate);
}

#[cfg(test)]
mod tests {
    use crate::api::kind::Kind;
    use crate::api::validate::shared::testing::{agent_run, faults, with_spec};
    use serde_json::{Value, json};

    fn run(more: Value) -> Vec<String> {
        faults(Kind::AgentRun, &agent_run(more))
    }

    #[test]
    fn a_full_run_is_accepted() {
        let full = json!({
            "agentRef": {"name": "coder"},
            "implementation": {"inline": {"text": "", "contract": {"requiredKeys": ["repository"]}}},
            "runtime": {"type": "workflow", "config": {
                "serviceAccount": "runner", "ttlSecondsAfterFinished": 600, "backoffLimit": 0,
                "nodeSelector": {"a": "b"}, "tolerations": [], "imagePullSecrets": ["a", {"name": "b"}],
                "affinity": null, "somethingElse": 1,
            }},
            "workflow": {"steps": [
                {"name": "plan", "retries": 2, "retryBackoffSeconds": 30, "timeoutSeconds": 0, "idempotent": true, "loop": {"maxIterations": 3}},
                {"name": "Do it", "parameters": {"a": "b"}, "workload": {"image": "x"}},
            ]},
            "parameters": {"issue_number": "7", "team/name": ""},
            "secrets": ["model-key"], "systemPrompt": "be kind", "ttlSecondsAfterFinished": 0,
        });
        assert_eq!(
            faults(Kind::AgentRun, &with_spec(full)),
            Vec::<String>::new()
        );
    }

    #[test]
    fn references_must_have_the_form_of_names() {
        let blank = |at: &str| format!("spec.{at} Required: is blank; give a name");
        assert_eq!(
            run(json!({
                "agentRef": {"name": ""}, "implementationSpecRef": {"name": " "}, "memoryRef": {"name": ""},
                "vcsRef": {"name": ""}, "secrets": [""],
            })),
            [
                blank("agentRef.name"),
                blank("implementationSpecRef.name"),
                blank("memoryRef.name"),
                blank("vcsRef.name"),
                blank("secrets[0]"),
            ]
        );
    }

    #[test]
    fn runtimes_that_cannot_work_are_refused() {
        let runtime = |runtime: Value| run(json!({ "runtime": runtime }));
        for (value, expected) in [
            (
                json!({"type": "temporal"}),
                "spec.runtime.type UnsupportedRuntime: runs of type \"temporal\" cannot be carried out yet; use \"job\", \"workflow\" or \"custom\"",
            ),
            (
                json!({"type": "custom"}),
                "spec.runtime.config.endpoint MissingEndpoint: a run of type \"custom\" needs an endpoint; give the address that takes the run over",
            ),
            (
                json!({"type": "custom", "config": {"endpoint": "ftp://a/b"}}),
                "spec.runtime.config.endpoint InvalidUrl: has the scheme \"ftp\", allowed: \"https\", \"http\"; write an address like https://host.example/path",
            ),
            (
                json!({"type": "custom", "config": {"endpoint": "https://me:pw@host/"}}),
                "spec.runtime.config.endpoint InvalidUrl: holds a password, which belongs into a Secret; write an address like https://host.example/path",
            ),
            (
                json!({"type": "custom", "config": {"endpoint": "not a url"}}),
                "spec.runtime.config.endpoint InvalidUrl: is not a URL; write an address like https://host.example/path",
            ),
            (
                json!({"type": "job", "config": {"ttlSecondsAfterFinished": -1}}),
                "spec.runtime.config.ttlSecondsAfterFinished OutOfRange: -1 is out of range; use 0 to 2147483647",
            ),
            (
                json!({"type": "job", "config": {"backoffLimit": "3"}}),
                "spec.runtime.config.backoffLimit InvalidRuntimeConfig: has the wrong type; write a whole number, without quotes",
            ),
            (
                json!({"type": "job", "config": {"nodeSelector": ["a"]}}),
                "spec.runtime.config.nodeSelector InvalidRuntimeConfig: has the wrong type; write an object",
            ),
            (
                json!({"type": "job", "config": {"tolerations": {}}}),
                "spec.runtime.config.tolerations InvalidRuntimeConfig: has the wrong type; write a list",
            ),
            (
                json!({"type": "job", "config": {"serviceAccount": 7}}),
                "spec.runtime.config.serviceAccount InvalidRuntimeConfig: has the wrong type; write a text",
            ),
            (
                json!({"type": "job", "config": {"imagePullSecrets": [7]}}),
                "spec.runtime.config.imagePullSecrets[0] InvalidRuntimeConfig: has the wrong type; write the name of a Secret, or an object with a name",
            ),
        ] {
            assert_eq!(runtime(value), [expected]);
        }
        assert_eq!(
            runtime(json!({"type": "custom", "config": {"endpoint": "http://host:8080/run"}})),
            Vec::<String>::new()
        );
    }

    #[test]
    fn workflows_have_named_steps_within_their_ranges() {
        let steps = |steps: Value| {
            run(json!({"runtime": {"type": "workflow"}, "workflow": {"steps": steps}}))
        };
        let none = "spec.workflow.steps MissingWorkflowSteps: a run of type \"workflow\" needs at least one step; add one, or use type \"job\"";
        assert_eq!(steps(json!([])), [none]);
        assert_eq!(run(json!({"runtime": {"type": "workflow"}})), [none]);
        assert_eq!(
            steps(json!([
                {"name": "a", "retries": -1, "retryBackoffSeconds": 700_000, "timeoutSeconds": -5},
                {"name": " "}, {"name": "a"}, {"name": "c", "retries": 1001, "retryBackoffSeconds": -1},
                {"name": "d", "loop": {"maxIterations": 0}},
            ])),
            [
                "spec.workflow.steps[0].retries OutOfRange: -1 is out of range; use 0 to 1000",
                "spec.workflow.steps[0].retryBackoffSeconds OutOfRange: 700000 is out of range; use 0 to 604800",
                "spec.workflow.steps[0].timeoutSeconds OutOfRange: -5 is out of range; use 0 to 2147483647",
                "spec.workflow.steps[1].name WorkflowStepMissingName: is blank; give each step a name",
                "spec.workflow.steps[3].retries OutOfRange: 1001 is out of range; use 0 to 1000",
                "spec.workflow.steps[3].retryBackoffSeconds OutOfRange: -1 is out of range; use 0 to 604800",
                "spec.workflow.steps[4].loop.maxIterations OutOfRange: 0 is out of range; use 1 to 1000",
                "spec.workflow.steps[2].name WorkflowStepDuplicate: step 0 is called \"a\" as well; give each step its own name",
            ]
        );
        let ignored = json!({"workflow": {"steps": [{"name": "", "retries": -1}]}});
        assert_eq!(
            run(ignored),
            Vec::<String>::new(),
            "steps of a job are not used"
        );
    }

    #[test]
    fn parameters_fit_and_can_be_named_in_templates() {
        let long = "x".repeat(2049);
        assert_eq!(
            run(json!({"parameters": {"a b": "", "big": long}})),
            [
                "spec.parameters[a b] ParameterKeyInvalid: \"a b\" cannot be a parameter; use at most 128 letters, digits, '_', '-', '.' and '/', starting with a letter, digit or '_'",
                "spec.parameters[big] ParameterValueTooLarge: has 2049 bytes; use at most 2048, and hand longer text over by its address or path",
            ]
        );
        let many: serde_json::Map<String, Value> =
            (0..101).map(|n| (format!("k{n}"), json!(""))).collect();
        assert_eq!(
            run(json!({ "parameters": many })),
            ["spec.parameters ParametersTooLarge: has 101 entries; use at most 100"]
        );
    }

    #[test]
    fn prompts_are_given_once_and_times_are_not_negative() {
        assert_eq!(
            run(json!({
                "systemPrompt": "a", "systemPromptRef": {"kind": "ConfigMap", "name": "p", "key": "k"},
                "ttlSecondsAfterFinished": -1,
            })),
            [
                "spec.systemPromptRef SystemPromptConflict: systemPrompt is set as well; keep one of the two",
                "spec.ttlSecondsAfterFinished OutOfRange: -1 is out of range; use 0 to 2147483647",
            ]
        );
    }
}
