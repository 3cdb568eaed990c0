//! ImplementationSource: an issue tracker whose issues become ImplementationSpecs.
//!
//! [`plan`] says how a source stands and when it is read, [`sync`] reads it, [`tracker`] knows the trackers, [`issue`] what
//! becomes of an issue. An issue that goes leaves its ImplementationSpec: someone may be working on it.

mod issue;
mod plan;
mod sync;
mod tracker;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;

use super::cache::{Key, Shelf};
use super::context::Context;
use super::driver::Reconciler;
use super::driver::fault::Fault;
use super::driver::plan::{Plan, Standing};
use super::notes::Notes;
use super::shelves::Shelves;
use super::stand::{Lack, failed};
use crate::api::kind::Kind;
use crate::api::kinds::shared::SecretRef;
use crate::api::kinds::{ImplementationSource, ImplementationSourceStatus};
use crate::api::names::Form;
use plan::{Action, Observed};
use sync::Trail;

/// The entry of a Secret that is meant if none is named.
const KEY: &str = "token";

/// The reconciler of sources.
pub(super) struct ImplementationSources {
    context: Arc<Context>,
    shelves: Arc<Shelves>,
    /// How the last look at each tracker went.
    trails: Notes<Trail>,
}

impl ImplementationSources {
    pub(super) fn new(context: Arc<Context>, shelves: Arc<Shelves>) -> Self {
        Self {
            context,
            shelves,
            trails: Notes::default(),
        }
    }

    /// Secrets and entries of them that the source needs and that are not there. What is in them is not kept.
    async fn missing(&self, source: &ImplementationSource) -> Result<Vec<Lack>, Fault> {
        let mut lacks = Vec::new();
        let sync = source.spec.sync.as_ref().filter(|sync| sync.enabled);
        let token = sync.and_then(|sync| sync.secret_ref.as_ref());
        for reference in [Some(&source.spec.auth.secret_ref), token]
            .into_iter()
            .flatten()
        {
            let (name, key) = (reference.name.trim(), key(reference));
            // A name that cannot be one is for the rules to refuse, not for the API server.
            if !Form::DnsSubdomain.fits(name) {
                continue;
            }
            match self.secret(source, name).await? {
                None => lacks.push(Lack::secret(name)),
                Some(secret) => {
                    let has = secret.data.is_some_and(|data| data.contains_key(key));
                    lacks.extend((!has).then(|| Lack::secret_key(name, key)));
                }
            }
        }
        lacks.dedup();
        Ok(lacks)
    }

    async fn secret(
        &self,
        source: &ImplementationSource,
        name: &str,
    ) -> Result<Option<Secret>, Fault> {
        let namespace = source.namespace().unwrap_or_default();
        let what = "look up the Secret of the source";
        self.context.look_up(what, &namespace, name).await
    }
}

/// The entry that a reference means.
fn key(reference: &SecretRef) -> &str {
    let key = reference.key.as_deref().map(str::trim);
    key.filter(|key| !key.is_empty()).unwrap_or(KEY)
}

impl Reconciler for ImplementationSources {
    const KIND: Kind = Kind::ImplementationSource;
    type Object = ImplementationSource;
    type Status = ImplementationSourceStatus;
    type Observed = Observed;
    type Action = Action;

    fn shelf(&self) -> &Shelf<ImplementationSource> {
        &self.shelves.sources
    }

    fn status(object: &ImplementationSource) -> Option<&ImplementationSourceStatus> {
        object.status.as_ref()
    }

    fn object(observed: &Observed) -> Option<&ImplementationSource> {
        observed.source.as_deref()
    }

    async fn gather(&self, key: &Key, now: Timestamp) -> Result<Observed, Fault> {
        let source = self.shelves.sources.get(key);
        let (missing, trail) = match &source {
            Some(source) => (self.missing(source).await?, self.trails.about(&**source)),
            None => (Vec::new(), None),
        };
        Ok(Observed {
            now,
            source,
            policy: self.context.rules.current(),
            missing,
            trail,
        })
    }

    fn plan(&self, observed: &Observed) -> Plan<Action, ImplementationSourceStatus> {
        plan::plan(observed)
    }

    async fn act(&self, observed: &Observed, action: &Action) -> Result<bool, Fault> {
        match (action, &observed.source) {
            (Action::Sync, Some(source)) => self.sync(source, observed.trail.as_deref()).await,
            (Action::Sync, None) => Ok(false),
        }
    }

    fn failed(
        &self,
        source: &ImplementationSource,
        fault: &Fault,
    ) -> Option<Standing<ImplementationSourceStatus>> {
        failed(source, fault)
    }
}
