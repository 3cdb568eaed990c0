//! A run as a row of a table, and as a line of progress. Pure: the time comes from outside.

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;

use crate::api::condition::{Condition, ConditionType};
use crate::api::kinds::AgentRun;
use crate::api::kinds::agents::agent_run::RuntimeType;
use crate::api::kinds::shared::JobRef;
use crate::api::phase::Phase;
use crate::cli::shown::{Cell, Tone, age};

/// How much of a run a row shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    /// Runs of several namespaces stand beside each other.
    pub(super) namespace: bool,
    /// There is room.
    pub(super) wide: bool,
}

/// The heading.
pub(super) fn head(columns: Columns) -> Vec<&'static str> {
    let mut head = Vec::new();
    head.extend(columns.namespace.then_some("NAMESPACE"));
    head.extend(["NAME", "PHASE", "REASON", "AGENT", "AGE", "DURATION"]);
    if columns.wide {
        head.extend(["RUNTIME", "JOB", "MESSAGE"]);
    }
    head
}

/// One run.
pub(super) fn row(run: &AgentRun, columns: Columns, now: Timestamp) -> Vec<Cell> {
    let mut row: Vec<Cell> = Vec::new();
    row.extend(
        columns
            .namespace
            .then(|| run.namespace().unwrap_or_default().into()),
    );
    let phase = phase(run);
    let told = told(run);
    let word = |text: Option<&str>| Cell::from(text.unwrap_or("-"));
    row.extend([
        run.name_any().into(),
        Cell::toned(phase, tone(run)),
        word(told.and_then(|told| told.reason.as_deref())),
        (&run.spec.agent_ref.name).into(),
        run.creation_timestamp()
            .map_or_else(|| "-".into(), |made| since(made.0, now).into()),
        duration(run, now).map_or_else(|| "-".into(), |time| age(time).into()),
    ]);
    if columns.wide {
        row.push(runtime(run).into());
        row.push(word(job(run)));
        row.push(word(told.and_then(|told| told.message.as_deref())));
    }
    row
}

/// The phase that a run shows; one without a phase is pending.
pub(in crate::cli) fn phase(run: &AgentRun) -> &str {
    let status = run.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    phase.unwrap_or(Phase::Pending.as_str())
}

/// How the run ended, if it has.
pub(in crate::cli) fn ended(run: &AgentRun) -> Option<Phase> {
    Phase::parse(phase(run)).filter(|phase| phase.is_terminal())
}

/// The condition that says most about why the run stands as it does: its end, else what holds it back, else how it goes.
pub(in crate::cli) fn told(run: &AgentRun) -> Option<&Condition> {
    let conditions = run.status.as_ref()?.conditions.as_ref()?;
    let of = |type_: ConditionType| {
        let mut all = conditions.iter();
        all.find(move |one| one.type_ == type_.as_str())
    };
    let holds = |type_| of(type_).filter(|one| one.status == "True");
    let end = ended(run).and_then(Phase::terminal_condition);
    end.and_then(holds)
        .or_else(|| holds(ConditionType::Blocked))
        .or_else(|| of(ConditionType::Ready))
}

/// One line about how the run stands, to follow it by.
pub(super) fn line(run: &AgentRun) -> String {
    let told = told(run);
    let part = |text: Option<&String>| text.filter(|text| !text.is_empty()).cloned();
    let reason = told.and_then(|told| part(told.reason.as_ref()));
    let message = told.and_then(|told| part(told.message.as_ref()));
    let mut line = phase(run).to_owned();
    if let Some(reason) = reason.filter(|reason| *reason != line) {
        line += &format!(" ({reason})");
    }
    if let Some(message) = message {
        line += &format!(": {message}");
    }
    line
}

/// The time from one moment to a later one.
pub(in crate::cli) fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

fn since(from: Timestamp, now: Timestamp) -> String {
    age(between(from, now))
}

/// How long the run has worked, or worked until its end.
fn duration(run: &AgentRun, now: Timestamp) -> Option<Duration> {
    let status = run.status.as_ref()?;
    let end = status.finished_at.unwrap_or(now);
    Some(between(status.started_at?, end))
}

fn tone(run: &AgentRun) -> Option<Tone> {
    match Phase::parse(phase(run))? {
        Phase::Pending => Some(Tone::Dim),
        Phase::Running => None,
        Phase::Succeeded => Some(Tone::Good),
        Phase::Failed => Some(Tone::Bad),
        Phase::Cancelled => Some(Tone::Warn),
    }
}

fn runtime(run: &AgentRun) -> &'static str {
    match run.spec.runtime.type_ {
        RuntimeType::Workflow => "workflow",
        RuntimeType::Job => "job",
        RuntimeType::Temporal => "temporal",
        RuntimeType::Custom => "custom",
    }
}

/// The Job that is at work, or was last.
fn job(run: &AgentRun) -> Option<&str> {
    jobs(run).find_map(|job| job.name.as_deref())
}

/// The Jobs of a run, its own first and then those of its steps, the last step first.
pub(in crate::cli) fn jobs(run: &AgentRun) -> impl Iterator<Item = &JobRef> {
    let status = run.status.as_ref();
    let flow = status.and_then(|status| status.workflow.as_ref());
    let steps = flow.and_then(|flow| flow.steps.as_deref());
    let of_steps = steps.unwrap_or_default().iter().rev();
    let own = status.and_then(|status| status.job_ref.as_ref());
    own.into_iter()
        .chain(of_steps.filter_map(|step| step.job_ref.as_ref()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cli::shown::{Paint, table};

    fn run(status: Value) -> AgentRun {
        serde_json::from_value(json!({
            "metadata": {"name": "fix", "namespace": "team", "creationTimestamp": "2026-01-01T11:00:00Z"},
            "spec": {"agentRef": {"name": "coder"}, "runtime": {"type": "job"}},
            "status": status,
        }))
        .unwrap()
    }

    fn now() -> Timestamp {
        "2026-01-01T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn a_row_tells_phase_reason_age_and_duration() {
        let blocked = run(json!({"phase": "Pending", "conditions": [
            {"type": "Ready", "status": "False", "reason": "Pending"},
            {"type": "Blocked", "status": "True", "reason": "QueueLimit", "message": "too many"},
        ]}));
        let done = run(
            json!({"phase": "Failed", "startedAt": "2026-01-01T11:30:00Z", "finishedAt": "2026-01-01T11:31:05Z",
                "jobRef": {"name": "fix-job"}, "conditions": [
                {"type": "Failed", "status": "True", "reason": "JobFailed", "message": "the Job\nfailed"},
                {"type": "Blocked", "status": "True", "reason": "QueueLimit"},
            ]}),
        );
        let columns = Columns {
            namespace: true,
            wide: true,
        };
        let rows = [
            row(&blocked, columns, now()),
            row(&done, columns, now()),
            row(&run(json!(null)), columns, now()),
        ];
        let expected = "\
            NAMESPACE   NAME   PHASE     REASON       AGENT   AGE   DURATION   RUNTIME   JOB       MESSAGE\n\
            team        fix    Pending   QueueLimit   coder   60m   -          job       -         too many\n\
            team        fix    Failed    JobFailed    coder   60m   65s        job       fix-job   the Job failed\n\
            team        fix    Pending   -            coder   60m   -          job       -         -\n";
        assert_eq!(table(&head(columns), &rows, Paint::PLAIN), expected);
    }

    #[test]
    fn a_line_of_progress_says_why() {
        let words = |status| line(&run(status));
        assert_eq!(words(json!(null)), "Pending");
        let conditions = json!([{"type": "Ready", "status": "False", "reason": "Running", "message": "the Job works"}]);
        assert_eq!(
            words(json!({"phase": "Running", "conditions": conditions})),
            "Running: the Job works"
        );
        let conditions = json!([{"type": "Blocked", "status": "True", "reason": "RateLimit", "message": "wait"}]);
        assert_eq!(
            words(json!({"conditions": conditions})),
            "Pending (RateLimit): wait"
        );
    }

    #[test]
    fn only_what_has_ended_is_over() {
        for phase in Phase::ALL {
            let found = ended(&run(json!({"phase": phase.as_str()})));
            assert_eq!(found, Some(*phase).filter(|phase| phase.is_terminal()));
        }
        assert_eq!(ended(&run(json!({"phase": "Paused"}))), None);
    }
}
