//! The trace context on an object: stamped when the spec is new, kept if it is the user's, judged if it is wrong.

use crate::api::contract::annotation;
use crate::api::object::cause::{Cause, Path, Reason, quoted};
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, ReplaceOperation};
use serde_json::json;

use crate::admission::review::{Annotations, Metadata, Text};
use crate::admission::subject::Subject;

/// A trace context that the user set and that is none. Judged only if the request sets it.
pub(super) fn fault(subject: &Subject<'_>) -> Option<Cause> {
    let given = set_now(subject).filter(|given| !is_traceparent(given))?;
    let metadata = Path::root("metadata");
    let annotations = metadata.field("annotations");
    Some(Cause::new(
        &annotations.key(annotation::TRACEPARENT),
        Reason::InvalidTraceparent,
        format!(
            "{} is no W3C trace context such as \"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\"; leave it out and one is made",
            quoted(given)
        ),
    ))
}

/// The operations that put the trace of this request on the object, unless it has one of the user's.
pub(super) fn stamp(subject: &Subject<'_>, traceparent: Option<&str>) -> Vec<PatchOperation> {
    let Some(object) = subject.request.object.as_ref() else {
        return Vec::new();
    };
    let Some(traceparent) = traceparent.filter(|_| !is_users(subject, &object.metadata)) else {
        return Vec::new();
    };
    let Some(annotations) = &object.metadata.annotations else {
        return vec![PatchOperation::Add(AddOperation {
            path: PointerBuf::from_tokens(["metadata", "annotations"]),
            value: json!({ annotation::TRACEPARENT: traceparent, annotation::TRACEPARENT_STAMPED: traceparent }),
        })];
    };
    let Annotations {
        traceparent: given,
        stamped,
        outcome_recorded: _,
    } = annotations;
    [
        (annotation::TRACEPARENT, given),
        (annotation::TRACEPARENT_STAMPED, stamped),
    ]
    .into_iter()
    .map(|(name, given)| {
        let path = PointerBuf::from_tokens(["metadata", "annotations", name]);
        let value = traceparent.into();
        match given {
            Some(_) => PatchOperation::Replace(ReplaceOperation { path, value }),
            None => PatchOperation::Add(AddOperation { path, value }),
        }
    })
    .collect()
}

/// Whether the trace context on the object is the user's: set by this very request, or by an earlier one and not by us.
/// A manifest that pins one says the same with every change, and would otherwise win it back with a write of its own.
fn is_users(subject: &Subject<'_>, metadata: &Metadata<'_>) -> bool {
    let stamped = metadata
        .annotations
        .as_ref()
        .and_then(|ours| ours.stamped.as_ref());
    let pinned = metadata
        .traceparent()
        .is_some_and(|given| Some(given) != stamped);
    pinned || set_now(subject).is_some()
}

/// What the request itself sets: there, and not the same as before.
fn set_now<'s>(subject: &'s Subject<'_>) -> Option<&'s Text<'s>> {
    let request = &subject.request;
    let new = request.object.as_ref()?.metadata.traceparent()?;
    let old = request.old_object.as_ref();
    let before = old.and_then(|old| old.metadata.traceparent());
    (before != Some(new)).then_some(new)
}

/// Whether a text is a `traceparent` of version 00: ids of lower-case hexadecimal digits that are not all zero.
fn is_traceparent(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [version, trace, span, flags] = parts.as_slice() else {
        return false;
    };
    let hex = |part: &str, length: usize| {
        let digits = part.bytes();
        part.len() == length
            && digits
                .into_iter()
                .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_id = |part: &str, length: usize| hex(part, length) && part.bytes().any(|b| b != b'0');
    *version == "00" && is_id(trace, 32) && is_id(span, 16) && hex(flags, 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_complete_trace_context_counts_as_one() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert!(is_traceparent(good));
        for wrong in [
            "",
            "00",
            "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
            "00-0af7651916cd43dd8448eb211c80319ä-b7ad6b7169203331-01",
        ] {
            assert!(!is_traceparent(wrong), "{wrong}");
        }
    }
}
