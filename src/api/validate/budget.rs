//! Budget: amounts that can be compared.

use super::SPEC;
use super::shared::{Quantity, check_quantity};
use crate::api::kinds::BudgetSpec;
use crate::api::object::cause::{Causes, Path, Reason, quoted};
use serde_json::Value;

pub(super) fn check(causes: &mut Causes, spec: &BudgetSpec) {
    let Some(limits) = &spec.limits else {
        return;
    };
    let at = SPEC.field("limits");
    for (field, amount) in [("tokens", &limits.tokens), ("dollars", &limits.dollars)] {
        if let Some(amount) = amount {
            check_number(causes, &at.field(field), amount);
        }
    }
    for (field, amount) in [
        ("cpu", &limits.cpu),
        ("memory", &limits.memory),
        ("gpu", &limits.gpu),
    ] {
        if let Some(amount) = amount {
            check_quantity(causes, &at.field(field), amount);
        }
    }
    for (field, amount) in &limits.extra {
        check_other(causes, &at.field(field), amount);
    }
}

/// What a resource of another name is counted in is not ours to say, only that it is not below zero.
fn check_other(causes: &mut Causes, at: &Path<'_>, amount: &Value) {
    let text = amount.as_str().and_then(|text| text.trim().parse().ok());
    let below = amount.as_f64().is_some_and(|amount| amount < 0.0)
        || text.is_some_and(|amount: Quantity| amount < Quantity::ZERO);
    if below {
        causes.add(at, Reason::OutOfRange, "is below zero; use 0 or more");
    }
}

/// Tokens and dollars are plain numbers: `5M` would be five mega of something that has no unit.
fn check_number(causes: &mut Causes, at: &Path<'_>, amount: &str) {
    if amount.trim().ends_with(|c: char| c.is_ascii_alphabetic()) {
        let message = format!(
            "{} is not a number; write digits without a unit",
            quoted(amount)
        );
        causes.add(at, Reason::InvalidQuantity, message);
    } else {
        check_quantity(causes, at, amount);
    }
}

#[cfg(test)]
mod tests {
    use crate::api::kind::Kind;
    use crate::api::validate::shared::testing::brief;
    use serde_json::json;

    #[test]
    fn each_fault_of_a_budget_is_named() {
        for (row, spec, expected) in [
            ("nothing", json!({}), vec![]),
            (
                "right",
                json!({"limits": {
                    "tokens": "5000000", "dollars": "12.50", "cpu": "500m", "memory": "1Gi", "gpu": "0", "calls": "x",
                }}),
                vec![],
            ),
            (
                "wrong",
                json!({"limits": {"tokens": "5M", "dollars": "-1", "cpu": "much", "memory": "-1Gi", "gpu": ""}}),
                vec![
                    "spec.limits.tokens InvalidQuantity",
                    "spec.limits.dollars OutOfRange",
                    "spec.limits.cpu InvalidQuantity",
                    "spec.limits.memory OutOfRange",
                    "spec.limits.gpu InvalidQuantity",
                ],
            ),
            (
                "resources of other names",
                json!({"limits": {"calls": "-5", "seats": -1, "runs": 3, "note": "-a"}}),
                vec![
                    "spec.limits.calls OutOfRange",
                    "spec.limits.seats OutOfRange",
                ],
            ),
        ] {
            assert_eq!(brief(Kind::Budget, spec), expected, "{row}");
        }
    }
}
