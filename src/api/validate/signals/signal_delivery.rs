//! SignalDelivery.

use crate::api::kinds::SignalDeliverySpec;
use crate::api::object::cause::Causes;
use crate::api::validate::SPEC;
use crate::api::validate::shared::{check_not_blank, check_ref};

pub(in crate::api::validate) fn check(causes: &mut Causes, spec: &SignalDeliverySpec) {
    check_ref(causes, &SPEC.field("signalRef"), &spec.signal_ref);
    check_not_blank(
        causes,
        &SPEC.field("deliveryId"),
        spec.delivery_id.as_deref(),
    );
}

#[cfg(test)]
mod tests {
    use crate::api::kind::Kind;
    use crate::api::validate::shared::testing::brief;
    use serde_json::json;

    #[test]
    fn each_fault_of_a_delivery_is_named() {
        for (row, spec, expected) in [
            (
                "right",
                json!({"signalRef": {"name": "go"}, "deliveryId": "1"}),
                vec![],
            ),
            (
                "wrong",
                json!({"signalRef": {"name": ""}, "deliveryId": ""}),
                vec!["spec.signalRef.name Required", "spec.deliveryId Required"],
            ),
        ] {
            assert_eq!(brief(Kind::SignalDelivery, spec), expected, "{row}");
        }
    }
}
