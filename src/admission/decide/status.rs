//! Statuses: what a foreign writer left out is filled in, then the contract is judged, each rule with its own mode.

use crate::api::condition::Moment;
use crate::api::kind::Kind;
use crate::api::object::cause::{Cause, Path, Reason};
use crate::api::object::examine::examine_status;
use crate::api::policy::{Mode, Policy};
use crate::api::status::{StatusRule, check, repair};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Context, conclude};
use crate::admission::decision::{Decision, Finding, Rule};
use crate::admission::patch;
use crate::admission::review::{Object, read};
use crate::admission::subject::Subject;

const STATUS: &str = "status";
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
        Err(cause) => return find(subject, context, &[cause], decision),
    };
    // A status that cannot be read was stored before anyone judged it; it cannot be compared with.
    let stored = tree(old).unwrap_or_default();
    let at = Moment {
        now: context.now,
        generation: new.metadata.generation.unwrap_or(0),
    };
    if !subject.door.mutates() {
        let causes = check(kind, status(&stored), status(&sent), at);
        return find(subject, context, &causes, decision);
    }
    let result = match mend(kind, context, &stored, &sent, at) {
        Some(mended) => holding(mended),
        None => sent.clone(),
    };
    decision.patch = patch::difference(STATUS, status(&sent), status(&result));
    // Only this door sees what the schema refuses; afterwards the API server has looked at it.
    let causes = examine_status(kind, &result, &stored, at);
    find(subject, context, &causes, decision);
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
    stored: &Value,
    sent: &Value,
    at: Moment,
) -> Option<Value> {
    let (stored, sent) = (status(stored), status(sent));
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

fn find(subject: &Subject<'_>, context: &Context<'_>, causes: &[Cause], decision: &mut Decision) {
    let judge = |policy: &Policy| {
        let findings = causes.iter().map(|cause| {
            let rule = StatusRule::of(cause.reason);
            Finding {
                rule: Rule::Status(rule),
                mode: policy.status_mode(rule),
                cause: cause.clone(),
            }
        });
        findings.collect()
    };
    conclude(subject, context, judge, decision);
}

/// The part of an object that rules look at here: the status, if there is one.
fn tree(object: &Object<'_>) -> Result<Value, Cause> {
    let Some(raw) = object.status else {
        return Ok(Value::Object(Map::new()));
    };
    let status = read(raw).map_err(|unreadable| {
        let at = Path::root(STATUS);
        Cause::new(&at, Reason::Malformed, unreadable.to_string())
    })?;
    Ok(holding(status))
}

fn holding(status: Value) -> Value {
    Value::Object(Map::from_iter([(STATUS.to_owned(), status)]))
}

fn status(tree: &Value) -> Option<&Value> {
    tree.get(STATUS)
}
