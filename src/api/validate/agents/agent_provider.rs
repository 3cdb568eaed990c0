//! AgentProvider.

use crate::api::kinds::AgentProviderSpec;
use crate::api::object::cause::{Causes, Reason};
use crate::api::validate::SPEC;
use crate::api::validate::shared::{check_env_name, check_path, check_unique};

/// What fits into one ConfigMap, in bytes: one mebibyte, less a little for names.
const INPUT_FILES: usize = 1024 * 1024 - 16 * 1024;

pub(in crate::api::validate) fn check(causes: &mut Causes, spec: &AgentProviderSpec) {
    if spec.binary.trim().is_empty() {
        let message = "is blank; name the program that the container starts";
        causes.add(&SPEC.field("binary"), Reason::MissingBinary, message);
    }
    let env = SPEC.field("envTemplate");
    for name in spec.env_template.iter().flatten().map(|(name, _)| name) {
        check_env_name(causes, &env.key(name), name);
    }
    check_input_files(causes, spec);
    let artifacts = spec.output_artifacts.as_deref().unwrap_or_default();
    let at = SPEC.field("outputArtifacts");
    for (index, artifact) in artifacts.iter().enumerate() {
        if artifact.name.trim().is_empty() {
            let message = "is blank; give each artifact a name";
            causes.add(&at.index(index).field("name"), Reason::Required, message);
        }
    }
    check_unique(
        causes,
        &at,
        "name",
        artifacts.iter().map(|artifact| artifact.name.as_str()),
    );
}

fn check_input_files(causes: &mut Causes, spec: &AgentProviderSpec) {
    let files = spec.input_files.as_deref().unwrap_or_default();
    let at = SPEC.field("inputFiles");
    for (index, file) in files.iter().enumerate() {
        let here = at.index(index);
        check_path(causes, &here.field("path"), &file.path);
        if file.path.ends_with('/') {
            let message = "names a directory; name a file in it";
            causes.add(&here.field("path"), Reason::InvalidPath, message);
        }
    }
    check_unique(
        causes,
        &at,
        "path",
        files.iter().map(|file| file.path.as_str()),
    );
    let size: usize = files.iter().map(|file| file.content.len()).sum();
    if size > INPUT_FILES {
        let message = format!(
            "have {size} bytes together; use at most {INPUT_FILES}, or put them into the image"
        );
        causes.add(&at, Reason::InputFilesTooLarge, message);
    }
}

#[cfg(test)]
mod tests {
    use crate::api::kind::Kind;
    use crate::api::validate::shared::testing::brief;
    use serde_json::json;

    #[test]
    fn each_fault_of_a_provider_is_named() {
        let file = |path: &str| json!({"path": path, "content": "x"});
        for (row, spec, expected) in [
            ("the least", json!({"binary": "/bin/agent"}), vec![]),
            (
                "everything right",
                json!({
                    "binary": "agent", "argsTemplate": ["{{ parameters.a }}"], "envTemplate": {"TASK": "{{ a }}"},
                    "inputFiles": [file("/etc/a"), file("/etc/b")], "outputArtifacts": [{"name": "patch"}],
                }),
                vec![],
            ),
            (
                "everything wrong",
                json!({
                    "binary": " ", "envTemplate": {"A B": ""},
                    "inputFiles": [file("a"), file("/b/"), file("/c"), file("/c"), file("/../d")],
                    "outputArtifacts": [{"name": ""}, {"name": "p"}, {"name": "p"}],
                }),
                vec![
                    "spec.binary MissingBinary",
                    "spec.envTemplate[A B] InvalidEnvName",
                    "spec.inputFiles[0].path InvalidPath",
                    "spec.inputFiles[1].path InvalidPath",
                    "spec.inputFiles[4].path InvalidPath",
                    "spec.inputFiles[3].path Duplicate",
                    "spec.outputArtifacts[0].name Required",
                    "spec.outputArtifacts[2].name Duplicate",
                ],
            ),
            (
                "files that fit into no ConfigMap",
                json!({"binary": "a", "inputFiles": [{"path": "/a", "content": "x".repeat(1_040_000)}]}),
                vec!["spec.inputFiles InputFilesTooLarge"],
            ),
        ] {
            assert_eq!(brief(Kind::AgentProvider, spec), expected, "{row}");
        }
    }
}
