//! Reading of raw objects: what is not as it should be counts as absent, since `validate` names it.

use serde_json::Value;

/// The value below these fields.
pub(super) fn at<'v>(owner: &'v Value, fields: &[&str]) -> Option<&'v Value> {
    fields
        .iter()
        .try_fold(owner, |value, field| value.get(field))
}

/// A field that is a text and not blank, without the blanks around it.
pub(super) fn text<'v>(owner: &'v Value, field: &str) -> Option<&'v str> {
    filled(owner.get(field)?)
}

/// A text that is not blank, without the blanks around it.
pub(super) fn filled(value: &Value) -> Option<&str> {
    let text = value.as_str()?.trim();
    (!text.is_empty()).then_some(text)
}

/// The entries of a field that is a list; none of anything else.
pub(super) fn list<'v>(owner: &'v Value, field: &str) -> &'v [Value] {
    owner
        .get(field)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The texts of a field that is a list.
pub(super) fn texts<'v>(owner: &'v Value, field: &str) -> impl Iterator<Item = &'v str> {
    list(owner, field).iter().filter_map(filled)
}
