//! The webhook: how it and others are registered, its certificate, and what becomes of an object.

use http::Request;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::api::core::v1::{Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{DEADLINE, Place, list, look};
use crate::api::contract::{GROUP, VERSION, annotation};
use crate::api::kind::Kind;
use crate::api::registration::{DEFAULT_NAME, Hook};
use crate::cli::doctor::facts::{Component, Other, Probe, Program, Registered, Seen, Unseen};
use crate::cli::doctor::target::Target;
use crate::kit::tls::Presented;

/// Entries of others that are looked at.
const MOST: usize = 200;

/// Name of the object that is sent and not stored.
const PROBE: &str = "agents-doctor";

/// What is seen of it.
pub(super) struct Webhook {
    pub(super) registered: Seen<Registered>,
    pub(super) others: Seen<Vec<Other>>,
    pub(super) endpoints: Seen<usize>,
    pub(super) probe: Seen<Probe>,
}

/// Looks at all of it.
pub(super) async fn look_at(place: &Place) -> Webhook {
    let client = &place.client;
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let (mutating, validating, probe) = tokio::join!(
        list("webhook configurations", &mutating, ""),
        list("webhook configurations", &validating, ""),
        probe(place),
    );
    let both = mutating.and_then(|mutating| Ok((mutating, validating?)));
    let (mutating, validating) = match both {
        Ok(both) => both,
        Err(unseen) => {
            return Webhook {
                registered: Err(unseen.clone()),
                others: Err(unseen.clone()),
                endpoints: Err(unseen),
                probe,
            };
        }
    };
    let (own, mutating) = apart(mutating, &place.namespace);
    let (own_too, validating) = apart(validating, &place.namespace);
    let registered = Registered {
        mutating: own,
        validating: own_too,
    };
    let others = others(client, mutating, validating).await;
    let endpoints = match called(&registered) {
        Some(Target::Service(namespace, name)) => behind(client, &namespace, &name).await,
        Some(Target::Address(..)) | None => Err(Unseen::Absent("the Service".to_owned())),
    };
    Webhook {
        registered: Ok(registered),
        others: Ok(others),
        endpoints,
        probe,
    }
}

/// What both sorts of configurations have.
trait Stored: ResourceExt {
    fn entries(&self) -> Vec<Hook>;
}

impl Stored for MutatingWebhookConfiguration {
    fn entries(&self) -> Vec<Hook> {
        let all = self.webhooks.iter().flatten().cloned();
        all.map(Hook::from).collect()
    }
}

impl Stored for ValidatingWebhookConfiguration {
    fn entries(&self) -> Vec<Hook> {
        let all = self.webhooks.iter().flatten().cloned();
        all.map(Hook::from).collect()
    }
}

/// Our configuration and those of others. Ours says for which rung it was made, or has the name; of several releases, the
/// one whose Service is in the namespace.
fn apart<K: Stored>(all: Vec<K>, namespace: &str) -> (Option<K>, Vec<K>) {
    let is_ours = |one: &K| {
        one.annotations().contains_key(annotation::RUNG) || one.name_any() == DEFAULT_NAME
    };
    let (ours, others): (Vec<K>, Vec<K>) = all.into_iter().partition(is_ours);
    let is_here = |one: &K| {
        let entries = one.entries();
        let service = entries.first().and_then(|hook| hook.client.service.clone());
        service.is_none_or(|service| service.namespace == namespace)
    };
    let (here, elsewhere): (Vec<K>, Vec<K>) = ours.into_iter().partition(is_here);
    let own = here.into_iter().chain(elsewhere).next();
    (own, others)
}

async fn others(
    client: &Client,
    mutating: Vec<MutatingWebhookConfiguration>,
    validating: Vec<ValidatingWebhookConfiguration>,
) -> Vec<Other> {
    let mutating = mutating
        .iter()
        .map(|one| (one.name_any(), true, one.entries()));
    let validating = validating
        .iter()
        .map(|one| (one.name_any(), false, one.entries()));
    let mut found = Vec::new();
    for (configuration, mutates, entries) in mutating.chain(validating) {
        for hook in entries {
            let endpoints = match Target::of(&hook.client) {
                Some(Target::Service(namespace, name)) if found.len() < MOST => {
                    Some(behind(client, &namespace, &name).await)
                }
                _ => None,
            };
            found.push(Other {
                configuration: configuration.clone(),
                mutates,
                hook,
                endpoints,
            });
        }
    }
    found
}

fn first_client(registered: &Registered) -> Option<&WebhookClientConfig> {
    let mutating = registered.mutating.as_ref();
    let mutating = mutating.and_then(|one| Some(&one.webhooks.as_ref()?.first()?.client_config));
    let validating = registered.validating.as_ref();
    let validating =
        || validating.and_then(|one| Some(&one.webhooks.as_ref()?.first()?.client_config));
    mutating.or_else(validating)
}

fn called(registered: &Registered) -> Option<Target> {
    first_client(registered).and_then(Target::of)
}

/// Ready addresses behind a Service.
async fn behind(client: &Client, namespace: &str, name: &str) -> Seen<usize> {
    let services: Api<Service> = Api::namespaced(client.clone(), namespace);
    let what = format!("the Service {name} in namespace {namespace}");
    look(&what, services.get_metadata(name)).await?;
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), namespace);
    let labels = format!("kubernetes.io/service-name={name}");
    let slices = list("endpoints", &slices, &labels).await?;
    let endpoints = slices.iter().flat_map(|slice| slice.endpoints.iter());
    let ready = endpoints.filter(|one| {
        let conditions = one.conditions.as_ref();
        conditions.is_none_or(|conditions| conditions.ready != Some(false))
    });
    Ok(ready.map(|one| one.addresses.len()).sum())
}

/// The certificate of the webhook: as it shows it where it is called by address, else as the Secret of its pods has it,
/// because what is behind a Service cannot be reached from everywhere.
pub(super) async fn certificate(
    place: &Place,
    registered: &Seen<Registered>,
    programs: &Seen<Vec<Program>>,
) -> Seen<Presented> {
    let registered = registered.as_ref().map_err(Clone::clone)?;
    match called(registered) {
        None => Err(Unseen::Absent("the registration".to_owned())),
        Some(Target::Address(host, port)) => {
            let shown = timeout(DEADLINE, Presented::by(&host, port)).await;
            let silent = |why: String| Unseen::Silent(format!("{host}:{port}: {why}"));
            let shown = shown.map_err(|_| silent("no answer in time".to_owned()))?;
            shown.map_err(|error| silent(error.to_string()))
        }
        Some(Target::Service(namespace, _)) => {
            let mut programs = programs.iter().flatten();
            let webhook = programs.find(|program| program.component == Component::Webhook);
            let Some(name) = webhook.and_then(|webhook| webhook.secret.clone()) else {
                return Err(Unseen::Absent(
                    "a Deployment that names the Secret".to_owned(),
                ));
            };
            let secrets: Api<Secret> = Api::namespaced(place.client.clone(), &namespace);
            let secret = look(&format!("the Secret {name}"), secrets.get(&name)).await?;
            let data = secret.data.unwrap_or_default();
            let pem = data.get("tls.crt").map(|bytes| bytes.0.as_slice());
            let read = Presented::from_pem(pem.unwrap_or_default());
            read.map_err(|refused| Unseen::Silent(refused.to_string()))
        }
    }
}

/// Sends an object that would be stored were it not for the dry run, and says what became of it.
async fn probe(place: &Place) -> Seen<Probe> {
    let namespace = &place.namespace;
    let plural = Kind::AgentRun.plural();
    let path = format!("/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{plural}?dryRun=All");
    let object = json!({
        "apiVersion": Kind::AgentRun.api_version(),
        "kind": Kind::AgentRun.as_str(),
        "metadata": {"name": PROBE, "namespace": namespace},
        "spec": {
            "agentRef": {"name": PROBE},
            "implementation": {"inline": {"text": "Nothing: this is a dry run."}},
            "runtime": {"type": "job"},
            "workload": {"image": "localhost/none"},
        },
    });
    let request = Request::post(path).header("content-type", "application/json");
    let request = request.body(object.to_string().into_bytes());
    let request = request.map_err(|error| Unseen::Silent(error.to_string()))?;
    let sent = timeout(DEADLINE, place.client.request::<Value>(request)).await;
    let late = |_| Unseen::Silent("a dry run took too long".to_owned());
    match sent.map_err(late)? {
        Ok(stored) => {
            let marks = &stored["metadata"]["annotations"];
            Ok(match marks[annotation::TRACEPARENT_STAMPED].is_string() {
                true => Probe::Marked,
                false => Probe::Unmarked,
            })
        }
        // A webhook that refuses may answer with any code; whose words they are tells it from a lack of rights.
        Err(kube::Error::Api(status)) if status.message.contains("webhook \"") => {
            Ok(Probe::Refused(status.message.clone()))
        }
        Err(kube::Error::Api(status)) if matches!(status.code, 401 | 403) => {
            Err(Unseen::Forbidden(status.message.clone()))
        }
        Err(kube::Error::Api(status)) if status.code == 404 => Err(Unseen::Absent(
            "the kind AgentRun, or the namespace,".to_owned(),
        )),
        Err(kube::Error::Api(status)) => Ok(Probe::Refused(status.message.clone())),
        Err(error) => Err(Unseen::Silent(error.to_string())),
    }
}
