//! One object through the doors of the webhook, as the API server would send it: first as it is written, then as it would
//! be stored. The rules are those of `admission`; none is here.

use jiff::Timestamp;
use serde_json::Value;

use crate::admission::decide::{Context, Stance, decide};
use crate::admission::decision::Decision;
use crate::admission::in_force::InForce;
use crate::admission::known::Known;
use crate::admission::question::question;
use crate::admission::review::{Malformed, decode};
use crate::admission::subject::{Door, Sorted, sort};
use crate::api::kind::Kind;

/// What objects are judged by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Law<'a> {
    /// The policy.
    pub(crate) in_force: &'a InForce,
    /// The objects that others refer to.
    pub(crate) known: &'a Known,
    /// How far the webhook is rolled out.
    pub(crate) stance: &'a Stance,
    /// The time.
    pub(crate) now: Timestamp,
}

/// What the webhook would decide about an object of this namespace, which changes `old` if that is given.
///
/// # Errors
///
/// When the API server could not even ask: metadata is not what metadata is.
pub(crate) fn judge(
    law: Law<'_>,
    kind: Kind,
    namespace: &str,
    object: &Value,
    old: Option<&Value>,
) -> Result<Decision, Malformed> {
    pass(law, question(kind, namespace, object, old))
}

/// What the doors say that a review goes through, one after the other, until one refuses.
///
/// # Errors
///
/// When it is no review.
pub(crate) fn pass(law: Law<'_>, mut review: Value) -> Result<Decision, Malformed> {
    let mut all = Decision::default();
    for door in doors(&review) {
        let decision = ask(law, *door, &review)?;
        let refused = decision.is_refusal();
        for finding in decision.findings {
            if !all.findings.contains(&finding) {
                all.findings.push(finding);
            }
        }
        all.missing.extend(decision.missing);
        if refused {
            break;
        }
        if let Some(object) = review.pointer_mut("/request/object") {
            // The patch was made from this very object; one that does not fit changes nothing.
            drop(json_patch::patch(object, &decision.patch));
        }
    }
    Ok(all)
}

/// The doors that the API server sends a review to.
fn doors(review: &Value) -> &'static [Door] {
    let text = |at: &str| review.pointer(at).and_then(Value::as_str);
    let part = text("/request/subResource").unwrap_or_default();
    match (part, text("/request/operation")) {
        ("status", _) => &[Door::MutateStatus, Door::ValidateStatus],
        (_, Some("DELETE")) => &[Door::ValidateDelete],
        (_, _) => &[Door::Mutate, Door::Validate],
    }
}

/// What one door says to a review.
fn ask(law: Law<'_>, door: Door, review: &Value) -> Result<Decision, Malformed> {
    let body = review.to_string();
    let Law {
        in_force,
        known,
        stance,
        now,
    } = law;
    let context = Context {
        in_force,
        known,
        stance,
        now,
        traceparent: None,
    };
    Ok(match sort(door, decode(body.as_bytes())?) {
        Sorted::Ours(subject) => decide(&subject, &context),
        Sorted::Foreign(_) => Decision::default(),
    })
}
