//! Image, resources and volumes of a pod: what the API server would refuse when the pod is made.

use std::collections::BTreeMap;

use super::names::{check_name, check_unique, repeated};
use super::values::{check_path, check_quantity};
use crate::api::kinds::shared::{Resources, Volume, VolumeType, Workload};
use crate::api::object::cause::{Causes, Path, Reason, did_you_mean, not_one_of, quoted};
use crate::api::text::names::Form;

/// Resources that need no prefix.
const STANDARD: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Everything about a workload.
pub(in crate::api::validate) fn check_workload(
    causes: &mut Causes,
    at: &Path<'_>,
    workload: &Workload,
) {
    if let Some(image) = &workload.image {
        check_image(causes, &at.field("image"), image);
    }
    if let Some(resources) = &workload.resources {
        check_resources(causes, &at.field("resources"), resources);
    }
    check_volumes(
        causes,
        &at.field("volumes"),
        workload.volumes.as_deref().unwrap_or_default(),
    );
}

/// A blank image counts as left out; any other must be one word.
pub(in crate::api::validate) fn check_image(causes: &mut Causes, at: &Path<'_>, image: &str) {
    let image = image.trim();
    if image.contains(|c: char| c.is_whitespace() || c.is_control()) {
        let message = format!(
            "{} cannot be an image; write registry/name:tag without spaces",
            quoted(image)
        );
        causes.add(at, Reason::InvalidImage, message);
    }
}

fn check_resources(causes: &mut Causes, at: &Path<'_>, resources: &Resources) {
    let empty = BTreeMap::new();
    let requests = resources.requests.as_ref().unwrap_or(&empty);
    let limits = resources.limits.as_ref().unwrap_or(&empty);
    let limits_at = at.field("limits");
    for (name, amount) in limits {
        check_resource(causes, &limits_at.key(name), name, amount);
    }
    let requests_at = at.field("requests");
    for (name, amount) in requests {
        let here = requests_at.key(name);
        check_resource(causes, &here, name, amount);
        let limit = limits.get(name);
        let above =
            |limit: &String| Some(amount.parse::<super::Quantity>().ok()? > limit.parse().ok()?);
        if let Some(limit) = limit.filter(|limit| above(limit) == Some(true)) {
            let message = format!(
                "{} is above the limit {}; request at most the limit",
                quoted(amount),
                quoted(limit)
            );
            causes.add(&here, Reason::RequestAboveLimit, message);
        }
    }
}

fn check_resource(causes: &mut Causes, at: &Path<'_>, name: &str, amount: &str) {
    let standard = STANDARD.contains(&name) || name.starts_with("hugepages-");
    let extended = name.contains('/') && Form::QualifiedName.fits(name);
    if !standard && !extended {
        let hint =
            did_you_mean(name, &STANDARD).map(|word| format!(" did you mean {}?", quoted(word)));
        let message = format!(
            "{} is not a resource;{} use cpu, memory, ephemeral-storage or a name with a prefix such as example.com/gpu",
            quoted(name),
            hint.unwrap_or_default()
        );
        causes.add(at, Reason::InvalidResourceName, message);
    }
    check_quantity(causes, at, amount);
}

fn check_volumes(causes: &mut Causes, at: &Path<'_>, volumes: &[Volume]) {
    for (index, volume) in volumes.iter().enumerate() {
        let here = at.index(index);
        check_name(causes, &here.field("name"), &volume.name, Form::DnsLabel);
        check_path(causes, &here.field("mountPath"), &volume.mount_path);
        check_source(causes, &here, volume);
        if let Some(size) = &volume.size_limit {
            check_quantity(causes, &here.field("sizeLimit"), size);
        }
        if let Some(medium) = &volume.medium {
            check_medium(causes, &here.field("medium"), medium);
        }
    }
    check_unique(
        causes,
        at,
        "name",
        volumes.iter().map(|volume| volume.name.as_str()),
    );
    let paths = volumes
        .iter()
        .map(|volume| match volume.mount_path.trim_end_matches('/') {
            "" => "/",
            path => path,
        });
    for (index, first, path) in repeated(paths) {
        let message = format!(
            "{} is already mounted by the volume at index {first}; use another path",
            quoted(path)
        );
        causes.add(
            &at.index(index).field("mountPath"),
            Reason::Duplicate,
            message,
        );
    }
}

/// Each type has fields of its own: what it needs must be there, what belongs to another type must not.
fn check_source(causes: &mut Causes, at: &Path<'_>, volume: &Volume) {
    let (type_, needs, owns): (&str, Option<&str>, &[&str]) = match volume.type_ {
        VolumeType::EmptyDir => ("emptyDir", None, &["sizeLimit", "medium"]),
        VolumeType::Pvc => ("pvc", Some("claimName"), &["claimName"]),
        VolumeType::Secret => ("secret", Some("secretName"), &["secretName"]),
    };
    for (field, value) in [
        ("claimName", &volume.claim_name),
        ("secretName", &volume.secret_name),
        ("sizeLimit", &volume.size_limit),
        ("medium", &volume.medium),
    ] {
        let given = value.as_deref().filter(|value| !value.trim().is_empty());
        let here = at.field(field);
        match given {
            None if needs == Some(field) => {
                let message =
                    format!("a volume of type {type_} needs {field}; name what it is made of");
                causes.add(&here, Reason::VolumeSourceMissing, message);
            }
            Some(_) if !owns.contains(&field) => {
                let message = format!(
                    "a volume of type {type_} has no {field}; remove it or change the type"
                );
                causes.add(&here, Reason::VolumeSourceConflict, message);
            }
            Some(name) if needs == Some(field) => {
                check_name(causes, &here, name, Form::DnsSubdomain)
            }
            Some(_) | None => {}
        }
    }
}

fn check_medium(causes: &mut Causes, at: &Path<'_>, medium: &str) {
    let known = ["", "Memory", "HugePages"].contains(&medium) || medium.starts_with("HugePages-");
    if !known {
        causes.add(
            at,
            Reason::VolumeSourceConflict,
            not_one_of(medium, &["Memory", "HugePages"]),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::api::kind::Kind;
    use crate::api::validate::shared::testing::{agent_run, faults};
    use serde_json::{Value, json};

    fn workload(workload: Value) -> Vec<String> {
        faults(Kind::AgentRun, &agent_run(json!({ "workload": workload })))
    }

    #[test]
    fn volumes_have_what_their_type_needs_and_nothing_else() {
        let volume = |more: Value| {
            let mut volume = json!({"type": "emptyDir", "name": "v", "mountPath": "/v"});
            for (name, value) in more.as_object().unwrap() {
                volume[name] = value.clone();
            }
            workload(json!({"volumes": [volume]}))
        };
        for (row, more, expected) in [
            ("plain", json!({}), vec![]),
            (
                "all of an emptyDir",
                json!({"sizeLimit": "1Gi", "medium": "Memory", "readOnly": true}),
                vec![],
            ),
            ("huge pages", json!({"medium": "HugePages-2Mi"}), vec![]),
            ("claim", json!({"type": "pvc", "claimName": "data"}), vec![]),
            (
                "secret",
                json!({"type": "secret", "secretName": "s"}),
                vec![],
            ),
            (
                "claim without a name",
                json!({"type": "pvc"}),
                vec![
                    "spec.workload.volumes[0].claimName VolumeSourceMissing: a volume of type pvc needs claimName; name what it is made of",
                ],
            ),
            (
                "secret with the field of a claim",
                json!({"type": "secret", "claimName": "data"}),
                vec![
                    "spec.workload.volumes[0].claimName VolumeSourceConflict: a volume of type secret has no claimName; remove it or change the type",
                    "spec.workload.volumes[0].secretName VolumeSourceMissing: a volume of type secret needs secretName; name what it is made of",
                ],
            ),
            (
                "bad name of a secret",
                json!({"type": "secret", "secretName": "A B"}),
                vec![
                    "spec.workload.volumes[0].secretName InvalidName: \"A B\" cannot be a name here; use at most 253 lower-case letters, digits, '-' and '.', with a letter or digit at both ends of each part",
                ],
            ),
            (
                "unknown medium",
                json!({"medium": "memory"}),
                vec![
                    "spec.workload.volumes[0].medium VolumeSourceConflict: \"memory\" is not known; did you mean \"Memory\"? allowed: \"Memory\", \"HugePages\"",
                ],
            ),
            (
                "size that is none",
                json!({"sizeLimit": "1GB"}),
                vec![
                    "spec.workload.volumes[0].sizeLimit InvalidQuantity: \"1GB\" is not a quantity; write a number with an optional unit, e.g. 500m, 2 or 1.5Gi",
                ],
            ),
            (
                "relative path",
                json!({"mountPath": "v/../w"}),
                vec![
                    "spec.workload.volumes[0].mountPath InvalidPath: \"v/../w\" cannot be a path here; start with '/' and use neither '..' nor ':'",
                ],
            ),
            (
                "volume name",
                json!({"name": "My_Vol"}),
                vec![
                    "spec.workload.volumes[0].name InvalidName: \"My_Vol\" cannot be a name here; use at most 63 lower-case letters, digits and '-', with a letter or digit at both ends",
                ],
            ),
        ] {
            assert_eq!(volume(more), expected, "{row}");
        }
    }

    #[test]
    fn volumes_do_not_share_names_or_paths() {
        let volume =
            |name: &str, path: &str| json!({"type": "emptyDir", "name": name, "mountPath": path});
        assert_eq!(
            workload(
                json!({"volumes": [volume("a", "/x"), volume("a", "/y"), volume("b", "/x/")]})
            ),
            [
                "spec.workload.volumes[1].name Duplicate: \"a\" is already given at index 0; give each only once",
                "spec.workload.volumes[2].mountPath Duplicate: \"/x\" is already mounted by the volume at index 0; use another path",
            ]
        );
    }

    #[test]
    fn resources_are_named_and_measured_right() {
        assert_eq!(
            workload(json!({"resources": {
                "requests": {"cpu": "500m", "memory": "1Gi", "example.com/gpu": "1", "hugepages-2Mi": "4Mi"},
                "limits": {"cpu": "0.5"},
            }})),
            Vec::<String>::new()
        );
        assert_eq!(
            workload(json!({"resources": {
                "requests": {"cpu": "2", "mem": "1Gi"}, "limits": {"cpu": "1500m", "memory": "-1"},
            }})),
            [
                "spec.workload.resources.limits[memory] OutOfRange: \"-1\" is below zero; use 0 or more",
                "spec.workload.resources.requests[cpu] RequestAboveLimit: \"2\" is above the limit \"1500m\"; request at most the limit",
                "spec.workload.resources.requests[mem] InvalidResourceName: \"mem\" is not a resource; use cpu, memory, ephemeral-storage or a name with a prefix such as example.com/gpu",
            ]
        );
    }

    #[test]
    fn an_image_is_one_word() {
        assert_eq!(
            workload(json!({"image": "registry.example.com:5000/a/b@sha256:0"})),
            Vec::<String>::new()
        );
        assert_eq!(
            workload(json!({"image": "my image"})),
            [
                "spec.workload.image InvalidImage: \"my image\" cannot be an image; write registry/name:tag without spaces"
            ]
        );
    }
}
