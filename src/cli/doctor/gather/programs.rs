//! The programs that are installed: how they stand, what they were told, and what their accounts may do.

use std::collections::{BTreeMap, BTreeSet};

use futures::stream::{self, StreamExt, TryStreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, ResourceExt};
use serde_json::Value;

use super::{Place, get, list, look};
use crate::admission::known::Known;
use crate::api::contract::env;
use crate::api::kind::Kind;
use crate::cli::doctor::facts::{Component, Program, Seen, Unseen};
use crate::cluster::{Namespaces, Need, allows, not_allowed};
use crate::controller;
use crate::kit::config::{Flags, Settings, Value as _};
use crate::serve;

/// The label by which the parts of a release are told apart.
const COMPONENT: &str = "app.kubernetes.io/component";

/// The lease, unless the controllers were told another.
const LEASE: &str = "jangar-controller-leader";

/// Questions about rights that are under way at a time.
const AT_ONCE: usize = 16;

/// What is seen of them.
pub(super) struct Installed {
    pub(super) programs: Seen<Vec<Program>>,
    pub(super) lacking: BTreeMap<Component, Seen<Vec<String>>>,
    pub(super) lease: Seen<Lease>,
    pub(super) pods: Seen<BTreeSet<String>>,
}

/// Looks at all of them.
pub(super) async fn look_at(place: &Place) -> Installed {
    let programs = programs(place).await;
    let mut lacking = BTreeMap::new();
    for program in programs.iter().flatten() {
        let found = lacking_of(place, program).await;
        lacking.insert(program.component, found);
    }
    let (namespace, name) = lease_of(place, &programs);
    let leases: Api<Lease> = Api::namespaced(place.client.clone(), &namespace);
    let pods: Api<Pod> = Api::namespaced(place.client.clone(), &namespace);
    let what = format!("the lease {name} in namespace {namespace}");
    let (lease, pods) = tokio::join!(look(&what, leases.get(&name)), list("pods", &pods, ""));
    Installed {
        programs,
        lacking,
        lease,
        pods: pods.map(|pods| pods.iter().map(ResourceExt::name_any).collect()),
    }
}

/// Deployments, and Rollouts where the cluster has them.
async fn programs(place: &Place) -> Seen<Vec<Program>> {
    let Place { client, namespace } = place;
    let path = |group: &str, kinds: &str| {
        format!("/apis/{group}/namespaces/{namespace}/{kinds}?labelSelector={COMPONENT}&limit=100")
    };
    let (deployments, rollouts) = (
        path("apps/v1", "deployments"),
        path("argoproj.io/v1alpha1", "rollouts"),
    );
    let (deployments, rollouts) = tokio::join!(
        get::<Value>(client, "Deployments", &deployments),
        get::<Value>(client, "Rollouts", &rollouts),
    );
    let mut found = Vec::new();
    for (kind, answer) in [("Deployment", Ok(deployments?)), ("Rollout", rollouts)] {
        let items = answer.ok().map(|answer| answer["items"].clone());
        let items = items.as_ref().and_then(Value::as_array);
        let items = items.into_iter().flatten();
        found.extend(items.filter_map(|object| program(kind, object)));
    }
    Ok(found)
}

/// What an object that carries pods of ours says.
fn program(kind: &str, object: &Value) -> Option<Program> {
    let labels = &object["metadata"]["labels"];
    let word = labels[COMPONENT].as_str()?;
    let component = Component::ALL.into_iter().find(|it| it.as_str() == word)?;
    let pod = &object["spec"]["template"]["spec"];
    let containers = |field: &str| pod[field].as_array().cloned().unwrap_or_default();
    let own = containers("containers");
    let main = own.iter().find(|it| it["name"] == component.as_str());
    let variables = main.or_else(|| own.first()).map(variables);
    let all = containers("initContainers");
    let has_sidecar = own.iter().chain(&all).any(|it| it["name"] == "sidecar");
    let volumes = containers("volumes");
    let secret = volumes.iter().find(|volume| volume["name"] == "tls");
    let secret = secret.and_then(|volume| volume["secret"]["secretName"].as_str());
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Some(Program {
        component,
        kind: kind.to_owned(),
        name: text(&object["metadata"]["name"])?,
        wanted: object["spec"]["replicas"].as_u64().unwrap_or(1),
        ready: object["status"]["readyReplicas"].as_u64().unwrap_or(0),
        version: text(&labels["app.kubernetes.io/version"]),
        account: text(&pod["serviceAccountName"]).unwrap_or_else(|| "default".to_owned()),
        variables: variables.unwrap_or_default(),
        secret: secret.map(str::to_owned),
        has_sidecar,
    })
}

/// The variables of a container that stand in it as plain text.
fn variables(container: &Value) -> BTreeMap<String, String> {
    let all = container["env"].as_array().into_iter().flatten();
    let plain = all.filter_map(|entry| {
        let (name, value) = (entry["name"].as_str()?, entry["value"].as_str()?);
        Some((name.to_owned(), value.to_owned()))
    });
    plain.collect()
}

/// Where the controllers work, if they say so.
pub(super) fn territory(programs: &Seen<Vec<Program>>) -> Option<Namespaces> {
    let mut programs = programs.iter().flatten();
    let controllers = programs.find(|program| program.component == Component::Controllers)?;
    Namespaces::parse(controllers.variables.get(env::NAMESPACES)?)
}

/// Where the lease of the controllers is, and its name.
fn lease_of(place: &Place, programs: &Seen<Vec<Program>>) -> (String, String) {
    let mut programs = programs.iter().flatten();
    let controllers = programs.find(|program| program.component == Component::Controllers);
    let told = |name: &str| controllers.and_then(|it| it.variables.get(name).cloned());
    let namespace = told(env::LEADER_ELECTION_LEASE_NAMESPACE);
    let name = told(env::LEADER_ELECTION_LEASE_NAME);
    (
        namespace.unwrap_or_else(|| place.namespace.clone()),
        name.unwrap_or_else(|| LEASE.to_owned()),
    )
}

/// What the account of a program lacks.
async fn lacking_of(place: &Place, program: &Program) -> Seen<Vec<String>> {
    let needs = needs(&place.namespace, program).map_err(Unseen::Silent)?;
    let who = (place.namespace.as_str(), program.account.as_str());
    let asked = stream::iter(needs).map(|need| lacking(&place.client, who, need));
    let answers: Seen<Vec<Option<String>>> = asked.buffer_unordered(AT_ONCE).try_collect().await;
    let mut lacking: Vec<String> = answers?.into_iter().flatten().collect();
    lacking.sort_unstable();
    lacking.dedup();
    Ok(lacking)
}

/// What a program must be able to do with the settings that it was given, or why that cannot be said.
fn needs(namespace: &str, program: &Program) -> Result<Vec<Need>, String> {
    let mut variables = program.variables.clone();
    let own = variables.entry(env::POD_NAMESPACE.to_owned());
    own.or_insert_with(|| namespace.to_owned());
    match program.component {
        Component::Controllers => Ok(controller::needs(&settings(variables)?)),
        Component::ControlPlane => {
            let config: serve::Config = settings(variables)?;
            Ok(serve::needs(&config).unwrap_or_default())
        }
        Component::Webhook => {
            let told = variables.get(env::NAMESPACES).map(String::as_str);
            let wanted = Namespaces::parse(told.unwrap_or("agents"));
            let wanted = wanted.ok_or_else(|| format!("{} is wrong", env::NAMESPACES))?;
            Ok(wanted.scopes().into_iter().flat_map(of_webhook).collect())
        }
    }
}

/// What the webhook looks up, and where it notes who deleted a Job.
fn of_webhook(scope: crate::cluster::Scope) -> Vec<Need> {
    let followed =
        Known::followed().map(|(kind, _)| Need::of(kind, "", &["list", "watch"], scope.clone()));
    let noted = [Kind::AgentRun, Kind::ToolRun];
    let noted = noted.map(|kind| Need::of(kind, "", &["patch"], scope.clone()));
    followed.chain(noted).collect()
}

fn settings<S: Settings>(variables: BTreeMap<String, String>) -> Result<S, String> {
    let read = Flags::<S>::default().resolve(variables);
    let (settings, _) = read.map_err(|error| format!("it would not start: {error}"))?;
    Ok(settings)
}

async fn lacking(client: &Client, who: (&str, &str), need: Need) -> Seen<Option<String>> {
    let Need {
        group,
        resource,
        verbs,
        scope,
        version: _,
    } = &need;
    let mut denied = Vec::new();
    for verb in *verbs {
        let call = allows(client, who, (group, resource, verb), scope);
        if !look("rights of others", call).await? {
            denied.push(*verb);
        }
    }
    let what = match group.is_empty() {
        true => resource.clone(),
        false => format!("{resource}.{group}"),
    };
    let verbs = denied.join(", ");
    Ok((!denied.is_empty()).then(|| not_allowed(&verbs, &what, scope)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_workload_is_read_as_the_chart_writes_it() {
        let object = json!({
            "metadata": {"name": "agents-webhook", "labels": {COMPONENT: "webhook", "app.kubernetes.io/version": "0.1.0"}},
            "spec": {"replicas": 2, "template": {"spec": {
                "serviceAccountName": "hook",
                "containers": [{"name": "webhook", "env": [
                    {"name": "AGENTS_WEBHOOK_RUNG", "value": "deny"},
                    {"name": "JANGAR_POD_UID", "valueFrom": {}},
                ]}],
                "volumes": [{"name": "tls", "secret": {"secretName": "own-tls"}}],
            }}},
            "status": {"readyReplicas": 1},
        });
        let read = program("Deployment", &object).unwrap();
        let variables = [("AGENTS_WEBHOOK_RUNG".to_owned(), "deny".to_owned())];
        let expected = Program {
            component: Component::Webhook,
            kind: "Deployment".to_owned(),
            name: "agents-webhook".to_owned(),
            wanted: 2,
            ready: 1,
            version: Some("0.1.0".to_owned()),
            account: "hook".to_owned(),
            variables: variables.into(),
            secret: Some("own-tls".to_owned()),
            has_sidecar: false,
        };
        assert_eq!(read, expected);
        let verbs: usize = needs("agents", &read)
            .unwrap()
            .iter()
            .map(|need| need.verbs.len())
            .sum();
        assert_eq!(verbs, 2 * Known::followed().count() + 2);
        let other = json!({"metadata": {"name": "x", "labels": {COMPONENT: "database"}}});
        assert_eq!(program("Deployment", &other), None);
    }

    #[test]
    fn the_needs_of_a_program_follow_from_its_settings() {
        let mut program = Program {
            component: Component::Controllers,
            kind: "Deployment".to_owned(),
            name: "agents-controllers".to_owned(),
            wanted: 1,
            ready: 1,
            version: None,
            account: "default".to_owned(),
            variables: BTreeMap::new(),
            secret: None,
            has_sidecar: true,
        };
        let here = needs("agents", &program).unwrap();
        assert!(here.iter().any(|need| need.resource == "leases"));
        program
            .variables
            .insert(env::WORKERS.to_owned(), "many".to_owned());
        let wrong = needs("agents", &program).unwrap_err();
        assert!(wrong.starts_with("it would not start"), "{wrong}");
    }
}
