//! What an AgentRun brings in: by itself, through the objects it refers to, and through what the operator adds.

use super::{Bearer, Intake, PULL_SECRETS, SPEC, SecretWay};
use crate::api::object::tree::Json;
use crate::api::policy::Defaults;
use crate::api::policy::facts::Surroundings;
use crate::api::policy::read::{at, list, text, texts};

impl<'a> Intake<'a> {
    pub(super) fn add_run<J: Json>(
        &mut self,
        bearer: Bearer<'a>,
        spec: &'a J,
        around: &'a Surroundings,
        defaults: &Defaults,
    ) {
        self.labels = Some(bearer.labels);
        self.declared_secrets = Some(texts(spec, "secrets").collect());
        self.agent_name = spec.field("agentRef").and_then(|agent| text(agent, "name"));
        self.namespace = bearer.namespace;
        self.bindings = around.bindings.as_deref();
        if let Some(agent) = &around.agent {
            self.restrict_by(agent);
        }
        let starts_pods = starts_pods(spec);
        let image = defaults.image.as_deref().filter(|_| starts_pods);
        self.add_images_of_run(spec, image);
        self.add_secrets(&SPEC, spec, "secrets", SecretWay::Environment);
        self.add_prompt(
            &SPEC.field("systemPromptRef"),
            spec.field("systemPromptRef"),
        );
        self.add_secrets_of_others(spec, around);
        if starts_pods {
            self.add_what_pods_get(spec, defaults);
        }
    }

    /// A step's workload replaces that of the run as a whole; a workload without an image gets the operator's.
    fn add_images_of_run(&mut self, spec: &impl Json, in_pods: Option<&str>) {
        let run_at = SPEC.field("workload");
        let workload = spec.field("workload");
        let mut run_counts = true;
        if runtime_type(spec) == "workflow"
            && let Some(workflow) = spec.field("workflow")
        {
            let given = list(workflow, "steps");
            run_counts = given.iter().any(|step| step.field("workload").is_none());
            let workflow_at = SPEC.field("workflow");
            let steps = workflow_at.field("steps");
            for (index, step) in given.iter().enumerate() {
                let Some(workload) = step.field("workload") else {
                    continue;
                };
                let step_at = steps.index(index);
                let at = step_at.field("workload");
                self.add_image(&at.field("image"), text(workload, "image").or(in_pods));
                self.add_volumes(&at, workload);
            }
        }
        if run_counts {
            let image = workload.and_then(|workload| text(workload, "image"));
            self.add_image(&run_at.field("image"), image.or(in_pods));
        }
        if let Some(workload) = workload {
            self.add_volumes(&run_at, workload);
        }
    }

    fn add_secrets_of_others(&mut self, spec: &impl Json, around: &Surroundings) {
        let agent = around.agent.as_deref();
        let own_prompt =
            spec.field("systemPromptRef").is_some() || text(spec, "systemPrompt").is_some();
        let agent_prompt = agent.and_then(|agent| agent.prompt_secret.as_deref());
        if let Some(name) = agent_prompt.filter(|_| !own_prompt) {
            self.add_secret(&SPEC.field("agentRef"), name, SecretWay::SystemPrompt);
        }
        let memory = around.memory.as_deref();
        if let Some(name) = memory.and_then(|memory| memory.secret.as_deref()) {
            let by_agent = spec.field("memoryRef").is_none()
                && agent.is_some_and(|agent| agent.memory.is_some());
            let at = SPEC.field(if by_agent { "agentRef" } else { "memoryRef" });
            self.add_secret(&at, name, SecretWay::Memory);
        }
        let policy = spec.field("vcsPolicy");
        let unused = policy.and_then(|policy| text(policy, "mode")) == Some("none");
        let required = policy.and_then(|policy| policy.field("required")?.truth());
        let way = SecretWay::VersionControl {
            required: required.unwrap_or(false),
        };
        for (at, vcs) in around.vcs.iter().filter(|_| !unused) {
            for name in &vcs.secrets {
                self.add_secret(at.clone(), name, way);
            }
        }
    }

    /// Service account, pull secrets and the operator's credentials.
    fn add_what_pods_get(&mut self, spec: &impl Json, defaults: &Defaults) {
        let runtime = SPEC.field("runtime");
        let config_at = runtime.field("config");
        let config = at(spec, &["runtime", "config"]);
        match config.filter(|config| config.field(PULL_SECRETS).is_some()) {
            Some(config) => self.add_pull_secrets(&config_at, config),
            // Any list of the run, an empty one as well, takes the place of the operator's.
            None => {
                for name in defaults.image_pull_secrets.iter().flatten() {
                    let at = config_at.field(PULL_SECRETS);
                    self.add_secret(&at, name, SecretWay::OperatorCredentials);
                }
            }
        }
        let given = config.and_then(|config| text(config, "serviceAccount"));
        let account = given
            .or(defaults.service_account.as_deref())
            .unwrap_or("default");
        self.add_service_account(&config_at.field("serviceAccount"), account);
        if let Some(secret) = &defaults.auth_secret {
            self.add_secret(
                &SPEC.field("agentRef"),
                secret,
                SecretWay::OperatorCredentials,
            );
        }
    }
}

fn runtime_type(spec: &impl Json) -> &str {
    let runtime = spec.field("runtime");
    runtime
        .and_then(|runtime| text(runtime, "type"))
        .unwrap_or_default()
}

/// A runtime that is not known counts as one with pods, so that nothing slips by under a wrong word.
fn starts_pods(spec: &impl Json) -> bool {
    !matches!(runtime_type(spec), "temporal" | "custom")
}
