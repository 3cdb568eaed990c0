//! What a Tool brings in, and what a ToolRun does: its Tool may be older than the policy.

use super::{Intake, SPEC};
use crate::api::object::tree::Json;
use crate::api::policy::facts::Surroundings;
use crate::api::policy::read::text;

impl Intake<'_> {
    pub(super) fn add_tool(&mut self, spec: &impl Json) {
        self.add_image(&SPEC.field("image"), text(spec, "image"));
        if let Some(account) = text(spec, "serviceAccount") {
            self.add_service_account(&SPEC.field("serviceAccount"), account);
        }
    }

    pub(super) fn add_tool_run(&mut self, spec: &impl Json, around: &Surroundings) {
        let image = around.tool.as_ref().and_then(|tool| tool.image.as_deref());
        self.add_image(&SPEC.field("toolRef"), image);
        self.add_config(&SPEC, spec);
    }
}
