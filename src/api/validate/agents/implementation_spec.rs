//! ImplementationSpec, and the same fields inline in a run.

use crate::api::kinds::agents::implementation_spec::{Contract, ImplementationFields};
use crate::api::object::cause::{Causes, Path, Reason};
use crate::api::validate::SPEC;
use crate::api::validate::shared::check_optional_ref;

pub(in crate::api::validate) fn check(causes: &mut Causes, spec: &ImplementationFields) {
    if spec.text.trim().is_empty() {
        let message = "is blank; write down what is to be done";
        causes.add(&SPEC.field("text"), Reason::MissingText, message);
    }
    check_inline(causes, &SPEC, spec);
}

/// A run may bring its text as a parameter, so inline text may be blank.
pub(in crate::api::validate) fn check_inline(
    causes: &mut Causes,
    at: &Path<'_>,
    fields: &ImplementationFields,
) {
    check_optional_ref(causes, &at.field("vcsRef"), fields.vcs_ref.as_ref());
    if let Some(contract) = &fields.contract {
        check_contract(causes, &at.field("contract"), contract);
    }
}

fn check_contract(causes: &mut Causes, at: &Path<'_>, contract: &Contract) {
    let keys = at.field("requiredKeys");
    for (index, key) in contract.required_keys.iter().flatten().enumerate() {
        if key.trim().is_empty() {
            causes.add(
                &keys.index(index),
                Reason::InvalidContract,
                "is blank; name the key that a run must bring",
            );
        }
    }
    let mappings = at.field("mappings");
    for (index, mapping) in contract.mappings.iter().flatten().enumerate() {
        for (end, name) in [("from", &mapping.from), ("to", &mapping.to)] {
            if name.trim().is_empty() {
                let message = "is blank; a mapping needs both ends";
                causes.add(
                    &mappings.index(index).field(end),
                    Reason::InvalidContract,
                    message,
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::api::kind::Kind;
    use crate::api::validate::shared::testing::brief;
    use serde_json::json;

    #[test]
    fn each_fault_of_an_implementation_is_named() {
        for (row, spec, expected) in [
            ("the least", json!({"text": "do it"}), vec![]),
            (
                "everything right",
                json!({
                    "text": "do it", "summary": "it", "vcsRef": {"name": "hub"},
                    "contract": {"requiredKeys": ["a"], "mappings": [{"from": "a", "to": "b"}]},
                }),
                vec![],
            ),
            (
                "everything wrong",
                json!({
                    "text": "\n", "vcsRef": {"name": "A"},
                    "contract": {"requiredKeys": ["a", " "], "mappings": [{"from": "", "to": ""}]},
                }),
                vec![
                    "spec.text MissingText",
                    "spec.vcsRef.name InvalidName",
                    "spec.contract.requiredKeys[1] InvalidContract",
                    "spec.contract.mappings[0].from InvalidContract",
                    "spec.contract.mappings[0].to InvalidContract",
                ],
            ),
        ] {
            assert_eq!(brief(Kind::ImplementationSpec, spec), expected, "{row}");
        }
    }
}
