//! What the pod may read and write: the volumes of the workload, our documents, the system prompt, the credentials.

use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, EmptyDirVolumeSource, KeyToPath, PersistentVolumeClaimVolumeSource,
    SecretVolumeSource, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::super::documents;
use super::{PROMPT_FILE, PROMPT_FOLDER};
use crate::api::kinds::shared::{SystemPromptKind, VolumeType};
use crate::api::text::names::ChildName;
use crate::controller::agent_run::settings::Runner;
use crate::controller::agent_run::vcs;
use crate::controller::agent_run::work::{Prompt, Work};

/// Volumes and where each is mounted.
#[derive(Default)]
pub(super) struct Mounts {
    pub(super) volumes: Vec<Volume>,
    pub(super) mounts: Vec<VolumeMount>,
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

    pub(super) fn add_workload(&mut self, work: &Work<'_>) {
        let volumes = work.workload.and_then(|workload| workload.volumes.as_ref());
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

    pub(super) fn add_documents(&mut self, work: &Work<'_>) {
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
        let config_map = work.turn.child(work.run, part);
        let volume = ChildName::derive(&config_map, "vol").as_str().to_owned();
        self.volumes.push(Volume {
            name: volume.clone(),
            config_map: Some(ConfigMapVolumeSource {
                name: config_map,
                ..ConfigMapVolumeSource::default()
            }),
            ..Volume::default()
        });
        volume
    }

    pub(super) fn add_prompt(&mut self, work: &Work<'_>) {
        let Prompt::Stored(stored) = work.prompt else {
            return;
        };
        let items = Some(vec![KeyToPath {
            key: stored.key.clone(),
            path: PROMPT_FILE.to_owned(),
            mode: None,
        }]);
        let mut volume = Volume {
            name: work.turn.child(work.run, "system-prompt"),
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
    pub(super) fn add_auth(&mut self, work: &Work<'_>, runner: &Runner) {
        let Some(auth) = &runner.auth else { return };
        let home = work.turn.child(work.run, "auth-home");
        let secret = work.turn.child(work.run, "auth-secret");
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
    /// The files with which the runner signs in to the host of its repository.
    pub(super) fn add_vcs(&mut self, work: &Work<'_>) {
        for file in work.vcs.used().map(vcs::files).into_iter().flatten() {
            let items = Some(vec![KeyToPath {
                key: file.key.to_owned(),
                path: file.key.to_owned(),
                mode: None,
            }]);
            let mut volume = Volume {
                name: work.turn.child(work.run, file.part),
                ..Volume::default()
            };
            match file.source {
                vcs::Source::Secret(name) => {
                    volume.secret = Some(SecretVolumeSource {
                        secret_name: Some(name.to_owned()),
                        items,
                        // SSH refuses a key that others may read.
                        default_mode: Some(0o400),
                        ..SecretVolumeSource::default()
                    });
                }
                vcs::Source::ConfigMap(name) => {
                    volume.config_map = Some(ConfigMapVolumeSource {
                        name: name.to_owned(),
                        items,
                        ..ConfigMapVolumeSource::default()
                    });
                }
            }
            self.mount(&volume.name.clone(), file.folder, None, Some(true));
            self.volumes.push(volume);
        }
    }
}
