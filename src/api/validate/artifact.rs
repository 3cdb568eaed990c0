//! Artifact.

use super::SPEC;
use super::shared::{check_name, check_not_negative};
use crate::api::kinds::ArtifactSpec;
use crate::api::object::cause::Causes;
use crate::api::text::names::Form;

pub(super) fn check(causes: &mut Causes, spec: &ArtifactSpec) {
    if let Some(name) = spec
        .storage_ref
        .as_ref()
        .and_then(|storage| storage.name.as_ref())
    {
        check_name(
            causes,
            &SPEC.field("storageRef").field("name"),
            name,
            Form::DnsSubdomain,
        );
    }
    let days = spec
        .lifecycle
        .as_ref()
        .and_then(|lifecycle| lifecycle.ttl_days);
    check_not_negative(causes, &SPEC.field("lifecycle").field("ttlDays"), days);
}

#[cfg(test)]
mod tests {
    use crate::api::kind::Kind;
    use crate::api::validate::shared::testing::brief;
    use serde_json::json;

    #[test]
    fn each_fault_of_an_artifact_is_named() {
        for (row, spec, expected) in [
            ("nothing", json!({}), vec![]),
            (
                "right",
                json!({"storageRef": {"name": "s3"}, "lifecycle": {"ttlDays": 30}}),
                vec![],
            ),
            (
                "wrong",
                json!({"storageRef": {"name": "S3"}, "lifecycle": {"ttlDays": -1}}),
                vec![
                    "spec.storageRef.name InvalidName",
                    "spec.lifecycle.ttlDays OutOfRange",
                ],
            ),
        ] {
            assert_eq!(brief(Kind::Artifact, spec), expected, "{row}");
        }
    }
}
