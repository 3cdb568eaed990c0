//! The Job of a call and the ConfigMap that it reads. Pure: the same call of the same tool gives the same objects.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{
    ConfigMap, ConfigMapVolumeSource, Container, EnvVar, PodSpec, PodTemplateSpec, SecurityContext,
    Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use crate::api::contract::{finalizer, label};
use crate::api::kinds::{Tool, ToolRun};
use crate::api::text::names::ChildName;
use crate::controller::agent_run::render;

/// Name of the container that does the work.
pub(super) const CONTAINER: &str = "tool-runner";
/// Where the call is written down in the container.
const DOCUMENT: &str = "/workspace/run.json";
const FILE: &str = "run.json";
/// Name of the variable that says where.
const VARIABLE: &str = "TOOL_RUN_SPEC";

/// Name of the Job of a call.
pub(super) fn name(run: &ToolRun) -> String {
    child(run, "tool")
}

fn child(run: &ToolRun, part: &str) -> String {
    ChildName::derive(&run.name_any(), part).as_str().to_owned()
}

/// The document and the Job that carry out the call.
pub(super) fn make(
    run: &ToolRun,
    tool: &Tool,
    container: Option<SecurityContext>,
) -> (ConfigMap, Job) {
    let metadata = |name: String| ObjectMeta {
        name: Some(name),
        namespace: run.namespace(),
        labels: Some(labels(run)),
        owner_references: Some(vec![owner(run)]),
        ..ObjectMeta::default()
    };
    let scope = scope(run, tool);
    let document = ConfigMap {
        metadata: metadata(child(run, "tool-spec")),
        data: Some(BTreeMap::from([(FILE.to_owned(), format!("{scope:#}"))])),
        ..ConfigMap::default()
    };
    let timeout = tool.spec.timeout_seconds.filter(|seconds| *seconds > 0);
    let job = Job {
        metadata: ObjectMeta {
            finalizers: Some(vec![finalizer::OUTCOME.to_owned()]),
            ..metadata(name(run))
        },
        spec: Some(JobSpec {
            // A tool may have changed something before it failed: only its caller knows whether it may run again.
            backoff_limit: Some(0),
            active_deadline_seconds: timeout,
            pod_replacement_policy: Some("Failed".to_owned()),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels(run)),
                    finalizers: Some(vec![finalizer::EVIDENCE.to_owned()]),
                    ..ObjectMeta::default()
                }),
                spec: Some(PodSpec {
                    containers: vec![Container {
                        security_context: container,
                        ..work(tool, &scope)
                    }],
                    ..pod(run, tool)
                }),
            },
            ..JobSpec::default()
        }),
        status: None,
    };
    (document, job)
}

/// The container that does the work.
fn work(tool: &Tool, scope: &Value) -> Container {
    let rendered = |list: &Option<Vec<String>>| {
        let list = list.as_ref().filter(|list| !list.is_empty())?;
        Some(list.iter().map(|text| render(text, scope)).collect())
    };
    let spec = &tool.spec;
    let own = spec.env.iter().flatten();
    let mut env: Vec<_> = own
        .map(|variable| EnvVar {
            name: variable.name.clone(),
            value: Some(render(&variable.value, scope)),
            value_from: None,
        })
        .collect();
    env.retain(|variable| variable.name != VARIABLE);
    env.push(EnvVar {
        name: VARIABLE.to_owned(),
        value: Some(DOCUMENT.to_owned()),
        value_from: None,
    });
    Container {
        name: CONTAINER.to_owned(),
        image: spec.image.as_deref().map(|image| image.trim().to_owned()),
        command: rendered(&spec.command),
        args: rendered(&spec.args),
        env: Some(env),
        working_dir: spec.working_dir.clone(),
        volume_mounts: Some(vec![VolumeMount {
            name: "spec".to_owned(),
            mount_path: DOCUMENT.to_owned(),
            sub_path: Some(FILE.to_owned()),
            read_only: Some(true),
            ..VolumeMount::default()
        }]),
        ..Container::default()
    }
}

/// The pod, but for its container.
fn pod(run: &ToolRun, tool: &Tool) -> PodSpec {
    PodSpec {
        restart_policy: Some("Never".to_owned()),
        service_account_name: tool.spec.service_account.clone(),
        volumes: Some(vec![Volume {
            name: "spec".to_owned(),
            config_map: Some(ConfigMapVolumeSource {
                name: child(run, "tool-spec"),
                ..ConfigMapVolumeSource::default()
            }),
            ..Volume::default()
        }]),
        ..PodSpec::default()
    }
}

/// What templates can refer to, and what the tool reads.
fn scope(run: &ToolRun, tool: &Tool) -> Value {
    json!({
        "toolRun": {"name": run.name_any(), "namespace": run.namespace(), "uid": run.uid()},
        "tool": {"name": tool.name_any(), "spec": tool.spec},
        "parameters": run.spec.parameters.clone().unwrap_or_default(),
    })
}

/// The same on Job, pods and ConfigMap.
fn labels(run: &ToolRun) -> BTreeMap<String, String> {
    BTreeMap::from([
        (label::TOOL_RUN.to_owned(), run.name_any()),
        (label::RUN_UID.to_owned(), run.uid().unwrap_or_default()),
    ])
}

fn owner(run: &ToolRun) -> OwnerReference {
    OwnerReference {
        api_version: ToolRun::api_version(&()).into_owned(),
        kind: ToolRun::kind(&()).into_owned(),
        name: run.name_any(),
        uid: run.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_carried_out_by_a_job_that_is_held() {
        let run: ToolRun = serde_json::from_value(json!({
            "metadata": {"name": "lint-1", "namespace": "here", "uid": "u-1"},
            "spec": {"toolRef": {"name": "lint"}, "parameters": {"path": "src"}},
        }))
        .unwrap();
        let tool: Tool = serde_json::from_value(json!({
            "metadata": {"name": "lint"},
            "spec": {
                "image": " lint:1", "args": ["--in", "{{ parameters.path }}"], "timeoutSeconds": 60,
                "env": [{"name": "WHO", "value": "{{ toolRun.name }}"}, {"name": "TOOL_RUN_SPEC", "value": "x"}],
                "ttlSecondsAfterFinished": 60,
            },
        }))
        .unwrap();
        let context = SecurityContext {
            run_as_non_root: Some(true),
            ..SecurityContext::default()
        };
        let (document, job) = make(&run, &tool, Some(context));
        assert_eq!(document.metadata.name.as_deref(), Some("lint-1-tool-spec"));
        let document = &document.data.unwrap()["run.json"];
        let document: Value = serde_json::from_str(document).unwrap();
        assert_eq!(document["parameters"], json!({"path": "src"}));
        assert_eq!(job.metadata.name.as_deref(), Some("lint-1-tool"));
        assert_eq!(
            job.metadata.finalizers,
            Some(vec![finalizer::OUTCOME.to_owned()])
        );
        let spec = job.spec.unwrap();
        assert_eq!(
            spec.ttl_seconds_after_finished, None,
            "it is set once the outcome is stored"
        );
        assert_eq!(
            (spec.backoff_limit, spec.active_deadline_seconds),
            (Some(0), Some(60))
        );
        let pod = serde_json::to_value(spec.template.spec).unwrap();
        let container = &pod["containers"][0];
        assert_eq!(container["image"], "lint:1");
        assert_eq!(container["args"], json!(["--in", "src"]));
        assert_eq!(container.get("command"), None);
        assert_eq!(container["securityContext"], json!({"runAsNonRoot": true}));
        let env = json!([
            {"name": "WHO", "value": "lint-1"},
            {"name": "TOOL_RUN_SPEC", "value": "/workspace/run.json"},
        ]);
        assert_eq!(container["env"], env);
    }
}
