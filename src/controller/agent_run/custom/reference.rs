//! What the status of a run keeps about its endpoint: `status.runtimeRef`, in the form that older tools read.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::reply::Answer;
use crate::api::crd::schema::FreeObject;
use crate::api::kinds::AgentRun;
use crate::api::phase::Phase;
use crate::controller::agent_run::status::phase;
use crate::kit::egress::Target;

/// Time between two questions, unless the endpoint asks for another; and what it may ask for.
const POLL: Duration = Duration::from_secs(10);
const SHORTEST_POLL: Duration = Duration::from_secs(1);
const LONGEST_POLL: Duration = Duration::from_secs(300);

/// Where a run was handed to, and how that went.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::controller::agent_run) struct Reference {
    /// The endpoint, without what may be secret in it.
    pub(super) name: String,
    /// Number of the try that is under way, from 1.
    pub(super) attempt: i64,
    /// Not before this time.
    pub(super) next_attempt_at: Option<Timestamp>,
    /// When the endpoint took the run.
    pub(super) submitted_at: Option<Timestamp>,
    /// When the run has taken too long.
    pub(super) deadline_at: Option<Timestamp>,
    /// Where the endpoint is asked how it stands.
    pub(super) status_url: Option<String>,
    /// Time between two questions.
    pub(super) poll: Duration,
    /// What the endpoint answered.
    pub(super) response: Option<Value>,
}

impl Reference {
    /// What is stored; none if the run was never reserved.
    pub(in crate::controller::agent_run) fn of(run: &AgentRun) -> Option<Self> {
        let stored = run.status.as_ref()?.runtime_ref.as_ref()?;
        let text = |name: &str| stored.get(name).and_then(Value::as_str);
        let time = |name: &str| text(name).and_then(|text| text.parse().ok());
        let number = |name: &str| stored.get(name).and_then(Value::as_u64);
        Some(Self {
            name: text("name").unwrap_or_default().to_owned(),
            attempt: stored.get("attempt").and_then(Value::as_i64).unwrap_or(1),
            next_attempt_at: time("nextAttemptAt"),
            submitted_at: time("submittedAt"),
            deadline_at: time("deadlineAt"),
            status_url: text("statusUrl").map(str::to_owned),
            poll: polite(number("pollSeconds").map(Duration::from_secs)),
            response: stored.get("response").cloned(),
        })
    }

    pub(super) fn reserve(endpoint: &str, deadline_at: Option<Timestamp>) -> Self {
        let name = Target::parse(endpoint).map(|target| target.to_string());
        Self {
            name: name.unwrap_or_default(),
            attempt: 1,
            next_attempt_at: None,
            submitted_at: None,
            deadline_at,
            status_url: None,
            poll: POLL,
            response: None,
        }
    }

    /// The endpoint has taken the run.
    pub(super) fn take(&mut self, answer: &Answer, at: Timestamp) {
        self.next_attempt_at = None;
        self.submitted_at = Some(at);
        self.status_url = answer.status_url.clone();
        self.poll = polite(answer.poll);
        self.response = answer.response.clone();
    }

    /// Whether the endpoint has it. One that older tools started says so by its phase only.
    pub(super) fn is_submitted(&self, run: &AgentRun) -> bool {
        self.submitted_at.is_some() || phase(run) == Phase::Running
    }

    /// Whether the run has taken too long.
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.deadline_at.is_some_and(|end| end <= now)
    }

    pub(in crate::controller::agent_run) fn stored(&self) -> FreeObject {
        let Self {
            name,
            attempt,
            next_attempt_at,
            submitted_at,
            deadline_at,
            status_url,
            poll,
            response,
        } = self;
        let mut stored = FreeObject::new();
        let mut put = |name: &str, value: Option<Value>| {
            stored.extend(value.map(|value| (name.to_owned(), value)));
        };
        put("type", Some(json!("custom")));
        put("name", Some(json!(name)));
        put("namespace", Some(json!("external")));
        put("attempt", Some(json!(attempt)));
        put("nextAttemptAt", next_attempt_at.map(|time| json!(time)));
        put("submittedAt", submitted_at.map(|time| json!(time)));
        put("deadlineAt", deadline_at.map(|time| json!(time)));
        put("statusUrl", status_url.as_ref().map(|url| json!(url)));
        let poll = status_url.as_ref().map(|_| json!(poll.as_secs()));
        put("pollSeconds", poll);
        put("response", response.clone());
        stored
    }
}

fn polite(asked: Option<Duration>) -> Duration {
    let asked = asked.unwrap_or(POLL);
    asked.clamp(SHORTEST_POLL, LONGEST_POLL)
}
