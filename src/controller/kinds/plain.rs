//! Kinds that stand until someone deletes them: their status says whether they can be used, and if not, why.
//!
//! All of them are judged alike: by the rules for their spec, then by whether what they need is there, then by what is
//! particular about the kind. Nothing is made for them and nothing is held, so they can go at any time.

mod kinds;
mod look;
mod plan;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;

use crate::api::kind::Kind;
use crate::api::kinds::SignalDelivery;
use crate::api::object::references::references;
use crate::api::text::names::Form;
use crate::controller::cache::shelves::Shelves;
use crate::controller::cache::{Change, Key, Shelf, Told};
use crate::controller::context::{Context, Thing};
use crate::controller::driver::fault::Fault;
use crate::controller::driver::notes::Notes;
use crate::controller::driver::plan::{Plan, Standing};
use crate::controller::driver::queue::Priority;
use crate::controller::driver::stand::{Lack, Statused, failed, is_judged};
use crate::controller::driver::{Reconciler, Work};
pub(in crate::controller) use kinds::Plain;
pub(crate) use kinds::{decision, spent};
use look::Look;
use plan::{Around, Observed};

const LOOK: &str = "look up what the object refers to";

/// The reconciler of one such kind.
pub(in crate::controller) struct Plains<K> {
    context: Arc<Context>,
    shelves: Arc<Shelves>,
    shelf: Arc<Shelf<K>>,
    /// How the last look at what each object names outside went.
    looks: Notes<Look>,
}

impl<K: Plain> Plains<K> {
    pub(in crate::controller) fn new(
        context: Arc<Context>,
        shelves: Arc<Shelves>,
        shelf: Arc<Shelf<K>>,
    ) -> Self {
        Self {
            context,
            shelves,
            shelf,
            looks: Notes::default(),
        }
    }

    /// What the object needs and what is not there.
    async fn missing(&self, object: &K, at: &Key) -> Result<Vec<Lack>, Fault> {
        let json = serde_json::to_value(object).unwrap_or_default();
        let needed = object.needs();
        let missing = references(K::KIND, &json)
            .into_iter()
            .filter(|reference| needed.contains(&reference.kind))
            .filter(|reference| {
                let key = Key::new(&at.namespace, &reference.name);
                self.shelves.has(reference.kind, &key) == Some(false)
            });
        let mut lacks: Vec<_> = missing
            .map(|missing| Lack::object(missing.kind, &missing.name))
            .collect();
        for name in fit(&object.secrets()) {
            if !self.is_there::<Secret>(&at.namespace, name).await? {
                lacks.push(Lack::secret(name));
            }
        }
        for (name, key) in object.secret_entries() {
            match self
                .context
                .entries::<Secret>(LOOK, &at.namespace, &name)
                .await?
            {
                None => lacks.push(Lack::secret(&name)),
                Some(entries) if !entries.contains(&key) => {
                    lacks.push(Lack::secret_key(&name, &key));
                }
                Some(_) => {}
            }
        }
        for (name, key) in object.config_map_entries() {
            match self
                .context
                .entries::<ConfigMap>(LOOK, &at.namespace, &name)
                .await?
            {
                None => lacks.push(Lack::config_map(&name)),
                Some(entries) if !entries.contains(&key) => {
                    lacks.push(Lack::config_map_key(&name, &key));
                }
                Some(_) => {}
            }
        }
        Ok(lacks)
    }

    /// Asks for metadata only, so that no secret is ever read.
    async fn is_there<S: Thing>(&self, namespace: &str, name: &str) -> Result<bool, Fault> {
        self.context.is_there::<S>(LOOK, namespace, name).await
    }
}

/// A name that cannot be one is for the rules to refuse, not for the API server.
fn fit<'a>(names: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let names = names.iter().map(|name| name.trim());
    names.filter(|name| Form::DnsSubdomain.fits(name))
}

/// What can be done about such an object besides writing its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::controller) enum Action {
    /// See whether what it names outside is there.
    Look,
}

impl<K: Plain> Reconciler for Plains<K> {
    const KIND: Kind = K::KIND;
    type Object = K;
    type Status = K::Status;
    type Observed = Observed<K>;
    type Action = Action;

    fn shelf(&self) -> &Shelf<K> {
        &self.shelf
    }

    fn status(object: &K) -> Option<&K::Status> {
        object.stored()
    }

    fn object(observed: &Observed<K>) -> Option<&K> {
        observed.object.as_deref()
    }

    async fn gather(&self, key: &Key, now: Timestamp) -> Result<Observed<K>, Fault> {
        let object = self.shelf.get(key);
        let missing = match &object {
            Some(object) => self.missing(object, key).await?,
            None => Vec::new(),
        };
        let outside = object.as_ref().and_then(|object| object.outside());
        let reach = &self.context.egress.reach;
        let is_signal = K::KIND == Kind::Signal;
        let last_delivery = is_signal.then(|| self.shelves.last_delivery(key)).flatten();
        Ok(Observed {
            wants_look: outside.is_some_and(|outside| outside.is_wanted(reach)),
            look: object
                .as_deref()
                .and_then(|object| self.looks.about(object)),
            object,
            missing,
            around: Around {
                now,
                last_delivery,
                deprecated: self.context.deprecated.clone(),
                is_reached: false,
            },
        })
    }

    fn plan(&self, observed: &Observed<K>) -> Plan<Action, K::Status> {
        plan::plan(observed)
    }

    async fn act(&self, observed: &Observed<K>, action: &Action) -> Result<bool, Fault> {
        match (action, &observed.object) {
            (Action::Look, Some(object)) => self.look(object).await,
            (Action::Look, None) => Ok(false),
        }
    }

    fn failed(&self, object: &K, fault: &Fault) -> Option<Standing<K::Status>> {
        failed(object, fault)
    }
}

/// Looks again at an object that came or changed.
pub(in crate::controller) fn on_change<K: Statused>(work: Work) -> Told<K> {
    Arc::new(move |change| match change {
        Change::Applied { object, .. } => {
            let priority = match is_judged(&**object) {
                true => Priority::Resync,
                false => Priority::Create,
            };
            work.add(Key::of(&**object), priority);
        }
        Change::Deleted { .. } => {}
    })
}

/// Looks again at everything in a namespace in which something came or went that others need.
pub(in crate::controller) fn on_need<K, N>(work: Work, shelf: Arc<Shelf<K>>) -> Told<N>
where
    K: Plain,
    N: Thing + Send + Sync + 'static,
{
    Arc::new(move |change| {
        let Some(object) = change.came_or_went() else {
            return;
        };
        let namespace = object.namespace().unwrap_or_default();
        for waiting in shelf.in_namespace(&namespace, |_| true) {
            work.add(Key::of(&*waiting), Priority::Create);
        }
    })
}

/// Looks again at the Signal of a delivery.
pub(in crate::controller) fn on_delivery(signals: Work) -> Told<SignalDelivery> {
    Arc::new(move |change| {
        if let Change::Applied { object, .. } = change {
            let namespace = object.namespace().unwrap_or_default();
            let signal = &object.spec.signal_ref.name;
            signals.add(Key::new(namespace, signal), Priority::Create);
        }
    })
}
