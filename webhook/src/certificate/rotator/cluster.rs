//! Reads and writes the Secret and the caBundle of both webhook configurations. Every write names the version that it is a
//! change of, so that of several replicas one is first and the others look again.

use std::collections::BTreeMap;
use std::fmt::Debug;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::{ByteString, ClusterResourceScope};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::plan::Trust;
use super::stored::{Certificate, Data, bundle};

/// Who writes, in `managedFields`.
const MANAGER: &str = "agents-webhook-rotator";

/// Why the cluster could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    /// Someone else was first; what was read is old.
    #[error("another replica was first")]
    Conflict,
    /// A role lacks a rule.
    #[error("a role lacks `{verb}` on {what}")]
    Forbidden {
        verb: &'static str,
        what: &'static str,
    },
    /// The chart makes it, empty.
    #[error("there is no Secret {0}")]
    NoSecret(String),
    /// Anything else.
    #[error("{what}: {reason}")]
    Api { what: &'static str, reason: String },
}

const SECRET: &str = "the Secret of the rotator";
const CONFIGURATION: &str = "webhook configurations";

fn trouble(error: kube::Error, verb: &'static str, what: &'static str) -> Trouble {
    let reason = error.to_string();
    let code = if let kube::Error::Api(status) = error {
        Some(status.code)
    } else {
        None
    };
    match code {
        Some(409) => Trouble::Conflict,
        Some(403) => Trouble::Forbidden { verb, what },
        Some(_) | None => Trouble::Api { what, reason },
    }
}

/// A webhook configuration, of either sort, as far as the rotator cares.
pub(super) trait Configuration:
    Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + Debug + DeserializeOwned
{
    fn clients(&self) -> Vec<&WebhookClientConfig>;
}

impl Configuration for MutatingWebhookConfiguration {
    fn clients(&self) -> Vec<&WebhookClientConfig> {
        let hooks = self.webhooks.iter().flatten();
        hooks.map(|hook| &hook.client_config).collect()
    }
}

impl Configuration for ValidatingWebhookConfiguration {
    fn clients(&self) -> Vec<&WebhookClientConfig> {
        let hooks = self.webhooks.iter().flatten();
        hooks.map(|hook| &hook.client_config).collect()
    }
}

/// Both configurations as they were read.
pub(super) struct Registered {
    mutating: Option<MutatingWebhookConfiguration>,
    validating: Option<ValidatingWebhookConfiguration>,
}

impl Registered {
    /// Whom they trust.
    pub(super) fn trust(&self) -> Trust {
        let mutating = self.mutating.iter().flat_map(Configuration::clients);
        let validating = self.validating.iter().flat_map(Configuration::clients);
        let entries = mutating.chain(validating).map(|client| {
            let pem = client
                .ca_bundle
                .as_ref()
                .map(|ByteString(pem)| pem.as_slice());
            Certificate::read_all(pem.unwrap_or_default())
        });
        Trust::Of(entries.collect())
    }

    /// Whether both are there.
    pub(super) fn is_whole(&self) -> bool {
        self.mutating.is_some() && self.validating.is_some()
    }
}

/// The cluster as the rotator uses it.
pub(super) struct Cluster {
    client: Client,
    secrets: Api<Secret>,
    secret: String,
    configuration: String,
}

impl Cluster {
    pub(super) fn new(client: Client, namespace: &str, secret: String, name: String) -> Self {
        Self {
            secrets: Api::namespaced(client.clone(), namespace),
            client,
            secret,
            configuration: name,
        }
    }

    /// The configurations; none if we may not look.
    pub(super) async fn registered(&self) -> Result<Option<Registered>, Trouble> {
        match self.read().await {
            Ok(registered) => Ok(Some(registered)),
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(None),
            Err(error) => Err(trouble(error, "get", CONFIGURATION)),
        }
    }

    async fn read(&self) -> Result<Registered, kube::Error> {
        Ok(Registered {
            mutating: self.all().get_opt(&self.configuration).await?,
            validating: self.all().get_opt(&self.configuration).await?,
        })
    }

    fn all<K: Configuration>(&self) -> Api<K> {
        Api::all(self.client.clone())
    }

    pub(super) async fn secret(&self) -> Result<Secret, Trouble> {
        let found = self.secrets.get_opt(&self.secret).await;
        let found = found.map_err(|error| trouble(error, "get", SECRET))?;
        found.ok_or_else(|| Trouble::NoSecret(self.secret.clone()))
    }

    /// Stores other content in the Secret, unless it has changed since it was read.
    pub(super) async fn store(&self, mut secret: Secret, data: Data) -> Result<(), Trouble> {
        let data: BTreeMap<_, _> = data
            .into_iter()
            .map(|(key, bytes)| (key, ByteString(bytes)))
            .collect();
        secret.data = Some(data);
        let params = PostParams {
            field_manager: Some(MANAGER.to_owned()),
            dry_run: false,
        };
        let stored = self.secrets.replace(&self.secret, &params, &secret).await;
        stored
            .map(drop)
            .map_err(|error| trouble(error, "update", SECRET))
    }

    /// Has the API servers trust these and nobody else. Says whether anything had to be written.
    pub(super) async fn trust(
        &self,
        registered: &Registered,
        wanted: &[Certificate],
    ) -> Result<bool, Trouble> {
        let Registered {
            mutating,
            validating,
        } = registered;
        let mut wrote = false;
        if let Some(found) = mutating {
            wrote |= self.put(found, wanted).await?;
        }
        if let Some(found) = validating {
            wrote |= self.put(found, wanted).await?;
        }
        Ok(wrote)
    }

    async fn put<K: Configuration>(
        &self,
        found: &K,
        wanted: &[Certificate],
    ) -> Result<bool, Trouble> {
        let Some(patch) = patch(found, wanted) else {
            return Ok(false);
        };
        let patch = serde_json::from_value(patch).map_err(|error| Trouble::Api {
            what: CONFIGURATION,
            reason: error.to_string(),
        })?;
        let params = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let all = self.all::<K>();
        let patch = Patch::Json::<()>(patch);
        let written = all.patch(&self.configuration, &params, &patch).await;
        written.map_err(|error| trouble(error, "patch", CONFIGURATION))?;
        Ok(true)
    }
}

/// What brings every entry to these certificates; none if all have them. An order of their own is no reason to write.
fn patch<K: Configuration>(found: &K, wanted: &[Certificate]) -> Option<Value> {
    let text = ByteString(bundle(wanted).into_bytes());
    let clients = found.clients().into_iter().enumerate();
    let wrong = clients.filter(|(_, client)| {
        let pem = client
            .ca_bundle
            .as_ref()
            .map(|ByteString(pem)| pem.as_slice());
        let has = Certificate::read_all(pem.unwrap_or_default());
        has.len() != wanted.len() || !wanted.iter().all(|one| has.contains(one))
    });
    let mut operations: Vec<Value> = wrong
        .map(|(index, _)| {
            let path = format!("/webhooks/{index}/clientConfig/caBundle");
            json!({"op": "add", "path": path, "value": text})
        })
        .collect();
    if operations.is_empty() {
        return None;
    }
    // With it the API server refuses the change of a version that is not the stored one.
    let version = found.meta().resource_version.as_deref()?;
    operations
        .push(json!({"op": "replace", "path": "/metadata/resourceVersion", "value": version}));
    Some(Value::Array(operations))
}
