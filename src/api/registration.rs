//! How the webhook is registered with the API server: which requests it is asked about, on which rung, and what happens
//! while it does not answer.
//!
//! [`Registration`] builds the two configurations, [`lint`] judges those that are live. Nothing is read or written here.

mod door;
mod hook;
mod lint;
pub mod rung;
mod selector;
#[cfg(test)]
mod tests;

pub use door::{Door, Operation};
pub use hook::{Configuration, Hook};
pub use lint::{Check, Finding, asks_about, lint};
pub use selector::selects;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ServiceReference, ValidatingWebhookConfiguration,
    WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::contract::{annotation, user};
use super::registration::rung::{Rung, Territory};

/// Name of both configurations, unless the operator chose another.
pub const DEFAULT_NAME: &str = "agents-webhook";

/// Time that the API server waits for an answer. Ours come within milliseconds; what takes longer than this is a webhook
/// that does not answer, and every second of waiting is one that a user waits.
pub const TIMEOUT_SECONDS: i32 = 5;

/// Who is never asked about: they finish what was decided long before, and to hold them up would hold up the deletion of
/// whole namespaces. The last is who they are in clusters whose controllers share one user.
pub const EXEMPT_USERS: [&str; 3] = [
    user::GARBAGE_COLLECTOR,
    user::NAMESPACE_CONTROLLER,
    user::CONTROLLER_MANAGER,
];

/// Namespaces that are never asked about, because the cluster lives in them.
pub const EXEMPT_NAMESPACES: [&str; 3] = ["kube-system", "kube-node-lease", "kube-public"];

/// Where the API server finds the webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Behind a Service of the cluster.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its port.
        port: i32,
    },
    /// At an address such as `https://10.0.0.1:8443`, to which the path of each door is added.
    Url(String),
}

/// Everything that the two configurations are made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The name of both.
    pub name: String,
    /// How far the rollout is.
    pub rung: Rung,
    /// Where the webhook is.
    pub reach: Reach,
    /// Who issued its certificate, in PEM. Left out where something else fills it in, such as cert-manager.
    pub ca: Option<Vec<u8>>,
}

impl Registration {
    /// The configuration of the doors that change objects.
    pub fn mutating(&self) -> MutatingWebhookConfiguration {
        let hooks = self.hooks(Door::mutates);
        MutatingWebhookConfiguration {
            metadata: self.metadata(),
            webhooks: Some(hooks.into_iter().map(Hook::into_mutating).collect()),
        }
    }

    /// The configuration of the doors that only judge.
    pub fn validating(&self) -> ValidatingWebhookConfiguration {
        let hooks = self.hooks(|door| !door.mutates());
        ValidatingWebhookConfiguration {
            metadata: self.metadata(),
            webhooks: Some(hooks.into_iter().map(Hook::into_validating).collect()),
        }
    }

    fn metadata(&self) -> ObjectMeta {
        let rung = (annotation::RUNG.to_owned(), self.rung.to_string());
        ObjectMeta {
            name: Some(self.name.clone()),
            annotations: Some([rung].into()),
            ..ObjectMeta::default()
        }
    }

    fn hooks(&self, wanted: impl Fn(Door) -> bool) -> Vec<Hook> {
        let doors = Door::ALL.into_iter().filter(|door| wanted(*door));
        doors.flat_map(|door| self.hooks_of(door)).collect()
    }

    /// One hook, or two where labelled namespaces fare otherwise than the rest on some rung. They are there on every rung:
    /// a hook that comes with a rung would come without the caBundle that others fill in, and fail until they do.
    fn hooks_of(&self, door: Door) -> Vec<Hook> {
        let differs = |rung: Rung| {
            let plain = door.failure_policy(rung, Territory::Plain);
            plain != door.failure_policy(rung, Territory::Labelled)
        };
        if !Rung::ALL.into_iter().any(differs) {
            return vec![self.hook(door, door.name(), None)];
        }
        vec![
            self.hook(door, door.name(), Some(Territory::Plain)),
            self.hook(door, door.labelled_name(), Some(Territory::Labelled)),
        ]
    }

    /// The hook of a door in one sort of namespace, or in all.
    fn hook(&self, door: Door, name: String, territory: Option<Territory>) -> Hook {
        let policy = door.failure_policy(self.rung, territory.unwrap_or(Territory::Plain));
        Hook {
            name,
            client: self.client(door),
            rules: door.rules(),
            failure_policy: Some(policy.as_str().to_owned()),
            match_policy: Some("Equivalent".to_owned()),
            namespaces: Some(selector::namespaces(territory)),
            objects: door.objects(),
            conditions: door.conditions(),
            side_effects: "NoneOnDryRun".to_owned(),
            timeout_seconds: Some(TIMEOUT_SECONDS),
            reinvocation_policy: door.mutates().then(|| "IfNeeded".to_owned()),
            review_versions: vec!["v1".to_owned()],
        }
    }

    fn client(&self, door: Door) -> WebhookClientConfig {
        let path = door.path();
        let ca_bundle = self.ca.clone().map(ByteString);
        match &self.reach {
            Reach::Url(base) => WebhookClientConfig {
                ca_bundle,
                url: Some(format!("{}{path}", base.trim_end_matches('/'))),
                service: None,
            },
            Reach::Service {
                namespace,
                name,
                port,
            } => WebhookClientConfig {
                ca_bundle,
                url: None,
                service: Some(ServiceReference {
                    namespace: namespace.clone(),
                    name: name.clone(),
                    path: Some(path.to_owned()),
                    port: Some(*port),
                }),
            },
        }
    }
}
