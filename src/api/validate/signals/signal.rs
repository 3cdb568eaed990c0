//! Signal.

use crate::api::kinds::SignalSpec;
use crate::api::object::cause::Causes;
use crate::api::validate::SPEC;
use crate::api::validate::shared::check_not_blank;

pub(in crate::api::validate) fn check(causes: &mut Causes, spec: &SignalSpec) {
    check_not_blank(causes, &SPEC.field("channel"), spec.channel.as_deref());
}

#[cfg(test)]
mod tests {
    use crate::api::kind::Kind;
    use crate::api::validate::shared::testing::brief;
    use serde_json::json;

    #[test]
    fn each_fault_of_a_signal_is_named() {
        for (row, spec, expected) in [
            ("nothing", json!({}), vec![]),
            (
                "right",
                json!({"channel": "c", "payload": {"a": 1}, "more": 1}),
                vec![],
            ),
            (
                "blank channel",
                json!({"channel": " "}),
                vec!["spec.channel Required"],
            ),
        ] {
            assert_eq!(brief(Kind::Signal, spec), expected, "{row}");
        }
    }
}
