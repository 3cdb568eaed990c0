//! The pod of a run: one container, what it may read, and where it is placed.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, ConfigMapVolumeSource, Container, EmptyDirVolumeSource, EnvFromSource, EnvVar,
    KeyToPath, LocalObjectReference, PersistentVolumeClaimVolumeSource, PodSecurityContext,
    PodSpec, ResourceRequirements, SecretEnvSource, SecretVolumeSource, Toleration,
    TopologySpreadConstraint, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::ResourceExt;
use serde::Deserialize;
use serde_json::Value;

use super::{child, documents, scope, template};
use crate::api::contract::annotation;
use crate::api::kinds::shared::{SystemPromptKind, VolumeType};
use crate::controller::agent_run::settings::Runner;
use crate::controller::agent_run::work::{Prompt, Work};
use crate::kit::telemetry::propagation::from_traceparent;

/// Where a stored system prompt appears.
const PROMPT_FOLDER: &str = "/workspace/.codex";
const PROMPT_FILE: &str = "system-prompt.txt";

/// Settings of a pod as `runtime.config` writes them.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Settings {
    service_account: Option<String>,
    node_selector: Option<BTreeMap<String, String>>,
    affinity: Option<Affinity>,
    pod_security_context: Option<PodSecurityContext>,
    tolerations: Option<Vec<Toleration>>,
    topology_spread_constraints: Option<Vec<TopologySpreadConstraint>>,
    image_pull_secrets: Option<Vec<Value>>,
    priority_class_name: Option<String>,
    scheduler_name: Option<String>,
}

impl Settings {
    /// What the operator set, with what the run sets over it; an empty list or object of the run clears the operator's.
    fn of(work: &Work<'_>, runner: &Runner) -> Result<Self, String> {
        let mut all = runner.pod.clone();
        let own = work.run.spec.runtime.config.iter().flatten();
        all.extend(own.map(|(key, value)| (key.clone(), value.clone())));
        serde_json::from_value(Value::Object(all))
            .map_err(|error| format!("spec.runtime.config cannot be read: {error}"))
    }

    /// Names, or objects with a name.
    fn pull_secrets(&self) -> Option<Vec<LocalObjectReference>> {
        let name = |entry: &Value| {
            entry
                .as_str()
                .or_else(|| entry.get("name")?.as_str())
                .map(str::to_owned)
        };
        let names = self.image_pull_secrets.iter().flatten().filter_map(name);
        filled(names.map(|name| LocalObjectReference { name }).collect())
    }
}

/// The pod that does the work.
///
/// # Errors
///
/// A sentence for people, when its settings cannot be read.
pub(super) fn spec(work: &Work<'_>, runner: &Runner) -> Result<PodSpec, String> {
    let settings = Settings::of(work, runner)?;
    let mut mounts = Mounts::default();
    mounts.add_workload(work);
    mounts.add_documents(work);
    mounts.add_prompt(work);
    mounts.add_auth(work, runner);
    let Mounts { volumes, mounts } = mounts;
    let scope = scope(work);
    let args = work.provider.spec.args_template.as_deref();
    let args = args.unwrap_or_default().iter();
    let secrets = work.run.spec.secrets.as_deref().unwrap_or_default().iter();
    let container = Container {
        name: "agent-runner".to_owned(),
        image: Some(work.image.to_owned()),
        command: Some(vec![binary(work)]),
        args: Some(args.map(|arg| template::render(arg, &scope)).collect()),
        env: Some(environment(work, runner, &scope)),
        env_from: filled(secrets.map(|name| from_secret(name)).collect()),
        resources: Some(resources(work)),
        volume_mounts: filled(mounts),
        ..Container::default()
    };
    let pull_secrets = settings.pull_secrets();
    let account = settings.service_account.filter(|name| !name.is_empty());
    Ok(PodSpec {
        service_account_name: account.or_else(|| runner.service_account.clone()),
        restart_policy: Some("Never".to_owned()),
        containers: vec![container],
        volumes: filled(volumes),
        node_selector: settings.node_selector.filter(|labels| !labels.is_empty()),
        affinity: settings
            .affinity
            .filter(|affinity| *affinity != Affinity::default()),
        security_context: settings.pod_security_context,
        tolerations: settings.tolerations.and_then(filled),
        topology_spread_constraints: settings.topology_spread_constraints.and_then(filled),
        image_pull_secrets: pull_secrets,
        priority_class_name: settings.priority_class_name.filter(|name| !name.is_empty()),
        scheduler_name: settings.scheduler_name.filter(|name| !name.is_empty()),
        ..PodSpec::default()
    })
}

fn filled<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

fn binary(work: &Work<'_>) -> String {
    let binary = work.provider.spec.binary.trim();
    let binary = if binary.is_empty() {
        "/usr/local/bin/agent-runner"
    } else {
        binary
    };
    binary.to_owned()
}

/// Every entry of a Secret as a variable, by reference: the value is read by the node, never by us.
fn from_secret(name: &str) -> EnvFromSource {
    EnvFromSource {
        secret_ref: Some(SecretEnvSource {
            name: name.trim().to_owned(),
            optional: None,
        }),
        ..EnvFromSource::default()
    }
}

/// The variables in the order in which later ones may refer to earlier ones.
fn environment(work: &Work<'_>, runner: &Runner, scope: &Value) -> Vec<EnvVar> {
    let mut variables = Vec::new();
    let mut set = |name: &str, value: String| {
        variables.push(EnvVar {
            name: name.to_owned(),
            value: Some(value),
            value_from: None,
        });
    };
    set("AGENT_RUN_SPEC", documents::RUN.to_owned());
    set("AGENT_RUNNER_SPEC_PATH", documents::RUNNER.to_owned());
    if let Some(auth) = &runner.auth {
        set("CODEX_HOME", auth.mount.clone());
        set(
            "CODEX_AUTH",
            format!("{}/{}", auth.mount.trim_end_matches('/'), auth.key),
        );
    }
    for variable in work.agent.spec.env.iter().flatten() {
        set(&variable.name, variable.value.clone());
    }
    for (name, template) in work.provider.spec.env_template.iter().flatten() {
        set(name, template::render(template, scope));
    }
    set("AGENT_PROVIDER", work.provider.name_any());
    if let Prompt::Stored(_) = work.prompt {
        set(
            "CODEX_SYSTEM_PROMPT_PATH",
            format!("{PROMPT_FOLDER}/{PROMPT_FILE}"),
        );
    }
    let trace = work.run.annotations().get(annotation::TRACEPARENT);
    if let Some(trace) = trace.filter(|trace| from_traceparent(trace).is_some()) {
        set("TRACEPARENT", trace.clone());
    }
    variables
}

fn resources(work: &Work<'_>) -> ResourceRequirements {
    let workload = work.run.spec.workload.as_ref();
    let given = workload.and_then(|workload| workload.resources.as_ref());
    let amounts = |given: Option<&BTreeMap<String, String>>| {
        let given = given.filter(|given| !given.is_empty())?;
        let amount = |(name, amount): (&String, &String)| (name.clone(), Quantity(amount.clone()));
        Some(given.iter().map(amount).collect())
    };
    ResourceRequirements {
        requests: amounts(given.and_then(|given| given.requests.as_ref())),
        limits: amounts(given.and_then(|given| given.limits.as_ref())),
        claims: None,
    }
}

/// Volumes and where each is mounted.
#[derive(Default)]
struct Mounts {
    volumes: Vec<Volume>,
    mounts: Vec<VolumeMount>,
}

impl Mounts {
    fn mount(&mut self, volume: &str, path: &str, sub_path: Option<&str>, read_only: Option<bool>) {
        self.mounts.push(VolumeMount {
            name: volume.to_owned(),
            mount_path: path.to_owned(),
            sub_path: sub_path.map(str::to_owned),
            read_only,
            ..VolumeMount::default()
        });
    }

    fn add_workload(&mut self, work: &Work<'_>) {
        let workload = work.run.spec.workload.as_ref();
        let volumes = workload.and_then(|workload| workload.volumes.as_ref());
        for given in volumes.into_iter().flatten() {
            let mut volume = Volume {
                name: given.name.clone(),
                ..Volume::default()
            };
            match given.type_ {
                VolumeType::EmptyDir => {
                    volume.empty_dir = Some(EmptyDirVolumeSource {
                        medium: given.medium.clone(),
                        size_limit: given.size_limit.clone().map(Quantity),
                    });
                }
                VolumeType::Pvc => {
                    volume.persistent_volume_claim = Some(PersistentVolumeClaimVolumeSource {
                        claim_name: given.claim_name.clone().unwrap_or_default(),
                        read_only: given.read_only,
                    });
                }
                VolumeType::Secret => {
                    volume.secret = Some(SecretVolumeSource {
                        secret_name: given.secret_name.clone(),
                        ..SecretVolumeSource::default()
                    });
                }
            }
            self.volumes.push(volume);
            self.mount(&given.name, &given.mount_path, None, given.read_only);
        }
    }

    fn add_documents(&mut self, work: &Work<'_>) {
        let inputs: Vec<_> = documents::input_files(work).collect();
        if !inputs.is_empty() {
            let volume = self.add_config_map(work, "inputs");
            for (key, file) in inputs {
                self.mount(&volume, &file.path, Some(&key), Some(true));
            }
        }
        let volume = self.add_config_map(work, "spec");
        self.mount(&volume, documents::RUN, Some("run.json"), Some(true));
        self.mount(
            &volume,
            documents::RUNNER,
            Some("agent-runner.json"),
            Some(true),
        );
    }

    /// A volume of one of our own ConfigMaps.
    fn add_config_map(&mut self, work: &Work<'_>, part: &str) -> String {
        let volume = child(work.run, &format!("{part}-vol"));
        self.volumes.push(Volume {
            name: volume.clone(),
            config_map: Some(ConfigMapVolumeSource {
                name: child(work.run, part),
                ..ConfigMapVolumeSource::default()
            }),
            ..Volume::default()
        });
        volume
    }

    fn add_prompt(&mut self, work: &Work<'_>) {
        let Prompt::Stored(stored) = work.prompt else {
            return;
        };
        let items = Some(vec![KeyToPath {
            key: stored.key.clone(),
            path: PROMPT_FILE.to_owned(),
            mode: None,
        }]);
        let mut volume = Volume {
            name: child(work.run, "system-prompt"),
            ..Volume::default()
        };
        match stored.kind {
            SystemPromptKind::Secret => {
                volume.secret = Some(SecretVolumeSource {
                    secret_name: Some(stored.name.clone()),
                    items,
                    ..SecretVolumeSource::default()
                });
            }
            SystemPromptKind::ConfigMap => {
                volume.config_map = Some(ConfigMapVolumeSource {
                    name: stored.name.clone(),
                    items,
                    ..ConfigMapVolumeSource::default()
                });
            }
        }
        self.mount(&volume.name.clone(), PROMPT_FOLDER, None, Some(true));
        self.volumes.push(volume);
    }

    /// A folder that the agent may write to, with the credentials in it.
    fn add_auth(&mut self, work: &Work<'_>, runner: &Runner) {
        let Some(auth) = &runner.auth else { return };
        let (home, secret) = (child(work.run, "auth-home"), child(work.run, "auth-secret"));
        self.volumes.push(Volume {
            name: home.clone(),
            empty_dir: Some(EmptyDirVolumeSource::default()),
            ..Volume::default()
        });
        self.volumes.push(Volume {
            name: secret.clone(),
            secret: Some(SecretVolumeSource {
                secret_name: Some(auth.secret.clone()),
                ..SecretVolumeSource::default()
            }),
            ..Volume::default()
        });
        self.mount(&home, &auth.mount, None, None);
        let file = format!("{}/{}", auth.mount.trim_end_matches('/'), auth.key);
        self.mount(&secret, &file, Some(&auth.key), Some(true));
    }
}
