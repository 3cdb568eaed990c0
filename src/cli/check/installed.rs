//! The policy that is in force in a cluster: what the variables of the webhook there say, and the ConfigMap whose file it reads.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{ConfigMap, Container, Pod, PodSpec};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};

use crate::api::policy::Policy;
use crate::cli::failure::Failure;
use crate::cli::session::{ask, list_all};
use crate::cluster::policy::{Seen, Settings, understand};
use crate::kit::config::Flags;

/// The pods of the webhook, as the chart labels them, and its container in them.
const PODS: &str = "app.kubernetes.io/component=webhook";
const CONTAINER: &str = "webhook";

/// What to do where the policy cannot be had.
const NEXT: &str = "name the policy as a file with --policy";

/// The policy by which the webhook of a namespace judges.
pub(in crate::cli) async fn policy(client: &Client, namespace: &str) -> Result<Policy, Failure> {
    let pod = newest(client, namespace).await?;
    let Some((spec, container)) = pod.spec.as_ref().and_then(of_webhook) else {
        let what = format!("pod {} has no container {CONTAINER}", pod.name_any());
        return Err(Failure::new(what).next(NEXT));
    };
    let Settings {
        file, overrides, ..
    } = settings(container)?;
    let Some(file) = file else {
        return Ok(overrides.over(Policy::default()));
    };
    let text = text(client, namespace, source(spec, container, &file), &file).await?;
    understand(&file, &Seen::Text(text), &overrides).map_err(|refused| {
        Failure::new("the webhook cannot use its policy either").because(&refused)
    })
}

/// The namespaces of the cluster in which a webhook runs.
pub(in crate::cli) async fn namespaces(client: &Client) -> Result<BTreeSet<String>, Failure> {
    let pods: Api<Pod> = Api::all(client.clone());
    let labelled = ListParams::default().labels(PODS);
    let found = list_all("look for the webhook in all namespaces", &pods, &labelled).await?;
    // Other products label theirs alike.
    let ours = found
        .into_iter()
        .filter(|pod| pod.spec.as_ref().and_then(of_webhook).is_some());
    Ok(ours.filter_map(|pod| pod.namespace()).collect())
}

/// The pod of the webhook that was made last: it knows what was set last.
async fn newest(client: &Client, namespace: &str) -> Result<Pod, Failure> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let what = format!("look for the webhook in namespace {namespace}");
    let found = ask(&what, pods.list(&ListParams::default().labels(PODS))).await?;
    let newest = found.items.into_iter();
    let newest = newest.max_by_key(|pod| pod.creation_timestamp());
    newest.ok_or_else(|| {
        Failure::misused(format!("no webhook runs in namespace {namespace}"))
            .next("name the namespace of the installation, or the policy as a file with --policy")
    })
}

fn of_webhook(spec: &PodSpec) -> Option<(&PodSpec, &Container)> {
    let mut containers = spec.containers.iter();
    let found = containers.find(|container| container.name == CONTAINER)?;
    Some((spec, found))
}

/// What its variables say that stand there as plain text, which is how the chart writes them.
fn settings(container: &Container) -> Result<Settings, Failure> {
    let all = container.env.iter().flatten();
    let plain = all.filter_map(|entry| Some((entry.name.clone(), entry.value.clone()?)));
    let variables: BTreeMap<String, String> = plain.collect();
    let read = Flags::<Settings>::default().resolve(variables);
    let (settings, _) = read
        .map_err(|error| Failure::new("the variables of the webhook are wrong").because(&error))?;
    Ok(settings)
}

/// The ConfigMap, and the entry of it, that a container sees as a file.
fn source(pod: &PodSpec, container: &Container, file: &Path) -> Option<(String, String)> {
    let mounts = container.volume_mounts.iter().flatten();
    let mounts = mounts.filter(|mount| file.starts_with(&mount.mount_path));
    let mount = mounts.max_by_key(|mount| mount.mount_path.len())?;
    let mut volumes = pod.volumes.iter().flatten();
    let volume = volumes.find(|volume| volume.name == mount.name)?;
    let map = volume.config_map.as_ref()?;
    let rest = file.strip_prefix(&mount.mount_path).ok()?;
    let parts = mount.sub_path.iter().map(Path::new).chain([rest]);
    let path: PathBuf = parts.filter(|part| *part != Path::new("")).collect();
    let entry = match map.items.as_deref() {
        None | Some([]) => path.to_str()?.to_owned(),
        Some(items) => {
            let mut items = items.iter();
            let item = items.find(|item| Path::new(&item.path) == path)?;
            item.key.clone()
        }
    };
    Some((map.name.clone(), entry))
}

/// What stands in the entry of a ConfigMap.
async fn text(
    client: &Client,
    namespace: &str,
    source: Option<(String, String)>,
    file: &Path,
) -> Result<String, Failure> {
    let Some((name, entry)) = source else {
        let what = format!(
            "the webhook reads its policy from {}, which no ConfigMap is mounted as",
            file.display()
        );
        return Err(Failure::new(what).next(NEXT));
    };
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let found = ask(&format!("read the ConfigMap {name}"), maps.get(&name)).await?;
    let text = found.data.and_then(|mut data| data.remove(&entry));
    text.ok_or_else(|| {
        Failure::new(format!("the ConfigMap {name} has no entry {entry}")).next(NEXT)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn the_file_of_a_container_is_found_in_its_config_map() {
        let seen_as = |mount: Value, map: Value, file: &str| {
            let pod: PodSpec = serde_json::from_value(json!({
                "containers": [{"name": "webhook", "volumeMounts": [
                    {"name": "tls", "mountPath": "/etc"}, mount,
                ]}],
                "volumes": [{"name": "tls", "secret": {}}, {"name": "policy", "configMap": map}],
            }))
            .unwrap();
            let (pod, container) = of_webhook(&pod).unwrap();
            source(pod, container, Path::new(file))
        };
        let folder = || json!({"name": "policy", "mountPath": "/etc/agents"});
        let single =
            json!({"name": "policy", "mountPath": "/etc/p.yaml", "subPath": "strict.yaml"});
        let items = json!({"name": "rules", "items": [{"key": "now", "path": "policy.yaml"}]});
        let rules = || json!({"name": "rules"});
        let found = |entry: &str| Some(("rules".to_owned(), entry.to_owned()));
        for (mount, map, file, expected) in [
            (
                folder(),
                rules(),
                "/etc/agents/policy.yaml",
                found("policy.yaml"),
            ),
            (folder(), items, "/etc/agents/policy.yaml", found("now")),
            (single, rules(), "/etc/p.yaml", found("strict.yaml")),
            (folder(), rules(), "/etc/policy.yaml", None),
            (folder(), rules(), "/var/policy.yaml", None),
        ] {
            assert_eq!(seen_as(mount, map, file), expected, "{file}");
        }
    }

    #[test]
    fn what_the_variables_say_is_what_is_in_force() {
        let container = |value: &str| -> Container {
            serde_json::from_value(json!({"name": "webhook", "env": [
                {"name": "JANGAR_AGENTS_CONTROLLER_LABELS_REQUIRED", "value": value},
                {"name": "JANGAR_POD_UID", "valueFrom": {}},
            ]}))
            .unwrap()
        };
        let read = settings(&container("team,cost")).unwrap();
        let expected = ["team", "cost"].map(str::to_owned).to_vec();
        assert_eq!(read.overrides.labels_required, Some(expected));
        assert_eq!(read.file, None);
    }
}
