//! The secrets of the sources that take calls. They are looked up from time to time and not when someone calls, so that
//! calls cost the API server nothing and take as long whether or not there is a source.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use ring::hmac;
use tokio::time::{sleep, timeout};

use super::Inbound;
use crate::api::kinds::ImplementationSource;
use crate::api::text::sanitise::for_log;
use crate::api::tracker::SECRET_KEY;
use crate::cluster::Scope;
use crate::serve::operation::Id;
use crate::serve::route::Route;

/// Time between two looks.
const EVERY: Duration = Duration::from_secs(5);

/// Time for one look.
const LOOKING: Duration = Duration::from_secs(30);

/// Most sources that can take calls, and how many are read at a time.
const SOURCES: usize = 256;
const PAGE: u32 = 500;

/// The sources that take calls, each with what it checks them with.
#[derive(Default)]
pub(super) struct Keyring(Vec<(hmac::Key, Arc<ImplementationSource>)>);

impl Keyring {
    /// Those that a call can be for.
    pub(super) fn of<'a>(
        &'a self,
        route: &'a Route,
    ) -> impl Iterator<Item = (&'a hmac::Key, &'a Arc<ImplementationSource>)> {
        let is_named = route.operation.id == Id::SourceDelivery;
        let fits = move |source: &ImplementationSource| {
            !is_named
                || source.metadata.namespace == route.namespace
                    && source.metadata.name == route.name
        };
        let all = self.0.iter().map(|(key, source)| (key, source));
        all.filter(move |(_, source)| fits(source))
    }
}

impl Inbound {
    /// Keeps up with the sources, their secrets, and how many deliveries wait.
    pub(in crate::serve) async fn run(&self) {
        let mut trouble = None;
        loop {
            let looked = timeout(LOOKING, self.look()).await;
            let now = match looked {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(for_log(&error.to_string())),
                Err(_) => Some("the API server did not answer in time".to_owned()),
            };
            if let Some(why) = now.as_ref().filter(|_| now != trouble) {
                tracing::warn!(
                    why,
                    "Sources that take calls cannot be looked up; those that are known stay"
                );
            }
            trouble = now;
            sleep(EVERY).await;
        }
    }

    async fn look(&self) -> kube::Result<()> {
        let mut sources = Vec::new();
        for scope in self.namespaces.scopes() {
            let api: Api<ImplementationSource> = scoped(&self.client, &scope);
            let params = ListParams::default().limit(PAGE);
            sources.extend(api.list(&params).await?.items);
        }
        let takes = |source: &ImplementationSource| {
            let webhook = source.spec.webhook.as_ref();
            webhook.is_some_and(|webhook| webhook.enabled)
                && source.metadata.deletion_timestamp.is_none()
        };
        sources.retain(takes);
        if sources.len() > SOURCES {
            tracing::warn!(
                sources = sources.len(),
                most = SOURCES,
                "Too many sources take calls; those beyond are left out"
            );
            sources.truncate(SOURCES);
        }
        let mut secrets = HashMap::new();
        let mut keys = Vec::new();
        for source in sources {
            let reference = &source.spec.auth.secret_ref;
            let place = (
                source.namespace().unwrap_or_default(),
                reference.name.trim().to_owned(),
            );
            let secret = match secrets.get(&place) {
                Some(known) => known,
                None => {
                    let found = self.secret(&place.0, &place.1).await?;
                    secrets.entry(place).or_insert(found)
                }
            };
            let entry = reference.key.as_deref().map(str::trim);
            let entry = entry.filter(|key| !key.is_empty()).unwrap_or(SECRET_KEY);
            let data = secret.as_ref().and_then(|secret| secret.data.as_ref());
            let value = data.and_then(|data| data.get(entry));
            // With an empty secret anyone could sign.
            let value = value.map(|value| value.0.trim_ascii()).unwrap_or_default();
            if !value.is_empty() {
                let key = hmac::Key::new(hmac::HMAC_SHA256, value);
                keys.push((key, Arc::new(source)));
            }
        }
        self.keyring.store(Arc::new(Keyring(keys)));
        self.metrics.waiting(self.waiting().await?);
        Ok(())
    }

    /// A Secret; none if it is not there or not for us.
    async fn secret(&self, namespace: &str, name: &str) -> kube::Result<Option<Secret>> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        match api.get_opt(name).await {
            Err(kube::Error::Api(status)) if [400, 403].contains(&status.code) => {
                tracing::warn!(
                    namespace,
                    name,
                    code = status.code,
                    "The Secret of a source cannot be read"
                );
                Ok(None)
            }
            found => found,
        }
    }
}

/// Objects of a kind wherever a scope says.
pub(super) fn scoped<K>(client: &Client, scope: &Scope) -> Api<K>
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
{
    match scope {
        Scope::Cluster => Api::all(client.clone()),
        Scope::Namespace(name) => Api::namespaced(client.clone(), name),
    }
}
