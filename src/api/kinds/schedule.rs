//! Schedule: makes a run of something again and again.

use crate::api::condition::Condition;
use crate::api::crd::schema;
use jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// What is run, and when.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "schedules.proompteng.ai",
    version = "v1alpha1",
    kind = "Schedule",
    doc = "Makes a run of something again and again.",
    namespaced,
    status = "ScheduleStatus",
    shortname = "sched",
    derive = "PartialEq",
    derive = "Default",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleSpec {
    /// Times in cron syntax.
    pub cron: String,
    /// Time zone of these times, for example Europe/Berlin; UTC if left out.
    pub timezone: Option<String>,
    /// AgentRun or OrchestrationRun that is copied at each time.
    pub target_ref: TargetRef,
    /// Make no run until this is taken back. Addition of this project.
    pub suspend: Option<bool>,
    /// What happens when a time comes and an earlier run has not ended. Addition of this project.
    pub concurrency_policy: Option<ConcurrencyPolicy>,
    /// Seconds after a time in which its run may still be made; always if left out. Addition of this project.
    #[schemars(range(min = 0))]
    #[schemars(extend("format" = "int32"))]
    pub starting_deadline_seconds: Option<i64>,
}

/// What happens when a time comes and an earlier run has not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConcurrencyPolicy {
    /// Both run.
    #[default]
    Allow,
    /// The new one is not made.
    Forbid,
    /// The earlier one is stopped.
    Replace,
}

/// Names the object that is copied.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetRef {
    /// Group and version of the object.
    pub api_version: Option<String>,
    /// Kind of the object.
    pub kind: String,
    /// Name of the object.
    pub name: String,
    /// Namespace of the object; that of the Schedule if left out.
    pub namespace: Option<String>,
}

/// What is known about a Schedule.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleStatus {
    /// Where the object stands, for example Ready.
    pub phase: Option<String>,
    /// When a run was last made.
    pub last_run_time: Option<Timestamp>,
    /// The latest time that was dealt with, whether or not a run was made. Addition of this project.
    pub last_schedule_time: Option<Timestamp>,
    /// Observations, one per type.
    #[serde(default)]
    #[schemars(schema_with = "schema::loose_conditions")]
    pub conditions: Option<Vec<Condition>>,
    /// When the status last changed.
    pub updated_at: Option<Timestamp>,
    /// Generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
}
