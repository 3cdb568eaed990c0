//! ImplementationSource: an issue tracker whose issues become ImplementationSpecs.
//!
//! [`plan`] says how a source stands and when it is read, [`sync`] reads it, [`tracker`] knows the trackers, [`issue`] what
//! becomes of an issue. What a tracker delivers waits in the cluster until [`inbox`] takes it over. An issue that goes
//! leaves its ImplementationSpec: someone may be working on it.

mod inbox;
mod issue;
mod plan;
mod sync;
mod tracker;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;

use crate::api::kind::Kind;
use crate::api::kinds::shared::SecretRef;
use crate::api::kinds::{ImplementationSource, ImplementationSourceStatus};
use crate::api::text::names::Form;
use crate::api::tracker::{SECRET_KEY, source_of};
use crate::controller::cache::shelves::{Shelves, prune};
use crate::controller::cache::{Change, Key, Shelf, Told};
use crate::controller::context::Context;
use crate::controller::driver::fault::Fault;
use crate::controller::driver::notes::Notes;
use crate::controller::driver::plan::{Plan, Standing};
use crate::controller::driver::queue::Priority;
use crate::controller::driver::stand::{Lack, failed};
use crate::controller::driver::{Reconciler, Work};
pub(in crate::controller) use inbox::Settings;
use inbox::Worked;
use plan::{Action, Observed};
use sync::Trail;

/// The reconciler of sources.
pub(in crate::controller) struct ImplementationSources {
    context: Arc<Context>,
    shelves: Arc<Shelves>,
    /// How the last look at each tracker went.
    trails: Notes<Trail>,
    /// How the last work on a delivery of each went.
    worked: Notes<Worked>,
    inbox: Settings,
}

impl ImplementationSources {
    pub(in crate::controller) fn new(
        context: Arc<Context>,
        shelves: Arc<Shelves>,
        inbox: Settings,
    ) -> Self {
        Self {
            context,
            shelves,
            trails: Notes::default(),
            worked: Notes::default(),
            inbox,
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
    key.filter(|key| !key.is_empty()).unwrap_or(SECRET_KEY)
}

/// Looks again at the source of a delivery that came or went.
pub(in crate::controller) fn on_delivery(work: Work) -> Told<ConfigMap> {
    Arc::new(move |change| {
        let entry = match change {
            Change::Applied { object, .. } | Change::Deleted { object, .. } => object,
        };
        if let Some(name) = source_of(entry) {
            let namespace = entry.namespace().unwrap_or_default();
            work.add(Key::new(namespace, name), Priority::Create);
        }
    })
}

/// Of a delivery that waits only that it does is kept: what it says is read when it is worked on.
pub(in crate::controller) fn prune_delivery(entry: &mut ConfigMap) {
    prune(entry);
    entry.data = None;
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
        let (missing, trail, worked) = match &source {
            Some(source) => (
                self.missing(source).await?,
                self.trails.about(&**source),
                self.worked.about(&**source),
            ),
            None => (Vec::new(), None, None),
        };
        Ok(Observed {
            now,
            source,
            policy: self.context.rules.current(),
            missing,
            trail,
            inbox: inbox::sorted(self.shelves.inbox.of_owner(key)),
            worked,
            pace: self.inbox,
        })
    }

    fn plan(&self, observed: &Observed) -> Plan<Action, ImplementationSourceStatus> {
        plan::plan(observed)
    }

    async fn act(&self, observed: &Observed, action: &Action) -> Result<bool, Fault> {
        let Some(source) = &observed.source else {
            return Ok(false);
        };
        match action {
            Action::Sync => self.sync(source, observed.trail.as_deref()).await,
            Action::Take(entry) => self.take(source, entry).await,
            Action::Drop(entry) => self.drop(entry).await,
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
