//! What the steps of an Orchestration bring in through fields that the schema does not know. The runs that the steps
//! make are judged again when they are made, with their Agent.

use super::{Intake, SPEC, SecretWay};
use crate::api::object::cause::Path;
use crate::api::object::tree::Json;
use crate::api::policy::read::{list, text};

impl Intake<'_> {
    pub(super) fn add_steps(&mut self, spec: &impl Json) {
        let steps = SPEC.field("steps");
        for (index, step) in list(spec, "steps").iter().enumerate() {
            self.add_step(&steps.index(index), step);
        }
    }

    fn add_step(&mut self, at: &Path<'_>, step: &impl Json) {
        if let Some(workload) = step.field("workload") {
            self.add_workload(&at.field("workload"), workload);
        }
        if let Some(workflow) = step.field("workflow") {
            let workflow_at = at.field("workflow");
            let steps = workflow_at.field("steps");
            for (index, inner) in list(workflow, "steps").iter().enumerate() {
                if let Some(workload) = inner.field("workload") {
                    self.add_workload(&steps.index(index).field("workload"), workload);
                }
            }
        }
        self.add_config(at, step);
        self.add_secrets(at, step, "secrets", SecretWay::Environment);
        self.add_prompt(&at.field("systemPromptRef"), step.field("systemPromptRef"));
    }

    fn add_workload(&mut self, at: &Path<'_>, workload: &impl Json) {
        self.add_image(&at.field("image"), text(workload, "image"));
        self.add_volumes(at, workload);
    }
}
