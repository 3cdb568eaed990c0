//! Runtime `custom`: a run is handed to an HTTP endpoint, which carries it out and says how it ended.
//!
//! That it is about to be handed over is stored before the call, and every try carries the uid of the run as its
//! idempotency key, so an endpoint that honours the key starts it once, whatever happens to us between call and
//! status. [`reference`] is what the status keeps, [`reply`] what the endpoint said, [`call`] asks it.

pub(super) mod call;
pub(super) mod reference;
pub(super) mod reply;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::plan::{Action, Observed};
use super::status;
use super::turn;
use super::work::Work;
use crate::api::contract::annotation;
use crate::api::kinds::AgentRun;
use crate::api::kinds::agents::agent_run::{AgentRunStatus, RuntimeType};
use crate::controller::driver::plan::{Next, Plan, Step};
use reference::Reference;
use reply::{Question, Reply, Said};

/// Tries to hand a run over.
pub(super) const TRIES: i64 = 5;
/// Time between two tries, or two questions, when too many calls are under way.
const BUSY: Duration = Duration::from_secs(1);
/// Longest time between two questions that nobody answers.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

type RunPlan = Plan<Action, AgentRunStatus>;

/// What the endpoint is told or asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Errand {
    /// Hand the run over.
    Submit {
        endpoint: String,
        body: String,
        attempt: i64,
    },
    /// Ask how it stands.
    Ask { url: String },
}

/// How a run is handed over: where, what, and how long it may take.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Handover {
    endpoint: String,
    body: String,
    timeout: Option<Duration>,
}

/// Whether a run is carried out by an endpoint.
pub(super) fn is_custom(run: &AgentRun) -> bool {
    run.spec.runtime.type_ == RuntimeType::Custom
}

/// Whether the endpoint has the run.
pub(super) fn is_handed_over(run: &AgentRun) -> bool {
    is_custom(run) && Reference::of(run).is_some_and(|reference| reference.is_submitted(run))
}

/// What the endpoint gets: the payload of the run, or the run with what it refers to.
pub(super) fn prepare(work: &Work<'_>) -> Handover {
    let config = work.run.spec.runtime.config.as_ref();
    let given = |name: &str| config.and_then(|config| config.get(name));
    let endpoint = given("endpoint").and_then(Value::as_str);
    let body = match given("payload").filter(|payload| !payload.is_null()) {
        Some(payload) => payload.clone(),
        None => json!({
            "agentRun": document(work.run),
            "implementation": work.implementation,
            "memory": work.memory.map(|memory| json!({
                "metadata": {"name": memory.name_any(), "namespace": memory.namespace()},
                "spec": memory.spec,
            })),
        }),
    };
    let defaults = work.agent.spec.defaults.as_ref();
    let timeout = defaults.and_then(|defaults| defaults.timeout_seconds);
    let timeout = timeout.and_then(|seconds| u64::try_from(seconds).ok());
    Handover {
        endpoint: endpoint.unwrap_or_default().trim().to_owned(),
        body: body.to_string(),
        timeout: timeout
            .filter(|seconds| *seconds > 0)
            .map(Duration::from_secs),
    }
}

/// The run without what is bookkeeping of the cluster, and without its status.
fn document(run: &AgentRun) -> Value {
    json!({
        "apiVersion": "agents.proompteng.ai/v1alpha1",
        "kind": "AgentRun",
        "metadata": {
            "name": run.name_any(), "namespace": run.namespace(), "uid": run.uid(),
            "generation": run.metadata.generation, "labels": run.metadata.labels,
        },
        "spec": run.spec,
    })
}

/// The trace that the run belongs to.
pub(super) fn trace(run: &AgentRun) -> Option<&String> {
    run.annotations().get(annotation::TRACEPARENT)
}

/// The start of a run that may begin: its reservation, then the call.
pub(super) fn begin(seen: &Observed, run: &AgentRun, handover: Handover) -> RunPlan {
    let Handover {
        endpoint,
        body,
        timeout,
    } = handover;
    let Some(reference) = Reference::of(run) else {
        let deadline = timeout.and_then(|timeout| seen.now.checked_add(timeout).ok());
        let reference = Reference::reserve(&endpoint, deadline);
        let reserved = Step::status(status::custom::reserved(run, &reference));
        let admit = (!turn::has_begun(run)).then_some(Step::Do(Action::Admit));
        return Plan::steps(admit.into_iter().chain([reserved]).collect());
    };
    let errand = Errand::Submit {
        endpoint,
        body,
        attempt: reference.attempt,
    };
    call(seen, errand)
}

/// A call; if there is no room for it now, a moment later.
fn call(seen: &Observed, errand: Errand) -> RunPlan {
    Plan {
        steps: vec![Step::Do(Action::Call(Box::new(errand)))],
        next: at(seen.now.checked_add(BUSY).ok()),
    }
}

fn at(time: Option<Timestamp>) -> Next {
    time.map_or(Next::Wait, Next::At)
}

/// A run that was reserved or handed over. None if it is of another type, or is to be handed over now.
pub(super) fn follow(seen: &Observed, run: &AgentRun) -> Option<RunPlan> {
    let reference = Reference::of(run).filter(|_| is_custom(run))?;
    let now = seen.now;
    if reference.is_submitted(run) {
        return Some(attend(seen, run, &reference));
    }
    let answered = |reply: &&Arc<Reply>| reply.question == Question::Submit(reference.attempt);
    if let Some(reply) = seen.reply.as_ref().filter(answered) {
        return Some(store(after_submit(run, reference, reply, now)));
    }
    if reference.is_over(now) {
        return Some(store(status::custom::timed_out(run, now)));
    }
    let due = reference.next_attempt_at.filter(|due| *due > now)?;
    Some(Plan::idle(Next::At(due)))
}

fn store(next: status::RunStanding) -> RunPlan {
    Plan::steps(vec![Step::status(next)])
}

/// How the run stands once the endpoint has answered the handover.
fn after_submit(
    run: &AgentRun,
    mut reference: Reference,
    reply: &Reply,
    now: Timestamp,
) -> status::RunStanding {
    match &reply.said {
        Said::Taken(answer) => {
            reference.take(answer, reply.at);
            match &answer.end {
                Some(end) => status::custom::ended_at_once(run, &reference, end, reply.at),
                None => status::custom::running(run, &reference, answer, reply.at),
            }
        }
        Said::Busy { why, after } if reference.attempt < TRIES => {
            let pause = Duration::from_secs(3_u64.pow(attempts(reference.attempt)));
            let pause = after.unwrap_or(pause).max(pause).min(LONGEST_PAUSE);
            let why = format!("try {} of {TRIES}: {why}", reference.attempt);
            reference.attempt += 1;
            reference.next_attempt_at = now.checked_add(pause).ok();
            status::custom::tried(run, &reference, &why)
        }
        Said::Busy { why, .. } => {
            let why = format!("{why}; no try is left");
            status::custom::not_taken(run, &why, now)
        }
        Said::Refused { why } => status::custom::not_taken(run, why, now),
        Said::Denied { why } => status::custom::denied(run, why, now),
    }
}

fn attempts(attempt: i64) -> u32 {
    u32::try_from(attempt.saturating_sub(1))
        .unwrap_or(u32::MAX)
        .min(5)
}

/// A run that the endpoint works on: asked for from time to time, if the endpoint said where.
fn attend(seen: &Observed, run: &AgentRun, reference: &Reference) -> RunPlan {
    let now = seen.now;
    let end = at(reference.deadline_at);
    let asked = |reply: &&Arc<Reply>| reply.question == Question::Ask;
    let reply = seen.reply.as_ref().filter(asked);
    let (last, failures) = match reply.map(|reply| (&reply.said, reply)) {
        None => (reference.submitted_at.unwrap_or(now), 0),
        Some((Said::Taken(answer), reply)) => match &answer.end {
            Some(end) => return store(status::custom::ended(run, end, reply.at)),
            None => (reply.at, 0),
        },
        Some((Said::Busy { .. }, reply)) => (reply.at, reply.failures),
        Some((Said::Refused { why }, reply)) => {
            return store(status::custom::lost(run, why, reply.at));
        }
        Some((Said::Denied { why }, reply)) => {
            return store(status::custom::denied(run, why, reply.at));
        }
    };
    if reference.is_over(now) {
        return store(status::custom::timed_out(run, now));
    }
    let Some(url) = &reference.status_url else {
        return Plan::idle(end);
    };
    let pause = reference.poll.saturating_mul(1 << failures.min(8));
    match last.checked_add(pause.min(LONGEST_PAUSE.max(reference.poll))) {
        Ok(due) if due > now => Plan::idle(Next::At(due).or(end)),
        Ok(_) | Err(_) => call(seen, Errand::Ask { url: url.clone() }),
    }
}
