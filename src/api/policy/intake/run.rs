//! What an AgentRun brings in: by itself, through the objects it refers to, and through what the operator adds.

use super::{Intake, SPEC, SecretWay, Surroundings, named_auth_secrets};
use crate::api::kinds::AgentRun;
use crate::api::kinds::agents::agent_run::{AgentRunSpec, RuntimeType, VcsMode};
use crate::api::policy::Defaults;

impl<'a> Intake<'a> {
    /// An AgentRun, with the objects that it refers to and what the operator adds.
    pub fn of_agent_run(run: &'a AgentRun, around: &Surroundings<'a>, defaults: &Defaults) -> Self {
        let spec = &run.spec;
        let labels = run.metadata.labels.iter().flatten();
        let mut intake = Self {
            labels: Some(
                labels
                    .map(|(key, value)| (key.as_str(), value.as_str()))
                    .collect(),
            ),
            declared_secrets: Some(spec.secrets.as_deref().unwrap_or_default()),
            agent_name: Some(&spec.agent_ref.name),
            namespace: run.metadata.namespace.as_deref(),
            bindings: around.bindings,
            ..Self::default()
        };
        if let Some(agent) = around.agent {
            intake.restrict_by(agent);
        }
        intake.add_images_of_run(spec, defaults);
        intake.add_own_secrets(spec);
        intake.add_secrets_of_others(spec, around);
        intake.add_what_pods_get(spec, defaults);
        intake
    }

    /// A step's workload replaces that of the run as a whole; a workload without an image gets the operator's.
    fn add_images_of_run(&mut self, spec: &AgentRunSpec, defaults: &Defaults) {
        let in_pods = match spec.runtime.type_ {
            RuntimeType::Job | RuntimeType::Workflow => defaults.image.as_deref(),
            RuntimeType::Temporal | RuntimeType::Custom => None,
        };
        let run_at = SPEC.field("workload");
        let run_image = spec
            .workload
            .as_ref()
            .and_then(|workload| workload.image.as_deref());
        let mut run_counts = true;
        if let (RuntimeType::Workflow, Some(workflow)) = (spec.runtime.type_, &spec.workflow) {
            run_counts = workflow.steps.iter().any(|step| step.workload.is_none());
            let workflow_at = SPEC.field("workflow");
            let steps = workflow_at.field("steps");
            for (index, step) in workflow.steps.iter().enumerate() {
                let Some(workload) = &step.workload else {
                    continue;
                };
                let step_at = steps.index(index);
                let at = step_at.field("workload");
                self.add_image(&at.field("image"), workload.image.as_deref().or(in_pods));
                self.add_volumes(&at, workload);
            }
        }
        if run_counts {
            self.add_image(&run_at.field("image"), run_image.or(in_pods));
        }
        if let Some(workload) = &spec.workload {
            self.add_volumes(&run_at, workload);
        }
    }

    fn add_own_secrets(&mut self, spec: &AgentRunSpec) {
        let list = SPEC.field("secrets");
        for (index, name) in spec.secrets.iter().flatten().enumerate() {
            self.add_secret(&list.index(index), name, SecretWay::Environment);
        }
        if let Some(prompt) = &spec.system_prompt_ref {
            self.add_prompt(&SPEC.field("systemPromptRef").field("name"), prompt);
        }
    }

    fn add_secrets_of_others(&mut self, spec: &AgentRunSpec, around: &Surroundings<'_>) {
        let agent = around.agent.map(|agent| &agent.spec);
        let own_prompt = spec.system_prompt_ref.is_some()
            || spec
                .system_prompt
                .as_deref()
                .is_some_and(|prompt| !prompt.trim().is_empty());
        let agent_prompt = agent
            .and_then(|agent| agent.defaults.as_ref())
            .and_then(|defaults| defaults.system_prompt_ref.as_ref());
        if let Some(prompt) = agent_prompt.filter(|_| !own_prompt) {
            self.add_prompt(&SPEC.field("agentRef"), prompt);
        }
        if let Some(memory) = around.memory {
            let by_agent =
                spec.memory_ref.is_none() && agent.is_some_and(|agent| agent.memory_ref.is_some());
            let at = SPEC.field(if by_agent { "agentRef" } else { "memoryRef" });
            self.add_secret(
                &at,
                &memory.spec.connection.secret_ref.name,
                SecretWay::Memory,
            );
        }
        let policy = spec.vcs_policy.as_ref();
        let unused = policy.and_then(|policy| policy.mode) == Some(VcsMode::None);
        let required = policy.and_then(|policy| policy.required).unwrap_or(false);
        let auth = around
            .vcs
            .filter(|_| !unused)
            .and_then(|vcs| vcs.spec.auth.as_ref());
        for (_, _, name) in auth.into_iter().flat_map(named_auth_secrets) {
            self.add_secret(
                &SPEC.field("vcsRef"),
                name,
                SecretWay::VersionControl { required },
            );
        }
    }

    /// Service account, pull secrets and the operator's credentials, for runtimes that start pods.
    fn add_what_pods_get(&mut self, spec: &AgentRunSpec, defaults: &Defaults) {
        match spec.runtime.type_ {
            RuntimeType::Job | RuntimeType::Workflow => {}
            RuntimeType::Temporal | RuntimeType::Custom => return,
        }
        let runtime = SPEC.field("runtime");
        let config_at = runtime.field("config");
        let config = spec.runtime.config.as_ref();
        if let Some(config) = config {
            self.add_pull_secrets(&config_at, config);
        }
        let given = config.and_then(|config| config.get("serviceAccount")?.as_str());
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
