//! What the steps of an Orchestration bring in through fields that the schema does not know. The runs that the steps
//! make are judged again when they are made, with their Agent.

use serde::Deserialize;

use super::{Intake, SPEC, SecretWay};
use crate::api::cause::Path;
use crate::api::kinds::Orchestration;
use crate::api::kinds::agents::agent_run::{Runtime, Workflow};
use crate::api::kinds::shared::Workload;
use crate::api::schema::FreeObject;

impl Intake<'_> {
    /// An Orchestration, step by step.
    pub fn of_orchestration(orchestration: &Orchestration) -> Self {
        let mut intake = Self::default();
        let steps = SPEC.field("steps");
        for (index, step) in orchestration.spec.steps.iter().enumerate() {
            intake.add_step(&steps.index(index), &step.extra);
        }
        intake
    }

    fn add_step(&mut self, at: &Path<'_>, extra: &FreeObject) {
        if let Some(workload) = read::<Workload>(extra, "workload") {
            self.add_workload(&at.field("workload"), &workload);
        }
        if let Some(workflow) = read::<Workflow>(extra, "workflow") {
            let workflow_at = at.field("workflow");
            let steps = workflow_at.field("steps");
            for (index, step) in workflow.steps.iter().enumerate() {
                if let Some(workload) = &step.workload {
                    self.add_workload(&steps.index(index).field("workload"), workload);
                }
            }
        }
        if let Some(config) = read::<Runtime>(extra, "runtime").and_then(|runtime| runtime.config) {
            let runtime = at.field("runtime");
            let config_at = runtime.field("config");
            self.add_pull_secrets(&config_at, &config);
            if let Some(account) = config
                .get("serviceAccount")
                .and_then(|account| account.as_str())
            {
                self.add_service_account(&config_at.field("serviceAccount"), account);
            }
        }
        let list = at.field("secrets");
        for (index, name) in read::<Vec<String>>(extra, "secrets")
            .iter()
            .flatten()
            .enumerate()
        {
            self.add_secret(&list.index(index), name, SecretWay::Environment);
        }
    }

    fn add_workload(&mut self, at: &Path<'_>, workload: &Workload) {
        self.add_image(&at.field("image"), workload.image.as_deref());
        self.add_volumes(at, workload);
    }
}

/// A field that can be read as what it should be; `validate` names one that cannot.
fn read<'v, T: Deserialize<'v>>(extra: &'v FreeObject, name: &str) -> Option<T> {
    T::deserialize(extra.get(name)?).ok()
}
