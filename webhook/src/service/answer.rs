//! One review from bytes to bytes, without HTTP: what tests, fuzzers and benchmarks call.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use agents::kit::telemetry::propagation;
use bytes::Bytes;
use http::StatusCode;
use jiff::Timestamp;

use super::claim::Claim;
use super::sampler::Sampler;
use crate::actor::Actors;
use crate::decide::{Context, Stance, decide, let_through};
use crate::decision::{Decision, Difference};
use crate::lookup::Lookup;
use crate::metrics::{Metrics, Phase};
use crate::notices::Notices;
use crate::policy::Policies;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::review::{Request, decode, uid_of};
use crate::subject::{Door, Sorted, Subject, sort};

/// What is sent back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status: 200 for every decision.
    pub status: StatusCode,
    /// An AdmissionReview.
    pub body: Bytes,
}

/// When a review is judged, and as part of which trace.
#[derive(Clone, Copy)]
struct Moment<'a> {
    now: Timestamp,
    traceparent: Option<&'a str>,
}

/// Decides about a review that rules are about.
pub type Rules = fn(&Subject<'_>, &Context<'_>) -> Decision;

/// What happens beside the answer, without delaying it.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Events about refusals.
    pub notices: Notices,
    /// Who deleted what.
    pub actors: Actors,
}

/// Everything that answers depend on.
#[derive(Debug)]
pub struct Admission {
    policies: Policies,
    lookup: Lookup,
    stance: Stance,
    side: Side,
    metrics: Metrics,
    rules: Rules,
    shadow_log: Sampler,
    unknown_log: Sampler,
    /// By [`Refusal::WORDS`].
    undecided_log: [Sampler; Refusal::WORDS.len()],
}

impl Admission {
    /// Admission by these rules.
    pub fn new(
        policies: Policies,
        lookup: Lookup,
        stance: Stance,
        side: Side,
        metrics: Metrics,
    ) -> Self {
        Self {
            policies,
            lookup,
            stance,
            side,
            metrics,
            rules: decide,
            shadow_log: Sampler::default(),
            unknown_log: Sampler::default(),
            undecided_log: Default::default(),
        }
    }

    /// The same by other rules, such as one with a fault, to see what becomes of a review then.
    pub fn judging_by(self, rules: Rules) -> Self {
        Self { rules, ..self }
    }

    /// What is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Answers a review. Always: what cannot be decided is refused with the reason, and a fault of our own with 500.
    pub fn answer(&self, door: Door, body: &[u8]) -> Answer {
        self.answer_if_wanted(door, body, &Claim::default())
            .unwrap_or_else(|| self.fail(door, body))
    }

    /// The same, at a given time and as part of a given trace.
    pub fn answer_at(
        &self,
        door: Door,
        body: &[u8],
        now: Timestamp,
        traceparent: Option<&str>,
    ) -> Answer {
        let (moment, claim) = (Moment { now, traceparent }, Claim::default());
        self.caught(|| self.judge(door, body, moment, &claim))
            .unwrap_or_else(|| self.fail(door, body))
    }

    /// The answer, if nobody else has claimed it by the time it is there: a review that was answered otherwise is neither
    /// counted nor told of. Also none if there is a fault of our own.
    pub(super) fn answer_if_wanted(
        &self,
        door: Door,
        body: &[u8],
        claim: &Claim,
    ) -> Option<Answer> {
        let traceparent = match door {
            Door::Mutate => propagation::traceparent(),
            Door::Validate | Door::MutateStatus | Door::ValidateStatus | Door::ValidateDelete => {
                None // only specs get the trace that they came by
            }
        };
        let moment = Moment {
            now: Timestamp::now(),
            traceparent: traceparent.as_deref(),
        };
        self.caught(|| self.judge(door, body, moment, claim))
    }

    /// Does the work; nothing comes of it if it panics, which is counted here and was logged by the panic hook.
    pub(super) fn caught(&self, work: impl FnOnce() -> Option<Answer>) -> Option<Answer> {
        // Nothing that a panic could leave half done outlives the call but counters and queues, which have no halves.
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
            self.metrics.panicked();
            None
        })
    }

    fn judge(&self, door: Door, body: &[u8], moment: Moment<'_>, claim: &Claim) -> Option<Answer> {
        let started = Instant::now();
        let sorted = match decode(body) {
            Ok(request) => sort(door, request),
            Err(malformed) => {
                let uid = uid_of(body).unwrap_or_default();
                let refusal = Refusal::Malformed(malformed.to_string());
                return claim
                    .take()
                    .then(|| self.refuse(Some(door), &uid, &refusal));
            }
        };
        self.metrics.took(Phase::Decode, started.elapsed());
        match sorted {
            Sorted::Ours(subject) => self.judge_ours(&subject, moment, claim),
            Sorted::Foreign(request) => {
                let (decision, in_force) = (let_through(&request), self.policies.current());
                let reply = Reply::foreign(&request.uid, &decision, &in_force.active.hash);
                let answer = written(&reply)?;
                claim.take().then(|| {
                    self.tell_unknown(door, &request, moment.now);
                    answer
                })
            }
        }
    }

    fn judge_ours(
        &self,
        subject: &Subject<'_>,
        Moment { now, traceparent }: Moment<'_>,
        claim: &Claim,
    ) -> Option<Answer> {
        let started = Instant::now();
        let in_force = self.policies.current();
        let context = Context {
            in_force: &in_force,
            known: &self.lookup,
            stance: &self.stance,
            now,
            traceparent,
        };
        let decision = (self.rules)(subject, &context);
        let decided = Instant::now();
        self.metrics.took(Phase::Evaluate, decided - started);
        let answer = written(&Reply::to(subject, &decision, &in_force.active.hash))?;
        self.metrics.took(Phase::Encode, decided.elapsed());
        claim.take().then(|| {
            self.tell(subject, &decision, now);
            answer
        })
    }

    /// Tells everyone who should know, beside the API server.
    fn tell(&self, subject: &Subject<'_>, decision: &Decision, now: Timestamp) {
        self.metrics.decided(subject, decision);
        self.side.notices.tell(subject, decision);
        self.side.actors.keep(subject, decision, now);
        let (door, kind) = (subject.door.as_str(), subject.target.kind());
        let (namespace, name) = (subject.namespace(), subject.name());
        let operation = subject.operation.as_str();
        let dry_run = subject.dry_run();
        let findings = decision.findings.len();
        if decision.is_refusal() {
            let user = &*subject.user().username;
            let reasons = reasons(decision);
            tracing::info!(
                door, operation, kind, namespace, name, user, dry_run, findings, reasons, "Refused"
            );
        } else {
            let operations = decision.patch.len();
            tracing::debug!(
                door,
                operation,
                kind,
                namespace,
                name,
                dry_run,
                findings,
                operations,
                "Let through"
            );
        }
        if !decision.differences.is_empty() && self.shadow_log.is_due(now) {
            let rules = differences(decision);
            tracing::info!(
                kind,
                namespace,
                name,
                rules,
                "Candidate policy would decide otherwise"
            );
        }
    }

    fn tell_unknown(&self, door: Door, request: &Request<'_>, now: Timestamp) {
        let dry_run = request.dry_run.unwrap_or(false);
        self.metrics.let_through(door, dry_run);
        if self.unknown_log.is_due(now) {
            let Request {
                operation,
                resource,
                ..
            } = request;
            let (group, resource) = (&resource.group, &resource.resource);
            let door = door.as_str();
            tracing::warn!(door, %operation, %group, %resource, "Review that no rule is about");
        }
    }

    /// The answer without a decision.
    pub fn refuse(&self, door: Option<Door>, uid: &str, refusal: &Refusal) -> Answer {
        self.metrics.refused(door, refusal);
        let cause = refusal.as_str();
        let words = Refusal::WORDS.iter().zip(&self.undecided_log);
        let mut logs = words.filter(|(word, _)| **word == cause);
        // Whoever reaches the port can cause these, so their number must not be up to him.
        if logs.any(|(_, log)| log.is_due(Timestamp::now())) {
            let door = door.map_or("", Door::as_str);
            tracing::info!(door, uid, cause, "Not decided");
        }
        Answer {
            status: refusal.status(),
            body: refusal.reply(uid).encode().unwrap_or_default(),
        }
    }

    /// The answer where there is a fault of our own.
    pub(super) fn fail(&self, door: Door, body: &[u8]) -> Answer {
        let uid = uid_of(body).unwrap_or_default();
        self.refuse(Some(door), &uid, &Refusal::Failed)
    }
}

fn written(reply: &Reply<'_>) -> Option<Answer> {
    match reply.encode() {
        Ok(body) => Some(Answer {
            status: StatusCode::OK,
            body,
        }),
        Err(error) => {
            tracing::error!(%error, "Answer cannot be written");
            None
        }
    }
}

/// What the candidate policy would do otherwise, in words.
fn differences(decision: &Decision) -> String {
    let words: Vec<String> = decision
        .differences
        .iter()
        .map(|Difference { rule, direction }| format!("{}:{}", rule.as_str(), direction.as_str()))
        .collect();
    words.join(",")
}

/// The reasons of a refusal, each once, the first ten of them.
fn reasons(decision: &Decision) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in decision.refusing().map(|cause| cause.reason.as_str()) {
        if words.len() < 10 && !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(",")
}

#[cfg(test)]
mod tests {
    use agents::api::object::cause::{Cause, Path, Reason};
    use agents::api::policy::Mode;

    use super::*;
    use crate::decision::Rule;

    #[test]
    fn each_reason_of_a_refusal_is_named_once() {
        let mut decision = Decision::default();
        for reason in [Reason::Required, Reason::Malformed, Reason::Required] {
            let cause = Cause::new(&Path::root("spec"), reason, "x");
            decision.find(Rule::Spec, Mode::Enforce, Some(cause));
        }
        let (first, second) = (Reason::Required.as_str(), Reason::Malformed.as_str());
        assert_eq!(reasons(&decision), format!("{first},{second}"));
    }
}
