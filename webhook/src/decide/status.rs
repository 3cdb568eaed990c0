//! Statuses: what a foreign writer left out is filled in, then the contract is judged, each rule with its own mode.

use agents::api::cause::{Cause, Path, Reason};
use agents::api::condition::Moment;
use agents::api::kind::Kind;
use agents::api::policy::Mode;
use agents::api::status::{StatusRule, check, repair};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Context;
use crate::decision::{Decision, Rule};
use crate::patch;
use crate::review::{Object, read};
use crate::subject::Subject;

const UPDATED_AT: &str = "updatedAt";

pub(super) fn decide(
    kind: Kind,
    subject: &Subject<'_>,
    context: &Context<'_>,
    decision: &mut Decision,
) {
    let (Some(new), Some(old)) = (&subject.request.object, &subject.request.old_object) else {
        return;
    };
    let same = new.status.map(RawValue::get) == old.status.map(RawValue::get);
    if same || restores(subject, context) {
        return;
    }
    let sent = match tree(new) {
        Ok(sent) => sent,
        Err(cause) => return find(decision, context, vec![cause]),
    };
    // A status that cannot be read was stored before anyone judged it; it cannot be compared with.
    let stored = tree(old).ok().flatten();
    let at = Moment {
        now: context.now,
        generation: new.metadata.generation.unwrap_or(0),
    };
    let mended = match subject.door.mutates() && context.stance.mends() {
        true => mend(kind, context, stored.as_ref(), sent.as_ref(), at),
        false => None,
    };
    let result = match &mended {
        Some(mended) => {
            decision.patch = patch::difference("status", sent.as_ref(), Some(mended));
            Some(mended)
        }
        None => sent.as_ref(),
    };
    let causes = check(kind, stored.as_ref(), result, at);
    find(decision, context, causes);
}

/// Statuses from a backup are written as they were: their times lie in the past, and their phases may go back.
fn restores(subject: &Subject<'_>, context: &Context<'_>) -> bool {
    let mut restorers = context.stance.restorers.iter();
    restorers.any(|name| subject.user().is(name))
}

/// The status to store instead, as far as the operator lets it be mended. None where it stays as it was sent.
fn mend(
    kind: Kind,
    context: &Context<'_>,
    stored: Option<&Value>,
    sent: Option<&Value>,
    at: Moment,
) -> Option<Value> {
    // What is no object is for the schema to refuse.
    if sent.is_some_and(|sent| !sent.is_object()) {
        return None;
    }
    let policy = &context.in_force.active.policy;
    let mends = |rule| policy.status_mode(rule) == Mode::Enforce;
    let mended = repair(kind, stored, sent, at)?;
    match (mends(StatusRule::Omission), mends(StatusRule::UpdatedAt)) {
        (true, true) => Some(mended),
        (true, false) => Some(with_updated_at(mended, sent?.get(UPDATED_AT))),
        (false, true) => Some(with_updated_at(sent?.clone(), mended.get(UPDATED_AT))),
        (false, false) => None,
    }
}

fn with_updated_at(mut status: Value, updated_at: Option<&Value>) -> Value {
    if let Some(fields) = status.as_object_mut() {
        match updated_at {
            Some(time) => fields.insert(UPDATED_AT.to_owned(), time.clone()),
            None => fields.remove(UPDATED_AT),
        };
    }
    status
}

fn find(decision: &mut Decision, context: &Context<'_>, causes: Vec<Cause>) {
    let policy = &context.in_force.active.policy;
    for cause in causes {
        let rule = StatusRule::of(cause.reason);
        let mode = context.stance.cap(policy.status_mode(rule));
        decision.find(Rule::Status(rule), mode, Some(cause));
    }
}

fn tree(object: &Object<'_>) -> Result<Option<Value>, Cause> {
    let Some(raw) = object.status else {
        return Ok(None);
    };
    let status = read(raw).map_err(|unreadable| {
        let at = Path::root("status");
        Cause::new(&at, Reason::Malformed, unreadable.to_string())
    })?;
    Ok(Some(status))
}
