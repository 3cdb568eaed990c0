//! Reading of raw objects: what is not as it should be counts as absent, since `validate` names it.

use crate::api::object::tree::Json;

/// The value below these fields.
pub(super) fn at<'v, J: Json>(owner: &'v J, fields: &[&str]) -> Option<&'v J> {
    fields
        .iter()
        .try_fold(owner, |value, field| value.field(field))
}

/// A field that is a text and not blank, without the blanks around it.
pub(super) fn text<'v, J: Json>(owner: &'v J, field: &str) -> Option<&'v str> {
    filled(owner.field(field)?)
}

/// A text that is not blank, without the blanks around it.
pub(super) fn filled<J: Json>(value: &J) -> Option<&str> {
    let text = value.text()?.trim();
    (!text.is_empty()).then_some(text)
}

/// The entries of a field that is a list; none of anything else.
pub(super) fn list<'v, J: Json>(owner: &'v J, field: &str) -> &'v [J] {
    owner.field(field).map_or(&[], Json::entries)
}

/// The texts of a field that is a list.
pub(super) fn texts<'v, J: Json>(owner: &'v J, field: &str) -> impl Iterator<Item = &'v str> {
    list(owner, field).iter().filter_map(filled)
}
