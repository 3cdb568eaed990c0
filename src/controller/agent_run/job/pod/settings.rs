//! Where the pod is placed and what it may do, as the operator and the run say.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, LocalObjectReference, PodSecurityContext, Toleration, TopologySpreadConstraint,
};
use serde::Deserialize;
use serde_json::Value;

use super::filled;
use crate::controller::agent_run::settings::Runner;
use crate::controller::agent_run::work::Work;

/// Settings of a pod as `runtime.config` writes them.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Settings {
    pub(super) service_account: Option<String>,
    pub(super) node_selector: Option<BTreeMap<String, String>>,
    pub(super) affinity: Option<Affinity>,
    pub(super) pod_security_context: Option<PodSecurityContext>,
    pub(super) tolerations: Option<Vec<Toleration>>,
    pub(super) topology_spread_constraints: Option<Vec<TopologySpreadConstraint>>,
    pub(super) image_pull_secrets: Option<Vec<Value>>,
    pub(super) priority_class_name: Option<String>,
    pub(super) scheduler_name: Option<String>,
}

impl Settings {
    /// What the operator set, with what the run sets over it; an empty list or object of the run clears the operator's.
    pub(super) fn of(work: &Work<'_>, runner: &Runner) -> Result<Self, String> {
        let mut all = runner.pod.clone();
        let own = work.run.spec.runtime.config.iter().flatten();
        all.extend(own.map(|(key, value)| (key.clone(), value.clone())));
        serde_json::from_value(Value::Object(all))
            .map_err(|error| format!("spec.runtime.config cannot be read: {error}"))
    }

    /// Names, or objects with a name.
    pub(super) fn pull_secrets(&self) -> Option<Vec<LocalObjectReference>> {
        let name = |entry: &Value| {
            entry
                .as_str()
                .or_else(|| entry.get("name")?.as_str())
                .map(str::to_owned)
        };
        let names = self.image_pull_secrets.iter().flatten().filter_map(name);
        filled(names.map(|name| LocalObjectReference { name }).collect())
    }
}
