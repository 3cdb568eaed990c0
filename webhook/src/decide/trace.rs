//! The trace context on an object: stamped when the spec is new, kept if the user brought one, judged if it is wrong.

use agents::api::cause::{Cause, Path, Reason, quoted};
use agents::api::contract::annotation;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, ReplaceOperation};
use serde_json::json;

use crate::review::Text;
use crate::subject::Subject;

/// A trace context that the user set and that is none. Judged only if the request sets it.
pub(super) fn fault(subject: &Subject<'_>) -> Option<Cause> {
    let given = set_by_user(subject).filter(|given| !is_traceparent(given))?;
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

/// The operation that puts the trace of this request on the object, unless the request brings its own.
pub(super) fn stamp(subject: &Subject<'_>, traceparent: Option<&str>) -> Option<PatchOperation> {
    let traceparent = traceparent?;
    if set_by_user(subject).is_some() {
        return None;
    }
    let metadata = &subject.request.object.as_ref()?.metadata;
    let tokens = ["metadata", "annotations", annotation::TRACEPARENT];
    let path = PointerBuf::from_tokens(tokens);
    Some(match &metadata.annotations {
        None => PatchOperation::Add(AddOperation {
            path: PointerBuf::from_tokens(["metadata", "annotations"]),
            value: json!({ annotation::TRACEPARENT: traceparent }),
        }),
        Some(annotations) if annotations.traceparent.is_some() => {
            PatchOperation::Replace(ReplaceOperation {
                path,
                value: traceparent.into(),
            })
        }
        Some(_) => PatchOperation::Add(AddOperation {
            path,
            value: traceparent.into(),
        }),
    })
}

/// What the request itself sets: there, and not the same as before.
fn set_by_user<'s>(subject: &'s Subject<'_>) -> Option<&'s Text<'s>> {
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
