//! Memory.

use crate::api::kinds::MemorySpec;
use crate::api::object::cause::Causes;
use crate::api::validate::SPEC;
use crate::api::validate::shared::{check_not_blank, check_secret_ref};

pub(in crate::api::validate) fn check(causes: &mut Causes, spec: &MemorySpec) {
    let connection = SPEC.field("connection");
    check_secret_ref(
        causes,
        &connection.field("secretRef"),
        &spec.connection.secret_ref,
    );
    let capabilities = SPEC.field("capabilities");
    for (index, capability) in spec.capabilities.iter().flatten().enumerate() {
        check_not_blank(causes, &capabilities.index(index), Some(capability));
    }
}

#[cfg(test)]
mod tests {
    use crate::api::kind::Kind;
    use crate::api::validate::shared::testing::brief;
    use serde_json::{Value, json};

    #[test]
    fn each_fault_of_a_memory_is_named() {
        let memory = |secret: Value, capabilities: Value| json!({"type": "postgres", "connection": {"secretRef": secret}, "capabilities": capabilities});
        for (row, spec, expected) in [
            (
                "right",
                memory(json!({"name": "db", "key": "url"}), json!(["vector"])),
                vec![],
            ),
            (
                "wrong",
                memory(json!({"name": "DB"}), json!(["kv", ""])),
                vec![
                    "spec.connection.secretRef.name InvalidName",
                    "spec.capabilities[1] Required",
                ],
            ),
            (
                "unknown type",
                json!({"type": "mysql", "connection": {"secretRef": {"name": "db"}}}),
                vec!["spec.type Malformed"],
            ),
        ] {
            assert_eq!(brief(Kind::Memory, spec), expected, "{row}");
        }
    }
}
