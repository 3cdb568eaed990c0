//! How a run is shown. Pure.

use kube::ResourceExt;
use kube::api::DynamicObject;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::api::condition::ConditionType;
use crate::api::contract::annotation;
use crate::api::kinds::shared::JobMissing;
use crate::api::phase::Phase;
use crate::serve::carry_out::redact;

/// A run in short.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RunSummary")]
pub(in crate::serve) struct Summary {
    /// Namespace of the run.
    namespace: String,
    /// Name of the run.
    name: String,
    /// Uid of the run.
    uid: String,
    /// When it was made.
    created_at: Option<String>,
    /// Pending, Running, Succeeded, Failed or Cancelled.
    phase: String,
    /// Why it stands so, for programs.
    reason: Option<String>,
    /// Why it stands so, for people.
    message: Option<String>,
    /// Why it is held back, while it is.
    blocked: Option<String>,
    /// Name of the Agent.
    agent: Option<String>,
    /// What carries it out.
    runtime: Option<String>,
    /// When it began.
    started_at: Option<String>,
    /// When it ended.
    finished_at: Option<String>,
    /// Since when it stands so.
    since: Option<String>,
    /// Whether its end was asked for.
    cancel: bool,
    /// Id of the trace that it is part of.
    trace_id: Option<String>,
    /// What was found out about a Job of its that went missing.
    job_missing: Option<JobMissing>,
}

/// A run with all there is.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "RunDetail")]
pub(in crate::serve) struct Detail {
    #[serde(flatten)]
    summary: Summary,
    /// The object as it is stored, without values that can be secret.
    resource: Value,
}

impl Detail {
    pub(super) fn of(run: DynamicObject) -> Self {
        Self {
            summary: Summary::of(&run),
            resource: redact::shown(run),
        }
    }
}

impl Summary {
    pub(in crate::serve) fn of(run: &DynamicObject) -> Self {
        let text = |path: &str| {
            let found = run.data.pointer(path).and_then(Value::as_str);
            found.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let phase = text("/status/phase").unwrap_or_else(|| Phase::Pending.as_str().to_owned());
        let created_at = run.creation_timestamp().map(|time| time.0.to_string());
        let conditions = Conditions::of(&run.data);
        let ended = Phase::parse(&phase).and_then(Phase::terminal_condition);
        let telling = conditions.get(ended.unwrap_or(ConditionType::Succeeded));
        let blocked = conditions.holding(ConditionType::Blocked);
        let why = blocked.or(telling);
        let said = |name: &str| Some(why?.get(name)?.as_str()?.to_owned());
        let trace = run.annotations().get(annotation::TRACEPARENT);
        let (started_at, finished_at) = (text("/status/startedAt"), text("/status/finishedAt"));
        Self {
            namespace: run.namespace().unwrap_or_default(),
            name: run.name_any(),
            uid: run.uid().unwrap_or_default(),
            reason: said("reason"),
            message: said("message"),
            blocked: blocked.and_then(|blocked| Some(blocked.get("reason")?.as_str()?.to_owned())),
            agent: text("/spec/agentRef/name"),
            runtime: text("/spec/runtime/type"),
            since: finished_at
                .clone()
                .or_else(|| blocked.and_then(transition))
                .or_else(|| started_at.clone())
                .or_else(|| created_at.clone()),
            cancel: run.data.pointer("/spec/cancel") == Some(&Value::Bool(true)),
            trace_id: trace.and_then(|trace| trace.split('-').nth(1).map(str::to_owned)),
            job_missing: job_missing(&run.data),
            created_at,
            phase,
            started_at,
            finished_at,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        Phase::parse(&self.phase).is_some_and(Phase::is_terminal)
    }

    /// Whether its end was asked for and has not come yet, or came for that.
    pub(super) fn is_cancelling(&self) -> bool {
        let cancelled = self.phase == Phase::Cancelled.as_str();
        cancelled || (self.cancel && !self.has_ended())
    }

    /// How it stands, in a few words.
    pub(super) fn standing(&self) -> String {
        let at = self.finished_at.as_deref().or(self.since.as_deref());
        let at = at.map(|at| format!(" since {at}")).unwrap_or_default();
        let why = self.message.as_deref().filter(|why| !why.is_empty());
        let why = why.map(|why| format!(", {why}")).unwrap_or_default();
        format!("{}{at}{why}", self.phase)
    }

    pub(super) fn job_missing(&self) -> Option<&JobMissing> {
        self.job_missing.as_ref()
    }
}

/// What was found out about the Job of a run, or of the first of its steps that lost one.
fn job_missing(run: &Value) -> Option<JobMissing> {
    let status = run.get("status")?;
    let steps = status.pointer("/workflow/steps").and_then(Value::as_array);
    let owners = std::iter::once(status).chain(steps.into_iter().flatten());
    let mut found = owners.filter_map(|owner| owner.pointer("/jobRef/missing"));
    found.find_map(|missing| serde_json::from_value(missing.clone()).ok())
}

fn transition(condition: &Value) -> Option<String> {
    Some(condition.get("lastTransitionTime")?.as_str()?.to_owned())
}

/// The conditions of any object.
pub(in crate::serve) struct Conditions<'a>(Vec<&'a Value>);

impl<'a> Conditions<'a> {
    pub(in crate::serve) fn of(object: &'a Value) -> Self {
        let list = object.pointer("/status/conditions");
        let list = list.and_then(Value::as_array).into_iter().flatten();
        Self(list.collect())
    }

    fn get(&self, sort: ConditionType) -> Option<&'a Value> {
        let is_it =
            |entry: &&Value| entry.get("type").and_then(Value::as_str) == Some(sort.as_str());
        self.0.iter().copied().find(is_it)
    }

    fn holding(&self, sort: ConditionType) -> Option<&'a Value> {
        let holds = |entry: &&Value| entry.get("status").and_then(Value::as_str) == Some("True");
        self.get(sort).filter(holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(spec: Value, status: Value) -> Summary {
        let object = json!({
            "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun",
            "metadata": {"name": "r", "namespace": "n", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z",
                "annotations": {"agents.proompteng.ai/traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}},
            "spec": spec, "status": status,
        });
        Summary::of(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn a_run_is_told_in_short() {
        let spec = json!({"agentRef": {"name": "coder"}, "runtime": {"type": "job"}});
        let fresh = run(spec.clone(), Value::Null);
        assert_eq!((&*fresh.phase, fresh.has_ended()), ("Pending", false));
        assert_eq!(fresh.since.as_deref(), Some("2026-01-01T00:00:00Z"));
        assert_eq!(
            fresh.trace_id.as_deref(),
            Some("0af7651916cd43dd8448eb211c80319c")
        );
        let blocked = run(
            spec.clone(),
            json!({"phase": "Pending", "conditions": [{"type": "Blocked", "status": "True",
                "reason": "ConcurrencyLimit", "message": "wait", "lastTransitionTime": "2026-01-02T00:00:00Z"}]}),
        );
        assert_eq!(blocked.blocked.as_deref(), Some("ConcurrencyLimit"));
        assert_eq!(blocked.message.as_deref(), Some("wait"));
        assert_eq!(blocked.since.as_deref(), Some("2026-01-02T00:00:00Z"));
        let failed = run(
            spec,
            json!({"phase": "Failed", "finishedAt": "2026-01-03T00:00:00Z", "conditions": [
                {"type": "Blocked", "status": "False", "reason": "Reconciled"},
                {"type": "Failed", "status": "True", "reason": "Failed", "message": "exit 3"}]}),
        );
        assert!(failed.has_ended() && failed.blocked.is_none());
        assert_eq!(
            failed.standing(),
            "Failed since 2026-01-03T00:00:00Z, exit 3"
        );
    }

    #[test]
    fn a_job_that_went_missing_is_told_of_a_run_and_of_its_steps() {
        let missing = json!({"class": "JobTtlExpired", "recovered": "fromPod", "noticedAt": "2026-01-01T00:00:00Z"});
        let alone = run(
            json!({}),
            json!({"jobRef": {"name": "j", "missing": missing}}),
        );
        let step = json!({"workflow": {"steps": [{"name": "a", "jobRef": {}}, {"name": "b", "jobRef": {"missing": missing}}]}});
        let step = run(json!({}), step);
        for seen in [alone, step] {
            assert_eq!(serde_json::to_value(seen).unwrap()["jobMissing"], missing);
        }
        let whole = run(json!({}), json!({"jobRef": {"name": "j"}}));
        assert_eq!(whole.job_missing, None);
    }

    #[test]
    fn what_others_stored_does_not_break_it() {
        for status in [
            json!({"phase": 3, "conditions": {}}),
            json!("x"),
            json!({"conditions": [1, {}], "jobRef": {"missing": 3}}),
        ] {
            assert_eq!(run(json!([]), status).phase, "Pending");
        }
    }

    #[test]
    fn whether_the_end_was_asked_for() {
        let cancelling = |cancel: bool, phase: &str| {
            run(json!({"cancel": cancel}), json!({"phase": phase})).is_cancelling()
        };
        assert!(cancelling(true, "Running") && cancelling(false, "Cancelled"));
        assert!(!cancelling(true, "Succeeded") && !cancelling(false, "Running"));
    }
}
