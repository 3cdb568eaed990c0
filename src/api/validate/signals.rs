//! Signal and SignalDelivery.

use super::SPEC;
use super::shared::{check_not_blank, check_ref};
use crate::api::cause::Causes;
use crate::api::kinds::{SignalDeliverySpec, SignalSpec};

pub(super) fn check_signal(causes: &mut Causes, spec: &SignalSpec) {
    check_not_blank(causes, &SPEC.field("channel"), spec.channel.as_deref());
}

pub(super) fn check_delivery(causes: &mut Causes, spec: &SignalDeliverySpec) {
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
    fn each_fault_of_signals_is_named() {
        for (row, kind, spec, expected) in [
            ("nothing", Kind::Signal, json!({}), vec![]),
            (
                "right",
                Kind::Signal,
                json!({"channel": "c", "payload": {"a": 1}, "more": 1}),
                vec![],
            ),
            (
                "blank channel",
                Kind::Signal,
                json!({"channel": " "}),
                vec!["spec.channel Required"],
            ),
            (
                "delivery",
                Kind::SignalDelivery,
                json!({"signalRef": {"name": "go"}, "deliveryId": "1"}),
                vec![],
            ),
            (
                "wrong delivery",
                Kind::SignalDelivery,
                json!({"signalRef": {"name": ""}, "deliveryId": ""}),
                vec!["spec.signalRef.name Required", "spec.deliveryId Required"],
            ),
        ] {
            assert_eq!(brief(kind, spec), expected, "{row}");
        }
    }
}
